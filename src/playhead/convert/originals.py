"""Which originals a run keeps, and their bytes (docs/reference/formats/source.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import GENESIS, JSON, Event
from playhead.core.rows import Row, decode_row
from playhead.errors import NotFound, Place
from playhead.store.reader import journal_lines
from playhead.store.stores import Line, Lines

_LOOK = 16
"""Rows from the start of a run among which ``source.imported`` stands."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file that a run was imported from. ``recipe`` restores it (`store.recipes`)."""

    name: str
    sha256: str
    size: int
    recipe: str


def originals(folder: Path) -> list[Original]:
    """The originals of the run whose journal lies in ``folder``, the session file first.

    Raises:
        NotFound: the run was not imported, or keeps no original (``--redact``).
    """
    return originals_of(journal_lines(folder), str(folder))


def originals_of(lines: Iterable[Line], where: str) -> list[Original]:
    """The originals that a chain names, whose rows are ``lines``; ``where`` is for messages.

    Raises:
        NotFound: as `originals`.
    """
    for _, _, line in islice(lines, _LOOK):
        event = _event(line) if isinstance(line, bytes) else None
        if event is not None and event.type == "source.imported":
            found = list(_files(event.payload.get("files")))
            if found:
                return found
            break
    raise NotFound(
        "this run keeps no original",
        place=Place(where),
        remedy="Only imported runs have one, and --redact gives it up",
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What an earlier import left in a run, without verifying it."""

    imported: bool
    redacted: bool
    sha256s: list[str]
    ended: bool
    head: str
    steps: int


def look(lines: Lines) -> Look:
    """Look at a run that may be an import's."""
    imported = redacted = ended = False
    sha256s: list[str] = []
    head, steps, last = GENESIS, 0, b""
    for number, (_, _, line) in enumerate(lines.walk(0, None), 1):
        if not isinstance(line, bytes):
            continue
        steps += 1
        last = line
        event = _event(line) if number <= _LOOK else None
        if event is not None and event.type == "source.imported":
            imported = True
            redacted = event.payload.get("redacted") is True
            sha256s = [original.sha256 for original in _files(event.payload.get("files"))]
    if steps:
        event = _event(last)
        head = event.step_hash if event is not None else head
        ended = event is not None and event.type == "run.ended"
    return Look(imported, redacted, sha256s, ended, head, steps)


def _event(line: bytes) -> Event | None:
    row = decode_row(line)
    return decode_event(to_step(row.obj)) if isinstance(row, Row) else None


def _files(files: JSON) -> Iterator[Original]:
    for file in files if isinstance(files, list) else []:
        if not isinstance(file, dict) or not isinstance(file.get("recipe"), str):
            continue
        size = file.get("size")
        yield Original(
            str(file.get("name")),
            str(file.get("sha256")),
            size if isinstance(size, int) else 0,
            str(file["recipe"]),
        )
