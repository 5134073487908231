"""What can come of a replay (design: "Errors"). Each carries chat and tenant; all pickle."""

from __future__ import annotations

from typing import Literal

from playhead.errors.base import PlayheadError, UsageError


class ReplayArgumentError(UsageError, TypeError, ValueError):
    """A bad argument, raised where it was given: both a `TypeError` and a `ValueError`."""

    code = "replay-argument"

    def __init__(self, field: str, what: str, *, remedy: str | None = None) -> None:
        super().__init__(f"{field} {what}", remedy=remedy)
        self.field = field


class ReplayError(PlayheadError):
    """Base of every outcome of a replay. Never holds a value of a row."""

    code = "replay"

    def __init__(
        self, what: str, *, chat_id: str, tenant_id: str, remedy: str | None = None
    ) -> None:
        super().__init__(what, remedy=remedy)
        self.chat_id = chat_id
        self.tenant_id = tenant_id


class ReplayDivergenceError(ReplayError):
    """The record is not what it should be at ``sequence_number``.

    ``kind`` is "chain", "sequence", "head", "projection", "state" or "cache"; ``expected`` and
    ``actual`` are digests or numbers.
    """

    code = "replay-divergence"
    default_remedy = "'playhead verify' names every fault of the chain"

    def __init__(
        self,
        what: str,
        *,
        chat_id: str,
        tenant_id: str,
        kind: str,
        sequence_number: int | None = None,
        expected: str | None = None,
        actual: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what, chat_id=chat_id, tenant_id=tenant_id, remedy=remedy)
        self.kind = kind
        self.sequence_number = sequence_number
        self.expected = expected
        self.actual = actual


class ReplayCacheMissError(ReplayDivergenceError):
    """The cache has no answer (``reason`` "miss"), or may not be asked ("read_forbidden")."""

    code = "replay-cache-miss"
    default_remedy = "Fill the cache, or open the handle with cache_read_mode='best-effort'"

    def __init__(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        key: str,
        mode: str,
        sequence_number: int,
        reason: Literal["miss", "read_forbidden"],
    ) -> None:
        word = "is not in the cache" if reason == "miss" else "may not be read"
        super().__init__(
            f"event {sequence_number}: the cache key {key[:24]!r} {word} under {mode}",
            chat_id=chat_id,
            tenant_id=tenant_id,
            kind="cache",
            sequence_number=sequence_number,
        )
        self.key = key
        self.mode = mode
        self.reason = reason


class ReplayUnknownEventError(ReplayError):
    """A row that names no event type: the walk cannot pass it (types nobody models fold)."""

    code = "replay-unknown-event"

    def __init__(
        self, *, chat_id: str, tenant_id: str, event_type: object, sequence_number: int
    ) -> None:
        what = f"event {sequence_number} has no usable type"
        super().__init__(what, chat_id=chat_id, tenant_id=tenant_id)
        self.event_type = None if event_type is None else repr(event_type)[:80]
        self.sequence_number = sequence_number


class ReplayTenantMismatchError(ReplayError):
    exit_code = 2
    code = "replay-tenant-mismatch"
    default_remedy = "Name the tenant that the chat belongs to"


class ReplayClosedError(ReplayError):
    exit_code = 2
    code = "replay-closed"
    default_remedy = "Open a new handle"


class ReplayTurnNotFoundError(ReplayError):
    exit_code = 2
    code = "replay-turn-not-found"
    default_remedy = "'playhead log RUN --turns' lists the turns"


class ReplayNotImplementedError(NotImplementedError):
    """A gap in playhead itself; nothing raises it today."""
