"""Values kept at intervals over a growing range, within a bound."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

T = TypeVar("T")

EVERY: Final = 256
MOST: Final = 4096


class KeptStates(Generic[T]):
    """Keeps the value at each multiple of ``every``; over ``most`` of them every second one goes
    and the interval doubles, so that memory is bounded however long the range is."""

    def __init__(self, every: int = EVERY, most: int = MOST) -> None:
        self._every = every
        self._most = most
        self._kept: dict[int, T] = {}

    def put(self, number: int, value: T) -> None:
        """Keep ``value`` if ``number`` is one of those that are kept."""
        if number % self._every:
            return
        self._kept[number] = value
        if len(self._kept) > self._most:
            self._every *= 2
            self._kept = {n: kept for n, kept in self._kept.items() if not n % self._every}

    def nearest(self, number: int) -> T | None:
        """The value kept at the largest number that is not over ``number``."""
        at = number - number % self._every
        while at > 0:
            found = self._kept.get(at)
            if found is not None:
                return found
            at -= self._every
        return None
