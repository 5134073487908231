"""A store as the runtime of a replay: its events, with their head frozen and their chain verified.

This is what `create_default_replay_client` opens. It adds to the event log what only a verb
may do: ``verify`` and ``proof``.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self

from playhead.core.fold import Projection
from playhead.core.model import JSON, Report
from playhead.core.projections import BUILT_IN
from playhead.errors import ReplayArgumentError
from playhead.store.eventlog import BlockingLog, EventLog
from playhead.store.root import Root
from playhead.store.stores import Store
from playhead.store.urls import open_store
from playhead.verifier.proofs import proof_for
from playhead.verifier.stored import verify_stored


class StoreEvents(EventLog):
    """The event log of a store, with the two checks that need the verifier."""

    async def verify(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        expected_head: str | None = None,
        up_to_sequence_number: int | None = None,
    ) -> Report:
        """The verdict over the chat's chain (`playhead.verifier.stored`).

        Raises:
            NotFound: the tenant has no such chat. StoreError, Unreadable: the store.
        """
        return await asyncio.to_thread(
            self._verify, chat_id, tenant_id, expected_head, up_to_sequence_number
        )

    def _verify(self, chat: str, tenant: str, expected: str | None, upto: int | None) -> Report:
        store = self.store
        return verify_stored(store, store.find(tenant, chat), expected_head=expected, up_to=upto)

    async def proof(self, *, chat_id: str, tenant_id: str, sequence_number: int) -> dict[str, JSON]:
        """The inclusion proof of a row against the newest signed head that covers it.

        Raises:
            NotFound: the tenant has no such chat or row. CheckFailed: no head covers it yet.
        """
        return await asyncio.to_thread(self._proof, chat_id, tenant_id, sequence_number)

    def _proof(self, chat: str, tenant: str, number: int) -> dict[str, JSON]:
        return proof_for(self.store, self.store.find(tenant, chat), number)


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
        self.events.log.close()
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
