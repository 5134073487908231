"""The core state and its one reducer (design: "Event types and state").

The state is exactly interrupts, subagents, exports, user cards and the event count. It is
immutable and shares its structure with the states before it. The reducer is total: orphans,
double closes and reopenings change nothing, unknown types only count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector, freeze, thaw
from playhead.errors import ValueRefused

CORE_KEYS = frozenset(("interrupts", "subagents", "exports", "user_cards", "event_count"))


def _empty() -> Mapping[str, JSON]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Record:
    """One interrupt, subagent, export or user card.

    ``opened_at`` and ``closed_at`` are sequence numbers (``seq + 1``), never times. ``value``
    is what opened it, ``outcome`` what closed it, both frozen and without the id.
    """

    id: str
    status: str
    opened_at: int
    closed_at: int | None = None
    revision: int = 1
    value: Mapping[str, JSON] = field(default_factory=_empty)
    outcome: Mapping[str, JSON] | None = None


class Records:
    """Records in first-seen order, found by id. Never shrinks; each change gives a new one."""

    __slots__ = ("_index", "_items")

    def __init__(self, items: Vector[Record] | None = None, index: Index | None = None) -> None:
        self._items: Vector[Record] = items or Vector()
        self._index = index or Index()

    def get(self, record_id: str) -> Record | None:
        at = self._index.get(record_id)
        return None if at is None else self._items[at]

    def put(self, record: Record) -> Records:
        """With ``record`` in its own place, or at the end when its id is new."""
        at = self._index.get(record.id)
        if at is None:
            index = self._index.set(record.id, len(self._items))
            return Records(self._items.append(record), index)
        return Records(self._items.replace(at, record), self._index)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Records({list(self)!r})"


@dataclass(frozen=True, slots=True)
class State:
    """The core state after some events."""

    interrupts: Records = field(default_factory=Records)
    subagents: Records = field(default_factory=Records)
    exports: Records = field(default_factory=Records)
    user_cards: Records = field(default_factory=Records)
    event_count: int = 0

    def to_wire(self) -> dict[str, JSON]:
        """Plain JSON values, with the names of the contract."""
        return {
            "interrupts": [_wire(r, "interrupt_id") for r in self.interrupts],
            "subagents": [_wire(r, "subagent_run_id") for r in self.subagents],
            "exports": [_wire(r, "export_id") for r in self.exports],
            "userCards": [_wire(r, "card_id") for r in self.user_cards],
            "eventCount": self.event_count,
        }


def _wire(record: Record, id_name: str) -> dict[str, JSON]:
    return {
        id_name: record.id,
        "status": record.status,
        "opened_at": record.opened_at,
        "closed_at": record.closed_at,
        "revision": record.revision,
        "value": thaw(record.value),
        "outcome": None if record.outcome is None else thaw(record.outcome),
    }


def reduce(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        ValueRefused: the event has no usable type.
    """
    kind = event.type
    if kind.__class__ is not str or not kind:  # a decoder may hand over anything
        raise ValueRefused(f"event {state.event_count + 1} has no type")
    count = state.event_count + 1
    noun, _, verb = kind.partition(".")
    found = _FAMILIES.get(noun)
    if found is None:
        return State(event_count=count, **_families(state))
    family, id_name, change = found
    records: Records = getattr(state, family)
    record_id = _id_of(event, id_name)
    if record_id is not None:
        old = records.get(record_id)
        new = change(old, verb, record_id, event)
        if new is not None and new is not old:
            changed = {**_families(state), family: records.put(new)}
            return State(event_count=count, **changed)
    return State(event_count=count, **_families(state))


def _families(state: State) -> dict[str, Records]:
    return {
        "interrupts": state.interrupts,
        "subagents": state.subagents,
        "exports": state.exports,
        "user_cards": state.user_cards,
    }


def _id_of(event: Event, id_name: str) -> str | None:
    value = event.payload.get(id_name)
    if id_name == "subagent_run_id" and not isinstance(value, str):
        value = event.subagent_run_id
    return value if isinstance(value, str) and value else None


def _value(event: Event, id_name: str) -> Mapping[str, JSON]:
    kept = {key: freeze(item) for key, item in event.payload.items() if key != id_name}
    return MappingProxyType(kept)


def _close(old: Record, status: str, event: Event, id_name: str) -> Record:
    return replace(old, status=status, closed_at=event.seq + 1, outcome=_value(event, id_name))


def _interrupt(old: Record | None, verb: str, key: str, event: Event) -> Record | None:
    """pending -> resolved, cancelled or expired; the first end is the one that counts."""
    if verb == "raised":
        fresh = Record(key, "pending", event.seq + 1, value=_value(event, "interrupt_id"))
        return fresh if old is None else None
    if verb in ("resolved", "cancelled", "expired") and old and old.status == "pending":
        return _close(old, verb, event, "interrupt_id")
    return None


def _subagent(old: Record | None, verb: str, key: str, event: Event) -> Record | None:
    """running and suspended alternate; completed, failed and cancelled are final."""
    if verb == "started":
        fresh = Record(key, "running", event.seq + 1, value=_value(event, "subagent_run_id"))
        return fresh if old is None else None
    if old is None or old.closed_at is not None:
        return None
    if verb == "suspended" and old.status == "running":
        return replace(old, status="suspended", revision=old.revision + 1)
    if verb == "resumed" and old.status == "suspended":
        return replace(old, status="running", revision=old.revision + 1)
    if verb in ("completed", "failed", "cancelled"):
        return _close(old, verb, event, "subagent_run_id")
    return None


def _version(values: Mapping[str, JSON], default: int) -> int:
    number = values.get("version")
    return number if type(number) is int else default


def _export(old: Record | None, verb: str, key: str, event: Event) -> Record | None:
    """The highest version wins; a failed or deleted export keeps its record."""
    if verb not in ("created", "failed", "deleted"):
        return None
    if old is None:
        if verb == "deleted":
            return None
        fresh = Record(key, verb, event.seq + 1, value=_value(event, "export_id"))
        return fresh if verb == "created" else _close(fresh, verb, event, "export_id")
    known = _version(old.value, 1)
    if verb == "created":
        if _version(event.payload, 1) <= known:
            return None
        value = _value(event, "export_id")
        revision = old.revision + 1
        return replace(
            old, status=verb, closed_at=None, revision=revision, value=value, outcome=None
        )
    if _version(event.payload, known) < known or old.status == verb:
        return None
    return _close(old, verb, event, "export_id")


def _card(old: Record | None, verb: str, key: str, event: Event) -> Record | None:
    """Each key of a card is replaced whole, never patched; a second ``shown`` opens it again."""
    value = _value(event, "card_id")
    if verb == "shown":
        if old is None:
            return Record(key, "shown", event.seq + 1, value=value)
        revision = old.revision + 1
        return replace(
            old, status="shown", closed_at=None, revision=revision, value=value, outcome=None
        )
    if old is None or old.status == "dismissed":
        return None
    if verb == "updated":
        merged = MappingProxyType({**old.value, **value})
        return replace(old, revision=old.revision + 1, value=merged)
    if verb == "dismissed" or (verb == "answered" and old.status == "shown"):
        return _close(old, verb, event, "card_id")
    return None


_Change = Callable[[Record | None, str, str, Event], Record | None]

_FAMILIES: Mapping[str, tuple[str, str, _Change]] = MappingProxyType(
    {
        "interrupt": ("interrupts", "interrupt_id", _interrupt),
        "subagent": ("subagents", "subagent_run_id", _subagent),
        "export": ("exports", "export_id", _export),
        "user_card": ("user_cards", "card_id", _card),
    }
)
