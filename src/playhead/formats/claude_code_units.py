"""Rows of the active path as the units that events are made of, and which result is whose.

One reply of the model stands in several rows with one ``message.id``, and each repeats the
usage (case C17). A result belongs to the nearest call before it with its id (case C16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from playhead.core.model import JSON
from playhead.formats.claude_code_blocks import (
    Call,
    blocks,
    calls,
    content,
    is_api_error,
    is_prompt,
    is_synthetic,
    results,
)
from playhead.formats.claude_code_rows import Row, mapping, text


@dataclass(frozen=True, slots=True)
class Reply:
    """All rows of one answer of the model, and the calls in it."""

    rows: Sequence[Row]
    calls: Sequence[Call]

    @property
    def content(self) -> list[JSON]:
        return [block for row in self.rows for block in blocks(row)]

    @property
    def usage(self) -> Mapping[str, JSON]:
        """The usage of the last row that has one: the rows repeat it, they do not add up."""
        found = [mapping(row.message.get("usage")) for row in self.rows]
        return next((usage for usage in reversed(found) if usage), {})

    def last(self, key: str) -> str | None:
        """The last text under ``key`` in the rows' messages."""
        found = [text(row.message.get(key)) for row in self.rows]
        return next((value for value in reversed(found) if value), None)

    def flag(self, key: str) -> bool:
        return any(row.obj.get(key) is True for row in self.rows)


Unit = Row | Reply


def units(rows: Sequence[Row], first_key: int = 0) -> list[Unit]:
    """Gather replies. A reply stands where its first row stands.

    It ends at a row of another reply and at the next prompt, so that an id that comes back
    much later starts a new one; without a ``message.id`` it ends at any user row as well.
    ``first_key`` is the key of the first call.
    """
    gathered: list[Row | list[Row]] = []
    reply: list[Row] = []
    for row in rows:
        if row.type == "assistant" and not is_synthetic(row):
            if reply and _key(row) is not None and _key(row) == _key(reply[-1]):
                reply.append(row)
                continue
            reply = [row]
            gathered.append(reply)
            continue
        ends = row.is_boundary or is_prompt(row) or (row.type == "user" and not _has_id(reply))
        if ends or row.type == "assistant":
            reply = []
        gathered.append(row)
    found: list[Unit] = []
    for item in gathered:
        if isinstance(item, Row):
            found.append(item)
            continue
        made = _calls(item, first_key)
        first_key += len(made)
        found.append(Reply(tuple(item), made))
    return found


def _has_id(reply: list[Row]) -> bool:
    return bool(reply) and reply[-1].message_id is not None


def _calls(rows: list[Row], first_key: int) -> tuple[Call, ...]:
    made = [(row, call) for row in rows for call in calls(row)]
    return tuple(
        Call(first_key + i, call_id, name, arguments, row)
        for i, (row, (call_id, name, arguments)) in enumerate(made)
    )


def _key(row: Row) -> str | None:
    """What joins rows to one reply; a message that reports an API error stays alone."""
    if is_api_error(row):
        return None
    return row.message_id or text(row.obj.get("requestId"))


@dataclass(frozen=True, slots=True)
class Pairing:
    """``call_of`` gives the call behind a result by (row index, place in the row); calls that
    have no result are not in ``resolved``; ``guessed`` were paired by position."""

    call_of: Mapping[tuple[int, int], Call]
    resolved: frozenset[int]
    guessed: frozenset[tuple[int, int]]


def pair(found: Sequence[Unit]) -> Pairing:
    """Give each result to the nearest unanswered call before it that has its id; a result or
    a call without an id goes by position within the last reply that called anything."""
    by_id: dict[str, Call] = {}
    recent: list[Call] = []
    call_of: dict[tuple[int, int], Call] = {}
    guessed: set[tuple[int, int]] = set()
    for unit in found:
        if isinstance(unit, Reply):
            if unit.calls:
                recent = list(unit.calls)
            by_id.update((call.id, call) for call in unit.calls if call.id)
            continue
        for place, result in enumerate(results(unit)):
            call = by_id.pop(result.id, None) if result.id else None
            if call is None:
                fits = [c for c in recent if c.id is None or result.id is None]
                if not fits:
                    continue
                call = fits[0]
                guessed.add((unit.index, place))
            call_of[unit.index, place] = call
            recent = [other for other in recent if other.key != call.key]
            if call.id and by_id.get(call.id) is call:
                del by_id[call.id]
    return Pairing(call_of, frozenset(call.key for call in call_of.values()), frozenset(guessed))


def summaries(rows: Sequence[Row]) -> dict[int, Row]:
    """For each boundary the summary that follows it before any other message."""
    found: dict[int, Row] = {}
    boundary: Row | None = None
    for row in rows:
        if row.is_boundary:
            boundary = row
        elif boundary is not None and row.is_spine:
            if row.is_summary and content(row) is not None:
                found[boundary.index] = row
            boundary = None
    return found
