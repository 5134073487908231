"""The segments of the prompts of one run, parsed once for the many rows that refer to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from playhead.core.decode import event_at, row_of
from playhead.core.messages import segments_of
from playhead.core.model import JSON
from playhead.core.rows import BadRow
from playhead.errors import TooLarge

_MAX_SEGMENTS: Final = 8_000_000
_KEEP_PARSED: Final = 32 * 1024 * 1024


class Segments:
    """Segments by step; ``line`` gives the row of a step. Bounded by the bytes of the rows."""

    def __init__(self, line: Callable[[int], bytes | BadRow]) -> None:
        self._line = line
        self._parsed: OrderedDict[int, tuple[int, Sequence[JSON]]] = OrderedDict()
        self._size = 0

    def source(self, number: int) -> Callable[[int], Sequence[JSON]]:
        """Where the prompt of step ``number`` takes its messages from.

        A hostile row may make each look a long one: they are counted.

        Raises (the source):
            TooLarge: more segments than any recorded prompt has.
        """
        seen = 0

        def source(step: int) -> Sequence[JSON]:
            nonlocal seen
            segments = self._of(step)
            seen += len(segments)
            if seen > _MAX_SEGMENTS:
                raise TooLarge(f"the prompt of step {number} takes over {_MAX_SEGMENTS} segments")
            return segments

        return source

    def _of(self, step: int) -> Sequence[JSON]:
        known = self._parsed.get(step)
        if known is not None:
            self._parsed.move_to_end(step)
            return known[1]
        text = self._line(step)
        segments = segments_of(event_at(step, row_of(text)))
        size = 0 if isinstance(text, BadRow) else len(text)
        self._parsed[step] = (size, segments)
        self._size += size
        while self._size > _KEEP_PARSED and len(self._parsed) > 1:
            self._size -= self._parsed.popitem(last=False)[1][0]
        return segments
