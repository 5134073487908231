"""The core state: what it holds, and its forms on the wire and in a snapshot.

It is exactly interrupts, subagents, exports, user cards and the event count (design: "Event
types and state"); its rules stand in `playhead.core.reducer`. Every part of it is immutable and
shared with the states before it: records and states are tuples with names, values are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from playhead.core.model import JSON
from playhead.core.persistent import SCALARS, Index, Vector, freeze, thaw
from playhead.errors import ValueRefused

CORE_KEYS = frozenset(("interrupts", "subagents", "exports", "user_cards", "event_count"))

_EMPTY: Mapping[str, JSON] = MappingProxyType({})


class Record(NamedTuple):
    """One interrupt, subagent, export or user card.

    ``opened_at`` and ``closed_at`` are sequence numbers (``seq + 1``), never times. ``value``
    is what opened it, ``outcome`` what closed it, both frozen and without the id. ``revision``
    counts from 1 what changed it while it was open.
    """

    id: str
    status: str
    opened_at: int
    closed_at: int | None = None
    revision: int = 1
    value: Mapping[str, JSON] = _EMPTY
    outcome: Mapping[str, JSON] | None = None


class Records:
    """Records in first-seen order, found by id. Never shrinks; each change gives a new one."""

    __slots__ = ("_index", "_items")

    def __init__(self, items: Vector[Record] | None = None, index: Index | None = None) -> None:
        self._items: Vector[Record] = Vector() if items is None else items
        self._index = Index() if index is None else index

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        """All of ``records``; of two with one id the later one, in the place of the first."""
        found: dict[str, Record] = {}
        for record in records:
            found[record.id] = record
        return Records(Vector.of(found.values()), Index.of(found))

    def get(self, record_id: str) -> Record | None:
        """The record with this id; None when it was never seen."""
        at = self._index.get(record_id)
        return None if at is None else self._items[at]

    def put(self, record: Record) -> Records:
        """With ``record`` in its own place, or at the end when its id is new."""
        return self.put_at(self._index.get(record.id), record)

    def place(self, record_id: str) -> int | None:
        """The place of the record with this id."""
        return self._index.get(record_id)

    def put_at(self, place: int | None, record: Record) -> Records:
        """`put` for who knows the ``place`` of the record's id."""
        if place is None:
            return Records(self._items.append(record), self._index.add(record.id))
        return Records(self._items.replace(place, record), self._index)

    @property
    def items(self) -> Vector[Record]:
        """The records by place."""
        return self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Records({list(self)!r})"


NO_RECORDS = Records()


class State(NamedTuple):
    """The core state after some events."""

    interrupts: Records = NO_RECORDS
    subagents: Records = NO_RECORDS
    exports: Records = NO_RECORDS
    user_cards: Records = NO_RECORDS
    event_count: int = 0

    def to_wire(self) -> dict[str, JSON]:
        """Plain JSON values, with the names of the contract; the caller may change them."""
        wire: dict[str, JSON] = {
            name: [record_wire(record, id_name) for record in records]
            for (name, id_name), records in zip(WIRE_NAMES, self[:4], strict=True)
        }
        wire["eventCount"] = self.event_count
        return wire

    def dump(self) -> JSON:
        """The state as a snapshot holds it: lists without names."""
        return [[[_dump(record) for record in records] for records in self[:4]], self.event_count]


WIRE_NAMES = (
    ("interrupts", "interrupt_id"),
    ("subagents", "subagent_run_id"),
    ("exports", "export_id"),
    ("userCards", "card_id"),
)
"""Name of each part of the state on the wire and of the id in its records, in their order."""


def record_wire(record: Record, id_name: str) -> dict[str, JSON]:
    """One record as plain JSON values."""
    return {
        id_name: record.id,
        "status": record.status,
        "opened_at": record.opened_at,
        "closed_at": record.closed_at,
        "revision": record.revision,
        "value": thaw(record.value),
        "outcome": None if record.outcome is None else thaw(record.outcome),
    }


def frozen(values: Mapping[str, JSON], without: str = "") -> Mapping[str, JSON]:
    """A record's value: each value frozen by itself, the key ``without`` left out."""
    return MappingProxyType(
        {
            key: item if item.__class__ in SCALARS else freeze(item)
            for key, item in values.items()
            if key != without
        }
    )


def load_state(dumped: JSON) -> State:
    """`State.dump` read back.

    Raises:
        ValueRefused: it is no dump of a state.
    """
    match dumped:
        case [[list(), list(), list(), list()] as parts, int(count)]:
            first, second, third, fourth = (Records.of(map(_load, part)) for part in parts)
            return State(first, second, third, fourth, count)
    raise ValueRefused("no dump of a state")


def _dump(record: Record) -> JSON:
    outcome = None if record.outcome is None else thaw(record.outcome)
    return [*record[:5], thaw(record.value), outcome]


def _load(dumped: JSON) -> Record:
    match dumped:
        case [str(key), str(status), int(opened), closed, int(revision), dict(value), outcome] if (
            closed is None or isinstance(closed, int)
        ) and (outcome is None or isinstance(outcome, dict)):
            end = None if outcome is None else frozen(outcome)
            return Record(key, status, opened, closed, revision, frozen(value), end)
    raise ValueRefused("no dump of a record")
