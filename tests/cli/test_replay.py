"""`playhead replay`: every kind of run, cache, proofs, many chats, and what cuts it short."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import playhead
from commands import Cli
from playhead.replay.cache import CacheEntry, SqliteCache
from playhead.store.seal import seal_folder
from story import a_run, changed_byte, foreign, journal, two_runs

BUILT_IN = ["messages", "turns", "tool_calls", "usage", "state", "stamps", "anomalies"]


def document(cli: Cli, *words: str) -> dict[str, Any]:
    done = cli("replay", *words, "--json")
    assert (done.status, done.err) == (0, ""), done
    assert done.out.isascii()
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def below(root: Path, run_id: str, data: bytes) -> None:
    folder = root / "runtime" / "journal" / run_id
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(data)


# -- to a place


def test_the_document_is_the_state_whole(cli: Cli) -> None:
    a_run()
    found = document(cli, "first", *[word for key in BUILT_IN for word in ("--state", key)])
    assert found["rows"] == found["sequence_number"] == 15
    assert found["state"]["eventCount"] == 15
    assert list(found["projections"]) == BUILT_IN
    assert found["report"]["verdict"] == "verified"
    assert found["head"] == json.loads(journal().read_bytes().splitlines()[-1])["step_hash"]
    assert found["projections"]["turns"][0]["turn_id"] == "turn-1"


@pytest.mark.parametrize("more", [(), ("--snapshots", "off"), ("--snapshots", "verify")])
@pytest.mark.parametrize("verify", [(), ("--verify-mode", "step"), ("--verify-mode", "off")])
def test_every_way_to_a_row_gives_the_same_state(
    cli: Cli, more: tuple[str, ...], verify: tuple[str, ...]
) -> None:
    a_run()
    plain = document(cli, "first", "--seek", "10", "--state", "turns")
    found = document(cli, "first", "--seek", "10", "--state", "turns", *more, *verify)
    turn = document(cli, "first", "--turn", "turn-1", "--state", "turns", *more, *verify)
    step = document(cli, "first", "--from-step", "10", "--state", "turns", *more, *verify)
    for one in (found, turn, step):
        assert one["state_digest"] == plain["state_digest"]
        assert (one["head"], one["sequence_number"]) == (plain["head"], 10)
    assert [event["step"] for event in turn["events"]] == list(range(1, 10))
    assert [event["step"] for event in step["events"]] == list(range(10, 15))


def test_a_row_is_the_step_before_it(cli: Cli) -> None:
    """Behind row N stands the state that `show N-1` tells."""
    a_run()
    for row in (1, 9, 15):
        shown = json.loads(cli("show", "first", str(row - 1), "--json").out)
        found = document(cli, "first", "--seek", str(row))
        assert found["head"] == shown["step_hash"]
        assert found["state"]["eventCount"] == shown["state"]["eventCount"] == row


def test_the_turn_after_a_turn_begins_where_it_started(cli: Cli) -> None:
    a_run()
    turns = document(cli, "first", "--state", "turns")["projections"]["turns"]
    found = document(cli, "first", "--turn", turns[1]["turn_id"])
    assert [event["step"] for event in found["events"]] == [10, 11, 12, 13]


def test_a_large_state_is_cut_as_text_and_never_as_json(cli: Cli) -> None:
    with playhead.record("asker", run_id="many") as run:
        for number in range(30):
            run.event("interrupt.raised", {"interrupt_id": f"i{number}", "why": "x" * 1000})
    done = cli("replay", "many")
    assert "more lines (--state core or --json shows all)" in done.out
    assert max(map(len, done.out.splitlines())) < 410
    whole = cli("replay", "many", "--state", "core").out
    assert "more lines" not in whole
    assert whole.count("x" * 1000) == 30
    assert len(document(cli, "many")["state"]["interrupts"]) == 30


def test_what_was_recorded_drives_no_terminal(cli: Cli) -> None:
    a_run()
    for words in ([], ["--from-step", "0"], ["--turn", "turn-1"], ["--state", "messages"]):
        done = cli("replay", "first", *words)
        assert done.status == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out)


# -- every kind of run


def test_an_empty_run(cli: Cli, root: Path) -> None:
    below(root, "none", b"")
    found = document(cli, "none")
    assert (found["rows"], found["head"]) == (0, "0" * 64)
    assert cli("replay", "none", "--verify").status == 0
    for words in (["--seek", "1"], ["--from-step", "0"]):
        done = cli("replay", "none", *words)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert "the run has no" in done.err


def test_a_foreign_run(cli: Cli, root: Path, here: Path) -> None:
    foreign()
    below(root, "notes", Path("notes.jsonl").read_bytes())
    found = document(cli, "notes")
    assert (found["chat_id"], found["state"]["eventCount"]) == ("notes", 1)
    assert cli("replay", "notes", "--verify").status == 0
    assert cli("replay", "notes", "--verify", "--strict").status == 3
    assert "not proven: that the end is the end" in cli("replay", "notes").out
    done = cli("replay", "notes", "--proof", "1")
    assert (done.status, done.out) == (1, "")
    assert "no signed head of a trusted key" in done.err


def test_a_sealed_run(cli: Cli, root: Path) -> None:
    a_run()
    before = document(cli, "first", "--state", "messages")
    seal_folder(root / "runtime" / "journal" / "first")
    after = document(cli, "first", "--state", "messages")
    assert after["state_digest"] == before["state_digest"]
    assert after["head"] == before["head"]
    assert cli("replay", "first", "--verify", "--strict").status == 0
    assert cli("replay", "first", "--seek", "3").status == 0


def test_an_imported_run(cli: Cli, repo: Path) -> None:
    assert cli("import", str(repo / "docs" / "examples" / "session.jsonl")).status == 0
    found = document(cli, "@last", "--state", "turns")
    assert found["state"]["eventCount"] == found["rows"] > 5
    assert found["projections"]["turns"]
    assert cli("replay", "@last", "--verify").status == 0


def test_a_run_in_sqlite_is_the_same_run(cli: Cli, here: Path) -> None:
    url = "sqlite:///runs.db"
    with playhead.record("tester", root=url, run_id="kept", tenant_id="acme") as run:
        with run.turn("hello") as turn:
            turn.output = "hello!"
        head = run.head
    words = ["kept", "--root", url, "--tenant", "acme"]
    assert document(cli, *words)["head"] != head  # run.ended came after it
    assert cli("replay", *words, "--verify", "--strict").status == 0
    assert cli("replay", *words, "--proof", "2", "-o", "row.json").status == 0
    assert cli("verify", "row.json").status == 0
    assert cli("replay", "kept", "--root", url).status == 2
    assert cli("replay", *words[:3], "--tenant", "other").status == 2
    done = cli("replay", "--all", "--root", url, "--tenant", "acme", "--jobs", "2", "--json")
    (tenant,) = json.loads(done.out)["tenants"]
    assert [chat["verdict"] for chat in tenant["chats"]] == ["verified"]
    missing = cli("replay", "kept", "--root", "sqlite:///nope.db", "--tenant", "acme")
    assert missing.status == 2
    assert not Path("nope.db").exists()


def test_two_runs_of_one_chat_name_are_two_runs(cli: Cli, root: Path, here: Path) -> None:
    """The run that was named is replayed, not another one that bears its chat's name."""
    a_run()
    rows = journal().read_bytes().splitlines(keepends=True)
    below(root, "copy", b"".join(rows[:4]))
    found = document(cli, "copy")
    assert (found["run_id"], found["chat_id"], found["rows"]) == ("copy", "first", 4)
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "000000.jsonl").write_bytes(b"".join(rows[:6]))
    assert document(cli, "./elsewhere")["rows"] == 6


def test_a_line_that_is_no_row(cli: Cli, root: Path) -> None:
    a_run()
    lines = journal().read_bytes().splitlines(keepends=True)
    below(root, "odd", b"".join([*lines[:3], b"no row\n", *lines[3:6]]))
    assert cli("replay", "odd").status == 1
    off = cli("replay", "odd", "--verify-mode", "off")
    assert (off.status, off.out) == (1, "")
    assert "event 4 has no usable type" in off.err
    found = document(cli, "odd", "--verify-mode", "off", "--unreadable", "count")
    assert found["state"]["eventCount"] == 7
    assert found["report"] is None


def test_a_changed_row_says_its_place(cli: Cli) -> None:
    changed_byte()
    done = cli("replay", "first", "--verify", "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["report"]["findings"][0]["where"]["line"] == 6
    assert found["replay"]["deterministic"] is None
    done = cli("replay", "first", "--json")
    assert done.status == 1
    assert json.loads(done.out)["code"] == "replay-divergence"


# -- the gate


def test_a_fold_that_is_not_one_is_told_with_its_place(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A projection that keeps a counter between calls: two handles see two states."""
    from playhead.core.projections import Usage
    from playhead.replay import gate

    class Leaky(Usage):
        calls = 0

        def apply(self, state: object, event: Any) -> object:
            Leaky.calls += event.seq >= 3
            return super().apply(state, event)

        def view(self, state: object) -> Any:
            return Leaky.calls

    a_run()
    monkeypatch.setattr(gate, "BUILT_IN", (Leaky(),))
    done = cli("replay", "first", "--verify")
    assert done.status == 1
    assert done.out.startswith("verified  first  15 steps")
    assert "diverges at row" in done.out
    assert json.loads(cli("replay", "first", "--verify", "--json").out)["status"] == 1


# -- the cache


@pytest.fixture
def cached(here: Path) -> str:
    """A run with one answered request, and the key under which it is looked up."""
    said = [{"role": "user", "content": "a"}]
    with (
        playhead.record("asker", run_id="asked") as run,
        run.turn("hello"),
        run.model_call("m-1", said) as call,
    ):
        call.respond({"role": "assistant", "content": "b"})
    rows = Path(os.environ["PLAYHEAD_ROOT"], "runtime", "journal", "asked", "000000.jsonl")
    for line in rows.read_bytes().splitlines():
        key = json.loads(line)["tool_call"]["payload"].get("cache_key")
        if key:
            return str(key)
    raise AssertionError("no row with a cache key")


def put(key: str) -> None:
    async def one() -> None:
        cache = SqliteCache("answers.db")
        await cache.put(key, CacheEntry({"content": "b"}, "prod"), tenant_id="local")
        cache.close()

    asyncio.run(one())


def test_a_hit_a_miss_and_what_each_mode_makes_of_them(cli: Cli, cached: str) -> None:
    put("ck1:" + "0" * 64)
    miss = cli("replay", "asked", "--cache", "answers.db")
    assert (miss.status, miss.out, miss.err.count("\n")) == (1, "", 1)
    assert cached[:24] in miss.err
    assert "is not in the cache under cross-mode-readable" in miss.err
    live = cli("replay", "asked", "--cache", "answers.db", "--cache-mode", "best-effort")
    assert live.status == 0
    assert "cache    hits 0, misses 0, live " in live.out
    forbidden = cli("replay", "asked", "--cache", "answers.db", "--cache-mode", "strict-mode")
    assert forbidden.status == 1
    assert "may not be read under strict-mode" in forbidden.err
    nothing = document(cli, "asked", "--cache-mode", "strict-mode")
    assert nothing["cache"] is None


def test_hits_are_counted(cli: Cli, cached: str) -> None:
    put(cached)
    words = ["asked", "--cache", "answers.db", "--cache-mode", "best-effort"]
    found = document(cli, *words)
    assert found["cache"]["hits"] >= 1
    assert found["state_digest"] == document(cli, "asked")["state_digest"]
    lines = cli("replay", *words, "--from-step", "2")
    assert "cache    hits " in lines.out


def test_a_file_that_is_no_cache_is_refused(cli: Cli, cached: str) -> None:
    Path("answers.db").write_bytes(b"no database at all" * 20)
    done = cli("replay", "asked", "--cache", "answers.db")
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert "answers.db" in done.err


# -- proofs


def test_a_proof_on_stdout_is_the_proof_in_a_file(cli: Cli) -> None:
    a_run()
    assert cli("replay", "first", "--proof", "3", "-o", "row.json").status == 0
    assert stat.S_IMODE(Path("row.json").stat().st_mode) == 0o600
    process = spawn("replay", "first", "--proof", "3")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out == Path("row.json").read_bytes()


def test_a_row_behind_the_signed_head_is_not_covered_yet(cli: Cli, root: Path, state: Path) -> None:
    a_run()
    notes = [*root.rglob("first.checkpoint*"), *state.rglob("*")]
    before = {note: note.read_bytes() for note in notes if note.is_file()}
    with playhead.Journal.open(journal().parent) as chain:
        chain.append(input_hash="", prompt="and on")
    for note, data in before.items():  # as if the head was not signed yet
        note.write_bytes(data)
    done = cli("replay", "first", "--proof", "16")
    assert (done.status, done.out) == (1, "")
    assert "row 16 is not covered yet: the last signed head ends at row 15. A head is" in done.err


def test_a_head_that_grew(cli: Cli, root: Path) -> None:
    a_run()
    note = (root / "heads" / "first.checkpoint").read_bytes()
    Path("old.note").write_bytes(note)
    with playhead.Journal.open(journal().parent) as chain:
        chain.append(input_hash="", prompt="and on")
    done = cli("replay", "first", "--consistency", "old.note", "-o", "grown.json")
    assert done.status == 0, done
    assert cli("verify", "grown.json").out.startswith("verified  grown.json  16 steps")
    with playhead.record("other", run_id="second"):
        pass
    Path("other.note").write_bytes((root / "heads" / "second.checkpoint").read_bytes())
    other = cli("replay", "first", "--consistency", "other.note")
    assert other.status == 1
    assert "one of run second" in other.err
    Path("noise.note").write_bytes(b"\xff" * 40)
    assert cli("replay", "first", "--consistency", "noise.note").status == 1


# -- many chats, interrupts, pipes


def spawn(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "playhead", *arguments], **pipes | more)


def test_processes_give_what_one_process_gives(cli: Cli) -> None:
    two_runs()
    words = ["replay", "--all", "--tenant", "local", "--merged", "--json"]
    one = cli(*words, "--jobs", "1")
    many = cli(*words, "--jobs", "2")
    assert (one.status, many.status, many.err) == (0, 0, "")
    assert one.out == many.out
    assert json.loads(one.out)["merged"]["eventCount"] == 17


def test_a_failing_chat_does_not_hide_the_others(cli: Cli) -> None:
    changed_byte()
    with playhead.record("other", run_id="second"):
        pass
    done = cli("replay", "--all", "--tenant", "local", "--jobs", "1", "--json")
    found = json.loads(done.out)
    assert (done.status, found["status"]) == (1, 1)
    first, second = found["tenants"][0]["chats"]
    assert first["error"]["code"] == "replay-divergence"
    assert second["verdict"] == "verified"


@pytest.mark.parametrize("group", [True, False], ids=["terminal", "parent"])
def test_ctrl_c_ends_all_workers_with_one_line(group: bool) -> None:
    """From a terminal every process gets the signal; from a supervisor only the parent."""
    for number in range(6):
        with playhead.record("busy", run_id=f"run-{number}") as run:
            for step in range(400):
                run.state("number", step)
    process = spawn("replay", "--all", "--tenant", "local", "--jobs", "2", start_new_session=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.communicate(timeout=60)
        pytest.skip("this system does not list children")
    while process.poll() is None and not children.read_text().split():
        pass
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, 0)  # 0: it was done before the signal came
    if process.returncode == 130:
        assert err.strip().endswith(b"playhead: interrupted")
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_is_no_error() -> None:
    with playhead.record("long", run_id="long") as run:
        for number in range(2000):
            run.state("number", "x" * 100 + str(number))
    process = spawn("replay", "long", "--from-step", "0")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_interrupt_on_the_way_is_status_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from playhead.replay import report

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    a_run()
    monkeypatch.setattr(report.Replay, "to_row", interrupted)
    done = cli("replay", "first")
    assert (done.status, done.out, done.err) == (130, "", "playhead: interrupted\n")


def test_the_gate_says_how_far_it_is(cli: Cli, root: Path) -> None:
    """Every row is told as often as it is read, and the last one is the end."""
    from playhead.replay.gate import gate_run
    from playhead.store.dirstore import DirStore
    from playhead.store.root import Root

    a_run()
    store = DirStore(Root(root))
    told: list[tuple[int, int]] = []
    gate = gate_run(store, store.find_run("local", "first"), lambda *told_: told.append(told_))
    assert gate.ok
    assert told == [(number, 60) for number in range(1, 61)]
