"""``import_files``: one chain a session, lossless, repeatable, never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from claude_sessions import answer, lines, result, use, user
from importing import FOLDER, INDEX, events, files_below, one, prompt
from playhead.convert.originals import originals
from playhead.core.model import Verdict
from playhead.errors import UsageError
from playhead.store.recipes import restore
from playhead.store.root import Root
from playhead.verifier.api import verify


@pytest.fixture
def place(root: Path) -> Root:
    return Root(root)


@pytest.mark.parametrize("name", sorted(INDEX))
def test_every_vector_becomes_a_chain_that_verifies_and_gives_its_bytes_back(
    place: Root, name: str
) -> None:
    done = one(place, FOLDER / name)
    want = INDEX[name]
    assert done.status == want["status"]
    assert sorted({f.kind for f in done.findings}) == want["findings"]
    assert done.ok == ("no-turns" not in want["findings"])
    report = verify(place.journal_dir(done.run_id), root=place)
    assert report.verdict is not Verdict.FAILED and report.head == done.head
    assert report.steps == done.steps
    for original in originals(place.journal_dir(done.run_id)):
        data = b"".join(restore(place.cas, original.recipe))
        assert data == ((FOLDER / name).parent / original.name).read_bytes()
        assert original.size == len(data)


def test_the_first_events_name_run_and_source(place: Root) -> None:
    done = one(place, FOLDER / "C19_rewind_then_compact.jsonl", agent="Scout")
    found = events(place, done.run_id)
    assert [e.type for e in found[:2]] == ["run.started", "source.imported"]
    about = found[1].payload
    assert about["format"] == "claude-code" and about["session_id"] == "S" and about["cwd"] == "/w"
    assert about["branches"][0]["leaf"] == "a4"  # type: ignore[index]
    assert about["findings"][0]["kind"] == "abandoned-branch"  # type: ignore[index]
    assert found[-1].type == "run.ended" and found[-1].payload["status"] == "incomplete"
    assert done.run_id.startswith("scout-") and found[0].name == "Scout"
    assert found[2].payload["source"] == {
        "file": 0,
        "line": 1,
        "byte": 0,
        "sha256": found[2].payload["source"]["sha256"],  # type: ignore[index]
    }


def test_prompts_are_rebuilt_from_the_chain(place: Root, tmp_path: Path) -> None:
    rows, parent = [], None
    for n in range(6):
        rows.append(user(f"u{n}", f"question {n}", parent))
        rows.append(answer(f"a{n}", [use(f"t{n}")], f"u{n}", id=f"m{n}"))
        rows.append(user(f"r{n}", [result(f"t{n}", f"out {n}")], f"a{n}"))
        rows.append(answer(f"b{n}", f"done {n}", f"r{n}", id=f"n{n}"))
        parent = f"b{n}"
    file = tmp_path / "S.jsonl"
    file.write_bytes(lines(*rows))
    found = events(place, one(place, file).run_id)
    asked = [e.seq for e in found if e.type == "model.requested"]
    said = [row["message"] for row in rows]
    flat = [{"role": m["role"], "content": m["content"]} for m in said]  # type: ignore[index]
    assert [prompt(found, seq) for seq in asked] == [flat[: 2 * n + 1] for n in range(len(asked))]
    text = "".join(str(e.prompt) for e in found)
    assert text.count("question 0") == 1 and text.count("done 0") == 0


def test_subagents_are_linked_by_agent_id(place: Root) -> None:
    done = one(place, FOLDER / "C22_subagent" / "S.jsonl")
    found = events(place, done.run_id)
    assert done.counts["subagents"] == 2 and done.findings == ()
    links = {
        e.subagent_run_id: e.payload["tool_use_id"] for e in found if e.type == "subagent.started"
    }
    assert links == {"ag1": "t1", "ag2": "t2"}
    answers = {
        e.subagent_run_id: e.payload["result"]["content"][0]["text"]  # type: ignore[index]
        for e in found
        if e.type == "model.responded" and e.subagent_run_id
    }
    assert answers == {"ag1": "found x", "ag2": "found y"}
    order = [(e.type, e.payload.get("call_id")) for e in found if e.subagent_run_id is None]
    assert order.index(("tool.completed", "t1")) < order.index(("tool.completed", "t2"))
    names = [original.name for original in originals(place.journal_dir(done.run_id))]
    assert names == ["S.jsonl", "S/subagents/agent-ag1.jsonl", "S/subagents/agent-ag2.jsonl"]


@pytest.mark.parametrize("spelling", ["S__subagents__agent-ag3.jsonl", "agent-ag3.jsonl"])
def test_a_child_that_nothing_names_is_attached_to_the_root(
    place: Root, tmp_path: Path, spelling: str
) -> None:
    shutil.copytree(FOLDER / "C22_subagent", tmp_path / "s")
    child = (tmp_path / "s/S/subagents/agent-ag1.jsonl").read_bytes().replace(b"ag1", b"ag3")
    (tmp_path / "s" / spelling).write_bytes(child)
    (tmp_path / "s/S/subagents/agent-ag3.meta.json").write_bytes(b'{"agentType":"scout"}')
    done = one(place, tmp_path / "s/S.jsonl")
    assert [f.kind for f in done.findings] == ["subagent-unlinked"]
    [started] = [
        e
        for e in events(place, done.run_id)
        if e.type == "subagent.started" and e.subagent_run_id == "ag3"
    ]
    assert started.payload["link"] == "root" and started.name == "scout"


def test_an_older_agent_file_of_another_session_is_left_alone(place: Root, tmp_path: Path) -> None:
    (tmp_path / "S.jsonl").write_bytes(lines(user("u1", "hi")))
    (tmp_path / "agent-x.jsonl").write_bytes(lines(user("u1", "hi") | {"sessionId": "other"}))
    assert one(place, tmp_path / "S.jsonl").counts["subagents"] == 0


def test_a_child_named_alone_is_a_run_and_named_with_its_parent_is_not(place: Root) -> None:
    session = FOLDER / "C22_subagent" / "S.jsonl"
    child = FOLDER / "C22_subagent" / "S" / "subagents" / "agent-ag1.jsonl"
    assert one(place, child).counts["turns"] == 1
    assert one(place, child, session).counts["subagents"] == 2


def test_importing_twice_finds_the_same_run(place: Root) -> None:
    file = FOLDER / "C17_split_reply_same_message_id.jsonl"
    first = one(place, file)
    before = files_below(place.path)
    again = one(place, file)
    assert again.already and not first.already
    assert (again.run_id, again.head, again.steps) == (first.run_id, first.head, first.steps)
    assert again.findings[-1].what == f"already imported as {first.run_id}"
    assert files_below(place.path) == before and list(place.runs()) == [first.run_id]


def test_a_session_that_grew_is_another_run(place: Root, tmp_path: Path) -> None:
    file = tmp_path / "S.jsonl"
    file.write_bytes(lines(user("u1", "hi")))
    first = one(place, file)
    file.write_bytes(lines(user("u1", "hi"), answer("a2", "ok", "u1")))
    assert one(place, file).run_id != first.run_id


def test_a_run_id_that_holds_something_else_is_refused(place: Root) -> None:
    one(place, FOLDER / "C09_unknown_type.jsonl", run_id="mine")
    assert one(place, FOLDER / "C09_unknown_type.jsonl", run_id="mine").already
    with pytest.raises(UsageError, match="holds something else"):
        one(place, FOLDER / "C05_u2028_nel.jsonl", run_id="mine")


def test_an_import_that_stopped_half_way_is_told(place: Root) -> None:
    file = FOLDER / "C17_split_reply_same_message_id.jsonl"
    done = one(place, file)
    journal = place.journal_dir(done.run_id) / "000000.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(True)[:-2]))
    again = one(place, file)
    assert not again.ok and again.findings[-1].kind == "unfinished-import"


def test_progress_is_told_from_none_to_all(place: Root, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(lines(*(user(f"u{n}", f"question {n}") for n in range(150))))
    told: list[tuple[str, int, int]] = []
    done = one(place, file, progress=lambda *parts: told.append(parts))
    total = done.steps - 3  # run.started, source.imported and run.ended are no entries
    assert total > 100
    counts = [written for _, written, _ in told]
    assert counts == [*range(0, total, 100), total]
    assert {(name, all_) for name, _, all_ in told} == {(str(file), total)}


def test_an_import_keeps_the_times_of_the_source(place: Root, tmp_path: Path) -> None:
    file = tmp_path / "S.jsonl"
    file.write_bytes(
        lines(
            {"type": "mode", "mode": "x"},
            user("u1", "hi", timestamp="2026-01-01T10:00:00Z"),
            answer("a2", "ok", "u1", timestamp="2026-01-01T12:00:00"),
        )
    )
    found = events(place, one(place, file).run_id)
    assert {e.at for e in found} == {"2026-01-01T10:00:00.000000Z"}


def test_real_sessions_import_and_come_back_byte_for_byte(place: Root, shared: Path) -> None:
    folder = shared / "realdata" / "claude-code"
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        pytest.skip(f"no sessions in {folder}")
    for file in files:
        done = one(place, file)
        assert done.ok and done.counts["turns"], file.name
        assert verify(place.journal_dir(done.run_id), root=place).verdict is not Verdict.FAILED
        for original in originals(place.journal_dir(done.run_id)):
            data = b"".join(restore(place.cas, original.recipe))
            assert data == (folder / original.name).read_bytes()
