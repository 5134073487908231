"""A store as the runtime of a replay: its events, with their head frozen and their chain verified.

This is what `create_default_replay_client` opens. It adds to the event log what only a verb
may do: ``verify`` and ``proof``.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from playhead.core.fold import Projection
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS, JSON, Report
from playhead.core.projections import BUILT_IN
from playhead.core.quickevent import log_row
from playhead.errors import ReplayArgumentError
from playhead.store.asynclog import EventLog
from playhead.store.eventlog import BlockingLog, LogHead
from playhead.store.keys import KeyRing, state_dir
from playhead.store.lines import SealedLines
from playhead.store.root import Root
from playhead.store.stores import Lines, Store
from playhead.store.urls import open_store
from playhead.verifier.prove import proof_for
from playhead.verifier.stored import verify_stored

_FROZEN = 16
"""Chats whose rows are kept open."""


class StoreEvents(EventLog):
    """The event log of a store, with the two checks that need the verifier.

    The rows of a chat that a handle froze are kept open for a while, so that its next seek need
    not look for them again; what is read through them is what was verified.
    """

    def __init__(self, log: BlockingLog) -> None:
        super().__init__(log)
        self._frozen: OrderedDict[tuple[str, str], Lines] = OrderedDict()
        self._lock = threading.Lock()

    async def head(self, chat_id: str, tenant_id: str) -> LogHead | None:
        """Size and last row hash of a chat, whose rows are frozen with it.

        Raises:
            UsageError: a blank tenant or chat. NotFound: the tenant has no such chat.
        """
        return await asyncio.to_thread(self._head, chat_id, tenant_id)

    def _head(self, chat: str, tenant: str) -> LogHead:
        lines = self._freeze(chat, tenant)
        count = lines.count()
        if not count:
            return LogHead(0, GENESIS)
        last = log_row(tenant, chat, count - 1, lines.get(count - 1)[2])
        return LogHead(count, last.row_hash)

    def _freeze(self, chat: str, tenant: str) -> Lines:
        store = self.blocking.store
        lines = store.lines(store.find(tenant, chat))
        lines.count()  # from here on it only reads, in any thread
        if not isinstance(lines, SealedLines):
            with self._lock:
                self._frozen[tenant, chat] = lines
                self._frozen.move_to_end((tenant, chat))
                if len(self._frozen) > _FROZEN:
                    self._frozen.popitem(last=False)  # closes when nobody reads it any more
        return lines

    def _open_rows(self, chat: str, tenant: str, after: int, upto: int | None) -> Iterator[LogRow]:
        with self._lock:
            lines = self._frozen.get((tenant, chat))
        if lines is None or upto is None or not (upto == 0 or lines.has(upto - 1)):
            return super()._open_rows(chat, tenant, after, upto)
        return (
            log_row(tenant, chat, number, line)
            for number, (_, _, line) in enumerate(lines.walk(after, upto), after)
        )

    async def verify(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        expected_head: str | None = None,
    ) -> Report:
        """The verdict over the chat's chain (`playhead.verifier.stored`).

        Raises:
            NotFound: the tenant has no such chat. StoreError, Unreadable: the store.
        """
        return await asyncio.to_thread(self._verify, chat_id, tenant_id, expected_head)

    def _verify(self, chat: str, tenant: str, expected: str | None) -> Report:
        store = self.blocking.store
        return verify_stored(store, store.find(tenant, chat), expected_head=expected)

    async def proof(self, *, chat_id: str, tenant_id: str, sequence_number: int) -> dict[str, JSON]:
        """The inclusion proof of a row against the newest signed head that covers it.

        Raises:
            NotFound: the tenant has no such chat or row. CheckFailed: no head covers it yet.
        """
        return await asyncio.to_thread(self._proof, chat_id, tenant_id, sequence_number)

    def _proof(self, chat: str, tenant: str, number: int) -> dict[str, JSON]:
        store = self.blocking.store
        ref = store.find(tenant, chat)
        return dict(proof_for(store, ref, number, ring=KeyRing(state_dir())))


class StoreRuntime:
    """A store with its ``events`` facet. Use it with ``with``, or `close` it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.events = StoreEvents(BlockingLog(store))

    @classmethod
    def open(cls, place: str | os.PathLike[str] | Root | Store | None) -> StoreRuntime:
        """The store at a URL or path (`playhead.store.urls.open_store`).

        Raises:
            UsageError, StoreError, Unreadable: no such kind of store, or it does not answer.
        """
        return cls(open_store(place))

    def list_chats(self, tenant_id: str) -> list[str]:
        """The tenant's chats, oldest first."""
        return [ref.chat_id for ref in self.store.list_chats(tenant_id)]

    def close(self) -> None:
        """Sign what was appended and give the store back. Idempotent."""
        self.events.blocking.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def projections_of(keys: tuple[str, ...]) -> tuple[Projection, ...]:
    """Built-in projections by key.

    Raises:
        ReplayArgumentError: field ``projections``; it names those there are.
    """
    known: dict[str, Projection] = {projection.key: projection for projection in BUILT_IN}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise ReplayArgumentError(
            "projections", f"has no {unknown[0]!r:.40}; there are {', '.join(known)}"
        )
    return tuple(known[key] for key in dict.fromkeys(keys))
