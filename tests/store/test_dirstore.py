"""A directory of journals as a store: whose a journal is, its index of ids, a live writer."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead
from playhead import Journal
from playhead.core.events import Draft
from playhead.errors import EventConflict, NotFound, StoreError, Unreadable, UsageError
from playhead.formats.journal import SEGMENT
from playhead.store.dirstore import DirStore
from playhead.store.eventlog import BlockingLog
from playhead.store.lines import STRIDE
from playhead.store.root import Root
from playhead.store.scope import shown_url
from playhead.store.urls import open_store

HERE: dict[str, str] = {"tenant_id": "acme", "chat_id": "chat-1"}


def fill(root: Path, count: int, first: int = 0) -> None:
    log = BlockingLog(open_store(root))
    for n in range(first, first + count):
        log.append(Draft("note.taken", {"n": n}, id=f"id-{n}"), **HERE)
    log.close()


def index(root: Path) -> Path:
    return root / "index" / "chat-1.ids"


def foreign(root: Path, name: str) -> Path:
    """A journal that playhead did not write."""
    folder = root / "runtime" / "journal" / name
    with Journal.open(folder) as journal:
        journal.append(input_hash="", prompt="hello", tool_call={"name": "ls"})
    return folder


def test_a_journal_that_names_no_tenant_belongs_to_local(root: Path) -> None:
    foreign(root, "theirs")
    fill(root, 1)
    store = open_store(root)
    assert [ref.chat_id for ref in store.list_chats("local")] == ["theirs"]
    assert [ref.chat_id for ref in store.list_chats("acme")] == ["chat-1"]
    rows = list(BlockingLog(store).iterate(tenant_id="local", chat_id="theirs"))
    assert [(row.event_type, row.event.prompt) for row in rows] == [("step", "hello")]
    with pytest.raises(NotFound):
        store.find("acme", "theirs")


@pytest.mark.parametrize("tenant", ["", "  ", None, 7, "\ud800", "x" * 9999])
def test_a_journal_that_names_what_is_no_tenant_belongs_to_nobody(
    root: Path, tenant: object
) -> None:
    folder = root / "runtime" / "journal" / "odd"
    call = {"v": 1, "event": "run.started", "seq": 0, "payload": {}, "tenant_id": tenant}
    with Journal.open(folder) as journal:
        journal.append_normal(
            input_hash="", model=None, prompt=None, tool_call=call, tool_result=None
        )
    assert open_store(root).list_chats("local") == []
    assert open_store(root).list_chats("acme") == []


def test_a_journal_that_cannot_be_read_does_not_hide_the_others(root: Path) -> None:
    fill(root, 1)
    broken = foreign(root, "broken") / SEGMENT
    broken.write_bytes(b"\xff\xfe{" + broken.read_bytes())
    store = open_store(root)
    assert [ref.chat_id for ref in store.list_chats("acme")] == ["chat-1"]
    assert [ref.chat_id for ref in store.list_chats("local")] == ["broken"]


def test_half_a_row_of_a_writer_at_work_is_no_row(root: Path) -> None:
    fill(root, 3)
    path = root / "runtime" / "journal" / "chat-1" / SEGMENT
    whole = path.read_bytes()
    log = BlockingLog(open_store(root))
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in (last, last + 1, last + 200, len(whole) - 2):
        path.write_bytes(whole[:end])
        assert len(list(log.iterate(**HERE))) == 3
        head = log.head(**HERE)
        assert head is not None
        assert head.size == 3
    path.write_bytes(whole[:-1])  # all of it but the newline
    assert [row.event_type for row in log.iterate(**HERE)].count("note.taken") == 3


def test_a_handle_sees_what_was_there_while_a_writer_goes_on(root: Path) -> None:
    fill(root, 3)
    reader, writer = BlockingLog(open_store(root)), BlockingLog(open_store(root))
    rows = reader.iterate(**HERE)
    first = next(rows)
    writer.append(Draft("note.taken", {"n": 3}), **HERE)
    assert [first, *rows] == list(reader.iterate(**HERE, up_to_sequence_number=4))
    assert len(list(reader.iterate(**HERE))) == 5
    writer.close()


def test_places_of_rows_are_remembered_and_not_believed(root: Path) -> None:
    fill(root, 2 * STRIDE + 10)
    store = open_store(root)
    log = BlockingLog(store)
    rows = list(log.iterate(**HERE))
    path = root / "runtime" / "journal" / "chat-1" / SEGMENT
    for at in (0, 1, STRIDE - 1, STRIDE, 2 * STRIDE, 2 * STRIDE + 9):
        assert list(log.iterate(**HERE, from_sequence_number=at)) == rows[at:]
    fill(root, STRIDE, first=5000)
    assert list(log.iterate(**HERE))[: len(rows)] == rows
    other = b"".join(row.line + b"\n" for row in rows[: STRIDE + 5])
    path.write_bytes(b"\n" * 7 + other)  # the same file, rows in other places
    assert list(log.iterate(**HERE, from_sequence_number=STRIDE)) == rows[STRIDE : STRIDE + 5]
    path.write_bytes(b"")
    with pytest.raises(NotFound):  # without a row it is nobody's
        log.iterate(**HERE)


# -- the index of event ids


def spoil_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    path.write_bytes(data)


def spoil_kind(path: Path) -> None:
    path.write_bytes(b"no database at all")


def spoil_rows(path: Path) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE ids SET at = at + 3")
    db.close()


def spoil_count(path: Path) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM ids WHERE id = 'id-3'")
    db.close()


def spoil_head(path: Path) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE built SET head = 'f'")
        db.execute("DELETE FROM ids WHERE id = 'id-3'")
    db.close()


def spoil_tables(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE ids (id TEXT, at INTEGER, size INTEGER)")
        db.execute("CREATE TRIGGER t AFTER INSERT ON ids BEGIN DELETE FROM ids; END")
    db.close()


def gone(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    target = path.with_name("victim")
    target.write_bytes(b"precious")
    path.unlink()
    path.symlink_to(target)


SPOILERS = [
    spoil_bytes,
    spoil_kind,
    spoil_rows,
    spoil_count,
    spoil_head,
    spoil_tables,
    gone,
    link,
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_an_index_that_is_not_right_is_made_again(
    root: Path, spoil: Callable[[Path], None]
) -> None:
    fill(root, 6)
    assert stat.S_IMODE(index(root).stat().st_mode) == 0o600
    spoil(index(root))
    fill(root, 7)  # the first six are there already
    log = BlockingLog(open_store(root))
    assert [row.payload.get("n") for row in log.iterate(**HERE)] == [None, *range(7)]
    with pytest.raises(EventConflict):
        log.append(Draft("note.taken", {"n": 9}, id="id-3"), **HERE)
    log.close()
    victim = index(root).with_name("victim")
    assert not victim.exists() or victim.read_bytes() == b"precious"


def test_an_index_of_another_run_or_of_rows_that_are_gone_is_made_again(root: Path) -> None:
    fill(root, 6)
    other = BlockingLog(open_store(root))
    other.append(Draft("note.taken", {"n": 0}, id="id-3"), tenant_id="acme", chat_id="chat-2")
    other.close()
    (root / "index" / "chat-2.ids").replace(index(root))
    fill(root, 6)
    assert len(list(BlockingLog(open_store(root)).iterate(**HERE))) == 7


def test_a_directory_in_the_place_of_the_index_is_one_clear_error(root: Path) -> None:
    fill(root, 2)
    index(root).unlink()
    index(root).mkdir()
    (index(root) / "x").write_text("")
    with pytest.raises((Unreadable, StoreError)):
        fill(root, 2)


def test_a_run_without_ids_makes_no_index(root: Path) -> None:
    with playhead.record("agent", root=root, run_id="r") as run, run.turn("hi"):
        pass
    assert not (root / "index").exists()


# -- one word for any store


def test_a_path_and_a_file_url_are_the_same_directory(root: Path) -> None:
    fill(root, 1)
    for place in (root, str(root), f"file://{root}", f"file://localhost{root}", Root(root), None):
        store = open_store(place)
        assert isinstance(store, DirStore)
        assert [ref.chat_id for ref in store.list_chats("acme")] == ["chat-1"]
        assert open_store(store) is store


def test_the_environment_may_name_a_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAYHEAD_ROOT", f"sqlite:///{tmp_path}/env.db")
    with playhead.record("agent", run_id="r"):
        pass
    store = open_store()
    assert [ref.run_id for ref in store.list_chats("local")] == ["r"]
    store.close()
    assert not (tmp_path / "root").exists()


def test_a_relative_sqlite_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///here.db")
    assert store.url == f"sqlite:///{tmp_path / 'here.db'}"
    assert (tmp_path / "here.db").is_file()
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:hunter2@host/db",
        "sqlite://user:hunter2@host/x.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///x.db?mode=ro",
        "file://user:hunter2@host/dir",
        "memory://hunter2",
        "http://x",
        "",
        "a\0b",
    ],
)
def test_what_names_no_store_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


def test_passwords_are_taken_out_of_urls() -> None:
    assert shown_url("postgresql://me:pw@h:1/d") == "postgresql://me@h:1/d"
    assert shown_url("postgresql://h/d?password=pw&x=1") == "postgresql://h/d?password=***&x=1"
    assert shown_url("sqlite:///a.db") == "sqlite:///a.db"
