"""What folding many chats gives: an outcome a chat, an outcome a tenant, one merged state.

Sequence numbers belong to a chat, so every chat is folded by itself and only the results are put
together (study, item 61). The order is that of the tenants given, then of the chat ids, whatever
finished first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from playhead.core.model import JSON

FAMILIES: Final = ("interrupts", "subagents", "exports", "userCards")


@dataclass(frozen=True, slots=True)
class ChatOutcome:
    """One chat, folded to its head: ``state`` as `State.to_wire` gives it, ``views`` of the
    projections asked for, ``head`` its last row hash. ``error`` says why there is none.

    Everything in it pickles: outcomes come from other processes too."""

    tenant_id: str
    chat_id: str
    state: Mapping[str, JSON] = field(default_factory=dict)
    views: Mapping[str, JSON] = field(default_factory=dict)
    event_count: int = 0
    head: str = ""
    state_digest: str = ""
    verdict: str = ""
    error: Mapping[str, JSON] | None = None

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values."""
        found: dict[str, JSON] = {
            "tenant_id": self.tenant_id,
            "chat_id": self.chat_id,
            "event_count": self.event_count,
            "head": self.head,
            "state_digest": self.state_digest,
            "verdict": self.verdict,
            "state": dict(self.state),
        }
        if self.views:
            found["projections"] = dict(self.views)
        return found if self.error is None else {**found, "error": dict(self.error)}


@dataclass(frozen=True, slots=True)
class TenantOutcome:
    """The chats of one tenant, by chat id, and how many rows they have together."""

    tenant_id: str
    chats: tuple[ChatOutcome, ...]

    @property
    def event_count(self) -> int:
        return sum(chat.event_count for chat in self.chats)

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values."""
        return {
            "tenant_id": self.tenant_id,
            "event_count": self.event_count,
            "chats": [chat.to_dict() for chat in self.chats],
        }


@dataclass(frozen=True, slots=True)
class AggregateResult:
    """What `aggregate_multi_tenant` returns; ``merged`` is None under "per-tenant"."""

    tenants: tuple[TenantOutcome, ...]
    merged: Mapping[str, JSON] | None = None

    @property
    def failed(self) -> tuple[ChatOutcome, ...]:
        """The chats that could not be folded."""
        return tuple(chat for one in self.tenants for chat in one.chats if chat.error)

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values."""
        found: dict[str, JSON] = {"tenants": [tenant.to_dict() for tenant in self.tenants]}
        return found if self.merged is None else {**found, "merged": dict(self.merged)}


def arrange(
    tenant_ids: Sequence[str], outcomes: Iterable[ChatOutcome], *, merged: bool
) -> AggregateResult:
    """Outcomes in any order as a result in the one order."""
    found: dict[str, list[ChatOutcome]] = {tenant: [] for tenant in tenant_ids}
    for outcome in outcomes:
        found[outcome.tenant_id].append(outcome)
    tenants = tuple(
        TenantOutcome(tenant, tuple(sorted(chats, key=lambda chat: chat.chat_id)))
        for tenant, chats in found.items()
    )
    return AggregateResult(tenants, merge(tenants) if merged else None)


def merge(tenants: Iterable[TenantOutcome]) -> dict[str, JSON]:
    """One state of many: each record with the tenant and chat it is of, counts summed.

    Ids of two chats are unrelated, so nothing is ever taken for the same record.
    """
    families: dict[str, list[JSON]] = {name: [] for name in FAMILIES}
    count = 0
    for tenant in tenants:
        for chat in tenant.chats:
            count += chat.event_count
            for name in FAMILIES:
                records = chat.state.get(name)
                for record in records if isinstance(records, list) else ():
                    scope = {"tenant_id": chat.tenant_id, "chat_id": chat.chat_id}
                    families[name].append({**scope, "value": record})
    return {**families, "eventCount": count}
