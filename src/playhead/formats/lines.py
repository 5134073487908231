"""Framing of JSONL that other programs wrote (shared rules of all line readers).

A line ends at byte 0x0A and nowhere else: U+2028 and U+0085 are text (case C05). A byte order
mark, CRLF, blank lines and a missing last newline are accepted (case C11). A bad line is one
finding, never the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from playhead.core.model import JSON
from playhead.formats.loose import NotJson, parse, rescue
from playhead.formats.transcript import Notes

MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line that is read; a longer one is a finding and is never held whole."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline: 1-based number, byte offset in the file, bytes.

    ``size`` counts its bytes; ``raw`` is empty when that is over the limit. ``ended`` is False
    for a last line that has no newline.
    """

    number: int
    offset: int
    raw: bytes
    size: int
    ended: bool


class Tally:
    """Passes chunks on and keeps the digest and the size of what went through."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._sha = sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._sha.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._sha.hexdigest()


def split(chunks: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[Line]:
    """The lines of a stream; memory is bounded by ``limit`` bytes and one chunk."""
    number, offset, size = 1, 0, 0
    held: list[bytes] = []
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            size += end - start
            held.append(chunk[start:end])
            yield Line(number, offset, b"".join(held) if size <= limit else b"", size, True)
            number, offset, size, start = number + 1, offset + size + 1, 0, end + 1
            held = []
        size += len(chunk) - start
        if size <= limit:
            held.append(chunk[start:])
        else:
            held = []
    if size:
        yield Line(number, offset, b"".join(held) if size <= limit else b"", size, False)


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of the file: its line, the byte offset and SHA-256 of its own bytes."""

    value: JSON
    line: int
    byte: int
    sha256: str


class RecordReader:
    """Reads records from a stream of bytes and notes what was wrong.

    ``torn`` is True after reading when the last line stops in the middle of a record (C02).
    """

    def __init__(self, file: str, chunks: Iterable[bytes], notes: Notes) -> None:
        self.file = file
        self.torn = False
        self.tally = Tally(chunks)
        self._notes = notes

    def __iter__(self) -> Iterator[Record]:
        for line in split(self.tally):
            yield from self._line(line)

    def _line(self, line: Line) -> Iterator[Record]:
        if line.size > MAX_LINE:
            self._say(
                "line-too-long", line, 0, f"{line.size} bytes, over {MAX_LINE}; not read, but kept"
            )
            return
        raw, offset = line.raw, line.offset
        if line.number == 1 and raw.startswith(_BOM):
            raw, offset = raw[len(_BOM) :], offset + len(_BOM)
        raw = raw.removesuffix(b"\r")
        if not raw.strip():
            return
        try:
            parsed = parse(raw)
        except NotJson as error:
            yield from self._broken(line, raw, offset, error)
            return
        for kind, what in parsed.odd:
            self._say(kind, line, 0, what)
        yield Record(parsed.value, line.number, offset, sha256(raw).hexdigest())

    def _broken(self, line: Line, raw: bytes, offset: int, error: NotJson) -> Iterator[Record]:
        if error.kind == "too-deep":
            self._say("too-deep", line, 0, f"{error}; not read, but kept")
            return
        if not raw.strip(b"\0 \t"):
            self._say("nul-padding", line, 0, f"{len(raw)} NUL bytes where a record should be")
            return
        pieces = rescue(raw)
        records = [piece for piece in pieces if piece.value is not None]
        if len(records) > 1 or (records and len(pieces) > 1):
            self._say("glued-line", line, 0, f"{len(records)} whole record(s) found on this line")
        elif records:
            self._say("nul-padding", line, 0, "NUL bytes stand beside the record")
        for piece in pieces:
            if piece.value is None:
                self._lost(line, piece.start, piece.end, str(error), last=piece is pieces[-1])
                continue
            digest = sha256(raw[piece.start : piece.end]).hexdigest()
            yield Record(piece.value, line.number, offset + piece.start, digest)

    def _lost(self, line: Line, start: int, end: int, reason: str, *, last: bool) -> None:
        if last and not line.ended:
            self.torn = True
            what = f"the last {end - start} bytes are the start of a record"
            self._say("torn-tail", line, start, f"{what}; the writer stopped there")
        else:
            what = f"{end - start} bytes are no whole record ({reason})"
            self._say("bad-line", line, start, what)

    def _say(self, kind: str, line: Line, start: int, what: str) -> None:
        self._notes.add(
            kind,
            "warning",
            what,
            file=self.file,
            line=line.number,
            byte=line.offset + start,
            remedy="It is in the kept original, if one is kept ('playhead export --original')",
        )
