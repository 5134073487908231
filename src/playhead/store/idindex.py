"""Which row of a journal has an event id: an index beside the root's journals.

``<root>/index/<run id>.ids`` is a small SQLite file, owner-only. It is a cache: made again from
the journal whenever it is missing, damaged, behind, or of another chain, and its word is never
taken. It names the journal's length and the last row's step hash as they were when it was
written; the row that it finds must hold the id. Memory stays flat, whatever the length.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from playhead.core.decode import row_of
from playhead.core.model import JSON
from playhead.core.rows import BadRow, Row
from playhead.errors import Place, StoreError
from playhead.store.heads import placed
from playhead.store.reader import blocks_of, split_lines
from playhead.store.scope import column_text
from playhead.store.sqlitekind import check_kind

_MARK = 0x70686964  # "phid"
_BATCH = 4096
_TABLES = (
    "CREATE TABLE built (only_row INTEGER PRIMARY KEY CHECK (only_row = 0), bytes INTEGER,"
    " last INTEGER, head TEXT, ids INTEGER)",
    "CREATE TABLE ids (id TEXT PRIMARY KEY, at INTEGER, size INTEGER) WITHOUT ROWID",
)


class IdIndex:
    """The ids of the journal in ``folder``. Its owner holds the journal's lock."""

    def __init__(self, folder: Path) -> None:
        base, home = placed(folder)
        self.path = base / "index" / f"{home.name}.ids"
        self._db: sqlite3.Connection | None = None
        self._end = 0
        self._last = 0
        self._head = ""

    def find(self, fd: int, size: int, event_id: str) -> bytes | None:
        """The line of the first row with this id among the first ``size`` bytes of ``fd``.

        Raises:
            StoreError, WriteFailed, Unreadable: the index cannot be kept where it belongs.
        """
        if column_text(event_id) is None:
            return None
        for last_try in (False, True):
            try:
                if self._db is None:
                    self._open(fd, size)
                self._catch_up(fd, size)
                assert self._db is not None
                asked = "SELECT at, size FROM ids WHERE id = ?"
                row = self._db.execute(asked, (event_id,)).fetchone()
                if row is None:
                    return None
                line = os.pread(fd, int(row[1]), int(row[0]))
                if _id_of(line) == event_id:
                    return line
            except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
                if last_try:
                    raise self._refused(error) from error
            self._throw_away()
        raise self._refused(None)

    def close(self) -> None:
        """Give the file back."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _refused(self, error: Exception | None) -> StoreError:
        word = getattr(error, "sqlite_errorname", None) or type(error).__name__
        return StoreError(
            f"the index of event ids cannot be kept ({word})",
            place=Place(str(self.path)),
            remedy="Free space, or delete it: it is made again from the journal",
        )

    def _throw_away(self) -> None:
        self.close()
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(self.path.with_name(self.path.name + end))

    def _open(self, fd: int, size: int) -> None:
        """Open the file; one that is not of this chain is thrown away and begun anew."""
        if not self._usable():
            self._throw_away()
        check_kind(self.path, create=True)
        self._db = db = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=5
        )
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "journal_mode = WAL"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("PRAGMA synchronous = NORMAL")  # a crash loses its end, which is read again
        self._end = self._last = 0
        self._head = ""
        if not self._fits(db, fd, size):
            self._begin(db)

    def _usable(self) -> bool:
        """True for a regular file that may be SQLite's."""
        if not os.path.lexists(self.path):
            return True
        if os.path.islink(self.path) or not os.path.isfile(self.path):
            return False
        with open(self.path, "rb") as handle:
            return handle.read(16) in (b"", b"SQLite format 3\0")

    def _fits(self, db: sqlite3.Connection, fd: int, size: int) -> bool:
        """True when the file was built over a beginning of this very journal."""
        if db.execute("PRAGMA application_id").fetchone()[0] != _MARK:
            return False
        found = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if sorted(row[0] for row in found) != sorted(_TABLES):
            return False
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            return False
        built = db.execute("SELECT bytes, last, head, ids FROM built").fetchone()
        if built is None or db.execute("SELECT count(*) FROM ids").fetchone()[0] != built[3]:
            return False
        end, last, head, _ = built
        if not 0 <= last < end <= size or os.pread(fd, 1, end - 1) != b"\n":
            return False
        row = row_of(os.pread(fd, end - 1 - last, last))
        if not isinstance(row, Row) or row.stored_hash != head or row.computed != head:
            return False
        self._end, self._last, self._head = end, last, head
        return True

    def _begin(self, db: sqlite3.Connection) -> None:
        for name in [row[0] for row in db.execute("SELECT name FROM sqlite_master").fetchall()]:
            raise sqlite3.DatabaseError(f"not empty: {name[:20]}")
        db.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_MARK}")
        db.execute("INSERT INTO built VALUES (0, 0, 0, '', 0)")
        db.execute("COMMIT")

    def _catch_up(self, fd: int, size: int) -> None:
        """Read the rows behind the index, some thousand in one transaction."""
        db = self._db
        assert db is not None
        rows = split_lines(blocks_of(fd, self._end, size), offset=self._end)
        count = _BATCH if self._end < size else 0
        while count == _BATCH:
            db.execute("BEGIN IMMEDIATE")
            try:
                before = db.total_changes
                end, last, head = self._end, self._last, self._head
                some = list(_some(rows, _BATCH))
                count = len(some)
                for at, line, key, stored in some:
                    end, last, head = at + len(line) + 1, at, stored or head
                    if key is not None:
                        values = (key, at, len(line))
                        db.execute("INSERT OR IGNORE INTO ids VALUES (?, ?, ?)", values)
                new = db.total_changes - before
                db.execute(
                    "UPDATE built SET bytes = ?, last = ?, head = ?, ids = ids + ?",
                    (min(end, size), last, head, new),
                )
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self._end, self._last, self._head = min(end, size), last, head
        self._end = max(self._end, size)


def _some(
    rows: Iterator[tuple[int, int, bytes | BadRow]], count: int
) -> Iterator[tuple[int, bytes, str | None, str]]:
    """Offset, line, id and stored hash of the next rows."""
    for _, at, line in rows:
        if isinstance(line, bytes):
            call, stored = _parsed(line)
            yield at, line, column_text(_id(call)), stored
            count -= 1
            if not count:
                return


def _parsed(line: bytes) -> tuple[JSON, str]:
    try:
        obj = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = row_of(line)
        obj = row.obj if isinstance(row, Row) else None
    if not isinstance(obj, dict):
        return None, ""
    stored = obj.get("step_hash")
    return obj.get("tool_call"), stored if isinstance(stored, str) else ""


def _id(call: JSON) -> JSON:
    """The id of an envelope; None for a row that is none (`playhead.core.chain.envelope_of`)."""
    if isinstance(call, dict) and call.get("v") == 1 and isinstance(call.get("event"), str):
        return call.get("id")
    return None


def _id_of(line: bytes) -> JSON:
    return _id(_parsed(line)[0])
