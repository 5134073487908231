"""Bringing the prompt index back when a chain is continued (resolution 10).

The index is derived from the chain itself and from nothing beside it: a file that named
earlier messages could be edited to make the next request refer to other ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.model import JSON
from playhead.core.prompts import PromptIndex, answer_segments, parse_segments, rebuild
from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import TooLarge, ValueRefused
from playhead.store.stores import Lines

_LAST = 4
"""How many of the last requests are remembered: enough for a few interleaved conversations."""


def recall(lines: Lines, index: PromptIndex) -> None:
    """Let ``index`` know the messages of the last requests and answers among ``lines``."""
    rows = _Rows(lines)
    for seq in rows.last:
        try:
            index.remember(seq, rebuild(seq, rows.segments))
        except (ValueRefused, TooLarge):
            continue
    answer = rows.last_answer
    if answer is not None:
        index.remember(answer, rebuild(answer, rows.segments))


class _Rows:
    """Which rows of a chain are of a model; each is read again only when it is needed."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._at: dict[int, int] = {}
        self.last: deque[int] = deque(maxlen=_LAST)
        self.last_answer: int | None = None
        for number, (_, _, line) in enumerate(lines.walk(0, None)):
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
            self._at[event.seq] = number

    def _row(self, seq: int) -> Row | None:
        if seq not in self._at:
            return None
        line = self._lines.get(self._at[seq])[2]
        row = line if isinstance(line, BadRow) else decode_row(line)
        return row if isinstance(row, Row) else None

    def segments(self, seq: int) -> Sequence[JSON]:
        row = self._row(seq)
        if row is None:
            return ()
        step = to_step(row.obj)
        if decode_event(step).type == "model.responded":
            return answer_segments(step.tool_result)
        return parse_segments(step.prompt)
