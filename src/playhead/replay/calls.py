"""Which call a result answers, and which call has none: looked up near by, nothing is folded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from playhead.core.canonical import encode_step
from playhead.core.model import Event
from playhead.formats.journal import LOCK

if TYPE_CHECKING:
    from playhead.replay.run import Run

OUTCOMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tool.called": ("tool.completed", "tool.failed"),
        "model.requested": ("model.responded", "model.failed"),
    }
)
"""Each call with the events that end it."""
NEAR: Final = 1024
"""Steps that are looked at, back or on. What lies further away is not told."""


def call_step(run: Run, event: Event) -> int | None:
    """The step whose call ``event`` answers, within `NEAR` steps before it; else None."""
    opened = next((call for call, ends in OUTCOMES.items() if event.type in ends), None)
    if opened is None:
        return None
    back = range(event.seq - 1, max(event.seq - 1 - NEAR, -1), -1)
    return next((found.seq for found in _with(run, event, back) if found.type == opened), None)


def outcome(run: Run, event: Event) -> Event | None:
    """The event that ends the call ``event``, within `NEAR` steps after it; else None."""
    ends = OUTCOMES.get(event.type, ())
    on = range(event.seq + 1, event.seq + 1 + NEAR)
    return next((found for found in _with(run, event, on) if found.type in ends), None)


def unanswered(run: Run, event: Event) -> bool:
    """True when ``event`` is a call and no later step is its outcome (decision 4).

    False where the run goes on for more than `NEAR` steps: nobody waits for a whole run.
    """
    if event.type not in OUTCOMES or not isinstance(event.payload.get("call_id"), str):
        return False
    return not run.has(event.seq + 1 + NEAR) and outcome(run, event) is None


def over(run: Run) -> bool:
    """True when the run has ended, or when the process that wrote it is gone."""
    if not run.has(0) or run.event(len(run) - 1).type == "run.ended":
        return True
    if run.folder is None:  # a database keeps no lock that tells who writes
        return False
    try:
        with open(run.folder / LOCK, "rb") as handle:
            pid = handle.read(20).decode("ascii", "replace").strip()
        os.kill(int(pid), 0)
    except PermissionError:  # a process of somebody else
        return False
    except (OSError, ValueError, OverflowError):
        return True
    return False


def _with(run: Run, event: Event, steps: range) -> Iterator[Event]:
    """The events among ``steps`` that have the call id of ``event``."""
    call_id = event.payload.get("call_id")
    if not isinstance(call_id, str):
        return
    needle = encode_step(call_id).encode("utf-8", "surrogatepass")
    for step in steps:
        if not run.has(step):
            return
        if needle in run.raw(step):
            found = run.event(step)
            if found.payload.get("call_id") == call_id:
                yield found
