"""A replay cache in one SQLite file (docs/reference/replay-cache.md).

Promises:

* the file is made owner-only; links, devices and files that are no such cache are refused;
* the tenant comes first in every key and in every statement;
* a value is read only when it is, byte for byte, what was put under this key of this tenant;
* a damaged or hostile file is a `StoreError`: nothing in its schema runs.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from playhead.core.cacheentry import MAX_VALUE, CacheEntry, Kept, check_owner, keep, taken
from playhead.errors import StoreError
from playhead.store.sqlitekind import check_kind
from playhead.store.sqlitewait import patiently

T = TypeVar("T")

_APPLICATION: Final = 0x50484331  # "PHC1"
_TABLE: Final = (
    "CREATE TABLE answers(tenant_id TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, "
    "digest BLOB NOT NULL, recorded_mode TEXT NOT NULL, recorded_at_ms INTEGER NOT NULL, "
    "key_version TEXT NOT NULL, PRIMARY KEY(tenant_id, key)) WITHOUT ROWID"
)
_GET: Final = (
    "SELECT value, digest, recorded_mode, recorded_at_ms, key_version FROM answers "
    "WHERE tenant_id = ? AND key = ?"
)
_PUT: Final = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)"
_BUSY: Final = 10.0
"""Seconds to wait for another writer of the file."""
_REMEDY: Final = "Name the file of a cache, or delete it: a cache is filled again"


class CacheFile:
    """The blocking side of a cache file. Thread-safe; opened at its first use, once a process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._link: sqlite3.Connection | None = None
        self._pid = 0
        self._left: list[sqlite3.Connection] = []

    def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        """The entry under this key of this tenant; None when there is none.

        Raises:
            ReplayArgumentError: a bad key or tenant. StoreError: the file is damaged, is no
                cache, or the entry is not what was put. Unreadable: a link, a device, or no
                permission.
        """
        check_owner(key, tenant_id)
        row = self._do(lambda link: link.execute(_GET, (tenant_id, key)).fetchone())
        if row is None:
            return None
        return taken(Kept(*row), key=key, tenant_id=tenant_id, where=str(self.path))

    def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
        """Keep an entry; one that is there is replaced.

        Raises:
            ReplayArgumentError, ValueRefused, TooLarge: see `keep`. StoreError, Unreadable: see
                `get`; nothing was written.
        """
        kept = keep(entry, key=key, tenant_id=tenant_id)
        self._do(lambda link: link.execute(_PUT, (tenant_id, key, *kept)))

    def close(self) -> None:
        """Let go of the file. Idempotent; a later use opens it again."""
        with self._lock:
            link = self._link
            if link is not None and self._pid == os.getpid():
                self._link = None
                link.close()

    def _do(self, act: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return act(self._here())
            except (sqlite3.Error, UnicodeError, OverflowError) as error:
                raise _refused(self.path, error) from error

    def _here(self) -> sqlite3.Connection:
        """The connection of this process."""
        if self._link is not None and self._pid != os.getpid():
            # SQLite's rule: one that came over a fork is neither used nor closed here.
            self._left.append(self._link)
            self._link = None
        if self._link is None:
            self._link, self._pid = _open(self.path), os.getpid()
        return self._link


def _refused(path: Path, error: Exception) -> StoreError:
    # The words of SQLite name tables and limits; a UnicodeError would hold bytes of a row.
    why = str(error)[:200] if isinstance(error, sqlite3.Error) else "text that is not UTF-8"
    return StoreError(f"{path}: the cache cannot be used: {why}", remedy=_REMEDY)


def _open(path: Path) -> sqlite3.Connection:
    check_kind(path, create=True)
    link = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
    try:
        link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE + 65_536)
        link.execute("PRAGMA trusted_schema = OFF")
        link.execute("PRAGMA cell_size_check = ON")
        link.execute("PRAGMA mmap_size = 0")
        patiently(link, lambda: _prepare(link, path), _BUSY)
        return link
    except BaseException:
        link.close()
        raise


def _prepare(link: sqlite3.Connection, path: Path) -> None:
    """Make the table in an empty file; in any other, see that it is the only thing there."""
    if _schema(link) == [] and _number(link, "application_id") == 0:
        link.execute("BEGIN IMMEDIATE")
        if _schema(link) == []:  # nobody was first
            link.execute(_TABLE)
            link.execute(f"PRAGMA application_id = {_APPLICATION}")
        link.execute("COMMIT")
    if _number(link, "application_id") != _APPLICATION or _schema(link) != [_TABLE]:
        raise StoreError(f"{path}: a database, and no replay cache of this version", remedy=_REMEDY)
    link.execute("PRAGMA journal_mode = WAL")
    link.execute("PRAGMA synchronous = NORMAL")


def _schema(link: sqlite3.Connection) -> list[object]:
    found = link.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 3").fetchall()
    return [sql for (sql,) in found]


def _number(link: sqlite3.Connection, name: str) -> object:
    return link.execute(f"PRAGMA {name}").fetchone()[0]
