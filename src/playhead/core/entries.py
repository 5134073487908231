"""The projections ``turns`` and ``tool_calls``: what was opened, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector
from playhead.errors import ValueRefused


class Entry(NamedTuple):
    """A turn or a call. ``opened`` and ``closed`` are steps (from 0)."""

    id: str
    name: str | None
    status: str
    opened: int | None
    closed: int | None = None


_NONE: Vector[Entry] = Vector()
_NO_INDEX = Index()


class Entries(NamedTuple):
    """Entries in first-seen order, found by id. ``open`` is the place of the latest open one,
    ``waiting`` the places of the last calls without a result, ``ended`` the step at which the
    run ended last."""

    items: Vector[Entry] = _NONE
    place_of: Index = _NO_INDEX
    open: int | None = None
    ended: int | None = None
    waiting: tuple[int, ...] = ()

    def get(self, entry_id: str) -> Entry | None:
        """The entry with this id; None when it was never seen."""
        at = self.place_of.get(entry_id)
        return None if at is None else self.items[at]

    def put(self, entry: Entry) -> Entries:
        """With ``entry`` in its own place, or at the end when its id is new."""
        items, index, opened, ended, waiting = self
        at = index.get(entry.id)
        if at is None:
            return Entries(items.append(entry), index.add(entry.id), opened, ended, waiting)
        return Entries(items.replace(at, entry), index, opened, ended, waiting)

    def dump(self) -> JSON:
        """All of it as plain JSON values."""
        return [[list(one) for one in self.items], self.open, self.ended, list(self.waiting)]


def load_entries(dumped: JSON) -> Entries:
    """`Entries.dump` read back.

    Raises:
        ValueRefused: it is no such dump.
    """
    match dumped:
        case [list(rows), int() | None as opened, int() | None as ended, list(waiting)]:
            entries = [_load(row) for row in rows]
            if all(type(at) is int and 0 <= at < len(entries) for at in [opened or 0, *waiting]):
                index = Index.of([one.id for one in entries])
                return Entries(Vector.of(entries), index, opened, ended, tuple(waiting))
            if not entries and opened is None and not waiting:
                return Entries(ended=ended)
    raise ValueRefused("no dump of turns or calls")


def _load(row: JSON) -> Entry:
    match row:
        case [
            str(key),
            str() | None as name,
            str(status),
            int() | None as opened,
            int() | None as closed,
        ]:
            return Entry(key, name, status, opened, closed)
    raise ValueRefused("no dump of a turn or call")


def text_of(value: JSON) -> str | None:
    """A text with something in it; None for everything else."""
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
    event_types = frozenset(("tool.called", "tool.completed", "tool.failed", "run.ended"))

    def init(self) -> Entries:
        return Entries()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Entries)
        kind = event.type
        if kind == "run.ended":
            return state._replace(ended=event.seq)
        if kind not in self.event_types:
            return state
        call_id = text_of(event.payload.get("call_id"))
        if call_id is None:
            return state
        items, index, opened, ended, waiting = state
        place = index.get(call_id)
        if kind == "tool.called":
            if place is not None:
                return state
            waiting = (*waiting[1 - _MAX_WAITING :], len(items))
            fresh = Entry(call_id, text_of(event.name), "pending", event.seq)
            return Entries(items.append(fresh), index.add(call_id), opened, ended, waiting)
        status = kind[5:]
        if place is None:
            return state.put(Entry(call_id, text_of(event.name), status, None, event.seq))
        old = items[place]
        if old.closed is not None:
            return state
        name = text_of(event.name) or old.name
        waiting = tuple([at for at in waiting if at != place])
        closed = Entry(call_id, name, status, old.opened, event.seq)
        return Entries(items.replace(place, closed), index, opened, ended, waiting)

    def view(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return [_wire(_after(state.ended, entry), "call_id") for entry in state.items]

    def listed(self, state: object) -> tuple[Vector[object], Callable[[object], JSON], object]:
        assert isinstance(state, Entries)
        ended = state.ended
        return state.items, lambda one: _wire(_after(ended, one), "call_id"), ended  # type: ignore[arg-type, return-value]

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return state.dump()

    def load(self, dumped: JSON) -> Entries:
        return load_entries(dumped)


def _after(ended: int | None, entry: Entry) -> Entry:
    """A call that was pending when its run ended."""
    if entry.status != "pending" or ended is None or (entry.opened or 0) > ended:
        return entry
    return entry._replace(status="unknown")


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
    event_types = frozenset(("turn.started", "turn.completed"))

    def init(self) -> Entries:
        return Entries()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Entries)
        if event.type not in self.event_types:
            return state
        payload: Mapping[str, JSON] = event.payload
        named = event.turn_id or text_of(payload.get("turn_id"))
        turn_id = named or text_of(payload.get("message_id"))
        if event.type == "turn.started":
            turn_id = turn_id or f"@{event.seq}"
            if state.get(turn_id) is not None:
                return state
            place = len(state.items)
            return state.put(Entry(turn_id, event.name, "open", event.seq))._replace(open=place)
        if turn_id is None and state.open is not None:
            turn_id = state.items[state.open].id
        turn_id = turn_id or f"@{event.seq}"
        old = state.get(turn_id) or Entry(turn_id, event.name, "open", None)
        if old.closed is not None:
            return state
        status = text_of(payload.get("outcome")) or "completed"
        return state.put(old._replace(status=status, closed=event.seq))._replace(open=None)

    def view(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return [_wire(entry, "turn_id") for entry in state.items]

    def listed(self, state: object) -> tuple[Vector[object], Callable[[object], JSON], object]:
        assert isinstance(state, Entries)
        return state.items, lambda one: _wire(one, "turn_id"), None  # type: ignore[arg-type, return-value]

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Entries)
        return state.dump()

    def load(self, dumped: JSON) -> Entries:
        return load_entries(dumped)
