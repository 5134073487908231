"""Lines to rows, steps and events, for looking at them: nothing a line holds is an error here.

What is wrong with a line is part of what a walk shows. Whether the chain holds is for
``verifier`` to say.
"""

from __future__ import annotations

from dataclasses import replace

from playhead.core.events import decode_event
from playhead.core.model import GENESIS, JSON, Event, Step
from playhead.core.rows import BadRow, Row, decode_row, hashed_fields, to_seq

UNREADABLE = "unreadable"
"""The type of an event whose line is no row. It is never written."""


def row_of(text: bytes | BadRow) -> Row | BadRow:
    """A line as a row, or why it is none. Never raises."""
    if isinstance(text, BadRow):
        return text
    try:
        return decode_row(text) or BadRow("blank", "the line is blank")
    except (RecursionError, TypeError, ValueError, OverflowError) as error:
        return BadRow("undecodable", f"the line cannot be decoded: {error}"[:200])


def step_of(number: int, row: Row | BadRow) -> Step:
    """A row as a step; a line that is no row is a step without content and without hashes.

    ``seq`` is what the row says of itself, ``number`` stands in where there is no row.
    """
    if isinstance(row, BadRow):
        return Step(seq=number, prev_hash="", input_hash="", step_hash="")
    try:
        return to_step(row.obj)
    except OverflowError:  # a ts that no float can hold
        return to_step({**row.obj, "ts": None})


def event_at(number: int, row: Row | BadRow) -> Event:
    """The event at step ``number``. Its ``seq`` is that number, whatever the row claims."""
    if isinstance(row, BadRow):
        payload = {"reason": row.reason, "what": row.what}
        return Event(type=UNREADABLE, seq=number, payload=payload)
    event = decode_event(step_of(number, row))
    if not event.type:
        payload = {"reason": "no-type", "what": "the envelope names no event"}
        return Event(type=UNREADABLE, seq=number, payload=payload, step_hash=event.step_hash)
    return event if event.seq == number else replace(event, seq=number)


def to_step(obj: dict[str, JSON]) -> Step:
    """A row object as a step, with the reference's defaults for what is missing."""
    fields = hashed_fields(obj)
    ts = obj.get("ts")
    refs = obj.get("blob_refs")
    return Step(
        seq=to_seq(obj.get("seq", -1)) or 0,
        prev_hash=str(fields["prev_hash"]),
        input_hash=str(fields["input_hash"]),
        step_hash=str(obj.get("step_hash", GENESIS)),
        model=fields["model"],
        prompt=fields["prompt"],
        tool_call=fields["tool_call"],
        tool_result=fields["tool_result"],
        effort=fields.get("effort"),
        ts=_seconds(ts),
        blob_refs=tuple(refs) if isinstance(refs, list) else (),
        schema_version=obj.get("schema_version", 1),
    )


def _seconds(ts: JSON) -> float | None:
    if isinstance(ts, bool) or not isinstance(ts, (int, float)):
        return None
    try:
        return float(ts)
    except OverflowError:
        return None
