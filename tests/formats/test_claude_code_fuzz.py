"""Whatever stands in a file, reading it ends with a transcript."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from claude_sessions import read
from playhead.core.events import TYPES
from playhead.formats.transcript import Transcript

FOLDER = Path(__file__).parent.parent / "vectors" / "claude_code"
ROWS = [
    json.loads(line)
    for path in sorted(FOLDER.glob("*.jsonl"))
    for line in path.read_bytes().splitlines()
    if line.endswith(b"}")
    and line.startswith(b'{"type":')
    and path.name not in ("C01_glued_after_kill.jsonl", "wrong_types.jsonl")
]
BYTES = [path.read_bytes() for path in sorted(FOLDER.glob("*.jsonl"))]

keys = st.sampled_from(
    "type uuid parentUuid logicalParentUuid isSidechain message content role id model usage "
    "tool_use_id name input text is_error isMeta isCompactSummary subtype timestamp agentId "
    "toolUseResult requestId isAbortedMidStream isApiErrorMessage compactMetadata".split()
)
words = st.sampled_from(
    "user assistant system attachment summary compact_boundary tool_use tool_result text u1 a2 t1 "
    "[Request\N{SPACE}interrupted\N{SPACE}by\N{SPACE}user] <synthetic> 2026-01-01T00:00:00Z".split(
        " "
    )
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=12,
)


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


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    rows = draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=8))
    out = []
    for one in rows:
        row = json.loads(json.dumps(one))
        target = row
        if draw(st.booleans()) and isinstance(row.get("message"), dict):
            target = row["message"]
        for key, value in draw(st.dictionaries(keys, values, max_size=2)).items():
            target[key] = value
        for key in draw(st.lists(keys, max_size=2)):
            target.pop(key, None)
        out.append(json.dumps(row))
    return "\n".join(out).encode()


@given(mutated())
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
