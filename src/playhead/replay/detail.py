"""One step whole: what was asked and answered, its place in the chain, the state after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from playhead.core.decode import event_at, step_of
from playhead.core.model import Event
from playhead.core.rows import BadRow, Row
from playhead.errors import PlayheadError
from playhead.replay.calls import NEAR, OUTCOMES, call_step, outcome, over
from playhead.replay.info import when
from playhead.replay.render import answer_text, error_text, message_text, value_text
from playhead.replay.run import Run
from playhead.replay.states import state_parts
from playhead.replay.text import shortened, visible

_SHORT = 2_000
"""Characters of one text that are shown unless all is asked for."""
_LAST_MESSAGES = 6
_SHOWN_APART = frozenset(("arguments", "result", "error", "output", "input", "message", "stamp"))


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a step's detail; both texts are safe to print."""

    title: str
    text: str


def detail(run: Run, number: int, full: bool = False, *, state: bool = True) -> list[Section]:
    """Everything about step ``number``, in the order in which one reads it.

    ``full`` shows every message and every character. ``state`` folds up to the step; without it
    the parts about the state are left out. What cannot be shown (a missing blob, a
    prompt that refers to nothing) is a sentence in its place, not an error.

    Raises:
        NotFound: there is no such step.
    """
    event = run.event(number)
    parts: list[tuple[str, str]] = [("step", _heading(run, number, event))]
    parts += _asked(run, number, event, full)
    parts += _payload(run, number, event)
    ending = _outcome(run, number, event)
    if ending:
        parts.append(("outcome", ending))
    if state:
        parts += state_parts(run, number, full)
    parts.append(("chain", _chain(run, number)))
    shown = []
    for title, text in parts:
        if text:
            cut = text if full else shortened(text, _SHORT)
            shown.append(Section(title, visible(cut, newlines=True)))
    return shown


def _heading(run: Run, number: int, event: Event) -> str:
    lines = [("type", event.type), ("name", event.name)]
    if isinstance(event.model, str) and event.model != event.name:
        lines.append(("model", event.model))
    lines.append(("at", event.at or when(run.step(number).ts)))
    lines.append(("turn", event.turn_id))
    call = call_step(run, event)
    lines.append(("answers", "" if call is None else f"step {call}"))
    lines.append(("subagent", event.subagent_run_id))
    lines.append(("id", event.id))
    lines.append(("caused by", event.causation_id))
    lines += [(key, value_text(item, compact=True)) for key, item in event.ids.items()]
    return "\n".join(f"{name}: {text}" for name, text in lines if text)


def _asked(run: Run, number: int, event: Event, full: bool) -> list[tuple[str, str]]:
    if event.type not in ("model.requested", "step"):
        return []
    try:
        messages: Sequence[object] = run.messages(number, mark=True)
    except PlayheadError as error:
        return [("request", f"the prompt cannot be rebuilt: {error.what}")]
    if not messages:
        return []
    first = 0 if full else max(len(messages) - _LAST_MESSAGES, 0)
    lines = [f"… {first} earlier messages (--full shows them)"] if first else []
    for place, message in enumerate(messages[first:], first):
        role, text = message_text(message)
        lines.append(f"[{place}] {role}: {text if full else shortened(text, _SHORT // 4)}")
    return [(f"request ({len(messages)} messages)", "\n".join(lines))]


def _payload(run: Run, number: int, event: Event) -> list[tuple[str, str]]:
    values = run.payload(number, mark=True)
    parts: list[tuple[str, str]] = []
    if values.get("name") == event.name:  # the envelope's, told in the heading
        values.pop("name", None)
    for key in ("arguments", "input", "message", "stamp"):
        if key in values:
            parts.append((key, value_text(values[key])))
    if event.type == "model.responded":
        parts.append(("answer", answer_text(values.get("result"))))
    elif "result" in values:
        parts.append(("result", value_text(values["result"])))
    if "error" in values:
        parts.append(("error", error_text(values) or value_text(values["error"])))
    if "output" in values:
        parts.append(("output", value_text(values["output"])))
    rest = {k: v for k, v in values.items() if k not in _SHOWN_APART and v is not None}
    if rest:
        parts.append(("parameters", value_text(rest)))
    return parts


def _outcome(run: Run, number: int, event: Event) -> str:
    """Where a call ended, or that nobody knows (decision 4)."""
    if event.type not in OUTCOMES or not isinstance(event.payload.get("call_id"), str):
        return ""
    later = outcome(run, event)
    if later is not None:
        word = later.type.rpartition(".")[2]
        return f"{word} at step {later.seq}{_took(event.at, later.at)}"
    if run.has(number + 1 + NEAR):
        return f"not within the next {NEAR} steps"
    if not over(run):
        return "pending: the record holds no result yet"
    return "unknown: the record holds no result; the call may have had its effect"


def _took(start: str | None, end: str | None) -> str:
    try:
        span = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):
        return ""
    seconds = span.total_seconds()
    return f", after {seconds:.3f} s" if abs(seconds) >= 1 else f", after {seconds * 1000:.1f} ms"


def _chain(run: Run, number: int) -> str:
    """Place, hashes, and what is odd about the row itself."""
    place = run.place(number)
    at = f"line {place.line}" if place.byte is None else f"line {place.line}, byte {place.byte}"
    lines = [f"{at}, {len(run.raw(number))} bytes"]
    row = run.row(number)
    if isinstance(row, BadRow):
        return "\n".join([*lines, f"no row: {row.what} ({row.reason})"])
    step = step_of(number, row)
    lines += [f"{key} {getattr(step, key)}" for key in ("step_hash", "prev_hash", "input_hash")]
    if row.computed != row.stored_hash:
        lines.append(f"CHANGED: the fields hash to {row.computed}")
    before = run.row(number - 1) if number else None
    if isinstance(before, Row) and row.stored_prev != before.stored_hash:
        lines.append(f"BROKEN: the row before stores {before.stored_hash}")
    if step.seq != number:
        lines.append(f"the row says seq {step.seq} at place {number}")
    lines += [f"spelling: {spelling}" for spelling in row.spellings]
    if step.blob_refs:
        lines.append("blobs " + ", ".join(value_text(ref, compact=True) for ref in step.blob_refs))
    kind = event_at(number, row).type
    return "\n".join([*lines, "not written by playhead"] if kind == "step" else lines)
