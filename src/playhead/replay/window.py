"""The part of a chat that a handle walks, and the checks that each of its rows must pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from playhead.core.fold import Folded, ProjectionFailed
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS
from playhead.core.rows import Row, decode_row
from playhead.errors import (
    ReplayDivergenceError,
    ReplayTenantMismatchError,
    ReplayUnknownEventError,
    ValueRefused,
)
from playhead.replay.arguments import Base, Snapshots, Verify
from playhead.replay.cache import CacheReadMode

UNREADABLE = "unreadable"
"""The event type of a line that is no row."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a handle was opened for. ``start`` is exclusive, ``stop`` inclusive or open.

    ``pass_unreadable`` folds a line that is no row as a row without effect, so that damaged
    evidence can be walked; without it such a row raises.
    """

    chat_id: str
    tenant_id: str
    start: int = 0
    stop: int | None = None
    mode: CacheReadMode = CacheReadMode.CROSS_MODE_READABLE
    base: Base = "zero"
    verify: Verify = "open"
    snapshots: Snapshots = "use"
    pass_unreadable: bool = False

    def diverged(
        self, kind: str, what: str, number: int | None, expected: str = "", actual: str = ""
    ) -> ReplayDivergenceError:
        """The error for a record that is not what it should be."""
        return ReplayDivergenceError(
            what,
            chat_id=self.chat_id,
            tenant_id=self.tenant_id,
            kind=kind,
            sequence_number=number,
            expected=expected or None,
            actual=actual or None,
        )


class Spot(NamedTuple):
    """A place in a window: the state behind row ``number``, and that row's hash ("" if unknown).

    ``log_bytes`` counts the bytes of the rows folded so far, -1 once one came without bytes.
    """

    number: int
    folded: Folded
    row_hash: str = ""
    log_bytes: int = 0


def check_row(window: Window, before: Spot, row: LogRow) -> None:
    """What must hold of a row before it is folded (design: "ReplayTenantMismatchError").

    Raises:
        ReplayTenantMismatchError: it says that it is of another tenant or chat.
        ReplayDivergenceError: its number does not grow, or, under verify="step", it does not hash
            to what it stores or does not follow the row before.
        ReplayUnknownEventError: it has no usable event type.
    """
    scope = (window.tenant_id, window.chat_id)
    if row.tenant_id not in (None, scope[0]) or row.chat_id not in (None, scope[1]):
        raise ReplayTenantMismatchError(
            f"event {row.sequence_number} is of another tenant or chat",
            chat_id=window.chat_id,
            tenant_id=window.tenant_id,
        )
    if row.sequence_number <= before.number:
        raise window.diverged(
            "sequence",
            f"event {row.sequence_number} comes after event {before.number}",
            row.sequence_number,
            f"> {before.number}",
            str(row.sequence_number),
        )
    kind: object = row.event.type
    if type(kind) is not str or not kind or (kind == UNREADABLE and not window.pass_unreadable):
        raise ReplayUnknownEventError(
            chat_id=window.chat_id,
            tenant_id=window.tenant_id,
            event_type=kind,
            sequence_number=row.sequence_number,
        )
    if window.verify == "step" and row.line:
        _check_hash(window, before, row)


def _check_hash(window: Window, before: Spot, row: LogRow) -> None:
    decoded = decode_row(row.line)
    if not isinstance(decoded, Row):
        if window.pass_unreadable:
            return
        raise window.diverged("chain", "the line is no row", row.sequence_number)
    if decoded.computed != decoded.stored_hash:
        what = f"event {row.sequence_number} does not hash to what it stores"
        raise window.diverged(
            "chain", what, row.sequence_number, decoded.stored_hash, decoded.computed
        )
    expected = before.row_hash or ("" if before.number else GENESIS)
    if expected and decoded.stored_prev != expected:
        place = f"event {before.number}" if before.number else "the beginning"
        what = f"event {row.sequence_number} does not follow {place}"
        raise window.diverged("chain", what, row.sequence_number, expected, decoded.stored_prev)


def fold_row(window: Window, before: Spot, row: LogRow) -> Spot:
    """The spot behind ``row``, which was checked.

    Raises:
        ReplayDivergenceError: a projection raised (kind "projection").
        ReplayUnknownEventError: the reducer found no type.
    """
    try:
        folded = before.folded.apply(row.event)
    except ProjectionFailed as failed:
        what = f"the projection {failed.key!r:.80} failed at event {row.sequence_number}"
        raise window.diverged("projection", what, row.sequence_number) from failed
    except ValueRefused:
        raise ReplayUnknownEventError(
            chat_id=window.chat_id,
            tenant_id=window.tenant_id,
            event_type=row.event.type,
            sequence_number=row.sequence_number,
        ) from None
    size = before.log_bytes + len(row.line) + 1 if row.line and before.log_bytes >= 0 else -1
    return Spot(row.sequence_number, folded, row.row_hash, size)
