"""One line a step: the values that the command line and the walk on screen both show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from playhead.core.decode import UNREADABLE, event_at, step_of
from playhead.core.model import JSON, Event
from playhead.core.projections import state_key
from playhead.core.rows import Row
from playhead.replay.calls import call_step, unanswered
from playhead.replay.detail import Section, detail
from playhead.replay.info import when
from playhead.replay.render import (
    answer_text,
    arguments_text,
    content_text,
    error_text,
    message_text,
    request_text,
    value_text,
)
from playhead.replay.run import Run
from playhead.replay.text import one_liner, visible
from playhead.replay.walker import Walker, is_error

__all__ = [
    "LogLine",
    "Section",
    "Walker",
    "detail",
    "is_error",
    "line_of",
    "one_line",
    "visible",
]

_FULL_TITLE = 60
_NOT_IN_LINE = frozenset(
    "interrupt_id export_id card_id agent uid name call_id source versions".split()
)
"""Told by the title, or of use only in the detail."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One step on one line; every text is safe to print.

    ``kind`` is the event's type, ``title`` whom it concerns (model, tool, turn), ``detail``
    the beginning of what was said or done, ``status`` how it ended (empty while nothing
    ended), ``turn`` the turn's id. ``marks`` are single words such as ``error``, ``write``,
    ``redacted``, ``changed``, ``unanswered`` (a call without a result). ``call`` is the step
    whose call this one answers, where that is known.
    """

    step: int
    time: str
    kind: str
    title: str
    detail: str
    status: str
    turn: str
    marks: tuple[str, ...] = ()
    call: int | None = None


def one_line(event: Event) -> LogLine:
    """The line of an event. Never raises."""
    say = _DETAILS.get(event.type, _plain)
    return LogLine(
        step=event.seq,
        time=one_liner(event.at or "", 40),
        kind=one_liner(event.type, 40),
        title=one_liner(_title(event), _FULL_TITLE),
        detail=one_liner(say(event)),
        status=one_liner(_status(event), 20),
        turn=one_liner(event.turn_id or "", 40),
        marks=tuple(_marks(event)),
    )


def line_of(run: Run, number: int) -> LogLine:
    """The line of step ``number``: its row's time where the event has none, and what is odd.

    Raises:
        NotFound: there is no such step.
    """
    row = run.row(number)
    event = event_at(number, row)
    line = one_line(event)
    if not isinstance(row, Row):
        return line
    step = step_of(number, row)
    odd = []
    if row.computed != row.stored_hash:
        odd.append("changed")
    if step.seq != number:
        odd.append("misplaced")
    if unanswered(run, event):
        odd.append("unanswered")
    time = line.time or one_liner(when(step.ts) or "", 40)
    return replace(line, time=time, marks=(*line.marks, *odd), call=call_step(run, event))


def _title(event: Event) -> str:
    if event.type.startswith("turn."):
        return event.turn_id or ""
    if event.type.startswith("subagent."):
        return event.name or event.subagent_run_id or ""
    if event.name:
        return event.name
    if isinstance(event.model, str):
        return event.model
    for key in ("interrupt_id", "export_id", "card_id", "agent"):
        value = event.payload.get(key)
        if isinstance(value, str):
            return value
    return ""


def _status(event: Event) -> str:
    for key in ("status", "outcome"):
        value = event.payload.get(key)
        if isinstance(value, str) and event.type in ("run.ended", "turn.completed"):
            return value
    verb = event.type.rpartition(".")[2]
    if event.type in ("tool.completed", "model.responded", "subagent.completed"):
        closed = event.payload.get("outcome") == "closed"  # a generator, left before its end
        return "failed" if is_error(event) else "closed" if closed else "ok"
    return verb if verb in ("failed", "cancelled", "expired", "resolved", "suspended") else ""


def _marks(event: Event) -> list[str]:
    marks = ["error"] if is_error(event) else []
    if event.payload.get("effects") == "write":
        marks.append("write")
    if event.payload.get("redacted"):
        marks.append("redacted")
    if event.type == "model.requested" and event.payload.get("prompt") == "reconstructed":
        marks.append("reconstructed")
    if event.subagent_run_id:
        marks.append("subagent")
    return marks


def _plain(event: Event) -> str:
    rest = {key: item for key, item in event.payload.items() if key not in _NOT_IN_LINE}
    if event.type.endswith(".failed") or event.type.startswith("error."):
        said = error_text(event.payload) or content_text(event.payload.get("outcome"))
        return said or arguments_text(rest)
    return arguments_text(rest) if rest else ""


def _foreign(event: Event) -> str:
    if event.prompt is not None:
        return content_text(event.prompt)
    call = event.payload.get("tool_call")
    if isinstance(call, Mapping):
        call = call.get("arguments", call.get("args", call))
    result = event.payload.get("tool_result")
    said = "" if call is None else arguments_text(call)
    return said if result is None else f"{said} → {value_text(result, compact=True)}"


def _field(key: str) -> Callable[[Event], str]:
    def say(event: Event) -> str:
        value: JSON = event.payload.get(key)
        return error_text(event.payload) if value is None else content_text(value)

    return say


def _received(event: Event) -> str:
    role, text = message_text(event.payload.get("message", dict(event.payload)))
    return f"{role}: {text}" if role else text


def _set(event: Event) -> str:
    key = state_key(event)
    if key is None or "value" not in event.payload:
        return _plain(event)
    return f"{key} = {content_text(event.payload['value'])}"


def _ended(event: Event) -> str:
    return error_text(event.payload)


_DETAILS: Mapping[str, Callable[[Event], str]] = MappingProxyType(
    {
        "model.requested": request_text,
        "model.responded": lambda event: answer_text(event.payload.get("result")),
        "tool.called": lambda event: arguments_text(event.payload.get("arguments")),
        "tool.completed": _field("result"),
        "turn.started": _field("input"),
        "turn.completed": _field("output"),
        "message.received": _received,
        "run.ended": _ended,
        "state.changed": _set,
        "step": _foreign,
        UNREADABLE: lambda event: content_text(event.payload.get("what")),
    }
)
