"""Snapshots in one SQLite file (docs/reference/state.md, "Snapshots").

Promises:

* the file is made owner-only; links, devices and files that are no such cache are left alone;
* the tenant comes first in the key and in every statement;
* nothing in the file's schema runs, and no value of it is used before its HMAC holds;
* a file that is damaged or locked is an empty cache: it is counted and never raises.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from playhead.errors import Place, PlayheadError, StoreError
from playhead.store.scope import check_scope
from playhead.store.snapshots import (
    MAX_STATE,
    Snapshot,
    SnapshotKey,
    SnapshotStats,
    holds,
    mac_of,
)
from playhead.store.sqlitekind import check_kind
from playhead.store.sqlitewait import patiently

T = TypeVar("T")

_APPLICATION: Final = 0x50485331  # "PHS1"
_TABLE: Final = (
    "CREATE TABLE snapshots(tenant_id TEXT NOT NULL, chat_id TEXT NOT NULL, base TEXT NOT NULL, "
    "reducer INTEGER NOT NULL, fingerprint TEXT NOT NULL, sequence_number INTEGER NOT NULL, "
    "row_hash TEXT NOT NULL, log_bytes INTEGER NOT NULL, mac BLOB NOT NULL, "
    "state BLOB NOT NULL, PRIMARY KEY(tenant_id, chat_id, base, reducer, fingerprint, "
    "sequence_number))"
)
_FOLD: Final = "tenant_id = ? AND chat_id = ? AND base = ? AND reducer = ? AND fingerprint = ?"
_NEAREST: Final = (
    "SELECT rowid, sequence_number, row_hash, log_bytes, mac, "
    f"CASE WHEN length(state) <= {MAX_STATE} THEN state END FROM snapshots WHERE {_FOLD} "
    "AND sequence_number <= ? ORDER BY sequence_number DESC LIMIT 1"
)
_PUT: Final = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OLD: Final = "DELETE FROM snapshots WHERE tenant_id = ? AND chat_id = ? AND reducer <> ?"
_BUSY: Final = 2.0
"""Seconds to wait for another writer: folding again is better than waiting long."""
_REMEDY: Final = "Name the file of a snapshot cache, or delete it: it is made again"


class SqliteSnapshots:
    """Snapshots in the file ``path``, made at its first use.

    Args:
        path: the file; its directory is made when it is missing.
        secret: see `playhead.store.snapshots.snapshot_secret`.
    """

    def __init__(self, path: str | os.PathLike[str], secret: bytes) -> None:
        self.path = Path(path)
        self.problem: PlayheadError | None = None
        """Why the file could not be used the last time it could not."""
        self._secret = secret
        self._stats = SnapshotStats()
        self._lock = threading.Lock()
        self._link: sqlite3.Connection | None = None
        self._pid = 0
        self._left: list[sqlite3.Connection] = []

    @property
    def stats(self) -> SnapshotStats:
        return self._stats

    def check(self) -> None:
        """Open the file, for who wants to hear of a wrong one at once.

        Raises:
            StoreError: it is another program's, damaged or locked. Unreadable: a link or device.
        """
        with self._lock:
            try:
                self._here()
            except sqlite3.Error as error:
                raise _refused(self.path, error) from error

    def nearest(self, key: SnapshotKey, at_or_below: int) -> Snapshot | None:
        found = self._do(lambda link: self._nearest(link, key, at_or_below), None)
        self._stats.found += found is not None
        self._stats.missed += found is None
        return found

    def _nearest(
        self, link: sqlite3.Connection, key: SnapshotKey, at_or_below: int
    ) -> Snapshot | None:
        while True:
            row = link.execute(_NEAREST, (*_fold(key), at_or_below)).fetchone()
            if row is None:
                return None
            snapshot = _snapshot(key, row[1:])
            if snapshot is not None and holds(self._secret, snapshot, row[4]):
                return snapshot
            link.execute("DELETE FROM snapshots WHERE rowid = ?", row[:1])
            self._stats.dropped += 1

    def put(self, snapshot: Snapshot) -> bool:
        if len(snapshot.state) > MAX_STATE:
            self._stats.refused += 1
            return False
        key = snapshot.key
        values = (
            *_fold(key),
            snapshot.sequence_number,
            snapshot.row_hash,
            snapshot.log_bytes,
            mac_of(self._secret, snapshot),
            snapshot.state,
        )

        def write(link: sqlite3.Connection) -> bool:
            link.execute(_OLD, (key.tenant_id, key.chat_id, key.reducer_version))
            link.execute(_PUT, values)
            return True

        done = self._do(write, False)
        self._stats.kept += done
        return done

    def drop(self, key: SnapshotKey, sequence_number: int | None = None) -> None:
        which = "" if sequence_number is None else " AND sequence_number = ?"
        values = _fold(key) if sequence_number is None else (*_fold(key), sequence_number)
        sql = f"DELETE FROM snapshots WHERE {_FOLD}{which}"
        self._stats.dropped += self._do(lambda link: link.execute(sql, values).rowcount, 0)

    def forget(self, tenant_id: str, chat_id: str) -> int:
        check_scope(tenant_id, chat_id)
        sql = "DELETE FROM snapshots WHERE tenant_id = ? AND chat_id = ?"
        return self._do(lambda link: link.execute(sql, (tenant_id, chat_id)).rowcount, 0)

    def close(self) -> None:
        """Let go of the file. Idempotent; a later use opens it again."""
        with self._lock:
            link = self._link
            if link is not None and self._pid == os.getpid():
                self._link = None
                link.close()

    def _do(self, act: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        with self._lock:
            try:
                return act(self._here())
            except (sqlite3.Error, UnicodeError, OverflowError) as error:
                self.problem = _refused(self.path, error)
            except PlayheadError as error:
                self.problem = error
            self._stats.failed += 1
            return otherwise

    def _here(self) -> sqlite3.Connection:
        """The connection of this process."""
        if self._link is not None and self._pid != os.getpid():
            # SQLite's rule: one that came over a fork is neither used nor closed here.
            self._left.append(self._link)
            self._link = None
        if self._link is None:
            self._link, self._pid = _open(self.path), os.getpid()
        return self._link


def _fold(key: SnapshotKey) -> tuple[str, str, str, int, str]:
    return (key.tenant_id, key.chat_id, key.base, key.reducer_version, key.fingerprint)


def _snapshot(key: SnapshotKey, row: tuple[object, ...]) -> Snapshot | None:
    """What a row of the file says; None when its values are not even of the right kinds."""
    match row:
        case (int(number), str(row_hash), int(log_bytes), bytes(), bytes(state)):
            return Snapshot(key, number, row_hash, state, log_bytes)
    return None


def _refused(path: Path, error: Exception) -> StoreError:
    # SQLite's own words may quote values, a UnicodeError bytes of a row.
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    what = f"the snapshot cache cannot be used ({name})"
    return StoreError(what, place=Place(str(path)), remedy=_REMEDY)


def _open(path: Path) -> sqlite3.Connection:
    check_kind(path, create=True)
    link = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
    try:
        link.text_factory = _text
        link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_STATE + 65_536)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            link.execute(f"PRAGMA {pragma}")
        patiently(link, lambda: _prepare(link, path), _BUSY)
        return link
    except BaseException:
        link.close()
        raise


def _prepare(link: sqlite3.Connection, path: Path) -> None:
    """Make the table in an empty file; in any other, see that it is the only thing there."""
    if _schema(link) == [] and _application(link) == 0:
        link.execute("BEGIN IMMEDIATE")
        if _schema(link) == []:  # nobody was first
            link.execute(_TABLE)
            link.execute(f"PRAGMA application_id = {_APPLICATION}")
        link.execute("COMMIT")
    if _application(link) != _APPLICATION or _schema(link) != [_TABLE]:
        what = "a database, and no snapshot cache of this version"
        raise StoreError(what, place=Place(str(path)), remedy=_REMEDY)
    link.execute("PRAGMA journal_mode = WAL")
    link.execute("PRAGMA synchronous = NORMAL")


def _text(raw: bytes) -> str:
    """Text that is not UTF-8 must not stop the look at a row: its HMAC will not hold."""
    return raw.decode("utf-8", "surrogateescape")


def _schema(link: sqlite3.Connection) -> list[object]:
    found = link.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 3").fetchall()
    return [sql for (sql,) in found]


def _application(link: sqlite3.Connection) -> object:
    return link.execute("PRAGMA application_id").fetchone()[0]
