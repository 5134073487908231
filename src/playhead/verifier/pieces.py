"""A large journal in pieces, of which other processes confirm some.

A helper process *confirms* a piece (`playhead.core.quick`): every line in it is a standard row
and follows the one before. It never finds a fault. What it sends counts only when the piece
follows what was walked before it; any other piece is walked here like everything else. The
findings and the verdict are therefore those of one plain walk, whatever a helper says.

Helpers are forked, which is safe only while the process has one thread, and is worth it only
for large files. Memory stays flat: a helper that is ahead waits for its pipe.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import orjson

from playhead.core.merkle import leaf_hashes
from playhead.core.quick import confirm
from playhead.store.reader import (
    Batch,
    blocks_of,
    journal_batches,
    open_segment,
    split_batches,
)

PIECE = 1 << 20
LARGE = 4 << 20
"""Bytes from which on helpers are worth their start."""
_MOST = 3
_LOOK = 1 << 16
_WIDEST = 2 * PIECE
"""A piece with a longer line than this is walked in blocks, never held whole."""
_HEADER = struct.Struct("<QQQ")  # rows, seq of the first, native events; rows 0: in doubt
_DOUBT = _HEADER.pack(0, 0, 0)

Span = tuple[int, int]
"""First byte of a piece and the byte behind it."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A piece whose rows are right and linked, from row ``seq`` behind step hash ``prev`` on."""

    fd: int
    line_no: int
    span: Span
    seq: int
    prev: str
    hashes: list[str]
    leaves: list[bytes]
    native: int

    def again(self) -> Iterator[Batch]:
        """The lines themselves, for when the piece does not follow what came before it."""
        blocks = blocks_of(self.fd, *self.span)
        return split_batches(blocks, line_no=self.line_no, offset=self.span[0])


def helpers_for(size: int) -> int:
    """How many helpers a file of ``size`` bytes is worth here: 0 walks alone."""
    if size < LARGE or sys.platform != "linux":
        return 0
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError:
        return 0
    return 0 if threads > 1 else min(len(os.sched_getaffinity(0)) - 1, _MOST)


def journal_pieces(folder: Path, *, leaves: bool) -> Iterator[Batch | Confirmed]:
    """`pieces` of the journal in ``folder``; a sealed one is walked by this process alone."""
    fd, sealed = open_segment(folder)
    if sealed:
        os.close(fd)
        yield from journal_batches(folder)
        return
    with open(fd, "rb", buffering=0):
        yield from pieces(fd, leaves=leaves)


def pieces(
    fd: int, *, leaves: bool, helpers: int | None = None, piece: int = PIECE
) -> Iterator[Batch | Confirmed]:
    """Every line of a plain journal file, in order: batches to be walked, confirmed pieces.

    ``leaves`` asks helpers for Merkle leaves.
    """
    size = os.fstat(fd).st_size
    helpers = helpers_for(size) if helpers is None else helpers
    if not helpers:
        yield from split_batches(blocks_of(fd))
        return
    spans = _spans(fd, size, piece)
    line_no = 1
    with _helped(fd, spans, leaves, helpers) as pipes:
        for number, span in enumerate(spans):
            turn = number % (helpers + 1)
            found = None
            if turn:
                found = _receive(pipes[turn - 1], fd, line_no, span, leaves)
            if found is not None:
                yield found
                line_no += len(found.hashes)
                continue
            blocks = _Counted(blocks_of(fd, *span))
            yield from split_batches(blocks, line_no=line_no, offset=span[0])
            line_no += blocks.newlines


class _Counted:
    """Blocks passed on, and how many newlines were in them."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.newlines = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self.newlines += block.count(b"\n")
            yield block


def _spans(fd: int, size: int, piece: int) -> list[Span]:
    """Pieces of about ``piece`` bytes that begin at a line's start."""
    starts = [0]
    at = piece
    while at < size:
        start = _next_line(fd, at, size)
        if start >= size:
            break
        starts.append(start)
        at = start + piece
    return list(zip(starts, [*starts[1:], size], strict=True))


def _next_line(fd: int, at: int, size: int) -> int:
    while at < size:
        block = os.pread(fd, _LOOK, at)
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += max(len(block), 1)
    return size


@contextmanager
def _helped(fd: int, spans: list[Span], leaves: bool, helpers: int) -> Iterator[list[BinaryIO]]:
    pipes: list[BinaryIO] = []
    children: list[int] = []
    try:
        for turn in range(1, helpers + 1):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                _helper(fd, spans[turn :: helpers + 1], leaves, writing)
            os.close(writing)
            pipes.append(os.fdopen(reading, "rb"))
            children.append(child)
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _helper(fd: int, spans: list[Span], leaves: bool, writing: int) -> None:
    """The life of a helper process. It ends here, whatever happens: a pipe that ends early
    makes the parent walk the rest itself."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with open(writing, "wb") as pipe:
            for start, end in spans:
                if end - start > _WIDEST:
                    pipe.write(_DOUBT)
                else:
                    _confirm(b"".join(blocks_of(fd, start, end)), leaves, pipe)
                pipe.flush()
    finally:
        os._exit(0)


def _confirm(data: bytes, leaves: bool, pipe: BinaryIO) -> None:
    lines = data.split(b"\n")
    rows = lines[:-1] if not lines[-1] else lines
    hashes: list[str] = []
    prev, seq = _link(rows[0])
    native = confirm(rows, prev, seq, hashes) if prev else 0
    if len(hashes) != len(rows):
        pipe.write(_DOUBT)
        return
    pipe.write(_HEADER.pack(len(rows), seq, native))
    pipe.write(prev.encode("ascii"))
    pipe.write("".join(hashes).encode("ascii"))
    if leaves:
        pipe.write(b"".join(leaf_hashes(rows)))


def _link(line: bytes) -> tuple[str, int]:
    """What the first row of a piece claims to follow; "" when it says nothing of the kind."""
    try:
        row = orjson.loads(line)
        prev, seq = row["prev_hash"], row["seq"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "", 0
    fits = type(prev) is str and len(prev) == 64 and prev.isascii()
    return (prev, seq) if fits and type(seq) is int and 0 <= seq < 1 << 62 else ("", 0)


def _receive(pipe: BinaryIO, fd: int, line_no: int, span: Span, leaves: bool) -> Confirmed | None:
    """The helper's answer for a piece; None when it is in doubt or the helper is gone."""
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    rows, seq, native = _HEADER.unpack(header)
    if not rows:
        return None
    data = pipe.read(64 + 64 * rows + 32 * rows * leaves)
    if len(data) < 64 + 64 * rows + 32 * rows * leaves:
        return None
    text = data[: 64 + 64 * rows].decode("ascii")
    hashes = [text[at : at + 64] for at in range(64, 64 + 64 * rows, 64)]
    found = [data[at : at + 32] for at in range(64 + 64 * rows, len(data), 32)]
    return Confirmed(fd, line_no, span, seq, text[:64], hashes, found, native)
