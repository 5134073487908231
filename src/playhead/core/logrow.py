"""A row of the event log: the event of a step with its key and its hashes.

The key is ``(tenant_id, chat_id, sequence_number)``; ``sequence_number`` starts at 1 and is the
step's ``seq + 1``; ``row_hash`` is the ``step_hash`` (design: "Rows").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from playhead.core.model import JSON, Event


class LogRow(NamedTuple):
    """One row. ``line`` is its exact bytes without a newline; empty for a row that was never
    stored (a fork in memory, a mock)."""

    tenant_id: str | None
    chat_id: str | None
    sequence_number: int
    event: Event
    row_hash: str = ""
    prev_hash: str = ""
    line: bytes = b""

    @property
    def event_type(self) -> str:
        return self.event.type

    @property
    def payload(self) -> Mapping[str, JSON]:
        return self.event.payload
