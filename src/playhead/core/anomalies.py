"""The projection ``anomalies``: what the core reducer said about events that changed nothing.

The core state is total and silent; here is its other half (design: "orphans, double closes and
reopenings are collected by the anomalies projection"). No rule of the state is repeated: the
reducer names what was odd, and this only keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from playhead.core.model import JSON, Event
from playhead.core.persistent import Vector
from playhead.core.reducer import KINDS, id_of
from playhead.errors import UsageError, ValueRefused

MAX_ANOMALIES: Final = 1024
"""The first so many are kept, later ones are counted by kind and dropped."""
MAX_ID: Final = 256
"""Characters of an id that are kept."""


class Anomaly(NamedTuple):
    """One event that did not fit the state. ``id`` is None where the event named none."""

    sequence_number: int
    kind: str
    event_type: str
    id: str | None


_NONE: Vector[Anomaly] = Vector()


class Seen(NamedTuple):
    """The first anomalies, and how many there were of each kind."""

    items: Vector[Anomaly] = _NONE
    counts: Mapping[str, int] = MappingProxyType({})

    @property
    def dropped(self) -> int:
        """How many were counted and not kept."""
        return sum(self.counts.values()) - len(self.items)


class Anomalies:
    """Orphans, double closes, reopenings and the like, oldest first."""

    key = "anomalies"
    version = 1
    event_types: frozenset[str] = frozenset()

    def init(self) -> Seen:
        return Seen()

    def apply(self, state: object, event: Event) -> object:
        """Never called by a fold: what is odd about an event is the core reducer's to say.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "anomalies follow the core state", remedy="Fold them with playhead.core.fold"
        )

    def follow(self, state: object, event: Event, said: str) -> Seen:
        """With what the reducer said of ``event``."""
        assert isinstance(state, Seen)
        items, counts = state
        if len(items) < MAX_ANOMALIES:
            name = id_of(event)
            short = None if name is None else name[:MAX_ID]
            items = items.append(Anomaly(event.seq + 1, said, event.type, short))
        return Seen(items, MappingProxyType({**counts, said: counts.get(said, 0) + 1}))

    def view(self, state: object) -> JSON:
        """``{"items": [{sequence_number, kind, event_type, id}], "counts": {kind: n},
        "dropped": n}``."""
        assert isinstance(state, Seen)
        items = [one._asdict() for one in state.items]
        return {"items": items, "counts": dict(state.counts), "dropped": state.dropped}

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Seen)
        return [[list(one) for one in state.items], dict(state.counts)]

    def load(self, dumped: JSON) -> Seen:
        match dumped:
            case [list(rows), dict(counts)]:
                if all(kind in KINDS and type(n) is int for kind, n in counts.items()):
                    return Seen(Vector.of(map(_load, rows)), MappingProxyType(counts))
        raise ValueRefused("no dump of anomalies")


def _load(row: JSON) -> Anomaly:
    match row:
        case [int(number), str(kind), str(event_type), str() | None as name] if kind in KINDS:
            return Anomaly(number, kind, event_type, name)
    raise ValueRefused("no dump of an anomaly")
