"""Work that takes long, as generators: each ``next`` does a little and says where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from playhead.replay.walker import Walker

if TYPE_CHECKING:
    from playhead.core.model import Event
    from playhead.replay.run import Run

Errand = Iterator[str]
Look = Callable[[Walker], int | None]
"""One of the Walker's own searches."""

STRIDE: Final = 256
"""Events folded between two looks at the keyboard."""
LOOKS: Final = 64
"""Steps looked at between two."""


class _Window:
    """What one slice of a search may see of a run: the Walker stops at its edges."""

    def __init__(self, run: Run, begin: int, end: int) -> None:
        self._run, self._begin, self._end = run, begin, end

    def has(self, number: int) -> bool:
        return self._begin <= number < self._end and self._run.has(number)

    def __len__(self) -> int:
        return self._end

    def event(self, number: int) -> Event:
        return self._run.event(number)

    def lost(self, event: Event) -> bool:
        return self._run.lost(event)

    def raw(self, number: int) -> bytes:
        return self._run.raw(number)


def hunt(run: Run, start: int, by: int, look: Look, found: Callable[[int | None], None]) -> Errand:
    """Search from ``start`` (left out), slice by slice, in direction ``by`` (1 or -1).

    ``look`` is the Walker's search in that direction; ``found`` gets the step, or None.
    """
    at = start
    while run.has(at + by) and at + by >= 0:
        begin, end = (at + 1, at + 1 + LOOKS) if by > 0 else (max(at - LOOKS, 0), at)
        walker = Walker(cast("Run", _Window(run, begin, end)))
        walker.position = at
        step = look(walker)
        if step is not None:
            found(step)
            return
        at = end - 1 if by > 0 else begin
        yield f"searching at step {at} (escape stops)"
    found(None)


class Folder:
    """Folds a run as far as somebody asks, and remembers how far that was."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._reach = 0

    def to(self, step: int, done: Callable[[int], None]) -> Errand:
        """Fold up to ``step`` bit by bit, then ``done``: its state is at hand."""
        while self._reach + STRIDE < step:
            self._reach += STRIDE
            self._run.folded(self._reach)
            yield f"folding at step {self._reach} of {step}"
        self._run.folded(step)
        done(step)
