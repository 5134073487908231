"""The one fold: events in order to the core state and to projections beside it.

Step, seek and full fold all go through `Folded.apply`, so they cannot disagree
(design: "N steps == seek(N) == full fold").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from playhead.core.model import JSON, Event
from playhead.core.projection import (
    Follower,
    Projection,
    checked,
    fingerprint,
    projection,
)
from playhead.core.reducer import advance
from playhead.core.state import State
from playhead.errors import PlayheadError, ReplayArgumentError, UsageError

__all__ = [
    "Folded",
    "Projection",
    "ProjectionFailed",
    "fingerprint",
    "fold",
    "projection",
    "start",
]

_Apply = Callable[[object, Event], object]
_folded = tuple.__new__


class ProjectionFailed(PlayheadError):
    """The projection ``key`` raised; what it raised is ``cause``. No state has changed.

    A handle turns it into a `ReplayDivergenceError` of kind "projection"; the message names the
    class of the cause and no value.
    """

    default_remedy = "Mend the projection: it has to take every event of the log"

    def __init__(self, key: str, cause: BaseException, sequence_number: int) -> None:
        name = type(cause).__name__
        super().__init__(f"event {sequence_number}: the projection {key!r:.80} raised {name}")
        self.key = key
        self.sequence_number = sequence_number

    @property
    def cause(self) -> BaseException | None:
        """What the projection raised; None after pickling."""
        return self.__cause__


class Plan(NamedTuple):
    """The projections of a fold and who is asked about which type: made once, shared by all."""

    projections: tuple[Projection, ...]
    always: tuple[tuple[int, _Apply], ...]
    by_type: Mapping[str, tuple[tuple[int, _Apply], ...]]
    followers: tuple[tuple[int, Follower], ...]


def _plan(projections: tuple[Projection, ...]) -> Plan:
    followers = tuple((n, p) for n, p in enumerate(projections) if isinstance(p, Follower))
    follows = {place for place, _ in followers}
    asked = [
        (place, one.apply, getattr(one, "event_types", None))
        for place, one in enumerate(projections)
        if place not in follows
    ]
    types = {kind for _, _, wanted in asked if wanted is not None for kind in wanted}
    by_type = {
        kind: tuple((at, apply) for at, apply, wanted in asked if wanted is None or kind in wanted)
        for kind in types
    }
    always = tuple((at, apply) for at, apply, wanted in asked if wanted is None)
    return Plan(projections, always, MappingProxyType(by_type), followers)


class Folded(NamedTuple):
    """The core state and the states of some projections after the same events."""

    plan: Plan
    states: tuple[object, ...]
    state: State

    @property
    def projections(self) -> tuple[Projection, ...]:
        """The projections, in the order of ``states``."""
        return self.plan.projections

    def apply(self, event: Event) -> Folded:
        """After one more event; this one stays as it was.

        Raises:
            ValueRefused: the event has no usable type.
            ProjectionFailed: a projection raised.
            ReplayArgumentError: a projection returned something to wait for.
        """
        plan, states, core = self
        core, said = advance(core, event)
        changed: list[object] | None = None
        for place, apply in plan.by_type.get(event.type, plan.always):
            old = states[place]
            try:
                new = apply(old, event)
            except Exception as error:
                raise _failed(plan, place, event, error) from error
            if new is not old:
                if hasattr(new, "__await__"):
                    raise _awaitable(plan, place, new)
                if changed is None:
                    changed = list(states)
                changed[place] = new
        if said is not None and plan.followers:
            changed = list(states) if changed is None else changed
            for place, follower in plan.followers:
                changed[place] = follower.follow(states[place], event, said)
        if changed is not None:
            states = tuple(changed)
        return _folded(Folded, (plan, states, core))

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
        for place, one in enumerate(self.projections):
            if one.key == key:
                return place
        raise UsageError(f"no projection {key!r:.80} in this fold")


def _failed(plan: Plan, place: int, event: Event, error: Exception) -> ProjectionFailed:
    return ProjectionFailed(plan.projections[place].key, error, event.seq + 1)


def _awaitable(plan: Plan, place: int, value: object) -> ReplayArgumentError:
    close = getattr(value, "close", None)
    if callable(close):  # a coroutine that nobody awaits would warn
        close()
    key = plan.projections[place].key
    return ReplayArgumentError(
        "projections", f"hold {key!r:.80}, whose apply returns something to wait for"
    )


def start(projections: Iterable[Projection] = ()) -> Folded:
    """Before the first event.

    Raises:
        UsageError: two projections of one key, or a key of the core state.
        ReplayArgumentError: something that is no projection, or an ``async`` one.
    """
    return resume(projections, State(), None)


def resume(
    projections: Iterable[Projection], state: State, states: tuple[object, ...] | None
) -> Folded:
    """A fold that stands at ``state``; ``states`` are those of the projections, in their order
    (None: their first ones).

    Raises:
        UsageError, ReplayArgumentError: see `start`.
    """
    chosen = checked(projections)
    if states is None:
        states = tuple(one.init() for one in chosen)
    return Folded(_plan(chosen), states, state)


def fold(events: Iterable[Event], projections: Iterable[Projection] = ()) -> Folded:
    """All of ``events``, from the zero state.

    Raises:
        UsageError: see `start`. ValueRefused, ProjectionFailed: see `Folded.apply`.
    """
    folded = start(projections)
    for event in events:
        folded = folded.apply(event)
    return folded
