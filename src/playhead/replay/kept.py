"""The states that one handle keeps on its way, so that a seek need not fold from the beginning.

States share their structure, so a kept one costs little. Some are kept at intervals over the
whole window, and the last few hundred besides, for walking back. Both are bounded.
"""

from __future__ import annotations

from typing import Final

from playhead.core.kept import KeptStates
from playhead.replay.window import Spot

_RECENT: Final = 512


class KeptSpots:
    """Spots by sequence number. Every number that is put comes after the spot before it."""

    def __init__(self) -> None:
        self._spaced: KeptStates[Spot] = KeptStates()
        self._recent: dict[int, Spot] = {}

    def put(self, spot: Spot) -> None:
        """Keep a spot for a while; one at an interval for good."""
        number = spot.number
        recent = self._recent
        if number not in recent:
            recent[number] = spot
            if len(recent) > _RECENT:
                del recent[next(iter(recent))]
        self._spaced.put(number, spot)

    def before(self, number: int, spots: tuple[Spot, ...]) -> Spot:
        """The last of ``spots`` and of the kept ones at or before ``number``; the first of
        ``spots`` always is."""
        kept = self.nearest(number)
        near = spots if kept is None else (*spots, kept)
        return max((spot for spot in near if spot.number <= number), key=lambda spot: spot.number)

    def nearest(self, number: int) -> Spot | None:
        """The last kept spot at or before ``number``."""
        exact = self._recent.get(number)
        return self._spaced.nearest(number) if exact is None else exact
