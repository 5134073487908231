"""The bytes of a chain as recovery reads them, whatever holds them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from playhead.store.reader import BLOCK, blocks_of, split_lines
from playhead.store.stores import Line


class Source(Protocol):
    """The rows of one chain, each with a newline behind it, as they are now.

    ``odd`` says after reading that rows may be apart by something else than one newline.
    """

    name: str
    odd: bool

    def length(self) -> int:
        """Bytes in all."""
        ...

    def digest(self, size: int) -> hashlib._Hash:
        """SHA-256 over the first ``size`` bytes."""
        ...

    def first(self) -> bytes:
        """The first line."""
        ...

    def lines(self, row: int, offset: int, end: int | None = None) -> Iterator[Line]:
        """The lines from row ``row`` (from 0), which begins at ``offset``, up to byte ``end``."""
        ...


class FileSource:
    """A plain journal file. ``fd`` stays the caller's."""

    def __init__(self, fd: int, path: Path) -> None:
        self.name = str(path)
        self.odd = False
        self._fd = fd

    def length(self) -> int:
        return os.fstat(self._fd).st_size

    def digest(self, size: int) -> hashlib._Hash:
        return digest_of(self._fd, size)

    def first(self) -> bytes:
        return os.pread(self._fd, BLOCK, 0).split(b"\n", 1)[0]

    def lines(self, row: int, offset: int, end: int | None = None) -> Iterator[Line]:
        blocks = self._watched(offset, end)
        return split_lines(blocks, line_no=row + 1, offset=offset)

    def _watched(self, offset: int, end: int | None) -> Iterator[bytes]:
        """With a carriage return rows need not be apart by exactly one newline."""
        for block in blocks_of(self._fd, offset, end):
            self.odd = self.odd or b"\r" in block
            yield block


def digest_of(fd: int, size: int) -> hashlib._Hash:
    """SHA-256 over the first ``size`` bytes, one reused buffer."""
    sha = hashlib.sha256()
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    at = 0
    while at < size:
        got = os.preadv(fd, [view[: min(BLOCK, size - at)]], at)
        if not got:
            break
        sha.update(view[:got])
        at += got
    return sha
