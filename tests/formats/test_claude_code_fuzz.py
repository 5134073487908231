"""Whatever stands in a file, reading it ends with a transcript."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from claude_rows import BYTES, rows, values
from claude_sessions import read
from playhead.core.events import TYPES
from playhead.formats.transcript import Transcript


def check(found: Transcript) -> None:
    """What holds for every transcript."""
    open_turns = 0
    called: set[object] = set()
    for entry in found.entries:
        assert all(key in entry.payload for key in TYPES[entry.type]), entry
        if entry.subagent_run_id is None:
            open_turns += {"turn.started": 1, "turn.completed": -1}.get(entry.type, 0)
            assert open_turns in (0, 1)
        call = entry.payload.get("call_id")
        if entry.type in ("tool.called", "model.requested"):
            assert call not in called
            called.add(call)
        elif call is not None:
            assert call in called
    assert open_turns == 0
    assert (found.status == "empty") == (found.counts.turns == 0)


@given(st.lists(values, max_size=8))
@settings(deadline=None)
def test_any_json_lines(rows: list[object]) -> None:
    check(read("".join(json.dumps(row) + "\n" for row in rows).encode()))


@given(rows())
@settings(max_examples=300, deadline=None)
def test_rows_with_changed_and_missing_fields(data: bytes) -> None:
    check(read(data))


@given(st.sampled_from(BYTES), st.data(), st.integers(1, 4096))
@settings(deadline=None)
def test_files_with_changed_bytes(data: bytes, draw: st.DataObject, chunk: int) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 6))):
        at = draw.draw(st.integers(0, len(damaged)))
        if at < len(damaged) and draw.draw(st.booleans()):
            damaged[at] = draw.draw(st.integers(0, 255))
        else:
            damaged[at:at] = draw.draw(st.binary(max_size=6))
    check(read(bytes(damaged), chunk))


@given(st.sampled_from(BYTES), st.data())
@settings(deadline=None)
def test_a_file_cut_anywhere(data: bytes, draw: st.DataObject) -> None:
    check(read(data[: draw.draw(st.integers(0, len(data)))]))
