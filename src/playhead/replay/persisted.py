"""Snapshots that outlive a handle, for its `seek` (contract: "Snapshots").

A cache and never evidence. One is used only when the rows that it stands for were verified, the
log still has its row under the same hash, and version and projections are the same; any other is
dropped and the log is folded again. It is written by `worth_keeping` and nothing else, and only
from rows that were verified: a state of an edited row must not come back under a good hash.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from playhead.core.fold import fingerprint
from playhead.core.logrow import LogRow
from playhead.core.snapshot import decode, encode, worth_keeping
from playhead.errors import ReplayArgumentError, ValueRefused
from playhead.replay.arguments import MAX_NUMBER
from playhead.replay.facet import ReplayEvents, read_rows
from playhead.replay.portable import base_of
from playhead.replay.window import Spot, Window, check_row
from playhead.store.snapshots import Snapshot, SnapshotKey, SnapshotStore

_NEAR: Final = 256
"""Rows that are folded sooner than a snapshot is looked for."""


@dataclass(frozen=True, slots=True)
class SnapshotUse:
    """What one handle did with snapshots that outlive it: ``begun`` counts seeks that began at
    one, ``dropped`` those that did not fit the log, ``kept`` those it wrote. When a full fold
    gave another state (snapshots="verify"), all of the fold go, and ``dropped`` counts one."""

    begun: int = 0
    dropped: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class _Size:
    """How large a snapshot would be: encoding one that is not kept costs as much as one that is.

    A state is taken to grow with the log as it did between the last two that were encoded, but
    to no more than twice the last one, so that it is looked at again.
    """

    size: int = 0
    log_bytes: int = 0
    growth: float = 0.0

    def then(self, log_bytes: int, size: int) -> _Size:
        """With one more that is known."""
        more = log_bytes - self.log_bytes
        if more <= 0:
            return replace(self, size=max(self.size, size))
        return _Size(size, log_bytes, max(0.0, (size - self.size) / more))

    def at(self, log_bytes: int) -> int:
        """The size to be expected behind so many bytes of the log."""
        more = max(0, log_bytes - self.log_bytes)
        return min(self.size + int(self.growth * more), 2 * self.size)


def require_snapshot_store(value: object) -> SnapshotStore | None:
    """A place for snapshots, or None.

    Raises:
        ReplayArgumentError: it lacks a method; the message says which.
    """
    if value is None:
        return None
    for name in ("nearest", "put", "drop"):
        if not callable(getattr(value, name, None)):
            raise ReplayArgumentError("snapshot_store", f"has no {name}()")
    return value  # type: ignore[return-value]  # structural, checked above


async def row_at(events: ReplayEvents, window: Window, number: int) -> LogRow | None:
    """Row ``number`` as the log has it now."""
    rows = read_rows(
        events, chat_id=window.chat_id, tenant_id=window.tenant_id, after=number - 1, upto=number
    )
    async with aclosing(rows) as found:
        async for row in found:
            return row
    return None


def persisted_for(
    store: SnapshotStore | None, events: ReplayEvents, window: Window, *, verified: bool
) -> Persisted | None:
    """The snapshots of a handle over ``window``; None where none may be used.

    Args:
        verified: the window's chain was verified at opening.
    """
    checks = verified or window.verify == "step"
    if store is None or window.snapshots == "off" or window.pass_unreadable or not checks:
        return None
    return Persisted(store, events, window)


class Persisted:
    """The snapshots of one handle's fold in a `SnapshotStore`, whose calls run in a thread."""

    def __init__(self, store: SnapshotStore, events: ReplayEvents, window: Window) -> None:
        self._store = store
        self._events = events
        self._window = window
        self._last: tuple[int, int] | None = None  # number and log bytes of the last one kept
        self._size = _Size()
        self._off = False
        self.use = SnapshotUse()

    def _key(self, spot: Spot) -> SnapshotKey:
        window = self._window
        print_of = fingerprint(spot.folded.projections)
        return SnapshotKey(window.tenant_id, window.chat_id, base_of(window), print_of)

    async def nearer(self, begin: Spot, number: int) -> Spot:
        """The spot to fold on from to ``number``: that of a snapshot, or ``begin``.

        Raises:
            As a walk over the snapshot's row: it is of another tenant, or does not hash.
        """
        key, at = self._key(begin), number
        while at - begin.number >= _NEAR:
            found = await asyncio.to_thread(self._store.nearest, key, at)
            if found is None or not begin.number < found.sequence_number <= at:
                break
            spot = await self._spot(begin, found)
            if spot is not None:
                self.use = replace(self.use, begun=self.use.begun + 1)
                return spot
            await self._drop(key, found.sequence_number)
            at = found.sequence_number - 1
        return begin

    async def drop_all(self, spot: Spot) -> None:
        """Let every snapshot of this fold go: one gave another state than the log, and those
        behind it may have been folded on from it."""
        await self._drop(self._key(spot), None)

    async def _drop(self, key: SnapshotKey, number: int | None) -> None:
        await asyncio.to_thread(self._store.drop, key, number)
        self.use = replace(self.use, dropped=self.use.dropped + 1)
        self._last = None

    async def _spot(self, begin: Spot, found: Snapshot) -> Spot | None:
        number = found.sequence_number
        row = await row_at(self._events, self._window, number)
        if row is None or not row.row_hash or row.row_hash != found.row_hash:
            return None
        check_row(self._window, Spot(number - 1, begin.folded), row)
        try:
            folded = decode(found.state, begin.folded.projections)
        except ValueRefused:
            return None
        return Spot(number, folded, row.row_hash, found.log_bytes)

    def wants(self, spot: Spot) -> bool:
        """True when the policy would keep a snapshot here, as far as is known without encoding."""
        if self._off or spot.log_bytes < 0 or not spot.row_hash:
            return False
        number, size = self._last or (self._window.start, 0)
        return worth_keeping(
            rows_since=spot.number - number,
            log_bytes_since=spot.log_bytes - size,
            snapshot_bytes=self._size.at(spot.log_bytes),
        )

    async def keep(self, spot: Spot) -> None:
        """Keep a snapshot of ``spot`` if it is still wanted once its size is known."""
        key = self._key(spot)
        if self._last is None:
            stop = self._window.stop
            upto = MAX_NUMBER if stop is None else stop
            found = await asyncio.to_thread(self._store.nearest, key, upto)
            self._last = (self._window.start, 0)
            if found is not None:
                self._last = (found.sequence_number, found.log_bytes)
                self._size = self._size.then(found.log_bytes, len(found.state))
            if not self.wants(spot):
                return
        try:
            state = await asyncio.to_thread(encode, spot.folded)
        except ValueRefused:  # a projection whose states cannot be kept: no fold of it is
            self._off = True
            return
        self._size = self._size.then(spot.log_bytes, len(state))
        if self.wants(spot):
            self._last = (spot.number, spot.log_bytes)
            snapshot = Snapshot(key, spot.number, spot.row_hash, state, spot.log_bytes)
            done = await asyncio.to_thread(self._store.put, snapshot)
            self.use = replace(self.use, kept=self.use.kept + bool(done))
