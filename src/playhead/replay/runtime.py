"""``ReplayRuntime``: whole turns, forks, many tenants, proofs (contract: "ReplayRuntime").

Bound to one tenant when it is made; every call names the tenant again and the two must agree.
There are no lossy fallbacks: without a runtime to read, nothing is made up.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playhead.core.events import Draft
from playhead.core.fold import Projection
from playhead.core.model import JSON, Report
from playhead.errors import (
    ReplayTenantMismatchError,
)
from playhead.replay.aggregate import Aggregation, Authorize, Chats, OnError, aggregate
from playhead.replay.arguments import (
    require_choice,
    require_id,
    require_number,
    require_projections,
)
from playhead.replay.cache import CacheBackend
from playhead.replay.client import ReplayClient
from playhead.replay.facet import ReplayRuntimeFacet, require_events
from playhead.replay.forked import ForkedReplay, make_fork
from playhead.replay.handle import ReplayHandle
from playhead.replay.opening import Opening
from playhead.replay.outcomes import AggregateResult
from playhead.replay.restore import SnapshotVerify, restore
from playhead.replay.turns import TurnReplay, last_turn
from playhead.store.snapshots import Snapshot


class ReplayRuntime:
    """Made by `create_replay_runtime`."""

    def __init__(
        self,
        tenant_id: str,
        session_runtime: ReplayRuntimeFacet,
        authorize: Authorize | None,
        cache_backend: CacheBackend | None,
        projections: tuple[Projection, ...],
    ) -> None:
        self.tenant_id = tenant_id
        self._events = require_events(session_runtime)
        self._client = ReplayClient(session_runtime, cache_backend=cache_backend)
        self._authorize = authorize
        self._projections = projections

    async def replay_turn(
        self, chat_id: str, *, tenant_id: str, message_id: str | None = None
    ) -> TurnReplay:
        """The turn of ``message_id``, or the *last* completed turn of the chat.

        (`ReplayHandle.replay_turn` without an id means the *next* one.) The state is that of the
        whole chat up to there. A chat without any completed turn gives its last state, and
        ``completed=False``.

        Raises:
            ReplayTurnNotFoundError: no turn of this id.
            What opening and stepping a handle raises.
        """
        self._require_tenant(tenant_id, chat_id)
        if message_id is not None:
            require_id("message_id", message_id)
        async with self._open(chat_id) as handle:
            return await last_turn(handle, message_id)

    async def from_snapshot(
        self,
        snapshot: bytes | Snapshot,
        *,
        chat_id: str,
        tenant_id: str,
        verify: SnapshotVerify = "full",
    ) -> ReplayHandle:
        """A handle at the sequence number of ``snapshot``, which steps and seeks on from there.

        Args:
            snapshot: what `ReplayHandle.snapshot` returned, of a handle with the projections of
                this runtime.
            verify: "full" verifies the chain, folds it again and compares, so that the state is
                that of the log whoever made the snapshot. "digest" believes the state: it only
                checks the digest, and that the log has the row that the snapshot was taken
                behind; rows behind that are checked as they are taken.

        Raises:
            ReplayArgumentError: no snapshot, or one of another chat, tenant, reducer version or
                of other projections.
            ReplayDivergenceError: it is damaged or gives another state than the log (kind
                "state"), or the log has not its row, or does not hold (kind "chain").
            NotFound: the tenant has no such chat.
        """
        self._require_tenant(tenant_id, chat_id)
        require_choice("verify", verify, ("full", "digest"))
        return await restore(
            self._client,
            self._events,
            snapshot,
            chat_id=chat_id,
            tenant_id=tenant_id,
            full=verify == "full",
            projections=self._projections,
        )

    async def fork(
        self,
        chat_id: str,
        at: int,
        events: Iterable[Draft | Mapping[str, object]],
        *,
        tenant_id: str,
        require_turn_boundary: bool = False,
    ) -> ForkedReplay:
        """The chat up to row ``at``, then ``events``: in memory, the original is only read.

        Args:
            at: the last row that is shared; 0 shares none.
            events: drafts, or mappings with ``event_type`` and ``payload``; numbered from
                ``at + 1``.
            require_turn_boundary: refuse a point inside a turn.

        Raises:
            ReplayArgumentError: no such row, an event that is off, or inside a turn.
        """
        self._require_tenant(tenant_id, chat_id)
        require_number("at", at)
        return await make_fork(
            self._events,
            chat_id=chat_id,
            tenant_id=tenant_id,
            at=at,
            synthetic=events,
            require_turn_boundary=require_turn_boundary,
        )

    async def aggregate_multi_tenant(
        self,
        tenant_ids: Sequence[str],
        *,
        aggregation: Aggregation = "per-tenant",
        chats: Chats | None = None,
        authorize: Authorize | None = None,
        on_error: OnError = "raise",
        max_concurrency: int = 8,
    ) -> AggregateResult:
        """Fold every chat of several tenants; "merged" also puts them into one state.

        Args:
            chats: chat ids by tenant; None is every chat that the runtime lists.
            authorize: asked for each tenant, this runtime's own too; the one given to
                `create_replay_runtime` by default. Nobody to ask is a refusal.
            on_error: "raise" the first fault, or "collect" each as the outcome of its chat.
            max_concurrency: chats that are folded at once.

        Raises:
            ReplayArgumentError: an empty list, a blank or repeated tenant, a bad option.
            ReplayTenantMismatchError: a tenant is not allowed.
        """
        return await aggregate(
            self._client,
            self._events,
            tenant_ids,
            aggregation=aggregation,
            authorize=self._authorize if authorize is None else authorize,
            chats=chats,
            projections=self._projections,
            on_error=on_error,
            max_concurrency=max_concurrency,
        )

    async def verify_chain_integrity(
        self,
        chat_id: str,
        *,
        tenant_id: str,
        expected_head: str | None = None,
        reader: Any = None,
    ) -> Report:
        """The verdict over the chat's chain, with its findings; tampering is never raised.

        Args:
            expected_head: the head you expect, as 64 hex digits.
            reader: what reads and verifies in place of the runtime: an object with ``verify``
                (resolution 16). Any: it is a host's own.

        Raises:
            TypeError: neither the runtime nor ``reader`` can verify.
        """
        self._require_tenant(tenant_id, chat_id)
        verify = getattr(self._events if reader is None else reader, "verify", None)
        if not callable(verify):
            raise TypeError("no chain to verify: runtime.events has no verify(), give reader=")
        found = verify(chat_id=chat_id, tenant_id=tenant_id, expected_head=expected_head)
        report = await found if inspect.isawaitable(found) else found
        if not isinstance(report, Report):
            raise TypeError(f"verify() gave {type(report).__name__}, not a Report")
        return report

    async def generate_proof(
        self, sequence_number: int, *, chat_id: str, tenant_id: str
    ) -> dict[str, JSON]:
        """That row ``sequence_number`` stands in the chain that the signed head covers.

        RFC 6962 inclusion; anybody checks it offline (docs/reference/formats/proof.md).

        Raises:
            ReplayArgumentError: no such row. CheckFailed: no signed head covers it yet.
            TypeError: the runtime keeps no signed heads.
        """
        self._require_tenant(tenant_id, chat_id)
        require_number("sequence_number", sequence_number, 1)
        prove = getattr(self._events, "proof", None)
        if not callable(prove):
            raise TypeError("no proof to give: runtime.events has no proof()")
        document = await prove(
            chat_id=chat_id, tenant_id=tenant_id, sequence_number=sequence_number
        )
        return dict(document)

    def _open(self, chat_id: str) -> Opening:
        return self._client.from_event_log(
            chat_id, tenant_id=self.tenant_id, projections=self._projections
        )

    def _require_tenant(self, tenant_id: object, chat_id: object) -> None:
        tenant, chat = require_id("tenant_id", tenant_id), require_id("chat_id", chat_id)
        if tenant != self.tenant_id:
            raise ReplayTenantMismatchError(
                "the runtime is bound to another tenant", chat_id=chat, tenant_id=tenant
            )


def create_replay_runtime(
    *,
    tenant_id: str,
    session_runtime: ReplayRuntimeFacet,
    authorize: Authorize | None = None,
    cache_backend: CacheBackend | None = None,
    projections: Iterable[Projection] | None = None,
) -> ReplayRuntime:
    """A replay runtime over ``session_runtime`` for one tenant.

    Args:
        tenant_id: whose chats are replayed. No default.
        session_runtime: any object with an ``events`` facet (`StoreRuntime` over a store).
        authorize: asked for each tenant of `aggregate_multi_tenant`; may be asynchronous.
        cache_backend, projections: as in `ReplayClient`.

    Raises:
        ReplayArgumentError: a bad tenant or projection.
        TypeError: ``session_runtime`` is missing, or lacks what it must have.
    """
    chosen = require_projections(projections)
    tenant = require_id("tenant_id", tenant_id)
    return ReplayRuntime(tenant, session_runtime, authorize, cache_backend, chosen)
