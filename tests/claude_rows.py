"""Rows as real files have them, with fields changed, missing and of other types."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

FOLDER = Path(__file__).parent / "vectors" / "claude_code"
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
scalars = (
    st.just("\ud800")
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | words
    | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=12,
)


@st.composite
def rows(draw: st.DrawFn) -> bytes:
    chosen = draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=8))
    out = []
    for one in chosen:
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
