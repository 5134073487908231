"""Snapshots between processes: what was put or nothing, for its own tenant alone."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core.fold import fingerprint, fold
from playhead.core.model import Event
from playhead.core.projections import BUILT_IN
from playhead.core.snapshot import decode, encode
from playhead.core.wire import canonical_state
from playhead.errors import PlayheadError, StoreError, UsageError
from playhead.store.keys import KeyRing
from playhead.store.snapshotdb import SqliteSnapshots
from playhead.store.snapshots import (
    MAX_STATE,
    MemorySnapshots,
    Snapshot,
    SnapshotKey,
    SnapshotStore,
    holds,
    mac_of,
    snapshot_secret,
    zero_base,
)

SECRET = b"s" * 32
KEY = SnapshotKey("acme", "chat", zero_base(0), fingerprint(BUILT_IN))
Make = Callable[[], SnapshotStore]


def snap(number: int, key: SnapshotKey = KEY, state: bytes = b"{}") -> Snapshot:
    return Snapshot(key, number, f"{number:064x}", state, number * 100)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SnapshotStore]:
    made: SnapshotStore
    if request.param == "memory":
        made = MemorySnapshots(SECRET)
    else:
        made = SqliteSnapshots(tmp_path / "cache" / "snapshots.db", SECRET)
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "snapshots.db"


def edit(file: Path, sql: str, *values: object) -> None:
    link = sqlite3.connect(file)
    with link:
        link.execute(sql, values)
    link.close()


def test_the_nearest_below_is_what_was_put(store: SnapshotStore) -> None:
    for number in (512, 256, 1024):
        assert store.put(snap(number, state=b"x" * number))
    assert store.nearest(KEY, 255) is None
    for at, found in ((256, 256), (511, 256), (1023, 512), (10**9, 1024)):
        assert store.nearest(KEY, at) == snap(found, state=b"x" * found)
    assert (store.stats.found, store.stats.missed, store.stats.kept) == (4, 1, 3)
    assert (store.stats.dropped, store.stats.failed) == (0, 0)


def test_a_fold_comes_back_and_goes_on(store: SnapshotStore) -> None:
    log = [Event("interrupt.raised", n, {"interrupt_id": f"i{n}"}) for n in range(300)]
    store.put(snap(256, state=encode(fold(log[:256], BUILT_IN))))
    found = store.nearest(KEY, 299)
    assert found is not None
    back = decode(found.state, BUILT_IN)
    for event in log[256:]:
        back = back.apply(event)
    assert canonical_state(back) == canonical_state(fold(log, BUILT_IN))


OTHERS = [
    replace(KEY, tenant_id="other"),
    replace(KEY, chat_id="other"),
    replace(KEY, base="prefix"),
    replace(KEY, base=zero_base(1)),
    replace(KEY, fingerprint=fingerprint()),
]


@pytest.mark.parametrize("other", OTHERS)
def test_another_tenant_chat_base_or_set_has_none_of_it(
    store: SnapshotStore, other: SnapshotKey
) -> None:
    store.put(snap(256))
    assert store.nearest(other, 10**6) is None
    store.put(snap(256, other, b"[]"))
    assert store.nearest(other, 256) == snap(256, other, b"[]")
    store.drop(other)
    assert store.nearest(other, 256) is None
    assert store.nearest(KEY, 256) == snap(256)


@pytest.mark.parametrize("bad", [None, "", "  ", 5, True, "a\0b", "\ud800", "x" * 600])
@pytest.mark.parametrize("field", ["tenant_id", "chat_id"])
def test_a_tenant_and_a_chat_are_always_named(store: SnapshotStore, field: str, bad: Any) -> None:
    with pytest.raises(UsageError, match=field):
        replace(KEY, **{field: bad})
    scope = {"tenant_id": "acme", "chat_id": "chat", field: bad}
    with pytest.raises(UsageError, match=field):
        store.forget(**scope)


def test_one_can_be_dropped_all_of_a_fold_and_all_of_a_chat(store: SnapshotStore) -> None:
    for number in (256, 512, 768):
        store.put(snap(number))
    store.drop(KEY, 512)
    assert store.nearest(KEY, 600) == snap(256)
    store.drop(KEY)
    assert store.nearest(KEY, 10**6) is None
    assert store.stats.dropped == 3
    for other in (KEY, *OTHERS):
        store.put(snap(256, other))
    assert store.forget("acme", "chat") == 4
    left = [k for k in (KEY, *OTHERS) if store.nearest(k, 256) is not None]
    assert left == [OTHERS[0], OTHERS[1]]


def test_a_state_that_is_too_large_is_not_kept(store: SnapshotStore) -> None:
    assert not store.put(snap(256, state=bytes(MAX_STATE + 1)))
    assert store.nearest(KEY, 256) is None
    assert store.stats.refused == 1


EDITS: list[tuple[str, str, tuple[object, ...]]] = [
    ("another state", "UPDATE snapshots SET state = ? WHERE sequence_number = 512", (b"[]",)),
    ("the state of before", "UPDATE snapshots SET state = (SELECT state FROM snapshots "
     "WHERE sequence_number = 256) WHERE sequence_number = 512", ()),
    ("a whole other row", "UPDATE snapshots SET (state, mac, row_hash, log_bytes) = (SELECT state,"
     " mac, row_hash, log_bytes FROM snapshots WHERE sequence_number = 256) "
     "WHERE sequence_number = 512", ()),
    ("another place", "UPDATE snapshots SET sequence_number = 600 WHERE sequence_number = 512", ()),
    ("another row", "UPDATE snapshots SET row_hash = ? WHERE sequence_number = 512", ("f" * 64,)),
    ("another length", "UPDATE snapshots SET log_bytes = 0 WHERE sequence_number = 512", ()),
    ("another MAC", "UPDATE snapshots SET mac = ? WHERE sequence_number = 512", (bytes(32),)),
    ("no MAC", "UPDATE snapshots SET mac = ? WHERE sequence_number = 512", ("",)),
    ("a number for a state", "UPDATE snapshots SET state = 7 WHERE sequence_number = 512", ()),
    ("text for a state", "UPDATE snapshots SET state = '{}' WHERE sequence_number = 512", ()),
    ("no UTF-8", "UPDATE snapshots SET row_hash = CAST(x'ff' AS TEXT) "
     "WHERE sequence_number = 512", ()),
    ("too large", f"UPDATE snapshots SET state = zeroblob({MAX_STATE + 1}) "
     "WHERE sequence_number = 512", ()),
    ("far too large", f"UPDATE snapshots SET state = zeroblob({MAX_STATE + 99_999}) "
     "WHERE sequence_number = 512", ()),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sql", "values"), EDITS, ids=[e[0] for e in EDITS])
def test_an_edited_snapshot_is_dropped_and_the_one_before_is_given(
    file: Path, what: str, sql: str, values: tuple[object, ...]
) -> None:
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256, state=b"before"))
    store.put(snap(512))
    store.close()
    edit(file, sql, *values)
    assert store.nearest(KEY, 1000) == snap(256, state=b"before")
    assert (store.stats.dropped, store.stats.failed) == (1, 0)
    assert store.nearest(KEY, 1000) == snap(256, state=b"before")
    assert store.stats.dropped == 1  # it is gone, not met again
    store.close()


@pytest.mark.parametrize(
    ("column", "value", "key"),
    [
        ("tenant_id", "other", OTHERS[0]),
        ("chat_id", "other", OTHERS[1]),
        ("base", "prefix", OTHERS[2]),
        ("fingerprint", fingerprint(), OTHERS[4]),
    ],
)
def test_a_snapshot_cannot_be_moved_to_another_fold(
    file: Path, column: str, value: str, key: SnapshotKey
) -> None:
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256))
    edit(file, f"UPDATE snapshots SET {column} = ?", value)
    assert store.nearest(key, 256) is None
    assert store.stats.dropped == 1
    store.close()


def test_another_secret_takes_none_of_it(file: Path) -> None:
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256))
    store.close()
    other = SqliteSnapshots(file, b"t" * 32)
    assert other.nearest(KEY, 256) is None
    assert other.stats.dropped == 1
    other.close()


def test_an_older_reducer_is_cleared_away(file: Path) -> None:
    old = replace(KEY, reducer_version=0)
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256, old))
    store.put(snap(256, replace(old, tenant_id="other")))
    store.put(snap(512))
    assert store.nearest(old, 600) is None
    assert store.nearest(replace(old, tenant_id="other"), 600) is not None
    store.close()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "snapshots.db"
    before = os.umask(0)
    try:
        store = SqliteSnapshots(file, SECRET)
        store.put(snap(256))
    finally:
        os.umask(before)
    for path in (file, *file.parent.glob("snapshots.db-*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    store.close()


def _other_database(file: Path) -> None:
    edit(file, "CREATE TABLE mine (x)")


def _with_trigger(file: Path) -> None:
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256))
    store.close()
    edit(file, "CREATE TRIGGER t AFTER DELETE ON snapshots BEGIN SELECT 1; END")


def _damaged(file: Path) -> None:
    store = SqliteSnapshots(file, SECRET)
    for number in range(256, 256 * 40, 256):
        store.put(snap(number, state=bytes(3000)))
    store.close()
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(b"a text, and no database" * 100),
        lambda file: file.mkdir(),
        os.mkfifo,
        lambda file: file.symlink_to(file.parent / "elsewhere"),
        _other_database,
        _with_trigger,
        _damaged,
    ],
    ids=["text", "directory", "pipe", "link", "other", "trigger", "damaged"],
)
def test_a_file_that_cannot_be_used_is_an_empty_cache(
    file: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(file)
    before = file.read_bytes() if file.is_file() else None
    store = SqliteSnapshots(file, SECRET)
    assert store.nearest(KEY, 10**6) is None
    assert not store.put(snap(512))
    store.drop(KEY)
    assert store.forget("acme", "chat") == 0
    assert store.stats.failed == 4
    assert isinstance(store.problem, PlayheadError)
    assert store.problem.remedy
    assert before is None or file.read_bytes() == before
    assert not (file.parent / "elsewhere").exists()
    store.close()


def test_who_wants_to_hear_of_a_wrong_file_can(file: Path) -> None:
    _other_database(file)
    with pytest.raises(StoreError, match="no snapshot cache"):
        SqliteSnapshots(file, SECRET).check()
    file.unlink()
    store = SqliteSnapshots(file, SECRET)
    store.check()
    store.close()


def test_a_locked_file_is_counted_and_does_not_raise(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.store.snapshotdb._BUSY", 0.01)
    store = SqliteSnapshots(file, SECRET)
    store.put(snap(256))
    other = sqlite3.connect(file)
    other.execute("BEGIN EXCLUSIVE")
    assert not store.put(snap(512))
    assert store.stats.failed == 1
    assert "SQLITE_BUSY" in str(store.problem)
    other.rollback()
    other.close()
    assert store.put(snap(512))
    store.close()


def test_two_processes_and_many_threads_share_a_file(file: Path) -> None:
    stores = [SqliteSnapshots(file, SECRET) for _ in range(2)]

    def write(which: int) -> None:
        for number in range(which, 200, 4):
            stores[which % 2].put(snap(number))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stores[n % 2].nearest(KEY, n) for n in range(200)] == [snap(n) for n in range(200)]
    for store in stores:
        store.close()
        assert store.stats.failed == 0


def test_memory_is_bounded_and_checked() -> None:
    store = MemorySnapshots(SECRET, most=3)
    for number in range(5):
        store.put(snap(number))
    assert [store.nearest(KEY, n) for n in range(5)] == [None, None, snap(2), snap(3), snap(4)]
    store._held[KEY, 4] = (snap(4, state=b"planted"), store._held[KEY, 4][1])
    assert store.nearest(KEY, 4) == snap(3)
    assert store.stats.dropped == 1


def test_the_secret_is_made_once_and_lies_beside_the_keys(state: Path) -> None:
    ring = KeyRing()
    first = snapshot_secret(ring)
    assert len(first) == 32
    assert snapshot_secret(KeyRing()) == first
    (path,) = (state / "secrets").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


FIELDS = st.tuples(st.text(min_size=1, max_size=3), st.integers(0, 3), st.binary(max_size=3))


@settings(max_examples=200)
@given(FIELDS, FIELDS)
def test_a_mac_is_of_everything_that_is_said(
    a: tuple[str, int, bytes], b: tuple[str, int, bytes]
) -> None:
    def made(given: tuple[str, int, bytes]) -> Snapshot:
        return Snapshot(replace(KEY, base=given[0]), given[1], given[0], given[2], given[1])

    mac = mac_of(SECRET, made(a))
    assert holds(SECRET, made(b), mac) == (a == b)
    assert not holds(SECRET, made(a), mac.hex())
    assert not holds(b"", made(a), mac)


def test_a_snapshot_does_not_print_its_state() -> None:
    assert "private" not in repr(snap(1, state=b"private"))
