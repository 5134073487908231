"""Lines of a journal as they lie on disk, plain or sealed, in bounded memory.

Framing is on the byte 0x0A only (case C05); a lone CR separates rows too, because the
reference reader opens files with universal newlines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from playhead.core.rows import BadRow
from playhead.errors import NotFound, Place
from playhead.formats.journal import MAX_ROW, SEALED, SEGMENT
from playhead.store.durable import open_regular

BLOCK = 1 << 20

Line = tuple[int, int, bytes | BadRow]
"""1-based line number, byte offset, and the line without its newline (or why it is none)."""

Batch = tuple[int, int, list[bytes] | BadRow]
"""Line number and offset of the first line, and lines that follow one another in the file."""


def blocks_of(fd: int, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes ``[start, end)`` of a file in blocks of 1 MiB."""
    at = start
    while end is None or at < end:
        want = BLOCK if end is None else min(BLOCK, end - at)
        block = os.pread(fd, want, at)
        if not block:
            return
        at += len(block)
        yield block


def split_batches(
    blocks: Iterable[bytes], *, line_no: int = 1, offset: int = 0, limit: int = MAX_ROW
) -> Iterator[Batch]:
    """Frame blocks into lines, as many at a time as a block holds.

    A line over ``limit`` bytes is reported, not held, in a batch of its own.
    """
    carry = b""
    skipped = 0
    returns = False
    for block in blocks:
        returns = b"\r" in block or (returns and b"\r" in carry)
        lines = block.split(b"\n")
        if skipped:
            skipped += len(lines[0]) + (len(lines) > 1)
            if len(lines) == 1:
                continue
            yield line_no, offset, BadRow("too-long", f"a line of {skipped - 1} bytes")
            offset += skipped
            line_no += 1
            skipped = 0
            del lines[0]
        else:
            lines[0] = carry + lines[0]
        carry = lines.pop()
        if returns:
            yield from _by_return(lines, line_no, offset)
        elif lines:
            yield line_no, offset, lines
        offset += sum(map(len, lines)) + len(lines)
        line_no += len(lines)
        if len(carry) > limit:
            skipped = len(carry)
            carry = b""
    if skipped:
        yield line_no, offset, BadRow("too-long", f"a line of {skipped} bytes")
    elif carry:
        yield from _by_return([carry], line_no, offset, last=True)


def split_lines(
    blocks: Iterable[bytes], *, line_no: int = 1, offset: int = 0, limit: int = MAX_ROW
) -> Iterator[Line]:
    """The lines of `split_batches` one by one."""
    batches = split_batches(blocks, line_no=line_no, offset=offset, limit=limit)
    for number, start, lines in batches:
        at = start
        if isinstance(lines, BadRow):
            yield number, start, lines
            continue
        for line_number, line in enumerate(lines, number):
            yield line_number, at, line
            at += len(line) + 1


def _by_return(
    lines: list[bytes], line_no: int, offset: int, *, last: bool = False
) -> Iterator[Batch]:
    """Lines that may hold CR: JSON never holds a raw one, so each piece is a row of its own.

    A CR at a line's end belongs to the newline, except at the ``last`` line, which has none.
    """
    for line in lines:
        if not last and line.find(b"\r", 0, len(line) - 1) < 0:
            yield line_no, offset, [line]
            offset += len(line) + 1
        else:
            for piece in line.split(b"\r"):
                if piece:
                    yield line_no, offset, [piece]
                offset += len(piece) + 1
        line_no += 1


def open_segment(folder: Path) -> tuple[int, bool]:
    """A descriptor of the journal in ``folder`` and whether it is sealed.

    Raises:
        NotFound: there is none. Unreadable: a link, a directory, no permission.
    """
    if os.path.lexists(folder / SEGMENT) or not os.path.lexists(folder / SEALED):
        try:
            return open_regular(folder / SEGMENT), False
        except NotFound:
            raise NotFound(f"no journal ({SEGMENT})", place=Place(str(folder))) from None
    return open_regular(folder / SEALED), True


def journal_blocks(folder: Path) -> Iterator[bytes]:
    """The journal's plain bytes in blocks, whatever its form on disk."""
    fd, sealed = open_segment(folder)
    with open(fd, "rb", buffering=0) as handle:
        if sealed:
            from playhead.store.seal import unsealed_blocks

            yield from unsealed_blocks(handle.fileno(), str(folder / SEALED))
        else:
            yield from blocks_of(handle.fileno())


def journal_lines(folder: Path) -> Iterator[Line]:
    """Every line of the journal in ``folder``."""
    return split_lines(journal_blocks(folder))


def journal_batches(folder: Path) -> Iterator[Batch]:
    """Every line of the journal in ``folder``, many at a time."""
    return split_batches(journal_blocks(folder))


def segment_path(folder: Path) -> Path:
    """The file that holds the journal, for messages."""
    plain = folder / SEGMENT
    return plain if os.path.lexists(plain) else folder / SEALED
