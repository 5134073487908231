"""What the reference reader tolerates in a row and a strict reader does not.

Each oddity is a warning, an error under ``--strict``: the step hash holds, and yet something
may be hidden from a reader (docs/reference/verdicts.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from playhead.core.model import JSON
from playhead.core.quick import ROW_KEYS
from playhead.core.rows import Row, shown, to_seq

_KNOWN = frozenset(
    "blob_refs effort input_hash model prev_hash prompt schema_version seq step_hash tool_call "
    "tool_result ts".split()
)
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

_HOLDS = "The hash holds for the parsed values; the bytes are not as a writer makes them"
_OUTSIDE = "It is not under the step hash; only a signed head covers it"


def oddities(row: Row) -> Iterator[tuple[str, str, str]]:
    """Kind, sentence and remedy of each oddity of a row."""
    for spelling in row.spellings:
        if spelling.startswith("duplicate key"):
            yield "duplicate-key", f"{spelling}; readers may show the value not hashed", _HOLDS
        else:
            yield "spelling", spelling, _HOLDS
    obj = row.obj
    seq = obj.get("seq", -1)
    if tuple(obj) == ROW_KEYS and type(seq) is int and obj["blob_refs"] == []:
        return
    if type(seq) is not int and to_seq(seq) is not None:
        yield "seq-type", f"seq is written {shown(seq, 40)} and read as {to_seq(seq)}", _OUTSIDE
    unknown = sorted(set(obj) - _KNOWN)
    if unknown:
        yield "unknown-key", f"unknown key(s) {', '.join(unknown)[:120]}", _OUTSIDE
    yield from _references(obj.get("blob_refs", []))
    if "effort" in obj and obj["effort"] is None:
        yield "spelling", "effort is null where the key is left out", _HOLDS


def _references(refs: JSON) -> Iterator[tuple[str, str, str]]:
    if not isinstance(refs, list):
        yield "blob-ref", "blob_refs is not a list", _OUTSIDE
        return
    bad = [ref for ref in refs if not (isinstance(ref, str) and _DIGEST.match(ref))]
    if bad:
        yield "blob-ref", f"{shown(bad[0])} is not a SHA-256 digest", _OUTSIDE
