"""Chains in one SQLite file.

* A commit is durable: write-ahead log, ``synchronous=FULL``.
* One connection, guarded by a lock; ``exclusive`` holds it and ``BEGIN IMMEDIATE`` holds the
  file against other processes, so a tip that was read inside stays true until the commit.
* The file is untrusted input: it is opened only when it carries playhead's marks and exactly
  playhead's tables, without triggers or views that would run when it is used.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from playhead.errors import Place, StoreError
from playhead.store.database import ChatRecord, NewRow, Tip
from playhead.store.sqlitefile import connect

_ROWS = 512
_BYTES = 4 * 1024 * 1024
_CHAT = "SELECT chat_id, run_id, size, step_hash, length, created, written FROM chats"


class SqliteDatabase:
    """A `playhead.store.database.Database` in the file ``path``, made when it is missing.

    Raises:
        NotFound: it is missing and ``create`` is off.
        Refused, Unreadable: a link, a directory, or a file that is not playhead's.
        StoreError: SQLite refuses, or another process holds the file for too long.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = Path(os.path.realpath(os.path.dirname(os.path.abspath(path)))) / Path(path).name
        self.url = f"sqlite:///{self.path}"
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._writing = threading.Lock()  # held during a transaction, whatever interrupts it
        self._closed = False
        self._db = connect(self.path, create=create)

    # -- the guard

    @contextmanager
    def _guard(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; SQLite's faults as ours."""
        if os.getpid() != self._pid:
            raise StoreError(
                "this process inherited the database by fork", remedy="Open it again in the child"
            )
        with self._lock:
            if self._closed:
                raise StoreError("the database is closed", remedy="Open the store again")
            try:
                if self._db.in_transaction and not self._writing.locked():
                    self._db.execute("ROLLBACK")  # an interrupt kept its owner from doing so
                yield self._db
            except sqlite3.Error as error:
                raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error) -> StoreError:
        place = Place(str(self.path))
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            what, remedy = "another process holds the database", "Try again when it is done"
        elif name.startswith("SQLITE_FULL"):
            what, remedy = "the disk is full", "Free space; what was committed before is whole"
        elif name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            what, remedy = "the database is damaged", "Restore it from a copy"
        elif name.startswith("SQLITE_READONLY"):
            what, remedy = "the database cannot be written", "Check its owner and permissions"
        else:  # SQLite's own words may quote values
            what, remedy = f"SQLite refused ({name or type(error).__name__})", None
        return StoreError(what, place=place, remedy=remedy)

    # -- reading

    def chats(self, tenant_id: str) -> list[ChatRecord]:
        with self._guard() as db:
            found = db.execute(
                _CHAT + " WHERE tenant_id = ? ORDER BY created, chat_id", (tenant_id,)
            )
            return [_record(row) for row in found]

    def chat(self, tenant_id: str, chat_id: str) -> ChatRecord | None:
        with self._guard() as db:
            key = (tenant_id, chat_id)
            row = db.execute(_CHAT + " WHERE tenant_id = ? AND chat_id = ?", key).fetchone()
        return None if row is None else _record(row)

    def rows(self, tenant_id: str, chat_id: str, start: int, stop: int) -> Iterator[list[bytes]]:
        number = start
        while number < stop:
            lines = self._some(tenant_id, chat_id, number, min(stop, number + _ROWS))
            if not lines:
                return
            number += len(lines)
            yield lines

    def _some(self, tenant_id: str, chat_id: str, start: int, stop: int) -> list[bytes]:
        lines: list[bytes] = []
        held = 0
        with self._guard() as db:
            found = db.execute(
                "SELECT sequence_number, line FROM rows WHERE tenant_id = ? AND chat_id = ?"
                " AND sequence_number > ? AND sequence_number <= ? ORDER BY sequence_number",
                (tenant_id, chat_id, start, stop),
            )
            for number, line in found:
                if number != start + len(lines) + 1 or not isinstance(line, bytes):
                    break
                lines.append(line)
                held += len(line)
                if held > _BYTES:
                    break
            found.close()
        return lines

    def find_event(self, tenant_id: str, chat_id: str, event_id: str) -> bytes | None:
        return self._one(
            "SELECT line FROM rows WHERE tenant_id = ? AND chat_id = ? AND event_id = ?"
            " ORDER BY sequence_number LIMIT 1",
            (tenant_id, chat_id, event_id),
        )

    def _one(self, sql: str, key: tuple[str, ...]) -> bytes | None:
        with self._guard() as db:
            row = db.execute(sql, key).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    # -- writing

    @contextmanager
    def exclusive(
        self, tenant_id: str, chat_id: str, run_id: str, *, create: bool
    ) -> Iterator[ChatRecord | None]:
        with self._guard() as db, self._transaction(db):
            record = self.chat(tenant_id, chat_id)
            if record is None and create:
                now = time.time()
                db.execute(
                    "INSERT INTO chats (tenant_id, chat_id, run_id, size, step_hash, length,"
                    " created, written) VALUES (?, ?, ?, 0, ?, 0, ?, ?)",
                    (tenant_id, chat_id, run_id, Tip().step_hash, now, now),
                )
                record = ChatRecord(chat_id, run_id, Tip(), now, now)
            yield record

    @contextmanager
    def _transaction(self, db: sqlite3.Connection) -> Iterator[None]:
        if self._writing.locked():  # the guard is held: it is this thread's own
            raise StoreError("a transaction inside of a transaction", remedy="Finish the first one")
        with self._writing:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a failed commit may have rolled back already
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                raise

    def insert(
        self, tenant_id: str, chat_id: str, rows: Sequence[NewRow], tip: Tip, written: float
    ) -> None:
        with self._guard() as db:
            if not self._writing.locked():
                raise StoreError("rows outside of a transaction", remedy="Use `exclusive`")
            db.executemany(
                "INSERT INTO rows (tenant_id, chat_id, sequence_number, event_type, event_id,"
                " step_hash, line) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (tenant_id, chat_id, r.seq + 1, r.event_type, r.event_id, r.step_hash, r.line)
                    for r in rows
                ),
            )
            db.execute(
                "UPDATE chats SET size = ?, step_hash = ?, length = ?, written = ?"
                " WHERE tenant_id = ? AND chat_id = ?",
                (tip.size, tip.step_hash, tip.length, written, tenant_id, chat_id),
            )

    # -- heads and blobs

    def note(self, tenant_id: str, chat_id: str) -> tuple[str, bytes] | None:
        with self._guard() as db:
            row = db.execute(
                "SELECT note, resume FROM heads WHERE tenant_id = ? AND chat_id = ?",
                (tenant_id, chat_id),
            ).fetchone()
        if row is None or not isinstance(row[0], str) or not isinstance(row[1], bytes):
            return None
        return row[0], row[1]

    def put_note(self, tenant_id: str, chat_id: str, note: str, resume: bytes) -> None:
        self._put(
            "INSERT INTO heads (tenant_id, chat_id, note, resume) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (tenant_id, chat_id) DO UPDATE SET note = excluded.note,"
            " resume = excluded.resume",
            (tenant_id, chat_id, note, resume),
        )

    def blob(self, tenant_id: str, digest: str) -> bytes | None:
        return self._one(
            "SELECT data FROM blobs WHERE tenant_id = ? AND digest = ?", (tenant_id, digest)
        )

    def put_blob(self, tenant_id: str, digest: str, data: bytes) -> None:
        self._put(
            "INSERT INTO blobs (tenant_id, digest, data) VALUES (?, ?, ?)"
            " ON CONFLICT (tenant_id, digest) DO NOTHING",
            (tenant_id, digest, data),
        )

    def _put(self, sql: str, values: tuple[object, ...]) -> None:
        """One statement in the transaction that is open, or in one of its own."""
        with self._guard() as db:
            if self._writing.locked():
                db.execute(sql, values)
                return
            with self._transaction(db):
                db.execute(sql, values)

    def close(self) -> None:
        with self._lock:
            if not self._closed and os.getpid() == self._pid:
                self._closed = True
                self._db.close()


def _record(row: tuple[str, str, int, str, int, float, float]) -> ChatRecord:
    chat_id, run_id, size, step_hash, length, created, written = row
    return ChatRecord(chat_id, run_id, Tip(size, step_hash, length), created, written)
