"""Rows to events without hashing: the hot path of every replay.

`event_of_line` answers what the plain way (`playhead.core.decode`) answers, for every line. The
quick way is taken only where the two cannot differ:

* orjson reads the line; what it refuses, the plain way decides;
* no run of 19 digits stands in it: orjson makes a float of an integer beyond 64 bits. Other
  numbers both read alike;
* it has few brackets, so nothing in it is nested deeper than any recursion limit.

A line in doubt is looked at value by value (`playhead.core.quick.spelled_alike`), or goes the
plain way. Whether a row hashes to what it stores, is for a verification to say.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from playhead.core.decode import event_at, row_of, step_of
from playhead.core.events import RESULTS, VERSION, envelope_ids
from playhead.core.logrow import LogRow
from playhead.core.model import JSON, Event
from playhead.core.quick import spelled_alike
from playhead.core.rows import BadRow, Row

_SHAPE = bytes.maketrans(b"123456789[", b"000000000{")
"""Every digit is a 0, every opening bracket a {."""
_LONG = b"0" * 19
_FEW = 200
"""Brackets up to which a line is surely not deep."""
_TEXT = str


def event_of_line(number: int, line: bytes | BadRow) -> Event:
    """The event of row ``number`` (from 0). Never raises: a line that is no row is an event of
    type ``unreadable``."""
    return log_row("", "", number, line).event


def log_row(tenant_id: str, chat_id: str, number: int, line: bytes | BadRow) -> LogRow:
    """Row ``number`` (from 0) of a chat's log. Never raises, as `event_of_line`."""
    if isinstance(line, BadRow):
        return _plain(tenant_id, chat_id, number, line)
    try:
        obj = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _plain(tenant_id, chat_id, number, line)
    shape = line.translate(_SHAPE)
    if obj.__class__ is not dict or (
        (_LONG in shape or shape.count(b"{") > _FEW) and not spelled_alike(obj)
    ):
        return _plain(tenant_id, chat_id, number, line)
    get = obj.get
    prev, stored, call = get("prev_hash"), get("step_hash"), get("tool_call")
    if prev.__class__ is not _TEXT or stored.__class__ is not _TEXT or call.__class__ is not dict:
        return _plain(tenant_id, chat_id, number, line)
    kind = call.get("event")
    if not kind or kind.__class__ is not _TEXT or call.get("v") != VERSION:
        return _plain(tenant_id, chat_id, number, line)
    event = _event(number, kind, call, get("tool_result"), get("model"), get("prompt"), stored)
    return LogRow(tenant_id, chat_id, number + 1, event, stored, prev, line)


def _event(
    number: int,
    kind: str,
    call: dict[str, JSON],
    result: JSON,
    model: JSON,
    prompt: JSON,
    stored: str,
) -> Event:
    """What `playhead.core.events.decode_event` makes of an envelope."""
    get = call.get
    payload, name = get("payload"), get("name")
    body: dict[str, JSON] = payload if isinstance(payload, dict) else {}
    if kind in RESULTS:
        body["result"] = result
    if kind[:5] == "tool.":
        body.setdefault("name", name)
    at, given = get("at"), get("id")
    turn, sub, cause = get("turn_id"), get("subagent_run_id"), get("causation_id")
    made = _Twin(
        kind,
        number,
        body,
        name if name.__class__ is _TEXT else None,
        at if at.__class__ is _TEXT else None,
        given if given.__class__ is _TEXT else None,
        turn if turn.__class__ is _TEXT else None,
        sub if sub.__class__ is _TEXT else None,
        cause if cause.__class__ is _TEXT else None,
        envelope_ids(call),
        model,
        prompt,
        stored,
    )
    made.__class__ = Event  # type: ignore[assignment]
    return made  # type: ignore[return-value]


class _Twin:
    """An `Event` while it is being made: the same slots, not frozen yet. The constructor of a
    frozen class sets each field by a call, which takes longer than parsing the line."""

    __slots__ = tuple(Event.__slots__)

    def __init__(
        self,
        type: str,
        seq: int,
        payload: Mapping[str, JSON],
        name: JSON,
        at: JSON,
        id: JSON,
        turn_id: JSON,
        subagent_run_id: JSON,
        causation_id: JSON,
        ids: Mapping[str, JSON],
        model: JSON,
        prompt: JSON,
        step_hash: str,
    ) -> None:
        self.type = type
        self.seq = seq
        self.payload = payload
        self.name = name
        self.at = at
        self.id = id
        self.turn_id = turn_id
        self.subagent_run_id = subagent_run_id
        self.causation_id = causation_id
        self.ids = ids
        self.model = model
        self.prompt = prompt
        self.step_hash = step_hash


def _plain(tenant_id: str, chat_id: str, number: int, line: bytes | BadRow) -> LogRow:
    row = row_of(line)
    event = event_at(number, row)
    prev = step_of(number, row).prev_hash if isinstance(row, Row) else ""
    text = b"" if isinstance(line, BadRow) else line
    return LogRow(tenant_id, chat_id, number + 1, event, event.step_hash, prev, text)
