"""Runs and files that the transcripts and tests of the command line start from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import playhead

HOSTILE = "[bold]x[/bold] <img src=x onerror=alert(1)> \x1b[31mred\x07 \u202egnp.exe"
"""Markup, a tag (case C44), an escape sequence, a bell, and a turned writing direction."""


def a_run() -> None:
    """``first``: 14 steps, two turns, a failing tool, and hostile text in what was said."""
    with playhead.record("tester", run_id="first") as run:

        @run.tool(effects="read")
        def look(path: str) -> str:
            if path == "missing.txt":
                raise FileNotFoundError(HOSTILE)
            return f"content of {path}"

        with run.turn(HOSTILE):
            with run.model_call("m-1", [{"role": "user", "content": HOSTILE}]) as call:
                call.respond({"role": "assistant", "content": "I look"})
            look("a.txt")
            try:
                look("missing.txt")
            except FileNotFoundError as error:
                run.state("seen", str(error))
        with run.turn("and again"):
            look("zebra.txt")


def two_runs() -> None:
    """``first``, and ``second`` with two steps."""
    a_run()
    with playhead.record("other", run_id="second"):
        pass


def journal() -> Path:
    """The journal file of ``first``."""
    return Path(os.environ["PLAYHEAD_ROOT"], "runtime", "journal", "first", "000000.jsonl")


def changed_byte() -> None:
    """``first`` with one letter changed in step 5."""
    a_run()
    lines = journal().read_bytes().split(b"\n")
    lines[5] = lines[5].replace(b"a.txt", b"b.txt", 1)
    journal().write_bytes(b"\n".join(lines))


def foreign() -> None:
    """``notes.jsonl``: a journal of one foreign row, outside every root; no head anywhere."""
    fields = {
        "input_hash": "",
        "model": None,
        "prev_hash": "0" * 64,
        "prompt": "hello",
        "tool_call": None,
        "tool_result": None,
    }
    digest = sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    row = {**fields, "seq": 0, "ts": 0.0, "blob_refs": [], "step_hash": digest}
    row |= {"schema_version": 1}
    Path("notes.jsonl").write_text(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n")


def oddities() -> None:
    """A directory, a link, an archive and a binary file where a journal should be."""
    a_run()
    Path("folder.jsonl").mkdir()
    Path("link.jsonl").symlink_to(journal())
    Path("archive.jsonl").write_bytes(b"\x1f\x8b\x08\x00" + b"\0" * 60)
    Path("noise.jsonl").write_bytes(bytes(range(256)) * 40)


SCENES: Mapping[str, Callable[[], None]] = {
    scene.__name__: scene for scene in (a_run, two_runs, changed_byte, foreign, oddities)
}


def tree(*places: Path) -> dict[str, tuple[object, ...]]:
    """Everything below ``places``: kind and mode, size, time of the last change, content."""
    found: dict[str, tuple[object, ...]] = {}
    for place in places:
        for path in sorted([place, *place.rglob("*")]):
            if os.path.lexists(path):
                about = path.lstat()
                data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found[str(path)] = (about.st_mode, about.st_size, about.st_mtime_ns, data)
    return found
