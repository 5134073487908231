"""Chains in a PostgreSQL server: the `Database` behind ``postgresql://`` URLs.

A chat is one row of ``chats``, locked while somebody appends; its rows lie in ``rows`` under
``(tenant_id, chat_id, sequence_number)``, so that a fork is a key that is taken. Row-level security
(`playhead.store.postgres_schema`) stands below every query here (resolution 17).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, cast

from playhead.errors import StoreError
from playhead.store.database import ChatRecord, NewRow, Tip
from playhead.store.postgres_faults import in_our_words, said
from playhead.store.postgres_pool import Pool
from playhead.store.postgres_sql import Statements, chunks
from playhead.store.postgres_url import parse_url
from playhead.store.scope import check_chat, check_scope, check_tenant

if TYPE_CHECKING:
    from playhead.store.postgres_pool import Connection

COPY_FROM = 64
"""From so many rows on, one COPY is cheaper than an INSERT each, as measured."""

BATCH_ROWS = 512
BATCH_BYTES = 4 << 20
"""What `rows` fetches at once: so many rows, or fewer when they are large (one at least)."""


def event_key(event_id: str) -> bytes:
    """How an event id is looked up: its SHA-256, so that any string of any length has a place."""
    return hashlib.sha256(event_id.encode("utf-8", "surrogatepass")).digest()


class PostgresDatabase:
    """The chains in one schema of one server; see `playhead.store.database.Database`.

    No connection is made before the first call. Thread-safe: each transaction has a connection
    of its own, and calls inside `exclusive` use the connection of that transaction.

    Args:
        url: ``postgresql://LOGIN@HOST:PORT/DATABASE``; playhead's own options are ``schema``,
            ``lock_timeout`` and ``statement_timeout`` (seconds), all others go to libpq.

    Raises:
        UsageError: the URL is off; in every method, a tenant or chat that is none.
    """

    def __init__(self, url: str) -> None:
        self._target = parse_url(url)
        self.url = self._target.shown
        self._pool = Pool(self._target)
        self._sql = Statements(self._target.schema)
        self._here = threading.local()
        self._may_copy: bool | None = None

    # --- reading ---------------------------------------------------------------------------

    def chats(self, tenant_id: str) -> list[ChatRecord]:
        with self._reading(tenant_id) as connection:
            found = connection.execute(self._sql.chats, (tenant_id,)).fetchall()
        return [_record(row) for row in found]

    def chat(self, tenant_id: str, chat_id: str) -> ChatRecord | None:
        with self._reading(tenant_id, chat_id) as connection:
            row = connection.execute(self._sql.chat, (tenant_id, chat_id)).fetchone()
        return None if row is None else _record(row)

    def rows(self, tenant_id: str, chat_id: str, start: int, stop: int) -> Iterator[list[bytes]]:
        """No transaction stays open between two batches, however slowly they are taken."""
        at = max(start, 0)
        while at < stop:
            upto = min(at + BATCH_ROWS, stop)
            values = (tenant_id, chat_id, at + 1, upto, BATCH_BYTES)
            with self._reading(tenant_id, chat_id) as connection:
                found = connection.execute(self._sql.rows, values, binary=True).fetchall()
            batch: list[bytes] = []
            for number, line in found:
                if number != at + 1:
                    break
                batch.append(cast("bytes", line))
                at += 1
            if batch:
                yield batch
            if len(batch) < len(found) or not found:
                return  # a row is missing: what follows it is not a chain

    def find_event(self, tenant_id: str, chat_id: str, event_id: str) -> bytes | None:
        values = (tenant_id, chat_id, event_key(event_id))
        return self._one_value(tenant_id, chat_id, self._sql.event, values)

    def note(self, tenant_id: str, chat_id: str) -> tuple[str, bytes] | None:
        with self._reading(tenant_id, chat_id) as connection:
            cursor = connection.execute(self._sql.note, (tenant_id, chat_id), binary=True)
            row = cursor.fetchone()
        return None if row is None else cast("tuple[str, bytes]", row)

    def blob(self, tenant_id: str, digest: str) -> bytes | None:
        return self._one_value(tenant_id, None, self._sql.blob, (tenant_id, digest))

    # --- writing ---------------------------------------------------------------------------

    @contextmanager
    def exclusive(
        self, tenant_id: str, chat_id: str, run_id: str, *, create: bool
    ) -> Iterator[ChatRecord | None]:
        if self._mine():
            raise StoreError("this thread holds a chat already", remedy="Leave that one first")
        check_scope(tenant_id, chat_id)
        with self._pool.transaction(tenant_id, durable=True) as connection:
            key = (tenant_id, chat_id)
            row = connection.execute(self._sql.lock, key).fetchone()
            if row is None and create:
                now = time.time()
                connection.execute(self._sql.create, (*key, run_id, now, now))
                row = connection.execute(self._sql.lock, key).fetchone()
                if row is None:
                    raise said(self._target, "the run holds another chat", "Name another run id")
            self._here.held = (tenant_id, chat_id, connection)
            try:
                yield None if row is None else _record(row)
            finally:
                self._here.held = None

    def insert(
        self, tenant_id: str, chat_id: str, rows: Sequence[NewRow], tip: Tip, written: float
    ) -> None:
        held = self._mine()
        if held is None or held[:2] != (tenant_id, chat_id):
            raise StoreError("rows are added inside 'exclusive' of their chat only")
        if not rows:
            return
        connection = held[2]
        moved = (tip.size, tip.step_hash, tip.length, written, tenant_id, chat_id, rows[0].seq)
        with in_our_words(self._target):
            if len(rows) >= COPY_FROM and self._copies(connection):
                self._copy(connection, tenant_id, chat_id, rows)
                done = connection.execute(self._sql.move, moved)
            else:  # one way to the server and back for all of it
                values = [(tenant_id, chat_id, *_columns(row)) for row in rows]
                with connection.pipeline():
                    connection.cursor().executemany(self._sql.insert, values)
                    done = connection.execute(self._sql.move, moved)
        if done.rowcount != 1 or tip.size != rows[0].seq + len(rows):
            raise said(self._target, "the rows do not follow the end of the chat", "Read it again")

    def put_note(self, tenant_id: str, chat_id: str, note: str, resume: bytes) -> None:
        with self._writing(tenant_id, chat_id) as connection:
            connection.execute(self._sql.put_note, (tenant_id, chat_id, note, resume))

    def put_blob(self, tenant_id: str, digest: str, data: bytes) -> None:
        with self._writing(tenant_id) as connection:
            connection.execute(self._sql.put_blob, (tenant_id, digest, data))

    def close(self) -> None:
        self._pool.close()

    # --- inside ----------------------------------------------------------------------------

    def _mine(self) -> tuple[str, str, Connection] | None:
        """The chat that this thread holds, with its connection."""
        held: tuple[str, str, Connection] | None = getattr(self._here, "held", None)
        return held

    @contextmanager
    def _reading(
        self, tenant_id: str, chat_id: str | None = None, *, durable: bool = False
    ) -> Iterator[Connection]:
        """The transaction this thread is in, when it is this tenant's; otherwise a new one."""
        check_tenant(tenant_id)
        if chat_id is not None:
            check_chat(chat_id)
        held = self._mine()
        if held is not None and held[0] == tenant_id:
            with in_our_words(self._target):
                yield held[2]
            return
        with self._pool.transaction(tenant_id, durable=durable) as connection:
            yield connection

    def _writing(
        self, tenant_id: str, chat_id: str | None = None
    ) -> AbstractContextManager[Connection]:
        return self._reading(tenant_id, chat_id, durable=True)

    def _one_value(
        self, tenant_id: str, chat_id: str | None, sql: bytes, values: Sequence[object]
    ) -> bytes | None:
        with self._reading(tenant_id, chat_id) as connection:
            row = connection.execute(sql, values, binary=True).fetchone()
        return None if row is None else cast("bytes", row[0])

    def _copies(self, connection: Connection) -> bool:
        """COPY goes through a temporary table, which a login may be forbidden to make."""
        if self._may_copy is None:
            row = connection.execute(self._sql.may_copy).fetchone()
            self._may_copy = bool(row and row[0])
        return self._may_copy

    def _copy(
        self, connection: Connection, tenant_id: str, chat_id: str, rows: Sequence[NewRow]
    ) -> None:
        """COPY into a table of this transaction, then one INSERT: a COPY right into ``rows`` is
        not allowed under row-level security."""
        cursor = connection.cursor()
        cursor.execute(self._sql.make_bulk)
        for chunk in chunks(rows):
            with cursor.copy(self._sql.copy_bulk) as copy:
                copy.set_types(Statements.BULK_TYPES)
                for row in chunk:
                    copy.write_row(_columns(row))
            cursor.execute(self._sql.take_bulk, (tenant_id, chat_id))
            cursor.execute(self._sql.empty_bulk)
        cursor.execute(self._sql.drop_bulk)


def _record(row: tuple[object, ...]) -> ChatRecord:
    chat_id, run_id, size, step_hash, length, created, written = row
    tip = Tip(cast("int", size), cast("str", step_hash), cast("int", length))
    return ChatRecord(
        cast("str", chat_id),
        cast("str", run_id),
        tip,
        cast("float", created),
        cast("float", written),
    )


def _columns(row: NewRow) -> tuple[int, str, bytes | None, str, bytes]:
    """The columns of a row behind its key. An event type that no database can hold is spelled
    with backslashes: it is an index, the line is the truth."""
    kind = row.event_type.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    key = None if row.event_id is None else event_key(row.event_id)
    return row.seq + 1, kind, key, row.step_hash, row.line
