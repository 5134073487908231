"""The state after a step and what the step changed in it: the core state, the agent's own
state, and the calls that wait for a result. Numbers are steps, from 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from playhead.core.model import JSON
from playhead.core.persistent import thaw
from playhead.core.projections import Entries, Entry, Held, pending
from playhead.core.state import Record, Records, State
from playhead.replay.render import value_text
from playhead.replay.text import one_liner

if TYPE_CHECKING:
    from playhead.core.fold import Folded
    from playhead.replay.run import Run

_FAMILIES = ("interrupts", "subagents", "exports", "user_cards")
_SHOWN = 20
"""Open records, keys and calls that are listed unless all is asked for."""
_VALUE = 400
"""Characters of one value in a list."""


def state_parts(run: Run, number: int, full: bool) -> list[tuple[str, str]]:
    """What step ``number`` changed and the state after it, as titles with texts.

    Raises:
        NotFound: there is no such step.
    """
    before, after = run.folded(number - 1), run.folded(number)
    changes = [
        *_values_changed(run, _held(before), _held(after)),
        *_calls_changed(_calls(before), _calls(after)),
        *_records_changed(before.state, after.state),
    ]
    parts = [("changed", "\n".join(changes))] if changes else []
    if full:
        return [*parts, ("state after it", value_text(state_document(run, number)))]
    return [*parts, ("state after it", "\n".join(_lines(run, after)))]


def state_document(run: Run, number: int) -> dict[str, object]:
    """The whole state after step ``number``: the core state in the names of the contract,
    ``state`` (the agent's own, the last value of each key) and ``pendingCalls``.

    Raises:
        NotFound: there is no such step.
    """
    after = run.folded(number)
    calls: list[JSON] = [
        {"call_id": call.id, "name": call.name, "status": call.status, "step": call.opened}
        for call in pending(_calls(after))
    ]
    values = {key: _value(run, step) for key, step in _held(after).items}
    return {**after.state.to_wire(), "state": values, "pendingCalls": calls}


def _held(folded: Folded) -> Held:
    held = folded.of("state")
    assert isinstance(held, Held)
    return held


def _calls(folded: Folded) -> Entries:
    calls = folded.of("tool_calls")
    assert isinstance(calls, Entries)
    return calls


def _value(run: Run, step: int) -> object:
    return run.payload(step, mark=True).get("value")


def _value_line(run: Run, step: int) -> str:
    return one_liner(value_text(_value(run, step), compact=True), _VALUE)


def _lines(run: Run, after: Folded) -> Iterator[str]:
    """What there is; a group without members is not named."""
    held = list(_held(after).items)
    for key, step in held[:_SHOWN]:
        yield f"{key} = {_value_line(run, step)}"
    if len(held) > _SHOWN:
        yield f"… {len(held) - _SHOWN} more keys (--full shows them)"
    waiting = pending(_calls(after))
    if waiting:
        yield f"calls without a result: {len(waiting)}"
    yield from (f"  {_call(call)}: {call.status}" for call in waiting[-_SHOWN:])
    for name in _FAMILIES:
        records: Records = getattr(after.state, name)
        if len(records):
            running = [record for record in records if record.closed_at is None]
            yield f"{name}: {len(records)}, of them open {len(running)}"
            yield from (f"  {record.id}: {record.status}" for record in running[:_SHOWN])
    yield f"events: {after.state.event_count}"


def _call(call: Entry) -> str:
    return f"{call.name or call.id} (step {call.opened})"


def _values_changed(run: Run, old: Held, new: Held) -> Iterator[str]:
    if old is new:
        return
    for key, step in new.items:
        was = old.get(key)
        if was is None:
            yield f"state: + {key} = {_value_line(run, step)}"
        elif was != step:
            yield f"state: {key} {_value_line(run, was)} → {_value_line(run, step)}"


def _calls_changed(old: Entries, new: Entries) -> Iterator[str]:
    if old is new:
        return
    before = {call.id: call for call in pending(old)}
    after = {call.id: call for call in pending(new)}
    for call_id, call in after.items():
        known = before.get(call_id)
        if known is None:
            yield f"calls: + {_call(call)}"
        elif known.status != call.status:
            yield f"calls: {_call(call)} {known.status} → {call.status}"
    for call_id, call in before.items():
        ended = new.get(call_id)
        if call_id not in after and ended is not None and ended.closed is not None:
            yield f"calls: {_call(call)} {call.status} → {ended.status}"


def _records_changed(before: State, after: State) -> Iterator[str]:
    """Records that are new or not as they were; the event count changes with every step."""
    for name in _FAMILIES:
        old: Records = getattr(before, name)
        new: Records = getattr(after, name)
        if old is new:
            continue
        for record in new:
            known = old.get(record.id)
            if known is None:
                yield f"{name}: + {record.id} ({record.status})"
            elif known is not record:
                yield from _differences(name, known, record)


def _differences(family: str, old: Record, new: Record) -> Iterator[str]:
    for key in ("status", "revision", "value", "outcome"):
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            words = [value_text(thaw(value), compact=True) for value in (was, now)]
            yield f"{family} {new.id}: {key} {words[0]} → {words[1]}"
    if new.closed_at is not None and new.closed_at != old.closed_at:
        yield f"{family} {new.id}: closed at step {new.closed_at - 1}"
    elif old.closed_at is not None and new.closed_at is None:
        yield f"{family} {new.id}: open again"
