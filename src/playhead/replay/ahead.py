"""The rows of a window, read some ahead of where a handle stands."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from playhead.core.logrow import LogRow
from playhead.replay.facet import ReplayEvents, read_batches
from playhead.replay.window import Window

_ROWS = 512
_BYTES = 4 << 20


class Ahead:
    """Reads ``window`` through ``events`` in order, and again from anywhere.

    ``end`` is the last number that is ever read: the window's, or the first end that the facet
    reports, so that a log which grows meanwhile gives one handle one answer.
    """

    def __init__(self, events: ReplayEvents, window: Window) -> None:
        self.end = window.stop
        self._events = events
        self._window = window
        self._buffer: deque[LogRow] = deque()
        self._read = window.start
        self._rows: AsyncGenerator[list[LogRow], None] | None = None

    @property
    def exhausted(self) -> bool:
        """No row is left, as far as is known without reading."""
        return not self._buffer and self.end is not None and self._read >= self.end

    def peek(self) -> LogRow | None:
        """The next row if it was read already."""
        return self._buffer[0] if self._buffer else None

    def pop(self) -> None:
        """Take the row that `peek` gave."""
        self._buffer.popleft()

    async def fill(self) -> None:
        """Read on: up to 512 rows, or 4 MB. What the facet raises comes when its row is due."""
        if self._rows is None:
            self._rows = self.batches(self._read)
        size = 0
        try:
            async for batch in self._rows:
                for row in batch:
                    self._read = max(self._read, row.sequence_number)
                    size += len(row.line)
                self._buffer.extend(batch)
                if len(self._buffer) >= _ROWS or size >= _BYTES:
                    return
        except Exception:
            self._rows = None  # the rows that were read stay; behind them the facet is asked anew
            if not self._buffer:
                raise
            return
        except BaseException:  # cancelled: nothing was taken that is not in the buffer
            self._rows = None
            raise
        self._rows = None
        self.freeze(self._read)

    def freeze(self, number: int) -> None:
        """The facet had no row behind ``number``: later ones are never read."""
        self.end = number if self.end is None else min(self.end, number)

    def batches(self, after: int, upto: int | None = None) -> AsyncGenerator[list[LogRow], None]:
        """The rows behind ``after`` up to ``upto``, read by themselves; close what is not read to
        its end."""
        known = [number for number in (upto, self.end) if number is not None]
        return read_batches(
            self._events,
            chat_id=self._window.chat_id,
            tenant_id=self._window.tenant_id,
            after=after,
            upto=min(known, default=None),
        )

    async def rows(self, after: int) -> AsyncGenerator[LogRow, None]:
        """The rows of `batches` one by one."""
        async with aclosing(self.batches(after)) as batches:
            async for batch in batches:
                for row in batch:
                    yield row

    def reset(self, after: int) -> None:
        """Go on behind ``after``."""
        self._buffer.clear()
        self._rows = None
        self._read = after

    async def close(self) -> None:
        """Let the facet's iterable go."""
        self._buffer.clear()
        rows, self._rows = self._rows, None
        if rows is not None:
            await rows.aclose()
