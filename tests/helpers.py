"""Journals made by hand: any events, any rows, hostile ones too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from playhead.core.events import Draft, encode_event
from playhead.core.model import GENESIS
from playhead.formats.journal import SEGMENT, encode_row


def event_rows(drafts: Iterable[Draft], start: int = 0) -> list[bytes]:
    """One chain of native rows, a second apart, beginning 2026-01-01T00:00:00Z."""
    lines: list[bytes] = []
    prev = GENESIS
    for seq, draft in enumerate(drafts, start):
        at = f"2026-01-01T{seq // 3600 % 24:02d}:{seq // 60 % 60:02d}:{seq % 60:02d}.000000Z"
        fields = encode_event(draft, seq=seq, at=at, event_id=f"{seq:016x}")
        line, prev = encode_row(
            seq=seq, prev_hash=prev, input_hash="0" * 64, ts=1767225600.0 + seq, **fields
        )
        lines.append(line)
    return lines


def foreign_rows(rows: Iterable[Mapping[str, object]]) -> list[bytes]:
    """One chain of rows with the given ``model, prompt, tool_call, tool_result``."""
    lines: list[bytes] = []
    prev = GENESIS
    for seq, row in enumerate(rows):
        line, prev = encode_row(
            seq=seq,
            prev_hash=prev,
            input_hash="",
            model=row.get("model"),
            prompt=row.get("prompt"),
            tool_call=row.get("tool_call"),
            tool_result=row.get("tool_result"),
            ts=1767225600.0 + seq,
        )
        lines.append(line)
    return lines


def write_lines(folder: Path, lines: Iterable[bytes]) -> Path:
    """The lines as the journal in ``folder``, which is made; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SEGMENT).write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def write_events(folder: Path, drafts: Iterable[Draft]) -> Path:
    """The events as the journal in ``folder``."""
    return write_lines(folder, event_rows(drafts))
