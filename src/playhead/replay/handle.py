"""``ReplayHandle``: one walk over a chat's rows, forward and back (design: "ReplayHandle").

N steps, ``seek(N)`` and a full fold give the same state, byte for byte, because each of them is
the same left fold over the same rows: `fold_row`. What a handle holds is a spot (a number and the
state behind it); every move makes a new spot first and takes it only when nothing was raised.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import TracebackType
from typing import Self

from playhead.core.fold import Folded
from playhead.core.logrow import LogRow
from playhead.core.model import JSON, Report
from playhead.core.state import State
from playhead.core.wire import StateDigests
from playhead.errors import ReplayClosedError, ReplayTurnNotFoundError
from playhead.replay.ahead import Ahead
from playhead.replay.arguments import require_id, require_number
from playhead.replay.cache import CacheBackend, CacheLookup, CacheStats
from playhead.replay.facet import ReplayEvents
from playhead.replay.lookups import Lookups
from playhead.replay.persisted import Persisted, SnapshotUse
from playhead.replay.portable import write_snapshot
from playhead.replay.results import (
    DONE,
    ReplayDoneResult,
    ReplayStepResult,
    ReplayTurnResult,
    turn_ids,
)
from playhead.replay.seeker import Seeker
from playhead.replay.window import Spot, Window, check_row, fold_row

Stepped = ReplayStepResult | ReplayDoneResult


class ReplayHandle:
    """A cursor over one window. Made by `ReplayClient.from_event_log`; never reused.

    Args:
        events: the facet that rows are read through.
        window: what is walked; its head was frozen at opening (``window.stop``), or is frozen
            at the first end that the facet reports.
        first: the spot before the first row of the window.
        backend: where rows with a cache key are looked up; None looks nothing up.
        report: the verdict over the chain at opening, where it was verified.
        persisted: snapshots that outlive the handle, for `seek`.
    """

    def __init__(
        self,
        events: ReplayEvents,
        window: Window,
        first: Spot,
        backend: CacheBackend | None = None,
        report: Report | None = None,
        persisted: Persisted | None = None,
    ) -> None:
        self.window = window
        self.report = report
        self._first = first
        self._spot = first
        self._ahead = Ahead(events, window)
        self._lock = asyncio.Lock()
        self._closed = False
        self._seeker = Seeker(window, self._ahead, first, persisted)
        self._bytes = StateDigests()
        self._lookups = Lookups(backend, window)

    # -- where it stands

    def current_state(self) -> State:
        """The core state behind the last row taken; the zero state before any. Frozen."""
        return self._spot.folded.state

    def current_sequence_number(self) -> int:
        """The number of the last row taken, or the window's start before any."""
        return self._spot.number

    @property
    def folded(self) -> Folded:
        """The core state and the states of the projections that the handle was opened with."""
        return self._spot.folded

    def view(self, key: str) -> JSON:
        """What the projection ``key`` shows here.

        Raises:
            UsageError: the handle was opened without it.
        """
        return self._spot.folded.view(key)

    def state_digest(self) -> str:
        """SHA-256 over the canonical bytes of core state and projections, as hex."""
        return self._bytes.digest(self._spot.folded)

    def snapshot(self) -> bytes:
        """Where it stands, as bytes that `ReplayRuntime.from_snapshot` opens a handle at.

        Raises:
            ValueRefused: the state of a projection cannot be kept; the message names it.
        """
        return write_snapshot(self.window, self._spot)

    @property
    def row_hash(self) -> str:
        """The hash of the last row taken; empty before any, or when the facet has none."""
        return self._spot.row_hash

    def cache_stats(self) -> CacheStats:
        """How many lookups hit, missed, crossed modes or would have gone live."""
        return self._lookups.stats

    def snapshot_stats(self) -> SnapshotUse:
        """How many seeks began at a persisted snapshot, how many were dropped and kept."""
        return self._seeker.snapshot_use

    # -- forward

    def step_ready(self) -> Stepped | None:
        """`step` when nothing needs to be awaited for it; None otherwise. The sync facade and
        the loops below take this way; what it does is what `step` does.

        Raises:
            As `step`.
        """
        self._require_open()
        row = self._ahead.peek()
        if row is None:
            return DONE if self._ahead.exhausted else None
        check_row(self.window, self._spot, row)
        return None if self._lookups.wanted(row) else self._take(row, None)

    async def step(self) -> Stepped:
        """Take one row: look its cache key up, fold it, return the result; ``done`` at the end.

        Steps that overlap wait for one another. A step that raises, or is cancelled, leaves
        cursor and state where they were, and the next one meets the same row.

        Raises:
            ReplayCacheMissError, ReplayUnknownEventError, ReplayTenantMismatchError,
            ReplayDivergenceError, ReplayClosedError.
        """
        async with self._lock:
            return await self._step()

    async def _step(self) -> Stepped:
        while True:
            ready = self.step_ready()
            if ready is not None:
                return ready
            row = self._ahead.peek()
            if row is not None:
                return self._take(row, await self._lookups.look_up(row))
            await self._ahead.fill()

    def _take(self, row: LogRow, lookup: CacheLookup | None) -> ReplayStepResult:
        spot = fold_row(self.window, self._spot, row)
        self._ahead.pop()
        self._spot = spot
        self._seeker.keep(spot)
        event = row.event
        return ReplayStepResult(event.type, spot.number, row, spot.folded.state, lookup)

    async def replay_turn(self, message_id: str | None = None) -> ReplayTurnResult:
        """Step to the next ``turn.completed``, or to the one of ``message_id``.

        Without an id a window that ends inside a turn gives ``completed=False``.

        Raises:
            ReplayTurnNotFoundError: no such turn in the rest of the window; nothing has moved.
            What `step` raises: the handle stands before the row that raised.
        """
        if message_id is not None:
            require_id("message_id", message_id)
        async with self._lock:
            self._require_open()
            if message_id is not None:
                await self._require_turn(message_id)
            results: list[ReplayStepResult] = []
            while True:
                result = await self._step()
                if isinstance(result, ReplayDoneResult):
                    return ReplayTurnResult(False, None, tuple(results), self.current_state())
                results.append(result)
                if result.event_type == "turn.completed":
                    found = turn_ids(result.row)
                    if message_id is None or message_id in found:
                        name = found[0] if found else None
                        return ReplayTurnResult(True, name, tuple(results), result.next_state)

    async def _require_turn(self, message_id: str) -> None:
        async with aclosing(self._ahead.rows(self._spot.number)) as rows:
            async for row in rows:
                if row.event.type == "turn.completed" and message_id in turn_ids(row):
                    return
        raise ReplayTurnNotFoundError(
            "no turn of this message_id in the rest of the window",
            chat_id=self.window.chat_id,
            tenant_id=self.window.tenant_id,
        )

    # -- anywhere

    async def seek(self, sequence_number: int) -> None:
        """Stand behind row ``sequence_number``: fold again from the window's start, or from a
        state kept on the way. Never consults the cache; the next step takes the row after it.

        Where the facet tells no head, beyond the last row is at the last row; between two rows
        is behind the one before.

        Raises:
            ReplayArgumentError: outside the window; nothing has moved.
            What folding the rows between raises, and ReplayClosedError.
        """
        low, high = self._first.number, self.window.stop
        require_number("sequence_number", sequence_number, low, high)
        async with self._lock:
            self._require_open()
            spot = await self._seeker.spot_at(sequence_number, self._spot)
            self._stand(spot, sequence_number)

    def _stand(self, spot: Spot, number: int) -> None:
        """Stand on ``spot``, which the seeker or a snapshot gave for ``number``."""
        self._spot = spot
        end = self._ahead.end
        self._ahead.reset(number if end is None else min(number, end))

    async def back(self) -> None:
        """One row back: ``seek`` to the row before this one; stays at the window's start.

        Raises:
            As `seek`.
        """
        await self.seek(max(self._spot.number - 1, self._first.number))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReplayStepResult:
        result = await self.step()
        if isinstance(result, ReplayDoneResult):
            raise StopAsyncIteration
        return result

    # -- the end

    async def close(self) -> None:
        """Let the rows go. Idempotent; where it stands can still be asked."""
        self._closed = True
        await self._ahead.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ReplayClosedError(
                "the handle is closed",
                chat_id=self.window.chat_id,
                tenant_id=self.window.tenant_id,
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
