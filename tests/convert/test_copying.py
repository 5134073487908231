"""A run copied between stores: the same bytes, the same head, the same states."""

from __future__ import annotations

import itertools
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead
from playhead.convert.copying import copy_run
from playhead.convert.importer import import_files
from playhead.errors import CheckFailed, JournalBroken, UsageError
from playhead.store.keys import KeyRing, state_dir
from playhead.store.stores import ChainRef, Store
from playhead.store.urls import open_store
from playhead.verifier.target import verify_chain
from postgres import Site
from story import a_run, foreign

KINDS = ["memory", "directory", "sqlite", "postgresql"]


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path):
    """Open an empty store of a kind; a second one of the same kind is another one."""
    made: list[Store] = []
    count = itertools.count()

    def of(kind: str) -> Store:
        number = next(count)
        if kind == "postgresql":
            server = request.getfixturevalue("pg_server")
            site: Site = server.site()
            place = site.url()
        else:
            place = {
                "memory": "memory://",
                "directory": str(tmp_path / f"dir{number}"),
                "sqlite": f"sqlite:///{tmp_path / f'{number}.db'}",
            }[kind]
        made.append(open_store(place))
        return made[-1]

    yield of
    for store in made:
        store.close()


def rows(store: Store, ref: ChainRef) -> bytes:
    lines = store.lines(ref)
    try:
        return b"".join(lines.blocks())
    finally:
        lines.close()


def notes(store: Store, ref: ChainRef) -> list[str]:
    trusted = KeyRing(state_dir()).trusted()
    return [seen.note for seen in store.heads(ref).read(trusted) if seen.head is not None]


def recorded(root: Path) -> tuple[Store, ChainRef]:
    a_run()
    store = open_store(str(root))
    return store, store.find_run("local", "first")


@pytest.mark.parametrize(("one", "two"), [*itertools.product(KINDS, KINDS)])
def test_from_each_store_into_each(root: Path, stores: Callable[[str], Store], one, two) -> None:
    home, ref = recorded(root)
    first, second = stores(one), stores(two)
    there = copy_run(home, ref, first)
    assert (there.same, there.outcome, there.written) == (True, "copied", 15)
    middle = first.find_run("local", "first")
    again = copy_run(first, middle, second)
    assert again.same
    end = second.find_run("local", "first")
    plain = (root / "runtime" / "journal" / "first" / "000000.jsonl").read_bytes()
    assert rows(first, middle) == rows(second, end) == plain
    assert set(notes(second, end)) == set(notes(home, ref))
    assert verify_chain(second, end).verdict.value == "verified"
    assert again.target.state == there.source.state
    back = copy_run(second, end, first)
    assert (back.outcome, back.written, back.same) == ("already there", 0, True)


@pytest.mark.parametrize("kind", KINDS)
def test_an_import_takes_its_original_along(
    root: Path, stores: Callable[[str], Store], kind: str, repo: Path, tmp_path: Path
) -> None:
    from playhead.convert.exporter import export_jsonl

    session = repo / "docs" / "examples" / "session.jsonl"
    (done,) = import_files(str(root), [session])
    home, target = open_store(str(root)), stores(kind)
    copied = copy_run(home, home.find_run("local", done.run_id), target)
    assert (copied.same, copied.missing_blobs) == (True, 0)
    ref = target.find_run("local", done.run_id)
    export_jsonl(target, ref, tmp_path / "back.jsonl", original=True)
    assert (tmp_path / "back.jsonl").read_bytes() == session.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tail", [b"", b'{"seq": 15, "prev', b"\xff\xfe"])
def test_half_a_row_stays_behind(
    root: Path, stores: Callable[[str], Store], kind: str, tail: bytes
) -> None:
    a_run()
    file = root / "runtime" / "journal" / "first" / "000000.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + tail)
    home, target = open_store(str(root)), stores(kind)
    assert copy_run(home, home.find_run("local", "first"), target).same
    assert rows(target, target.find_run("local", "first")) == whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [1, 7, 14])
def test_a_shorter_copy_is_continued(
    root: Path, stores: Callable[[str], Store], kind: str, kept: int
) -> None:
    home, ref = recorded(root)
    target = stores(kind)
    lines = rows(home, ref).split(b"\n")[:kept]
    chain = target.open_chain("local", ref.chat_id, run_id="first")
    chain.append_lines(lines)
    chain.close()
    done = copy_run(home, ref, target)
    assert (done.outcome, done.written, done.same) == ("continued", 15 - kept, True)


@pytest.mark.parametrize("kind", KINDS)
def test_another_chain_under_the_name_is_left_alone(
    root: Path, stores: Callable[[str], Store], kind: str
) -> None:
    home, ref = recorded(root)
    target = stores(kind)
    with playhead.record("other", root=target, run_id="first") as run:
        run.state("x", 1)
    before = rows(target, target.find_run("local", "first"))
    with pytest.raises(UsageError, match="another chain"):
        copy_run(home, ref, target)
    assert rows(target, target.find_run("local", "first")) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_grew_in_the_target_is_left_alone(
    root: Path, stores: Callable[[str], Store], kind: str
) -> None:
    home, ref = recorded(root)
    target = stores(kind)
    copy_run(home, ref, target)
    with playhead.record("tester", root=target, run_id="first") as run:
        run.state("x", 1)
    before = rows(target, target.find_run("local", "first"))
    with pytest.raises(UsageError, match="another chain"):
        copy_run(home, ref, target)
    assert rows(target, target.find_run("local", "first")) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_fails_is_not_copied(
    root: Path, stores: Callable[[str], Store], kind: str
) -> None:
    a_run()
    file = root / "runtime" / "journal" / "first" / "000000.jsonl"
    file.write_bytes(file.read_bytes().replace(b"a.txt", b"b.txt", 1))
    home, target = open_store(str(root)), stores(kind)
    ref = home.find_run("local", "first")
    with pytest.raises(CheckFailed, match="does not verify"):
        copy_run(home, ref, target)
    assert target.list_chats("local") == []


def test_a_directory_that_is_written_is_its_owners_only(
    root: Path, stores: Callable[[str], Store], tmp_path: Path
) -> None:
    home, ref = recorded(root)
    old = os.umask(0)
    try:
        target = stores("directory")
        copy_run(home, ref, target)
    finally:
        os.umask(old)
    folder = target.folder(target.find_run("local", "first"))
    assert folder is not None
    for path in [*folder.rglob("*"), folder]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_foreign_journal_goes_into_a_directory_as_local_only(
    stores: Callable[[str], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    foreign()
    given = (tmp_path / "notes.jsonl").read_bytes()
    folder = tmp_path / "given" / "runtime" / "journal" / "theirs"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(given)
    home = open_store(str(tmp_path / "given"))
    ref = home.find_run("local", "theirs")
    for kind in KINDS:
        target = stores(kind)
        assert copy_run(home, ref, target).same
        assert rows(target, target.find_run("local", "theirs")) == given
    database = stores("sqlite")
    chain = database.open_chain("acme", "theirs")
    chain.append_lines(given.splitlines())
    chain.close()
    target = stores("directory")
    with pytest.raises(UsageError, match="whose a run is"):
        copy_run(database, database.find_run("acme", "theirs"), target)
    assert target.list_chats("acme") == target.list_chats("local") == []


KILLED = """
import os, signal, sys
from playhead.convert import copying
from playhead.store.urls import open_store

copying._ROWS = 1
home, target, at = open_store(sys.argv[1]), open_store(sys.argv[2]), int(sys.argv[3])

def watch(done, total):
    if done == at:
        os.kill(os.getpid(), signal.SIGKILL)

copying.copy_run(home, home.find_run("local", "first"), target, progress=watch)
"""


@pytest.mark.crash
@pytest.mark.parametrize("kind", ["directory", "sqlite", "postgresql"])
def test_a_copy_that_is_killed_is_finished_by_the_next(
    root: Path, pg: Site, tmp_path: Path, kind: str, kills: int
) -> None:
    home, ref = recorded(root)
    for number in range(1, 15, max(1, 15 // kills)):
        place = {
            "directory": str(tmp_path / f"target{number}"),
            "sqlite": f"sqlite:///{tmp_path / f'{number}.db'}",
            "postgresql": pg.server.site().url(),
        }[kind]
        command = [sys.executable, "-c", KILLED, str(root), place, str(number)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        target = open_store(place)
        there = target.find_run("local", "first")
        assert verify_chain(target, there).ok
        assert rows(home, ref).startswith(rows(target, there))
        done = copy_run(home, ref, target)
        assert done.same
        assert done.written == 15 - number
        target.close()


def test_a_demo_replays_identically_from_three_stores_shown_by_one_command(
    cli_run: Callable[..., tuple[int, str]], pg: Site, tmp_path: Path
) -> None:
    """The must-show: journal, SQLite and PostgreSQL, same states, same head, one command."""
    from playhead.demo.story import tell

    demo = tmp_path / "demo"
    assert tell(lambda line="": None, demo, color=False) == 0
    store = next(
        found
        for path in [demo, *sorted(demo.rglob("*"))]
        if path.is_dir() and (found := open_store(str(path))).list_chats("local")
    )
    (ref,) = [one for one in store.list_chats("local") if verify_chain(store, one).ok][:1]
    where = store.url.removeprefix("file://")
    targets = ["--to", f"sqlite:///{tmp_path / 'demo.db'}", "--to", pg.url()]
    status, out = cli_run("copy", ref.run_id, "--root", where, *targets, "--json")
    assert status == 0
    copies = json.loads(out)["copies"]
    assert [copy["verdict"] for copy in copies] == ["same", "same"]
    for key in ("rows", "head", "root", "state"):
        assert len({side[key] for copy in copies for side in (copy["source"], copy["target"])}) == 1
    status, out = cli_run("copy", ref.run_id, "--root", where, *targets)
    assert status == 0
    assert out.count("same (already there)") == 2


@pytest.fixture
def cli_run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    from playhead.cli.main import run

    def call(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = run(words)
        return status, capsys.readouterr().out

    return call


def odd(line: bytes) -> bytes:
    """The same row, spelled as another writer might: other order, spaces, escapes."""
    row = json.loads(line)
    text = json.dumps(dict(reversed(row.items())), ensure_ascii=False, separators=(" , ", " :  "))
    return b"  " + text.encode("utf-8") + b" \t"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_rows_keep_an_odd_spelling(
    root: Path, stores: Callable[[str], Store], tmp_path: Path, kind: str, end: bytes
) -> None:
    a_run()
    plain = (root / "runtime" / "journal" / "first" / "000000.jsonl").read_bytes()
    given = b"".join(odd(line) + end for line in plain.splitlines())
    folder = tmp_path / "odd" / "runtime" / "journal" / "first"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(given)
    home, target = open_store(str(tmp_path / "odd")), stores(kind)
    done = copy_run(home, home.find_run("local", "first"), target)
    assert done.same
    assert rows(target, target.find_run("local", "first")) == given


@pytest.mark.parametrize("kind", KINDS)
def test_unverified_takes_rows_that_follow_and_no_others(
    root: Path, stores: Callable[[str], Store], kind: str
) -> None:
    a_run()
    file = root / "runtime" / "journal" / "first" / "000000.jsonl"
    whole = file.read_bytes()
    cut = b"".join(whole.splitlines(keepends=True)[:9])
    file.write_bytes(cut)  # the signed head says that there were more
    home, target = open_store(str(root)), stores(kind)
    ref = home.find_run("local", "first")
    with pytest.raises(CheckFailed):
        copy_run(home, ref, target)
    done = copy_run(home, ref, target, unverified=True)
    assert (done.same, done.written) == (True, 9)
    assert rows(target, target.find_run("local", "first")) == cut
    other = stores(kind)
    file.write_bytes(whole.replace(b"a.txt", b"b.txt", 1))
    home = open_store(str(root))
    with pytest.raises(JournalBroken):
        copy_run(home, home.find_run("local", "first"), other, unverified=True)
    assert other.list_chats("local") == [] or not rows(other, other.find_run("local", "first"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unverified", [False, True])
def test_a_copy_proves_no_more_than_its_original(
    root: Path, stores: Callable[[str], Store], kind: str, unverified: bool
) -> None:
    """A chain without a signed head is not signed by whoever copies it."""
    home, ref = recorded(root)
    state = Path(os.environ["PLAYHEAD_STATE"])
    for head in [*root.rglob("*.checkpoint"), *state.rglob("*.checkpoint")]:
        head.unlink()
    assert verify_chain(home, ref).verdict is playhead.Verdict.UNPROVEN
    target = stores(kind)
    assert copy_run(home, ref, target, unverified=unverified).same
    made = target.find_run("local", "first")
    assert notes(target, made) == []
    assert verify_chain(target, made).verdict is playhead.Verdict.UNPROVEN
