"""Chains in a SQLite file: two processes, a killed writer, hostile files, changed rows."""

from __future__ import annotations

import linecache
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from playhead.core.events import Draft
from playhead.core.merkle import leaf_hashes
from playhead.core.merkle import root as merkle_root
from playhead.errors import (
    HeadConflict,
    JournalBroken,
    JournalLocked,
    NotFound,
    PlayheadError,
    Refused,
    StoreError,
    Unreadable,
)
from playhead.store.database import NewRow, Tip
from playhead.store.dbstore import DbStore
from playhead.store.eventlog import BlockingLog
from playhead.store.memory import MemoryDatabase
from playhead.store.sqlite import SqliteDatabase
from playhead.store.stores import Store
from playhead.store.urls import open_store
from procs import in_fork, kill

HERE: dict[str, str] = {"tenant_id": "acme", "chat_id": "chat-1"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def opened(file: Path) -> Store:
    return open_store(f"sqlite:///{file}")


def fill(file: Path, count: int = 5) -> None:
    store = opened(file)
    log = BlockingLog(store, own_store=True)
    for n in range(count):
        log.append(Draft("note.taken", {"n": n}, id=f"id-{n}"), **HERE)
    log.close()


def payloads(store: Store) -> list[Any]:
    return [row.payload.get("n") for row in BlockingLog(store).iterate(**HERE)][1:]


def change(file: Path, sql: str, *values: object) -> None:
    db = sqlite3.connect(file)
    with db:
        db.execute(sql, values)
    db.close()


def test_the_file_and_what_lies_beside_it_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        file = tmp_path / "new" / "runs.db"
        database = SqliteDatabase(file)
        database.put_blob("t", "d", b"x")
        beside = sorted(file.parent.iterdir())
        assert {path.name for path in beside} >= {"runs.db", "runs.db-wal"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in beside} == {0o600}
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        database.close()
    finally:
        os.umask(old)


def test_a_commit_is_synced(file: Path) -> None:
    database = SqliteDatabase(file)
    assert database._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert database._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert database._db.execute("PRAGMA foreign_keys").fetchone() == (0,)
    database.close()


WRITER = """
import sys
from playhead.core.events import Draft
from playhead.store.eventlog import BlockingLog
from playhead.store.urls import open_store
log = BlockingLog(open_store(sys.argv[1]), own_store=True)
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[3])):
    name = f"{sys.argv[2]}-{n}"
    row = log.append(Draft("note.taken", {"n": name}, id=name), tenant_id="acme", chat_id="chat-1")
    print(name, row.sequence_number, flush=True)
log.close()
"""


def writer(file: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, f"sqlite:///{file}", name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(*children: subprocess.Popen[str]) -> None:
    """Let them all begin when all of them are ready."""
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()


def test_two_processes_on_one_chat_leave_no_gap_and_no_fork(file: Path) -> None:
    children = [writer(file, name, 60) for name in "ab"]
    go(*children)
    told: list[tuple[str, int]] = []
    for child in children:
        out, _ = child.communicate(timeout=100)
        assert child.returncode == 0
        told += [(line.split()[0], int(line.split()[1])) for line in out.splitlines()]
    store = opened(file)
    rows = list(BlockingLog(store).iterate(**HERE))
    assert [row.sequence_number for row in rows] == list(range(1, 122))
    assert [row.event_type for row in rows].count("run.started") == 1
    for name, number in told:
        assert rows[number - 1].payload["n"] == name
    chain = store.open_chain("acme", "chat-1")  # walks every row, against the signed head
    assert chain.anchor.root() == merkle_root(leaf_hashes([row.line for row in rows]))
    heads = store.heads(store.find("acme", "chat-1")).read(chain.anchor.ring.trusted())
    assert {seen.where for seen in heads if seen.head and seen.head.size == 121} == {
        "inside",
        "outside",
    }
    chain.close()
    store.close()


def test_of_two_writers_that_expect_one_head_one_is_first(file: Path) -> None:
    fill(file)
    one, two = BlockingLog(opened(file)), BlockingLog(opened(file))
    head = one.head(**HERE)
    two.append(Draft("note.taken", {"n": "two"}), **HERE, expected_head=head)
    with pytest.raises(HeadConflict):
        one.append(Draft("note.taken", {"n": "one"}), **HERE, expected_head=head)
    one.append(Draft("note.taken", {"n": "one"}), **HERE)
    assert payloads(one.store) == [*range(5), "two", "one"]
    for log in (one, two):
        log.close()
        log.store.close()


def test_in_a_directory_the_second_writer_is_told_who_writes(root: Path) -> None:
    log = BlockingLog(open_store(root))
    log.append(Draft("note.taken", {"n": 1}), **HERE)

    def second() -> str:
        BlockingLog(open_store(root)).append(Draft("note.taken", {"n": 2}), **HERE)
        return "written"

    assert in_fork(second).startswith(f"{JournalLocked.__name__}: ")
    log.close()
    assert in_fork(second) == "written"


def test_a_forked_child_does_not_write_with_its_parents_connection(file: Path) -> None:
    fill(file)
    store = opened(file)
    log = BlockingLog(store)
    log.append(Draft("note.taken", {"n": 5}), **HERE)

    def child() -> str:
        log.append(Draft("note.taken", {"n": 6}), **HERE)
        return "written"

    assert "inherited" in in_fork(child)
    assert "inherited" in in_fork(lambda: str(store.list_chats("acme")))
    log.append(Draft("note.taken", {"n": 7}), **HERE)
    assert payloads(store) == [*range(6), 7]
    log.close()
    store.close()


@pytest.mark.crash
def test_after_kill_9_every_acknowledged_event_is_there(file: Path, kills: int) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []
    for round_ in range(kills):
        with writer(file, f"r{round_}", 100_000) as child:
            go(child)
            assert child.stdout
            for _ in range(chance.randrange(1, 40)):
                acknowledged.append(child.stdout.readline().split()[0])
            kill(child.pid)
            acknowledged += [line.split()[0] for line in child.stdout if line.endswith("\n")]
        store = opened(file)
        found = payloads(store)
        unknown = [name for name in found if name not in set(acknowledged)]
        assert [name for name in found if name in set(acknowledged)] == acknowledged
        assert len(unknown) <= 1  # committed, and killed before it could say so
        acknowledged = found
        chain = store.open_chain("acme", "chat-1")
        assert chain.next_seq == len(found) + 1
        chain.close()
        store.close()


class Struck(KeyboardInterrupt):
    pass


def strike(at: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that raises at the ``at``-th line run below playhead/store.

    Not at a ``with`` or a ``try``: their lines come where no handler is in force, and no signal is
    delivered there.
    """
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if "playhead/store/" not in frame.f_code.co_filename:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.lstrip().startswith(("with ", "try:")):
            left -= 1
            if left == 0:
                raise Struck
        return trace

    return trace


@pytest.mark.crash
@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_ctrl_c_at_any_line_of_an_append(kind: str, file: Path) -> None:
    """The row is there or it is not; the chain goes on either way, and is signed."""
    database = SqliteDatabase(file) if kind == "sqlite" else MemoryDatabase()
    store = DbStore(database)
    fields: dict[str, Any] = {"input_hash": "", "model": None, "tool_call": None, "effort": None}
    chain = store.open_chain("t", "c")
    outer = sys.gettrace()
    struck, at = True, 0
    while struck:
        at += 1
        chain.append_normal(prompt=f"before {at}", tool_result=None, **fields)
        struck = False
        sys.settrace(strike(at))
        try:
            chain.append_normal(prompt=f"struck {at}", tool_result=None, **fields)
        except Struck:
            struck = True
        finally:
            sys.settrace(outer)
    chain.append_normal(prompt="last", tool_result=None, **fields)
    assert at > 40, "the lines of an append were reached"
    rows = [line for batch in database.rows("t", "c", 0, 10**6) for line in batch]
    assert len(rows) == chain.next_seq >= at + 1
    assert chain.anchor.root() == merkle_root(leaf_hashes(rows))
    chain.close()
    again = store.open_chain("t", "c")
    assert (again.next_seq, again.head) == (chain.next_seq, chain.head)
    again.close()
    store.close()


# -- hostile files


def test_a_link_a_directory_and_a_pipe_are_refused(tmp_path: Path, file: Path) -> None:
    fill(file)
    link, folder, pipe = tmp_path / "link.db", tmp_path / "folder.db", tmp_path / "pipe.db"
    link.symlink_to(file)
    folder.mkdir()
    os.mkfifo(pipe)
    for place in (link, folder, pipe):
        with pytest.raises(Unreadable):
            SqliteDatabase(place)


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_link_beside_the_file_is_refused(tmp_path: Path, file: Path, end: str) -> None:
    fill(file)
    target = tmp_path / "victim"
    target.write_bytes(b"precious")
    for beside in tmp_path.glob("runs.db-*"):
        beside.unlink()
    (tmp_path / f"runs.db{end}").symlink_to(target)
    with pytest.raises(Unreadable):
        SqliteDatabase(file)
    assert target.read_bytes() == b"precious"


def foreign(file: Path) -> None:
    change(file, "CREATE TABLE mine (secret TEXT)")


def later(file: Path) -> None:
    fill(file)
    change(file, "PRAGMA user_version = 99")


def trigger(file: Path) -> None:
    fill(file)
    change(
        file,
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows WHERE line = x''; END",
    )


def view(file: Path) -> None:
    fill(file)
    change(file, "DROP TABLE heads")
    change(file, "CREATE VIEW heads AS SELECT 1 AS tenant_id")


def text(file: Path) -> None:
    file.write_text("not a database, but long enough to be one\n" * 100)


def cut(file: Path) -> None:
    fill(file, 200)
    os.truncate(file, 5000)


def marked(file: Path) -> None:
    change(file, "PRAGMA application_id = 1886153828")


@pytest.mark.parametrize("make", [foreign, later, trigger, view, text, cut, marked])
def test_what_is_not_playheads_is_refused_and_left_alone(
    file: Path, make: Callable[[Path], None]
) -> None:
    make(file)
    before = file.read_bytes()
    with pytest.raises((Refused, StoreError)) as caught:
        payloads(opened(file))
    assert str(file) in str(caught.value)
    assert file.read_bytes() == before


def test_a_missing_file_is_not_made_by_a_reader(file: Path) -> None:
    with pytest.raises(NotFound):
        SqliteDatabase(file, create=False)
    assert not file.exists()


def test_another_process_that_holds_the_file_is_one_clear_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(file)
    monkeypatch.setattr("playhead.store.sqlitefile.BUSY_SECONDS", 0.05)
    store = opened(file)
    blocker = sqlite3.connect(file, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    log = BlockingLog(store)
    with pytest.raises(StoreError, match="another process holds the database"):
        log.append(Draft("note.taken", {}), **HERE)
    blocker.execute("ROLLBACK")
    blocker.close()
    log.append(Draft("note.taken", {"n": 5}), **HERE)
    assert payloads(store) == [*range(6)]
    log.close()
    store.close()


# -- rows that somebody changed

CHANGES = [
    "UPDATE rows SET line = replace(line, '\"n\":2', '\"n\":7') WHERE sequence_number = 4",
    "DELETE FROM rows WHERE sequence_number = 6",
    "DELETE FROM rows WHERE sequence_number = 3",
    "UPDATE chats SET size = 5",
    "UPDATE chats SET step_hash = iif(step_hash LIKE 'f%', '0', 'f') || substr(step_hash, 2)",
    "UPDATE chats SET length = length - 1",
    "UPDATE rows SET line = '' WHERE sequence_number = 6",
    "UPDATE rows SET line = x'00' WHERE sequence_number = 6",
    "DELETE FROM rows",
    "DELETE FROM chats",
]


@pytest.mark.parametrize("sql", CHANGES)
@pytest.mark.parametrize("signed", [True, False])
def test_a_change_is_found_before_the_next_append(file: Path, sql: str, signed: bool) -> None:
    fill(file)
    if not signed:
        change(file, "DELETE FROM heads")
        for head in (Path(os.environ["PLAYHEAD_STATE"]) / "heads").iterdir():
            head.unlink()
    change(file, sql)
    store = opened(file)
    if sql == "DELETE FROM chats" and not signed:
        assert store.list_chats("acme") == []  # nothing is left that could know better
    else:
        with pytest.raises(PlayheadError) as caught:
            store.open_chain("acme", "chat-1")
        assert isinstance(caught.value, JournalBroken | StoreError)
    store.close()


def test_a_missing_row_has_its_place_in_the_walk(file: Path) -> None:
    fill(file)
    change(file, "DELETE FROM rows WHERE sequence_number = 3")
    store = opened(file)
    rows = list(BlockingLog(store).iterate(**HERE))
    assert [row.sequence_number for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row.event_type for row in rows].index("unreadable") == 2
    store.close()


def test_a_chain_that_went_backwards_under_a_writer_is_broken(file: Path) -> None:
    fill(file)
    log = BlockingLog(opened(file))
    log.append(Draft("note.taken", {"n": 5}), **HERE)
    change(file, "DELETE FROM rows WHERE sequence_number > 4")
    change(file, "UPDATE chats SET size = 4")
    with pytest.raises(JournalBroken, match="went back"):
        log.append(Draft("note.taken", {"n": 6}), **HERE)
    with pytest.raises(JournalBroken):  # opened anew, it is still known
        log.append(Draft("note.taken", {"n": 6}), **HERE)


def test_an_index_of_ids_that_lies_is_found_out(file: Path) -> None:
    fill(file)
    change(file, "UPDATE rows SET event_id = 'new' WHERE sequence_number = 3")
    log = BlockingLog(opened(file))
    with pytest.raises(JournalBroken, match="index of event ids"):
        log.append(Draft("note.taken", {"n": 9}, id="new"), **HERE)
    log.close()


def test_a_database_does_not_take_rows_outside_of_a_transaction(file: Path) -> None:
    for database in (SqliteDatabase(file), MemoryDatabase()):
        with pytest.raises(StoreError):
            database.insert("t", "c", [NewRow(0, "a.b", None, "", b"{}")], Tip(1), 0.0)
        with (
            database.exclusive("t", "c", "r", create=True),
            pytest.raises(StoreError),
            database.exclusive("t", "c", "r", create=True),
        ):
            pass
        with database.exclusive("t", "other", "r2", create=False) as found:
            assert found is None
        database.close()
        database.close()


def test_no_message_holds_what_the_database_holds(file: Path) -> None:
    database = SqliteDatabase(file)
    with database.exclusive("t", "c", "secret-run", create=True):
        pass
    with (
        pytest.raises(StoreError) as caught,
        database.exclusive("t", "c2", "secret-run", create=True),
    ):
        pass
    assert "secret" not in str(caught.value)
    database.close()
    with pytest.raises(StoreError, match="closed"):
        database.chats("t")
