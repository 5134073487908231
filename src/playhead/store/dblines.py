"""Rows and blobs of a database as the readers of every store see them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator

from playhead.core.blobs import blob_checked
from playhead.core.rows import BadRow
from playhead.errors import BlobError, TooLarge
from playhead.formats.journal import MAX_ROW
from playhead.store.cas import MAX_BLOB
from playhead.store.database import Database, Tip
from playhead.store.stores import ChainRef, Line

_STRIDE = 256
_WINDOWS = 16


class DbLines:
    """The rows below a tip. What is added later is not seen.

    The tip is an index: a row that it promises and that is not there, is a `BadRow`, so that a
    walk and a verification see the place. Offsets are -1; a database has none.
    """

    def __init__(self, database: Database, ref: ChainRef, size: int) -> None:
        self._database = database
        self._ref = ref
        self._size = size
        self._windows: OrderedDict[int, list[Line]] = OrderedDict()

    def count(self) -> int:
        return self._size

    def has(self, number: int) -> bool:
        return 0 <= number < self._size

    def get(self, number: int) -> Line:
        """Row ``number``.

        Raises:
            IndexError: there is no such row.
        """
        if not self.has(number):
            raise IndexError(number)
        window = number // _STRIDE
        found = self._windows.get(window)
        if found is None:
            first = window * _STRIDE
            found = list(self._read(first, min(first + _STRIDE, self._size)))
            self._windows[window] = found
            if len(self._windows) > _WINDOWS:
                self._windows.popitem(last=False)
        return found[number % _STRIDE]

    def walk(self, start: int, stop: int | None) -> Iterator[Line]:
        """Rows from ``start`` up to ``stop``."""
        return self._read(max(start, 0), self._size if stop is None else min(stop, self._size))

    def _read(self, start: int, stop: int) -> Iterator[Line]:
        number = start
        while number < stop:
            for batch in self._database.rows(self._ref.tenant_id, self._ref.chat_id, number, stop):
                for line in batch:
                    number += 1
                    yield number, -1, _held(line)
            if number < stop:
                number += 1
                what = f"the database promises {self._size} rows and does not have this one"
                yield number, -1, BadRow("missing", what)

    def blocks(self) -> Iterator[bytes]:
        """Each row with a newline behind it: the bytes of the same chain in a journal."""
        for _, _, line in self._read(0, self._size):
            yield (b"" if isinstance(line, BadRow) else line) + b"\n"

    def close(self) -> None:
        """Let go of the rows that are held."""
        self._windows.clear()


def _held(line: bytes) -> bytes | BadRow:
    return line if len(line) <= MAX_ROW else BadRow("too-long", f"a line of {len(line)} bytes")


class DbSource:
    """The rows of a chat as recovery reads them (`playhead.store.source.Source`)."""

    def __init__(self, database: Database, ref: ChainRef, tip: Tip) -> None:
        self.name = ref.where
        self.odd = False
        self._lines = DbLines(database, ref, tip.size)
        self._length = tip.length
        self.read = tip.length
        """Where the rows ended that `lines` gave last; the length is the table's word."""

    def length(self) -> int:
        return self._length

    def digest(self, size: int) -> hashlib._Hash:
        sha = hashlib.sha256()
        left = size
        for _, _, line in self._lines.walk(0, None):
            if not left:
                break
            raw = (b"" if isinstance(line, BadRow) else line) + b"\n"
            sha.update(raw[:left])
            left -= min(left, len(raw))
        return sha

    def first(self) -> bytes:
        line = self._lines.get(0)[2] if self._lines.has(0) else b""
        return line if isinstance(line, bytes) else b""

    def lines(self, row: int, offset: int, end: int | None = None) -> Iterator[Line]:
        at = offset
        for number, _, line in self._lines.walk(row, None):
            if end is not None and at >= end:
                return
            yield number, at, line
            at += 1 if isinstance(line, BadRow) else len(line) + 1
        self.read = at


class DbBlobs:
    """The blobs of one tenant in a database."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id

    def put(self, data: bytes, content_type: str = "application/octet-stream") -> str:
        """Keep ``data`` once; returns its SHA-256 hex. The content type is not kept.

        Raises:
            StoreError: the database refused.
        """
        digest = hashlib.sha256(data).hexdigest()
        self._database.put_blob(self._tenant_id, digest, data)
        return digest

    def get(self, digest: str, limit: int = MAX_BLOB) -> bytes:
        """The bytes behind ``digest``, hashed again.

        Raises:
            BlobError: missing, or not what its name says. TooLarge: over ``limit`` bytes.
        """
        data = self._database.blob(self._tenant_id, digest)
        if data is None:
            raise BlobError(
                f"blob {digest[:16]}... is missing",
                remedy="Restore the database from a backup; the chain itself still verifies",
            )
        if len(data) > limit:
            raise TooLarge(f"a blob of over {limit} bytes", remedy="Check what it is")
        return blob_checked(digest, data)

    def has(self, digest: str) -> bool:
        return self._database.blob(self._tenant_id, digest) is not None
