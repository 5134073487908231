"""Bringing the prompt index back when a chain is continued (resolution 10).

The index is derived from the chain itself and from nothing beside it: a file that named
earlier messages could be edited to make the next request refer to other ones.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import JSON
from playhead.core.prompts import PromptIndex, answer_segments, parse_segments, rebuild
from playhead.core.rows import Row, decode_row
from playhead.errors import TooLarge, ValueRefused
from playhead.formats.journal import SEGMENT
from playhead.store.durable import open_regular
from playhead.store.reader import blocks_of, split_lines

_LAST = 4
"""How many of the last requests are remembered: enough for a few interleaved conversations."""


def recall(folder: Path, index: PromptIndex) -> None:
    """Let ``index`` know the messages of the last requests and answers in ``folder``."""
    fd = open_regular(folder / SEGMENT)
    with open(fd, "rb", buffering=0) as handle:
        rows = _Rows(handle.fileno())
        for seq in rows.last:
            try:
                index.remember(seq, rebuild(seq, rows.segments))
            except (ValueRefused, TooLarge):
                continue
        answer = rows.last_answer
        if answer is not None:
            index.remember(answer, rebuild(answer, rows.segments))


class _Rows:
    """Where the model rows of a journal lie; each is read again only when it is needed."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._at: dict[int, tuple[int, int]] = {}
        self.last: deque[int] = deque(maxlen=_LAST)
        self.last_answer: int | None = None
        for _, offset, line in split_lines(blocks_of(fd)):
            if not isinstance(line, bytes) or b'"event":"model.re' not in line:
                continue
            row = decode_row(line)
            if not isinstance(row, Row):
                continue
            event = decode_event(to_step(row.obj))
            if event.type == "model.requested":
                self.last.append(event.seq)
            elif event.type == "model.responded":
                self.last_answer = event.seq
            else:
                continue
            self._at[event.seq] = (offset, len(line))

    def _row(self, seq: int) -> Row | None:
        if seq not in self._at:
            return None
        offset, length = self._at[seq]
        row = decode_row(os.pread(self._fd, length, offset))
        return row if isinstance(row, Row) else None

    def segments(self, seq: int) -> Sequence[JSON]:
        row = self._row(seq)
        if row is None:
            return ()
        step = to_step(row.obj)
        if decode_event(step).type == "model.responded":
            return answer_segments(step.tool_result)
        return parse_segments(step.prompt)
