"""Small Claude Code sessions for tests, and reading them without a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from playhead.formats import claude_code
from playhead.formats.transcript import Entry, SourceInput, Transcript


def user(
    uuid: str, content: object, parent: str | None = None, **more: object
) -> dict[str, object]:
    return _row("user", uuid, parent, {"role": "user", "content": content}, more)


def answer(
    uuid: str, content: object, parent: str | None = None, id: str | None = None, **more: object
) -> dict[str, object]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    message = {"role": "assistant", "model": "m", "content": content}
    return _row("assistant", uuid, parent, message | ({"id": id} if id else {}), more)


def _row(
    kind: str, uuid: str, parent: str | None, message: object, more: dict[str, object]
) -> dict[str, object]:
    base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "S", "cwd": "/w"}
    return {**base, "message": message, **more}


def use(id: str, name: str = "sh", **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: object = "ok") -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(data: bytes, chunk: int = 1 << 20, name: str = "S.jsonl") -> Transcript:
    """Read one file that comes in chunks of ``chunk`` bytes."""
    pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    return claude_code.read([SourceInput(name, lambda: iter(pieces))])


def read_path(path: Path) -> Transcript:
    return read(path.read_bytes(), name=path.name)


def kinds(transcript: Transcript) -> list[str]:
    return sorted({finding.kind for finding in transcript.findings})


def of_type(transcript: Transcript, *types: str) -> Sequence[Entry]:
    return [entry for entry in transcript.entries if entry.type in types]


def types(transcript: Transcript) -> list[str]:
    return [entry.type for entry in transcript.entries]
