"""Connections to one PostgreSQL database, and transactions in which the tenant is set.

A connection serves one transaction at a time and goes back to the pool; one that was dropped is
replaced. Nothing is left on a connection between transactions (every setting is local to one), so
a pooler in transaction mode may stand between.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from playhead.errors import StoreError
from playhead.store.postgres_faults import (
    UNSURE,
    fault,
    in_our_words,
    no_connection,
    no_driver,
    said,
)
from playhead.store.postgres_url import CONNECT_SECONDS, Target

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[object, ...]]

KEPT_IDLE = 4
"""Connections that wait for the next transaction; more are closed when they come back."""

IDLE_SECONDS = 300
"""A transaction that does nothing for so long is ended by the server, and its lock with it."""

_BEGIN = (
    b"SELECT set_config('playhead.tenant', %s, true), set_config('lock_timeout', %s, true),"
    b" set_config('statement_timeout', %s, true),"
    b" set_config('idle_in_transaction_session_timeout', %s, true)"
)
# The server's own level stays when it is stricter: nothing is acknowledged before it is flushed.
_DURABLE = (
    b", set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    b" WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)


def connect(target: Target) -> Connection:
    """A new connection in UTF-8, at READ COMMITTED whatever the server's default is.

    Raises:
        StoreError: the client is not installed, or the server does not let us in.
    """
    try:
        import psycopg
    except ImportError:
        raise no_driver() from None
    try:
        parts = psycopg.conninfo.conninfo_to_dict(target.conninfo, client_encoding="utf8")
        parts.setdefault("connect_timeout", CONNECT_SECONDS)
        connection = psycopg.connect(psycopg.conninfo.make_conninfo("", **parts))
    except psycopg.Error as error:
        raise no_connection(error, target) from None
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


class Pool:
    """The connections of one `PostgresDatabase`. Thread-safe; a forked child starts anew."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        self._closed = False

    @contextmanager
    def transaction(self, tenant_id: str, *, durable: bool = False) -> Iterator[Connection]:
        """One transaction of a tenant: committed on leaving, undone by an exception.

        Args:
            tenant_id: what row-level security lets through.
            durable: leaving waits until the server has flushed the commit.

        Raises:
            StoreError: the server refused or is gone. When it went while committing, the message
                says that the outcome is not known.
        """
        with in_our_words(self.target):
            connection = self._begin(tenant_id, durable)
            try:
                yield connection
            except BaseException:
                self._undo(connection)
                raise
            self._commit(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _begin(self, tenant_id: str, durable: bool) -> Connection:
        """A connection inside a new transaction; one that was dropped while idle is replaced."""
        import psycopg

        for connection in iter(self._take, None):
            try:
                return self._set_up(connection, tenant_id, durable)
            except psycopg.OperationalError:  # closed by _set_up; nothing had begun on it
                continue
        return self._set_up(connect(self.target), tenant_id, durable)

    def _set_up(self, connection: Connection, tenant_id: str, durable: bool) -> Connection:
        limits = (self.target.lock_timeout, self.target.statement_timeout, IDLE_SECONDS)
        values = [tenant_id, *(str(round(seconds * 1000)) for seconds in limits)]
        try:
            connection.execute(_BEGIN + _DURABLE if durable else _BEGIN, values)
        except BaseException:
            connection.close()
            raise
        return connection

    def _commit(self, connection: Connection) -> None:
        import psycopg

        try:
            connection.commit()
        except psycopg.Error as error:
            lost = connection.broken or (error.sqlstate or "08")[:2] in ("08", "57")
            connection.close()
            if lost:
                raise said(
                    self.target, UNSURE, "Append again: an event with its own id is known again"
                ) from None
            raise fault(error, self.target) from None
        except BaseException:
            connection.close()
            raise
        self._give(connection)

    def _undo(self, connection: Connection) -> None:
        import psycopg

        with suppress(psycopg.Error):  # it is gone, and what was begun there is undone
            connection.rollback()
            self._give(connection)
            return
        connection.close()

    def _take(self) -> Connection | None:
        with self._lock:
            if self._closed:
                raise StoreError("the database was closed", remedy="Open it again")
            if self._pid != os.getpid():  # the sockets are the parent's
                self._pid, self._idle = os.getpid(), []
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return None

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < KEPT_IDLE and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.close()
