"""The first event of a journal, which says whose chain it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import Event
from playhead.core.rows import BadRow, Row, decode_row
from playhead.store.reader import Line, journal_lines


def first_event(folder: Path) -> Event | None:
    """The event of the first row, or None when there is no row."""
    return first_of(journal_lines(folder))


def first_of(lines: Iterable[Line]) -> Event | None:
    """The event of the first row among ``lines``; None when they begin with none."""
    for _, _, line in lines:
        row = line if isinstance(line, BadRow) else decode_row(line)
        if isinstance(row, Row):
            return decode_event(to_step(row.obj))
        if isinstance(row, BadRow):
            return None
    return None
