"""Small signed chains for tests of proofs, the same bytes each time."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from playhead.core import merkle
from playhead.core.model import GENESIS
from playhead.core.rows import Row, decode_row
from playhead.core.sign import PrivateKey, sign_note
from playhead.formats.head import Head, encode_head
from playhead.formats.journal import encode_row

KEY = PrivateKey("signer.example/one", bytes(range(32)))
OTHER = PrivateKey("signer.example/two", bytes(range(1, 33)))
TRUSTED = [KEY.public()]


def chain(count: int, *, word: str = "w", native: bool = True) -> list[bytes]:
    """Rows that follow one another; the first names tenant and chat when ``native``."""
    lines, prev = [], GENESIS
    for seq in range(count):
        call: dict[str, object] = {"v": 1, "event": "state.changed", "seq": seq, "payload": {}}
        if seq == 0:
            call |= {"tenant_id": "acme", "chat_id": "talk"}
        line, prev = encode_row(
            seq=seq,
            prev_hash=prev,
            input_hash="",
            model=None,
            prompt=f'{word}{seq} \u00e9"\\',
            tool_call=call if native else {"n": seq},
            tool_result=None,
            ts=1767600000.25 + seq,
        )
        lines.append(line)
    return lines


def head_of(lines: Sequence[bytes], run_id: str = "run-1") -> Head:
    """What a checkpoint says of these rows."""
    raw = b"".join(line + b"\n" for line in lines)
    row = decode_row(lines[-1]) if lines else None
    return Head(
        run_id=run_id,
        size=len(lines),
        root=merkle.root(merkle.leaf_hashes(lines)),
        step_hash=row.stored_hash if isinstance(row, Row) else GENESIS,
        length=len(raw),
        bytes_sha256=sha256(raw).hexdigest(),
        fields_root=sha256(b"fields").digest(),
    )


def signed(lines: Sequence[bytes], *, run_id: str = "run-1", key: PrivateKey = KEY) -> str:
    """The signed checkpoint of these rows."""
    return sign_note(encode_head(head_of(lines, run_id)), key)


def by_hand(repo: Path) -> ModuleType:
    """examples/check_proof.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "check_proof_by_hand", repo / "examples" / "check_proof.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
