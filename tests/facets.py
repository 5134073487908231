"""An events facet made of a list: the smallest runtime that a replay can be opened over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from helpers import event_rows
from playhead.core.decode import to_step
from playhead.core.events import Draft, decode_event
from playhead.core.fold import fold
from playhead.core.logrow import LogRow
from playhead.core.rows import Row, decode_row

TENANT, CHAT = "acme", "chat-1"


def row(number: int, kind: object, payload: Mapping[str, object] | None = None) -> dict[str, Any]:
    """A row as a host's own log would hold it."""
    return {"sequence_number": number, "event_type": kind, "payload": dict(payload or {})}


def rows(*kinds: str) -> list[dict[str, Any]]:
    """Rows 1..n of the given types, without payload."""
    return [row(number, kind) for number, kind in enumerate(kinds, 1)]


def chained(drafts: Iterable[Draft]) -> list[LogRow]:
    """Rows with their real bytes, hashed and linked."""
    found = []
    for line in event_rows(drafts):
        decoded = decode_row(line)
        assert isinstance(decoded, Row)
        step = to_step(decoded.obj)
        event = decode_event(step)
        found.append(
            LogRow(TENANT, CHAT, step.seq + 1, event, step.step_hash, step.prev_hash, line)
        )
    return found


class ListEvents:
    """``iterate`` and ``fold`` over rows that a test may change; ``reads`` counts iterations."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = list(rows)
        self.reads = 0

    async def iterate(
        self, *, chat_id: str, tenant_id: str, from_sequence_number: int = 0
    ) -> AsyncIterator[Any]:
        self.reads += 1
        for item in self.rows:
            number = item.sequence_number if isinstance(item, LogRow) else item["sequence_number"]
            if number > from_sequence_number:
                yield item

    async def fold(self, projection: Any, *, chat_id: str, tenant_id: str) -> object:
        events = [item.event async for item in self.iterate(chat_id=chat_id, tenant_id=tenant_id)]
        return fold(events, (projection,)).of(projection.key)


class Runtime:
    """A runtime around any facet."""

    def __init__(self, events: Any) -> None:
        self.events = events


def runtime(*given: Any) -> Runtime:
    """A runtime over the rows given."""
    return Runtime(ListEvents(given))
