"""The projections that come with playhead: messages, turns, tool calls, usage, the agent's state.

Each is a pure fold beside the core state (design: "Projections"). Their states are immutable
and share structure, so a state from any earlier step costs nothing to keep. None of them
raises for what an event holds: a value of the wrong type is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from playhead.core.messages import Messages
from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn or a call. ``opened`` and ``closed`` are steps (from 0)."""

    id: str
    name: str | None
    status: str
    opened: int | None
    closed: int | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries in first-seen order, found by id. ``open`` is the place of the latest open one,
    ``waiting`` the places of the last calls without a result, ``ended`` the step at which the
    run ended last."""

    items: Vector[Entry] = field(default_factory=Vector)
    index: Index = field(default_factory=Index)
    open: int | None = None
    ended: int | None = None
    waiting: tuple[int, ...] = ()

    def get(self, entry_id: str) -> Entry | None:
        at = self.index.get(entry_id)
        return None if at is None else self.items[at]

    def put(self, entry: Entry) -> Entries:
        at = self.index.get(entry.id)
        if at is None:
            index = self.index.set(entry.id, len(self.items))
            return replace(self, items=self.items.append(entry), index=index)
        return replace(self, items=self.items.replace(at, entry))


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


_MAX_WAITING = 64
"""Calls without a result that are held ready; more only a hostile or a broken run has."""


class ToolCalls:
    """Calls of tools with what became of them.

    A call is ``pending`` until its result is there, then ``completed`` or ``failed``. When the
    run ends, what is still pending is ``unknown``: the effect may have happened (decision 4).
    A result without a call is kept with no ``opened`` step.
    """

    key = "tool_calls"
    version = 1

    def init(self) -> Entries:
        return Entries()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Entries)
        if event.type == "run.ended":
            return replace(state, ended=event.seq)
        if event.type not in ("tool.called", "tool.completed", "tool.failed"):
            return state
        call_id = _text(event.payload.get("call_id"))
        if call_id is None:
            return state
        old = state.get(call_id)
        name = _text(event.name) or (old.name if old else None)
        if event.type == "tool.called":
            if old is not None:
                return state
            waiting = (*state.waiting[1 - _MAX_WAITING :], len(state.items))
            grown = state.put(Entry(call_id, name, "pending", event.seq))
            return replace(grown, waiting=waiting)
        status = event.type.removeprefix("tool.")
        if old is None:
            return state.put(Entry(call_id, name, status, None, event.seq))
        if old.closed is not None:
            return state
        place = state.index.get(call_id)
        waiting = tuple(at for at in state.waiting if at != place)
        closed = state.put(replace(old, name=name, status=status, closed=event.seq))
        return replace(closed, waiting=waiting)

    def view(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return [_wire(_after(state.ended, entry), "call_id") for entry in state.items]


def _after(ended: int | None, entry: Entry) -> Entry:
    """A call that was pending when its run ended."""
    if entry.status != "pending" or ended is None or (entry.opened or 0) > ended:
        return entry
    return replace(entry, status="unknown")


def _wire(entry: Entry, id_name: str) -> dict[str, JSON]:
    return {
        id_name: entry.id,
        "name": entry.name,
        "status": entry.status,
        "opened": entry.opened,
        "closed": entry.closed,
    }


def pending(calls: Entries) -> list[Entry]:
    """The calls without a result, oldest first: at most the last `_MAX_WAITING` of them."""
    return [_after(calls.ended, calls.items[at]) for at in calls.waiting]


class Turns:
    """Turns with their first and last step; the status is the outcome that the turn names."""

    key = "turns"
    version = 1

    def init(self) -> Entries:
        return Entries()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Entries)
        if event.type not in ("turn.started", "turn.completed"):
            return state
        named = event.turn_id or _text(event.payload.get("turn_id"))
        turn_id = named or _text(event.payload.get("message_id"))
        if event.type == "turn.started":
            fresh = Entry(turn_id or f"@{event.seq}", event.name, "open", event.seq)
            grown = state.put(fresh)
            at = grown.index.get(fresh.id)
            return state if state.get(fresh.id) else replace(grown, open=at)
        if turn_id is None and state.open is not None:
            turn_id = state.items[state.open].id
        turn_id = turn_id or f"@{event.seq}"
        old = state.get(turn_id) or Entry(turn_id, event.name, "open", None)
        if old.closed is not None:
            return state
        status = _text(event.payload.get("outcome")) or "completed"
        return replace(state.put(replace(old, status=status, closed=event.seq)), open=None)

    def view(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return [_wire(entry, "turn_id") for entry in state.items]


class Usage:
    """Every whole number in the ``usage`` of the model's answers, summed by its path."""

    key = "usage"
    version = 1

    def init(self) -> Mapping[str, int]:
        return {}

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Mapping)
        usage = event.payload.get("usage")
        if event.type != "model.responded" or not isinstance(usage, dict):
            return state
        sums = {**state}
        for name, number in _numbers(usage):
            if name in sums or len(sums) < _MAX_SUMS:
                sums[name] = sums.get(name, 0) + number
        return sums

    def view(self, state: object) -> JSON:
        assert isinstance(state, Mapping)
        return dict(state)


_MAX_SUMS = 64
_MAX_COUNT = 1 << 62
"""A hostile run must not make each step copy an ever longer table."""


def _numbers(usage: Mapping[str, JSON]) -> list[tuple[str, int]]:
    """Whole numbers at the top and one level down (``prompt_tokens_details.cached_tokens``)."""
    found: list[tuple[str, int]] = []
    for key, value in usage.items():
        inner = value if isinstance(value, dict) else {None: value}
        for sub, number in inner.items():
            if type(number) is int and abs(number) < _MAX_COUNT:
                found.append((key if sub is None else f"{key}.{sub}", number))
    return found


@dataclass(frozen=True, slots=True)
class Held:
    """Which step set each key of the agent's state last, in first-set order."""

    items: Vector[tuple[str, int]] = field(default_factory=Vector)
    index: Index = field(default_factory=Index)

    def get(self, key: str) -> int | None:
        at = self.index.get(key)
        return None if at is None else self.items[at][1]


class AgentState:
    """The agent's own state: the last ``state.changed`` of each key.

    Steps are held, not values: a value lies in its row, and a run's memory stays bounded.
    Beyond `_MAX_KEYS` keys a new key is passed over.
    """

    key = "state"
    version = 1

    def init(self) -> Held:
        return Held()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Held)
        key = state_key(event)
        if key is None:
            return state
        at = state.index.get(key)
        if at is not None:
            return replace(state, items=state.items.replace(at, (key, event.seq)))
        count = len(state.items)
        if count >= _MAX_KEYS:
            return state
        items = state.items.append((key, event.seq))
        return Held(items, state.index.set(key, count))

    def view(self, state: object) -> JSON:
        assert isinstance(state, Held)
        return dict(state.items)


_MAX_KEYS = 4096


def state_key(event: Event) -> str | None:
    """The key that a ``state.changed`` sets; an imported one names a ``kind`` instead."""
    if event.type != "state.changed":
        return None
    return _text(event.payload.get("key")) or _text(event.payload.get("kind"))


BUILT_IN: tuple[Messages | Turns | ToolCalls | Usage | AgentState, ...] = (
    Messages(),
    Turns(),
    ToolCalls(),
    Usage(),
    AgentState(),
)
