"""The first event of a journal, which says whose chain it is."""

from __future__ import annotations

from pathlib import Path

from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import Event
from playhead.core.rows import BadRow, Row, decode_row
from playhead.store.reader import journal_lines


def first_event(folder: Path) -> Event | None:
    """The event of the first row, or None when there is no row."""
    for _, _, line in journal_lines(folder):
        if isinstance(line, BadRow):
            return None
        row = decode_row(line)
        if isinstance(row, Row):
            return decode_event(to_step(row.obj))
        if isinstance(row, BadRow):
            return None
    return None
