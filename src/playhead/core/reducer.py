"""The one reducer of the core state (design: "Event types and state").

It is total: it raises only for an event without a usable type. Types that are not in its table
only count. What an event could not do changes nothing, and `advance` says why in one word; the
projection ``anomalies`` collects those words, so that no rule is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from playhead.core.model import JSON, Event
from playhead.core.state import Record, State, frozen
from playhead.errors import ValueRefused

REDUCER_VERSION: Final = 1
"""Changes when the same events would give another state, its wire form or its dump."""

ORPHAN: Final = "orphan"
DOUBLE_CLOSE: Final = "double_close"
REOPENING: Final = "reopening"
DUPLICATE_OPEN: Final = "duplicate_open"
OLD_VERSION: Final = "version_not_higher"
DISMISSED: Final = "update_of_dismissed"
OUT_OF_ORDER: Final = "out_of_order"
NO_ID: Final = "no_id"
KINDS: Final = (
    ORPHAN,
    DOUBLE_CLOSE,
    REOPENING,
    DUPLICATE_OPEN,
    OLD_VERSION,
    DISMISSED,
    OUT_OF_ORDER,
    NO_ID,
)
"""Every anomaly (docs/reference/state.md)."""

Said = str | None
_Changed = tuple[Record | None, Said]
_Change = Callable[[Record | None, str, str, Event], _Changed]
_new_state = tuple.__new__


def reduce(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        ValueRefused: the event has no usable type.
    """
    return advance(state, event)[0]


def advance(state: State, event: Event) -> tuple[State, Said]:
    """The state after ``event``, and what was odd about it: one of `KINDS`, or None.

    Raises:
        ValueRefused: the event has no usable type.
    """
    kind = event.type
    if kind.__class__ is not str or not kind:  # a decoder may hand over anything
        raise ValueRefused(f"event {state.event_count + 1} has no type")
    interrupts, subagents, exports, cards, count = state
    found = _CHANGES.get(kind)
    if found is None:
        return _new_state(State, (interrupts, subagents, exports, cards, count + 1)), None
    place, id_name, verb, change = found
    record_id = record_id_of(event, id_name)
    if record_id is None:
        return State(interrupts, subagents, exports, cards, count + 1), NO_ID
    families = [interrupts, subagents, exports, cards]
    records = families[place]
    at = records.place(record_id)
    new, said = change(None if at is None else records.items[at], verb, record_id, event)
    if new is not None:
        families[place] = records.put_at(at, new)
    return _new_state(State, (*families, count + 1)), said


def record_id_of(event: Event, id_name: str) -> str | None:
    """The id that ``event`` names; a subagent's may stand in the envelope alone."""
    value = event.payload.get(id_name)
    if id_name == "subagent_run_id" and not isinstance(value, str):
        value = event.subagent_run_id
    return value if isinstance(value, str) and value else None


def id_of(event: Event) -> str | None:
    """The id of the record that an event of the core's table is about."""
    found = _CHANGES.get(event.type)
    return None if found is None else record_id_of(event, found[1])


def _close(old: Record, status: str, event: Event, id_name: str) -> _Changed:
    key, _, opened, _, revision, value, _ = old
    outcome = frozen(event.payload, id_name)
    return Record(key, status, opened, event.seq + 1, revision, value, outcome), None


def _opened(old: Record | None, status: str, key: str, event: Event, id_name: str) -> _Changed:
    """A new record; an id opens once."""
    if old is None:
        value = frozen(event.payload, id_name)
        return Record(key, status, event.seq + 1, value=value), None
    return None, DUPLICATE_OPEN if old.closed_at is None else REOPENING


def _interrupt(old: Record | None, verb: str, key: str, event: Event) -> _Changed:
    """pending -> resolved, cancelled or expired; the first end is the one that counts."""
    if verb == "raised":
        return _opened(old, "pending", key, event, "interrupt_id")
    if old is None:
        return None, ORPHAN
    if old.closed_at is not None:
        return None, DOUBLE_CLOSE
    return _close(old, verb, event, "interrupt_id")


def _subagent(old: Record | None, verb: str, key: str, event: Event) -> _Changed:
    """running and suspended alternate; completed, failed and cancelled are final."""
    if verb == "started":
        return _opened(old, "running", key, event, "subagent_run_id")
    if old is None:
        return None, ORPHAN
    ends = verb in ("completed", "failed", "cancelled")
    if old.closed_at is not None:
        return None, DOUBLE_CLOSE if ends else REOPENING
    if ends:
        return _close(old, verb, event, "subagent_run_id")
    if old.status != ("running" if verb == "suspended" else "suspended"):
        return None, OUT_OF_ORDER
    status = "suspended" if verb == "suspended" else "running"
    return old._replace(status=status, revision=old.revision + 1), None


def _version(values: Mapping[str, JSON], default: int) -> int:
    number = values.get("version")
    return number if type(number) is int else default


def _export(old: Record | None, verb: str, key: str, event: Event) -> _Changed:
    """The highest version wins; a failed or deleted export keeps its record."""
    if old is None:
        if verb == "deleted":
            return None, ORPHAN
        value = frozen(event.payload, "export_id")
        fresh = Record(key, verb, event.seq + 1, value=value)
        return (fresh, None) if verb == "created" else _close(fresh, verb, event, "export_id")
    known = _version(old.value, 1)
    if verb == "created":
        if _version(event.payload, 1) <= known:
            return None, OLD_VERSION
        value = frozen(event.payload, "export_id")
        return Record(key, verb, old.opened_at, None, old.revision + 1, value), None
    number = _version(event.payload, known)
    if number < known:
        return None, OLD_VERSION
    if old.closed_at is not None and (old.status == verb or number == known):
        return None, DOUBLE_CLOSE
    return _close(old, verb, event, "export_id")


def _card(old: Record | None, verb: str, key: str, event: Event) -> _Changed:
    """A card's value is replaced whole, never patched; a second ``shown`` opens it again.

    Its ``card_type`` stays when an update does not name one.
    """
    if verb == "shown":
        value = frozen(event.payload, "card_id")
        if old is None:
            return Record(key, verb, event.seq + 1, value=value), None
        fresh = Record(key, verb, old.opened_at, None, old.revision + 1, value)
        return fresh, None if old.closed_at is None else REOPENING
    if old is None:
        return None, ORPHAN
    if old.status == "dismissed":
        return None, DISMISSED if verb == "updated" else DOUBLE_CLOSE
    if verb == "updated":
        kept = {"card_type": old.value["card_type"]} if "card_type" in old.value else {}
        value = frozen({**kept, **event.payload}, "card_id")
        return old._replace(revision=old.revision + 1, value=value), None
    if verb == "answered" and old.status == "answered":
        return None, DOUBLE_CLOSE
    return _close(old, verb, event, "card_id")


def _table() -> Mapping[str, tuple[int, str, str, _Change]]:
    rules: tuple[tuple[str, str, _Change, str], ...] = (
        ("interrupt", "interrupt_id", _interrupt, "raised resolved cancelled expired"),
        (
            "subagent",
            "subagent_run_id",
            _subagent,
            "started suspended resumed completed failed cancelled",
        ),
        ("export", "export_id", _export, "created failed deleted"),
        ("user_card", "card_id", _card, "shown updated answered dismissed"),
    )
    return MappingProxyType(
        {
            f"{noun}.{verb}": (place, id_name, verb, change)
            for place, (noun, id_name, change, verbs) in enumerate(rules)
            for verb in verbs.split()
        }
    )


_CHANGES: Final = _table()
