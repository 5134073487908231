"""The spot behind any row of a window, folded on from the best place there is (contract: "seek").

However it is reached, it is the same left fold over the same rows: a state kept on the way, one
of a snapshot and the start of the window only say where folding begins.
"""

from __future__ import annotations

from contextlib import aclosing

from playhead.core.wire import state_digest
from playhead.replay.ahead import Ahead
from playhead.replay.kept import KeptSpots
from playhead.replay.persisted import Persisted, SnapshotUse
from playhead.replay.window import Spot, Window, check_row, fold_row


class Seeker:
    """Makes spots of one window; ``first`` is the one before its first row."""

    def __init__(
        self, window: Window, ahead: Ahead, first: Spot, persisted: Persisted | None
    ) -> None:
        self._window = window
        self._ahead = ahead
        self._first = first
        self._keeps = window.snapshots != "off"
        self._kept = KeptSpots()
        self._persisted = persisted

    @property
    def snapshot_use(self) -> SnapshotUse:
        """What was done with persisted snapshots."""
        return SnapshotUse() if self._persisted is None else self._persisted.use

    def keep(self, spot: Spot) -> None:
        """A spot that was passed: a later seek may begin there."""
        if self._keeps:
            self._kept.put(spot)

    async def spot_at(self, number: int, here: Spot) -> Spot:
        """The spot behind the last row at or before ``number``; ``here`` is one that is known.

        Raises:
            ReplayDivergenceError: under snapshots="verify", a kept state is not what a full fold
                gives (kind "state"). What checking and folding the rows between raises.
        """
        begin = self._first
        if self._keeps:
            begin = self._kept.before(number, (self._first, here))
            if self._persisted is not None:
                end = self._ahead.end  # frozen: a snapshot of later rows is none of this window
                upto = number if end is None else min(number, end)
                begin = await self._persisted.nearer(begin, upto)
        if self._window.snapshots != "verify" or begin is self._first:
            return await self._folded(begin, number)
        spot = await self._folded(self._first, number)
        expected = state_digest(spot.folded)
        found = state_digest((await self._folded(begin, number, keep=False)).folded)
        if found != expected:
            if self._persisted is not None:
                await self._persisted.drop_all(begin)
            what = f"a kept state gives another state at event {spot.number} than a full fold"
            raise self._window.diverged("state", what, spot.number, expected, found)
        return spot

    async def _folded(self, begin: Spot, number: int, *, keep: bool = True) -> Spot:
        """The spot behind the last row at or before ``number``, folded on from ``begin``.

        ``keep`` is False for a fold that is only compared: what a bad state led to is not kept.
        """
        spot = begin
        if number <= spot.number:
            return spot
        known = self._ahead.end is not None
        upto = number if known else None
        async with aclosing(self._ahead.batches(spot.number, upto)) as batches:
            async for batch in batches:
                for row in batch:
                    if row.sequence_number > number:
                        return spot
                    check_row(self._window, spot, row)
                    spot = fold_row(self._window, spot, row)
                    if keep:
                        self.keep(spot)
                        if self._persisted is not None and self._persisted.wants(spot):
                            await self._persisted.keep(spot)
                    if spot.number == number:
                        return spot
        if not known:
            self._ahead.freeze(spot.number)
        return spot
