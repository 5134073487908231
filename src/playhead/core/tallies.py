"""The projections ``usage`` and ``state``: sums of tokens, and the agent's own state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from playhead.core.entries import text_of
from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector
from playhead.errors import ValueRefused

_MAX_SUMS = 64
_MAX_COUNT = 1 << 62
"""A hostile run must not make each step copy an ever longer table."""
_MAX_KEYS = 4096


class Usage:
    """Every whole number in the ``usage`` of the model's answers, summed by its path."""

    key = "usage"
    version = 1
    event_types = frozenset(("model.responded",))

    def init(self) -> Mapping[str, int]:
        return MappingProxyType({})

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Mapping)
        usage = event.payload.get("usage")
        if event.type != "model.responded" or not isinstance(usage, (dict, MappingProxyType)):
            return state
        sums = {**state}
        for name, number in _numbers(usage):
            if name in sums or len(sums) < _MAX_SUMS:
                sums[name] = sums.get(name, 0) + number
        return MappingProxyType(sums)

    def view(self, state: object) -> JSON:
        assert isinstance(state, Mapping)
        return dict(state)

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Mapping)
        return [[name, number] for name, number in state.items()]

    def load(self, dumped: JSON) -> Mapping[str, int]:
        return MappingProxyType(dict(_pairs(dumped)))


def _pairs(dumped: JSON) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for pair in dumped if isinstance(dumped, list) else [None]:
        match pair:
            case [str(name), int(number)]:
                found.append((name, number))
            case _:
                raise ValueRefused("no dump of numbers by name")
    return found


def _numbers(usage: Mapping[str, JSON]) -> list[tuple[str, int]]:
    """Whole numbers at the top and one level down (``prompt_tokens_details.cached_tokens``)."""
    found: list[tuple[str, int]] = []
    for key, value in usage.items():
        inner = value if isinstance(value, (dict, MappingProxyType)) else {None: value}
        for sub, number in inner.items():
            if type(number) is int and abs(number) < _MAX_COUNT:
                found.append((key if sub is None else f"{key}.{sub}", number))
    return found


_NONE: Vector[tuple[str, int]] = Vector()
_NO_INDEX = Index()


class Held(NamedTuple):
    """Which step set each key of the agent's state last, in first-set order."""

    items: Vector[tuple[str, int]] = _NONE
    place_of: Index = _NO_INDEX

    def get(self, key: str) -> int | None:
        """The step that set ``key`` last; None when none did."""
        at = self.place_of.get(key)
        return None if at is None else self.items[at][1]


class AgentState:
    """The agent's own state: the last ``state.changed`` of each key.

    Steps are held, not values: a value lies in its row, and a run's memory stays bounded.
    Beyond `_MAX_KEYS` keys a new key is passed over.
    """

    key = "state"
    version = 1
    event_types = frozenset(("state.changed",))

    def init(self) -> Held:
        return Held()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Held)
        key = state_key(event)
        if key is None:
            return state
        items, index = state
        at = index.get(key)
        if at is not None:
            return Held(items.replace(at, (key, event.seq)), index)
        if len(items) >= _MAX_KEYS:
            return state
        return Held(items.append((key, event.seq)), index.add(key))

    def view(self, state: object) -> JSON:
        assert isinstance(state, Held)
        return dict(state.items)

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Held)
        return [list(pair) for pair in state.items]

    def load(self, dumped: JSON) -> Held:
        pairs = _pairs(dumped)
        return Held(Vector.of(pairs), Index.of([key for key, _ in pairs]))


def state_key(event: Event) -> str | None:
    """The key that a ``state.changed`` sets; an imported one names a ``kind`` instead."""
    if event.type != "state.changed":
        return None
    return text_of(event.payload.get("key")) or text_of(event.payload.get("kind"))
