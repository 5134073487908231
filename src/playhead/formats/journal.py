"""The journal's grammar: names on disk and the bytes of a row (docs/reference/formats/journal.md).

A row is one line of canonical JSON, keys sorted, compact, ASCII, and a newline. The reference
package's own re-serialisation gives the same bytes (resolution 13).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from playhead.core.encode import fast_bytes
from playhead.core.model import JSON
from playhead.errors import InvalidId

SEGMENT = "000000.jsonl"
SEALED = "000000.jsonl.zst"
LOCK = ".lock"
MAX_ROW = 32 * 1024 * 1024
"""Bytes of a row; a longer line is a finding and is never held in memory whole."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10))]
)
_SCHEMA = b',"schema_version":2,"seq":%d,"step_hash":"%b"'


def check_run_id(run_id: str) -> str:
    """``run_id`` itself if it may name a directory (case C62b).

    Raises:
        InvalidId: it could leave the root, or mean something else on another system.
    """
    stem = run_id.split(".", 1)[0].lower()
    if not _ID.match(run_id):
        raise InvalidId(f"{run_id!r:.80} is not a run id")
    if stem in _RESERVED or run_id.endswith("."):
        raise InvalidId(f"{run_id!r:.80} is a reserved name on some systems")
    return run_id


def encode_row(
    *,
    seq: int,
    prev_hash: str,
    input_hash: str,
    model: JSON,
    prompt: JSON,
    tool_call: JSON,
    tool_result: JSON,
    ts: float,
    effort: str | None = None,
    blob_refs: Sequence[str] = (),
) -> tuple[bytes, str]:
    """One row as its line without newline, and its step hash. Each value is encoded once.

    Raises:
        ValueRefused: a value has no canonical form.
    """
    head = b'"input_hash":%b,"model":%b,"prev_hash":"%b","prompt":%b' % (
        fast_bytes(input_hash),
        fast_bytes(model),
        prev_hash.encode("ascii"),
        fast_bytes(prompt),
    )
    tail = b'"tool_call":%b,"tool_result":%b' % (fast_bytes(tool_call), fast_bytes(tool_result))
    front = b"" if effort is None else b'"effort":%b,' % fast_bytes(effort)
    step_hash = sha256(b"{%b%b,%b}" % (front, head, tail)).hexdigest()
    refs = b"[]" if not blob_refs else fast_bytes(list(blob_refs))
    line = b'{"blob_refs":%b,%b%b%b,%b,"ts":%b}' % (
        refs,
        front,
        head,
        _SCHEMA % (seq, step_hash.encode("ascii")),
        tail,
        repr(float(ts)).encode("ascii"),
    )
    return line, step_hash


def input_hash_of(prompt: JSON, payload: JSON) -> str:
    """``input_hash`` of a native row: SHA-256 of the canonical pair (resolution 7)."""
    return sha256(
        b'{"payload":%b,"prompt":%b}' % (fast_bytes(payload), fast_bytes(prompt))
    ).hexdigest()
