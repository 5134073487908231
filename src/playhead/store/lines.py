"""The lines of one journal by number, without holding them all.

A plain journal is scanned for newlines once, as far as somebody asks; every 1024th row's place
is remembered and rows are read one at a time. A sealed journal is unpacked as it is read, and
the lines that went by last are kept within a fixed number of bytes.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import PlayheadError
from playhead.formats.journal import MAX_ROW
from playhead.store.reader import BLOCK, blocks_of, journal_blocks, open_segment, split_lines
from playhead.store.stores import Line, Lines

STRIDE = 1024
"""Rows between two remembered places."""
_WINDOWS = 8
_KEEP_BYTES = 64 * 1024 * 1024
_KEEP_LINES = 65_536


class Places:
    """Where every 1024th row of a growing file begins: kept by a store over several openings.

    It is only a memory of the same file: ``fits`` says whether it still is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = (0, 0)
        self._found: list[tuple[int, int]] = []
        self._last = b""

    def take(self, fd: int) -> list[tuple[int, int]]:
        """The places known for the file ``fd``; forgets them when it is another one."""
        status = os.fstat(fd)
        with self._lock:
            same = self._file == (status.st_dev, status.st_ino)
            if not same or not self._found or _line_at(fd, self._found[-1][1]) != self._last:
                self._file, self._found = (status.st_dev, status.st_ino), []
            return list(self._found)

    def learn(self, fd: int, found: list[tuple[int, int]]) -> None:
        """Take over what a scan of ``fd`` found beyond what is known."""
        status = os.fstat(fd)
        with self._lock:
            if len(found) > len(self._found) and self._file == (status.st_dev, status.st_ino):
                self._found = list(found)
                self._last = _line_at(fd, found[-1][1])


def _line_at(fd: int, offset: int) -> bytes:
    """The newline before a row and its first bytes, which name its hashes."""
    parts = os.pread(fd, 2048, max(offset - 1, 0)).split(b"\n", 2)
    return parts[bool(offset)] if len(parts) > 1 else b""


def open_lines(folder: Path, *, torn: bool = True, places: Places | None = None) -> Lines:
    """The lines of the journal in ``folder`` that are not blank, as long as it is now.

    Without ``torn`` a last line that has no newline counts only when it is a whole row: a
    writer in the middle of a row gives no half of it.

    Raises:
        NotFound: there is no journal. Unreadable: a link, a directory, no permission.
    """
    fd, sealed = open_segment(folder)
    if sealed:
        os.close(fd)
        return SealedLines(folder)
    return PlainLines(fd, torn=torn, places=places)


def _rows(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        text = line[2]
        if isinstance(text, BadRow) or (text and not text.isspace()):
            yield line


def _whole_rows(fd: int, size: int) -> int:
    """Where the last whole row of a file of ``size`` bytes ends.

    No beginning of a row is JSON, so what decodes without a newline is whole.
    """
    at, tail = size, b""
    while at and b"\n" not in tail and len(tail) <= MAX_ROW:
        step = min(BLOCK, at)
        at -= step
        tail = os.pread(fd, step, at) + tail
    tail = tail[tail.rfind(b"\n") + 1 :]
    if not tail or len(tail) > MAX_ROW or isinstance(decode_row(tail), Row):
        return size
    return size - len(tail)


class PlainLines:
    """Takes over ``fd``, which is closed with this object. Rows added later are not seen."""

    def __init__(self, fd: int, *, torn: bool = True, places: Places | None = None) -> None:
        self._fd = fd
        size = os.fstat(fd).st_size
        self._end = size if torn else _whole_rows(fd, size)
        self._close = weakref.finalize(self, os.close, fd)
        self._known = places
        self._places = [] if places is None else places.take(fd)
        restart = self._places.pop() if self._places else (1, 0)
        self._count = len(self._places) * STRIDE
        self._scan: Iterator[Line] | None = self._from(*restart)
        self._windows: OrderedDict[int, list[tuple[int, int, int | BadRow]]] = OrderedDict()

    def close(self) -> None:
        """Give the file back; nothing can be read afterwards."""
        if self._close.alive and self._known is not None:
            self._known.learn(self._fd, self._places)
        self._close()

    def blocks(self) -> Iterator[bytes]:
        """The bytes up to the end that was seen at opening."""
        return blocks_of(self._fd, 0, self._end)

    def _from(self, line_no: int, offset: int) -> Iterator[Line]:
        blocks = blocks_of(self._fd, offset, self._end)
        return _rows(split_lines(blocks, line_no=line_no, offset=offset))

    def _advance(self, until: int | None) -> None:
        """Scan on until more than ``until`` rows are counted, or to the end."""
        if self._scan is None:
            return
        for line_no, offset, _ in self._scan:
            if self._count % STRIDE == 0:
                self._places.append((line_no, offset))
            self._count += 1
            if until is not None and self._count > until:
                return
        self._scan = None

    def count(self) -> int:
        """The number of rows; scans what was not scanned yet."""
        self._advance(None)
        return self._count

    def has(self, number: int) -> bool:
        """True when there is a row ``number``; scans no further than that."""
        if number >= self._count:
            self._advance(number)
        return 0 <= number < self._count

    def get(self, number: int) -> Line:
        """Row ``number``, read anew.

        Raises:
            IndexError: there is no such row.
        """
        if not self.has(number):
            raise IndexError(number)
        line_no, offset, size = self._window(number // STRIDE)[number % STRIDE]
        if isinstance(size, BadRow):
            return line_no, offset, size
        text = os.pread(self._fd, size, offset)
        if len(text) < size:
            return line_no, offset, BadRow("cut", "the file was cut while it was being read")
        return line_no, offset, text

    def _window(self, window: int) -> list[tuple[int, int, int | BadRow]]:
        found = self._windows.get(window)
        if found is None:
            lines = islice(self._from(*self._places[window]), STRIDE)
            found = [(n, at, t if isinstance(t, BadRow) else len(t)) for n, at, t in lines]
            self._windows[window] = found
            if len(self._windows) > _WINDOWS:
                self._windows.popitem(last=False)
        return found

    def walk(self, start: int, stop: int | None) -> Iterator[Line]:
        """Rows from ``start`` up to ``stop``, read in blocks."""
        if not self.has(start):
            return
        place = self._places[start // STRIDE]
        skip = start % STRIDE
        count = None if stop is None else skip + max(stop - start, 0)
        yield from islice(self._from(*place), skip, count)


class SealedLines:
    """Rows of a sealed journal. Going far back unpacks it again from its beginning."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: OrderedDict[int, Line] = OrderedDict()
        self._bytes = 0
        self._next = 0
        self._total: int | None = None
        self._scan = self._start()

    def close(self) -> None:
        """Stop reading."""
        self._scan = iter(())
        self._kept.clear()

    def blocks(self) -> Iterator[bytes]:
        """The bytes, unpacked."""
        return journal_blocks(self._folder)

    def _start(self) -> Iterator[Line]:
        """The lines; a file that stops being readable ends with a line that says so."""
        at = 0
        line_no = 1
        try:
            for line in _rows(split_lines(journal_blocks(self._folder))):
                line_no, at, _ = line
                yield line
        except PlayheadError as error:
            yield line_no + 1, at, BadRow("sealed", error.what)

    def count(self) -> int:
        """The number of rows; unpacks the whole journal the first time."""
        if self._total is None:
            while self._step() is not None:
                pass
        assert self._total is not None
        return self._total

    def has(self, number: int) -> bool:
        """True when there is a row ``number``."""
        if number < 0:
            return False
        if self._total is not None:
            return number < self._total
        return number < self._next or self._reach(number) is not None

    def get(self, number: int) -> Line:
        """Row ``number``.

        Raises:
            IndexError: there is no such row.
        """
        found = self._reach(number) if number >= 0 else None
        if found is None:
            raise IndexError(number)
        return found

    def _reach(self, number: int) -> Line | None:
        kept = self._kept.get(number)
        if kept is not None:
            return kept
        if number < self._next:
            self._scan = self._start()
            self._next = 0
            self._kept.clear()
            self._bytes = 0
        line: Line | None = None
        while self._next <= number:
            line = self._step()
            if line is None:
                return None
        return line

    def _step(self) -> Line | None:
        line = next(self._scan, None)
        if line is None:
            self._total = self._next
            return None
        self._kept[self._next] = line
        self._next += 1
        self._bytes += _size(line)
        while len(self._kept) > 1 and (self._bytes > _KEEP_BYTES or len(self._kept) > _KEEP_LINES):
            self._bytes -= _size(self._kept.popitem(last=False)[1])
        return line

    def walk(self, start: int, stop: int | None) -> Iterator[Line]:
        """Rows from ``start`` up to ``stop``."""
        number = start
        while (stop is None or number < stop) and self.has(number):
            yield self.get(number)
            number += 1


def _size(line: Line) -> int:
    return 0 if isinstance(line[2], BadRow) else len(line[2])
