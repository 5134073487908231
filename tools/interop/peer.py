"""Runs under the reference package's Python: reads, verifies, extends and writes journals.

`run.py` starts it with a command and a journal directory and reads one JSON object from its
output. It uses the reference's public classes only, and nothing of playhead.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bernstein.core.persistence.journal import Journal, JournalReader

VALUES: list[dict[str, Any]] = [
    {"input_hash": ""},
    {"input_hash": "a" * 64, "model": "m", "prompt": "Zürich 🏔 \u2028 \x7f \x00\"", "effort": "x"},
    {"input_hash": "b" * 64, "tool_call": {"name": "calc", "z": [1e16, 1e-7, -0.0, 5e-324, 1.0]}},
    {"input_hash": "c" * 64, "tool_result": [0, 2**53 + 1, 2**64, -(2**70), True, None]},
    {"input_hash": "d" * 64, "tool_call": {"": {}, "\ue000": 1, "😀": [[], {"a": [None]}]}},
    {"input_hash": "e" * 64, "prompt": "lone \ud83d surrogate", "effort": ""},
    {"input_hash": "f" * 64, "tool_call": {"prompt": 1, "schema_version": 2, "seq": 0, "x": 1}},
    {"input_hash": "0" * 64, "model": "", "prompt": "", "tool_call": {}, "tool_result": []},
    {"input_hash": "1" * 64, "prompt": "p" * 5000, "blob_refs": ["ab" * 32, "ab" * 32]},
]  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    """The reference's verdict, and every row as the reference writes it again."""
    ok, head, steps, errors = astuple(JournalReader(folder).verify())
    entries = list(JournalReader(folder).entries())
    rows = [json.dumps(e.to_dict(), sort_keys=True, separators=(",", ":")) for e in entries]
    return {"ok": ok, "head": head, "steps": steps, "errors": errors, "rows": rows}


def astuple(result: Any) -> tuple[bool, str, int, list[str]]:
    return bool(result.ok), result.head_hash, result.steps, list(result.errors)


def extend(folder: Path) -> dict[str, Any]:
    """Append every kind of value behind what is there."""
    journal = Journal.open(folder)
    first = journal.next_seq
    for value in VALUES:
        journal.append(**value)
    state = {"first": first, "next_seq": journal.next_seq, "head": journal.head_hash}
    journal.close()
    return state


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps({"read": read, "extend": extend}[command](folder)))


if __name__ == "__main__":
    main()
