"""Events of one's own as the rows that follow a row: numbered, linked and hashed like stored ones.

They are held to what the event log's own append takes, so that a fork can be written out later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from playhead.core.canonical import encode_step
from playhead.core.decode import to_step
from playhead.core.events import Draft, decode_event, encode_event
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS
from playhead.core.rows import Row, decode_row
from playhead.errors import PlayheadError, ReplayArgumentError
from playhead.formats.journal import MAX_ROW, encode_row, input_hash_of
from playhead.store.clock import format_us, parse_us
from playhead.store.rawevent import checked

FORK_TAG: Final = "playhead/fork/v1"
_NO_TIME = "1970-01-01T00:00:00.000000Z"
_NAMES: Final = (
    "name",
    "model",
    "prompt",
    "event_id",
    "turn_id",
    "subagent_run_id",
    "causation_id",
)
"""What an event given as a mapping may have besides type, payload and time."""


def drafts_of(
    events: Iterable[Draft | Mapping[str, object]], *, tenant_id: str, chat_id: str, at: int
) -> list[tuple[Draft, str | None]]:
    """``events``, checked, each with the time that it says itself.

    Raises:
        ReplayArgumentError: one is no event, has a bad type or value, lacks a key its type must
            have, brings a number of its own, or is of another tenant or chat; ``field`` names it.
    """
    if isinstance(events, (str, bytes, Mapping)) or not isinstance(events, Iterable):
        raise ReplayArgumentError("events", "must be a list of events")
    found: list[tuple[Draft, str | None]] = []
    names: set[str] = set()
    for index, given in enumerate(events):
        field = f"events[{index}]"
        draft, when = _draft(given, field)
        try:
            draft = checked(draft, tenant_id, chat_id)
        except PlayheadError as error:
            raise ReplayArgumentError(field, f"is off: {error.what}") from None
        if draft.type == "run.started" and (at or index):
            raise ReplayArgumentError(field, "is run.started, which only opens a chain")
        if draft.id is not None and draft.id in names:
            raise ReplayArgumentError(field, "has the id of an event before it")
        names.update(() if draft.id is None else (draft.id,))
        found.append((draft, when))
    return found


def _draft(given: object, field: str) -> tuple[Draft, str | None]:
    if isinstance(given, Draft):
        return given, None
    if not isinstance(given, Mapping):
        raise ReplayArgumentError(field, f"is a {type(given).__name__}, not an event")
    if "sequence_number" in given or "seq" in given:
        raise ReplayArgumentError(field, "brings a sequence number: a fork numbers its rows")
    unknown = given.keys() - {"event_type", "payload", "at", *_NAMES}
    if unknown:
        raise ReplayArgumentError(field, f"has {len(unknown)} members that no event has")
    kind, payload = given.get("event_type"), given.get("payload", {})
    if not isinstance(kind, str) or not isinstance(payload, Mapping):
        raise ReplayArgumentError(field, "needs an event_type and a payload")
    said = {name: _text(given.get(name), name, field) for name in _NAMES}
    draft = Draft(
        kind,
        payload,
        name=said["name"],
        model=said["model"],
        prompt=said["prompt"],
        id=said["event_id"],
        turn_id=said["turn_id"],
        subagent_run_id=said["subagent_run_id"],
        causation_id=said["causation_id"],
    )
    return draft, _time(given.get("at"), field)


def _text(value: object, name: str, field: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ReplayArgumentError(field, f"has {name} as {type(value).__name__}, not as text")
    return value


def _time(value: object, field: str) -> str | None:
    if value is None:
        return None
    try:
        return format_us(parse_us(value))  # type: ignore[arg-type]  # a TypeError is caught
    except (TypeError, ValueError, OverflowError):
        raise ReplayArgumentError(field, "has an at that is no RFC 3339 time with a zone") from None


def rows_behind(
    drafts: Iterable[tuple[Draft, str | None]], last: LogRow | None, at: int
) -> list[LogRow]:
    """The drafts as the rows that follow ``last``, which is row ``at``.

    Times are what an event says itself, else that of the row before: a fork reads no clock.

    Raises:
        ReplayArgumentError: a row is larger than any reader takes.
    """
    prev = GENESIS if last is None else last.row_hash or GENESIS
    when = _NO_TIME if last is None else last.event.at or _NO_TIME
    rows: list[LogRow] = []
    for index, (draft, own_time) in enumerate(drafts):
        when = own_time or when
        seq = at + index
        name = sha256(encode_step([FORK_TAG, prev, seq]).encode()).hexdigest()[:16]
        fields = encode_event(draft, seq=seq, at=when, event_id=name)
        envelope = fields["tool_call"]
        assert isinstance(envelope, dict)
        line, step_hash = encode_row(
            seq=seq,
            prev_hash=prev,
            input_hash=input_hash_of(draft.prompt, envelope["payload"]),
            model=fields["model"],
            prompt=fields["prompt"],
            tool_call=envelope,
            tool_result=fields["tool_result"],
            ts=0.0,
            blob_refs=draft.blobs,
        )
        if len(line) > MAX_ROW:
            raise ReplayArgumentError(f"events[{index}]", f"is over {MAX_ROW} bytes as a row")
        row = decode_row(line)
        assert isinstance(row, Row)
        event = decode_event(to_step(row.obj))
        rows.append(LogRow(None, None, seq + 1, event, step_hash, prev, line))
        prev = step_hash
    return rows
