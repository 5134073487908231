"""Importing in tests: one file, and what the run then holds."""

from __future__ import annotations

import json
from pathlib import Path

from playhead.convert.importer import Imported, import_files
from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import Event
from playhead.core.prompts import messages_of_result, parse_segments, rebuild
from playhead.core.rows import Row, decode_row
from playhead.store.reader import journal_lines
from playhead.store.root import Root

FOLDER = Path(__file__).parent / "vectors" / "claude_code"
INDEX = json.loads((FOLDER / "INDEX.json").read_text("utf-8"))
SECRET = b"sk-test-AAAAAAAAAAAAAAAAAAAAAAAA"


def one(root: Root, *paths: Path, **more: object) -> Imported:
    [done] = import_files(root, paths, **more)  # type: ignore[arg-type]
    return done


def events(root: Root, run_id: str) -> list[Event]:
    found = []
    for _, _, line in journal_lines(root.journal_dir(run_id)):
        assert isinstance(line, bytes)
        row = decode_row(line)
        assert isinstance(row, Row)
        found.append(decode_event(to_step(row.obj)))
    return found


def prompt(found: list[Event], seq: int) -> list[object]:
    def source(at: int) -> list[object]:
        event = found[at]
        if event.type == "model.responded":
            return messages_of_result(event.payload["result"])
        return parse_segments(event.prompt)

    return rebuild(seq, source)


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
