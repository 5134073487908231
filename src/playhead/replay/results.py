"""What a step, a turn and the end of a window give back (contract: "ReplayHandle")."""

from __future__ import annotations

from typing import Literal, NamedTuple

from playhead.core.logrow import LogRow
from playhead.core.state import State
from playhead.replay.cache import CacheLookup


class ReplayStepResult(NamedTuple):
    """One row taken: its type and number, the row, the core state after it.

    ``cache_lookup`` is None for a row without a cache key, and when the client has no backend.
    """

    event_type: str
    sequence_number: int
    row: LogRow
    next_state: State
    cache_lookup: CacheLookup | None = None
    done: Literal[False] = False


class ReplayDoneResult(NamedTuple):
    """The window has no more rows."""

    done: Literal[True] = True


DONE = ReplayDoneResult()


class ReplayTurnResult(NamedTuple):
    """The steps of a turn and the state behind it.

    ``completed`` is False when the window ended inside the turn; ``message_id`` is the id of its
    ``turn.completed``.
    """

    completed: bool
    message_id: str | None
    step_results: tuple[ReplayStepResult, ...]
    state: State


def turn_ids(row: LogRow) -> tuple[str, ...]:
    """The ids that name the turn which a ``turn.completed`` ends, its ``message_id`` first."""
    payload = row.event.payload
    given = (payload.get("message_id"), payload.get("messageId"), row.event.turn_id)
    return tuple(value for value in given if isinstance(value, str) and value)
