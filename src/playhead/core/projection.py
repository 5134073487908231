"""What a projection is, how one is made of plain functions, and what a set of them is called.

A projection is a fold of one's own beside the core state (design: "Projections"): pure,
synchronous, its states immutable. It is handed over in an explicit set; there is no registry, so
two folds with different sets cannot touch each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from playhead.core.canonical import step_bytes
from playhead.core.model import JSON, Event
from playhead.core.persistent import Vector, freeze, plain, thaw
from playhead.core.reducer import REDUCER_VERSION, Said
from playhead.core.state import CORE_KEYS
from playhead.errors import ReplayArgumentError, UsageError, ValueRefused

S = TypeVar("S")
CORE_KEY = "core"


class Projection(Protocol):
    """A fold of one's own beside the core state: pure, and its states immutable.

    ``version`` changes when the same events would give another state; ``apply`` returns the
    same object for an event that does not concern it; ``view`` gives plain JSON values.

    A projection may also have ``event_types``, the types it is asked about (without it: all);
    and ``dump(state)`` with ``load(dumped)``, its state as plain JSON values and back, which is
    what a snapshot needs.
    """

    @property
    def key(self) -> str: ...
    @property
    def version(self) -> int: ...
    def init(self) -> object: ...
    def apply(self, state: object, event: Event) -> object: ...
    def view(self, state: object) -> JSON: ...


@runtime_checkable
class Follower(Protocol):
    """A projection of what the core reducer said: ``follow`` is called in place of ``apply``,
    and only for an event that was odd (`playhead.core.reducer.KINDS`)."""

    def follow(self, state: object, event: Event, said: str) -> object: ...


@runtime_checkable
class Dumpable(Protocol):
    """A projection whose states can be kept in a snapshot."""

    def dump(self, state: object) -> JSON: ...
    def load(self, dumped: JSON) -> object: ...


@runtime_checkable
class Listed(Protocol):
    """A projection whose view is a list with one part for each value of a `Vector`.

    ``listed`` gives that vector, the part of a value, and what else the parts depend on: the
    bytes of a list that grew by one are then not made again (`playhead.core.wire`).
    """

    def listed(self, state: object) -> tuple[Vector[object], Callable[[object], JSON], object]: ...


@dataclass(frozen=True, slots=True)
class Custom:
    """A projection made by `projection`. Its states are frozen JSON values."""

    key: str
    version: int
    init_with: Callable[[], object]
    apply_with: Callable[[object, Event], object]
    view_with: Callable[[object], JSON] | None
    event_types: frozenset[str] | None = None

    def init(self) -> object:
        return freeze(self.init_with())

    def apply(self, state: object, event: Event) -> object:
        after = self.apply_with(state, event)
        return state if after is state else freeze(after)

    def view(self, state: object) -> JSON:
        return plain(state) if self.view_with is None else self.view_with(state)

    def dump(self, state: object) -> JSON:
        return plain(state)

    def load(self, dumped: JSON) -> object:
        return freeze(dumped)


def projection(
    key: str,
    *,
    init: Callable[[], S],
    apply: Callable[[S, Event], S],
    version: int = 1,
    view: Callable[[S], JSON] | None = None,
    event_types: Iterable[str] | None = None,
) -> Custom:
    """A projection of plain functions.

    Its states are JSON values; after each change they are frozen (dicts become read-only, lists
    tuples), so an ``apply`` that changes its state in place fails at once instead of changing
    the states of earlier steps. A state that grows without end wants a `Projection` class over
    `playhead.core.persistent.Vector` instead: freezing walks the whole state.

    Args:
        key: its name; not one of the core state's.
        init: gives the state before the first event.
        apply: the state after one more event; the same object when nothing changed. The event
            has ``event_type``, ``sequence_number`` and ``payload``.
        version: from 1; changes whenever the same events would give another state.
        view: what is shown of a state; without it the state itself.
        event_types: the types it is asked about; without it every event.

    Raises:
        ReplayArgumentError: an argument of the wrong kind, or an ``async`` function.
    """
    types = None if event_types is None else frozenset(event_types)
    made = Custom(key, version, init, apply, view, types)  # type: ignore[arg-type]
    for name, function in (("init", init), ("apply", apply), ("view", view)):
        if function is not None or name != "view":
            _function(name, function)
    _named(made)
    return made


def _function(name: str, function: object) -> None:
    if not callable(function):
        raise ReplayArgumentError(name, "is no function")
    if iscoroutinefunction(function):
        raise ReplayArgumentError(name, "is an async function: a projection is a pure fold")


def _named(one: Projection) -> None:
    for name, kind in (("key", str), ("version", int)):
        value = getattr(one, name, None)
        if type(value) is not kind or not value:
            raise ReplayArgumentError("projections", f"hold one without a usable {name}")


def checked(projections: Iterable[Projection]) -> tuple[Projection, ...]:
    """The projections of one fold.

    Raises:
        UsageError: two of one key, or a key of the core state.
        ReplayArgumentError: something that is no projection, or an ``async`` one.
    """
    chosen = tuple(projections)
    seen = set(CORE_KEYS)
    for one in chosen:
        _named(one)
        for name in ("init", "apply", "view"):
            _function(f"{name} of the projection {one.key!r:.80}", getattr(one, name, None))
        if one.key in seen or (one.key == CORE_KEY and not getattr(one, "is_core", False)):
            raise UsageError(f"the projection key {one.key!r:.80} is taken")
        seen.add(one.key)
    return chosen


def dump_state(one: Projection, state: object) -> JSON:
    """A projection's state as plain JSON values.

    Raises:
        ValueRefused: it has no ``dump``, and its state is not made of frozen JSON values: one
            with lists would come back with tuples, which is another state.
    """
    if isinstance(one, Dumpable):
        return plain(one.dump(state))
    dumped = plain(state)
    if not _frozen(state):
        raise ValueRefused("its state can be changed in place")
    return dumped


def _frozen(value: object) -> bool:
    if isinstance(value, MappingProxyType):
        return all(_frozen(item) for item in value.values())
    if isinstance(value, tuple):
        return all(_frozen(item) for item in value)
    return not isinstance(value, (dict, list))


def load_dumped(one: Projection, dumped: JSON) -> object:
    """`dump_state` read back. Raises whatever the projection's own ``load`` raises."""
    return one.load(thaw(dumped)) if isinstance(one, Dumpable) else freeze(dumped)


def fingerprint(projections: Iterable[Projection] = ()) -> str:
    """SHA-256 hex over the reducer's version and each projection's key and version.

    The order in which the projections stand does not matter. Two folds with one fingerprint
    give the same states for the same events.
    """
    named = sorted([one.key, one.version] for one in projections)
    text = step_bytes({"reducer": REDUCER_VERSION, "projections": named})
    return sha256(b"playhead/projections/v1\0" + text).hexdigest()


__all__ = [
    "CORE_KEY",
    "Custom",
    "Dumpable",
    "Follower",
    "Listed",
    "Projection",
    "Said",
    "checked",
    "dump_state",
    "fingerprint",
    "load_dumped",
    "projection",
]
