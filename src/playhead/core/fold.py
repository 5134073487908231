"""The one fold: events in order to the core state and to projections beside it.

Step, seek and full fold all go through `Folded.apply`, so they cannot disagree
(design: "N steps == seek(N) == full fold").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from playhead.core.model import JSON, Event
from playhead.core.state import CORE_KEYS, State, reduce
from playhead.errors import UsageError


class Projection(Protocol):
    """A fold of one's own beside the core state: pure, and its states immutable.

    ``version`` changes when the same events would give another state; ``apply`` returns the
    same object for an event that does not concern it; ``view`` gives plain JSON values.
    """

    @property
    def key(self) -> str: ...
    @property
    def version(self) -> int: ...
    def init(self) -> object: ...
    def apply(self, state: object, event: Event) -> object: ...
    def view(self, state: object) -> JSON: ...


@dataclass(frozen=True, slots=True)
class Folded:
    """The core state and the states of some projections after the same events."""

    projections: tuple[Projection, ...]
    states: tuple[object, ...]
    state: State = field(default_factory=State)

    def apply(self, event: Event) -> Folded:
        """After one more event.

        Raises:
            ValueRefused: the event has no usable type.
        """
        core = reduce(self.state, event)
        if not self.projections:
            return Folded((), (), core)
        pairs = zip(self.projections, self.states, strict=True)
        return Folded(self.projections, tuple(p.apply(s, event) for p, s in pairs), core)

    def of(self, key: str) -> object:
        """The state of the projection ``key``.

        Raises:
            UsageError: it is not among the projections of this fold.
        """
        return self.states[self._place(key)]

    def view(self, key: str) -> JSON:
        """What the projection ``key`` shows.

        Raises:
            UsageError: it is not among the projections of this fold.
        """
        place = self._place(key)
        return self.projections[place].view(self.states[place])

    def _place(self, key: str) -> int:
        for place, projection in enumerate(self.projections):
            if projection.key == key:
                return place
        raise UsageError(f"no projection {key!r:.80} in this fold")


def start(projections: Iterable[Projection] = ()) -> Folded:
    """Before the first event.

    Raises:
        UsageError: two projections of one key, or a key of the core state.
    """
    chosen = tuple(projections)
    keys = [projection.key for projection in chosen]
    for key in keys:
        if key in CORE_KEYS or keys.count(key) > 1:
            raise UsageError(f"the projection key {key!r:.80} is taken")
    return Folded(chosen, tuple(projection.init() for projection in chosen))


def fold(events: Iterable[Event], projections: Iterable[Projection] = ()) -> Folded:
    """All of ``events``, from the zero state.

    Raises:
        UsageError: see `start`. ValueRefused: an event has no usable type.
    """
    folded = start(projections)
    for event in events:
        folded = folded.apply(event)
    return folded
