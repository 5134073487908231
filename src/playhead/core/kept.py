"""States kept on the way, in memory, so that a seek does not fold from the beginning.

They are immutable, so keeping one is keeping a reference: nothing is encoded, and a kept state
cannot differ from a folded one (the persisted snapshots are `playhead.core.snapshot`).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptStates(Generic[T]):
    """What was seen at multiples of ``every``, at most ``most`` of it.

    When there is one too many, every second is let go and the stride doubles. However long the
    log, a place that was passed is less than one stride behind a kept one: a seek folds no more.

    Args:
        every: events between two kept states, from 1.
        most: states that are kept, from 2.
    """

    def __init__(self, every: int = 256, most: int = 4096) -> None:
        if every < 1 or most < 2:
            raise ValueError("every is at least 1 and most at least 2")
        self.stride = every
        self._most = most
        self._numbers: list[int] = []
        self._values: list[T] = []

    def wants(self, number: int) -> bool:
        """True when ``number`` is a place to keep and nothing is kept there."""
        if number % self.stride:
            return False
        at = bisect_right(self._numbers, number)
        return not at or self._numbers[at - 1] != number

    def put(self, number: int, value: T) -> None:
        """Keep ``value``, the state after event ``number``, if it `wants` it."""
        if not self.wants(number):
            return
        at = bisect_right(self._numbers, number)
        self._numbers.insert(at, number)
        self._values.insert(at, value)
        while len(self._numbers) > self._most:
            self._thin()

    def _thin(self) -> None:
        self.stride *= 2
        pairs = zip(self._numbers, self._values, strict=True)
        kept = [(number, value) for number, value in pairs if not number % self.stride]
        self._numbers = [number for number, _ in kept]
        self._values = [value for _, value in kept]

    def nearest(self, number: int) -> T | None:
        """The latest that was kept at or before event ``number``."""
        at = bisect_right(self._numbers, number)
        return self._values[at - 1] if at else None

    def numbers(self) -> tuple[int, ...]:
        """Where something is kept, in order."""
        return tuple(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)
