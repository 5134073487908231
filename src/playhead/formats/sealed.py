"""A sealed journal's grammar: frame contents and the index (docs/reference/formats/sealed.md).

    zstd frame, zstd frame, ..., zstd skippable frame holding the index

Each frame stands by itself: its content begins with a header that says what the rows before
fix, so any frame can be read without the others. Here are only the values; ``store/seal``
compresses, reads and writes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from hashlib import sha256

import orjson

from playhead.core.model import JSON
from playhead.errors import Refused, TooLarge
from playhead.formats.packed import MAX_SEQ, RAW, Before, Packer, unpack_row

VERSION = 1
FRAME = 4 * 1024 * 1024
"""Bytes, plain or packed, behind which a frame ends; a longer line is cut into raw frames."""
MAX_FRAME = 2 * FRAME + 2 * 1024 * 1024
"""Bytes that a frame may hold, plain or packed: nearly a full frame, and one more line."""
MAX_LINES = 65_536
MAX_INDEX = 4 * 1024 * 1024

_SKIPPABLE = 0x184D2A50
_MAGIC = b"PHSEAL1\n"
_HEAD = struct.Struct("<II")
_FOOT = struct.Struct("<32sI8s")
FOOTER = _FOOT.size
"""Bytes at the end of the file that tell where the index is."""
REMEDY = "Restore the sealed journal from a copy; what it holds cannot be trusted as it is"


@dataclass(frozen=True, slots=True)
class Content:
    """One frame before compression: ``data`` holds ``plain`` journal bytes in ``rows`` rows
    (lines that are not blank); ``head`` is the step hash at its end."""

    data: bytes
    plain: int
    rows: int
    sha256: str
    head: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame in the index: where it lies, where its bytes lie in the journal, what it holds."""

    offset: int
    length: int
    content: int
    plain_offset: int
    plain: int
    first_row: int
    rows: int
    sha256: str
    head: str


@dataclass(frozen=True, slots=True)
class Index:
    """Every frame in order, and the journal as a whole (``sha256`` of its plain bytes)."""

    frames: tuple[Frame, ...]
    plain: int
    rows: int
    sha256: str


class _Builder:
    def __init__(self) -> None:
        self._packer = Packer()
        self._start()

    def _start(self) -> None:
        self._before = self._packer.before
        self._meta: list[bytes] = []
        self._texts: list[bytes] = []
        self._sha = sha256()
        self.plain = self._size = self._rows = 0

    def add(self, line: bytes, end: bytes = b"\n") -> bool:
        """Take a line; True when the frame is full."""
        meta, texts = self._packer.pack(line)
        self._meta.append(meta)
        self._texts.extend(texts)
        self._size += len(meta) + 1 + sum(map(len, texts)) + len(texts)
        self._sha.update(line + end)
        self.plain += len(line) + len(end)
        self._rows += not (not line or line.isspace())
        return max(self.plain, self._size) >= FRAME or len(self._meta) >= MAX_LINES

    def finish(self, *, open_end: bool = False) -> Content:
        """The frame so far; ``open_end`` when its last line has no newline."""
        before = self._before
        meta = b"".join(line + b"\n" for line in self._meta)
        header = {
            "lines": len(self._meta),
            "meta": len(meta),
            "open": open_end,
            **asdict(before),
        }
        data = b"".join(
            (orjson.dumps(header), b"\n", meta, *(text + b"\n" for text in self._texts))
        )
        head = self._packer.before.head
        done = Content(data, self.plain, self._rows, self._sha.hexdigest(), head)
        self._start()
        return done

    def raw(self, piece: bytes) -> Content:
        """A piece of a line that is too long to be held."""
        head = self._packer.before.head
        return Content(b'{"raw":1}\n' + piece, len(piece), 0, sha256(piece).hexdigest(), head)


def contents_of(blocks: Iterable[bytes]) -> Iterator[Content]:
    """Frame contents of a journal given in blocks. Memory stays within a few frames."""
    builder = _Builder()
    carry = b""
    for block in blocks:
        lines = (carry + block).split(b"\n")
        carry = lines.pop()
        for line in lines:
            if builder.add(line):
                yield builder.finish()
        if len(carry) > FRAME:
            if builder.plain:
                yield builder.finish()
            yield builder.raw(carry)
            carry = b""
    if carry:
        builder.add(carry, b"")
    if builder.plain:
        yield builder.finish(open_end=bool(carry))


def decode_content(data: bytes, plain: int) -> bytes:
    """The ``plain`` journal bytes of a frame's content.

    Raises:
        Refused: it is none. TooLarge: it holds more than it declares.
    """
    start = data.find(b"\n") + 1
    header = _object(data[: max(start - 1, 0)])
    if "raw" in header:
        return data[start:]
    middle = start + _count(header, "meta", len(data))
    metas = io.BytesIO(data[start:middle])
    texts = io.BytesIO(data[middle:])
    before = _before(header)
    out: list[bytes] = []
    size = 0
    for _ in range(_count(header, "lines", MAX_LINES)):
        line, before = _line(metas.readline()[:-1], texts, before)
        out += (line, b"\n")
        size += len(line) + 1
        if size > plain + 1:
            raise TooLarge("a frame holds more bytes than it declares", remedy=REMEDY)
    if header.get("open"):
        out = out[:-1]
    return b"".join(out)


def _line(meta: bytes, texts: io.BytesIO, before: Before) -> tuple[bytes, Before]:
    if meta == RAW:
        line = texts.readline()[:-1]
        return line, before.behind_raw(line)
    return unpack_row(_object(meta), texts.readline, before)


def _object(raw: bytes) -> dict[str, JSON]:
    try:
        value = orjson.loads(raw)
    except ValueError:
        value = None
    if type(value) is not dict:
        raise Refused("not a sealed journal: an object is missing", remedy=REMEDY)
    return value


def _count(found: dict[str, JSON], key: str, limit: int) -> int:
    value = found.get(key)
    if type(value) is not int or value < 0:
        raise Refused(f"not a sealed journal: {key} is no count", remedy=REMEDY)
    if value > limit:
        raise TooLarge(f"{key} is {value}, over {limit}", remedy=REMEDY)
    return value


def _text(found: dict[str, JSON], key: str) -> str:
    value = found.get(key)
    if type(value) is not str or len(value) != 64 or not value.isascii():
        raise Refused(f"not a sealed journal: {key} is no digest", remedy=REMEDY)
    return value


def _before(header: dict[str, JSON]) -> Before:
    at, uid = header.get("at"), header.get("uid")
    if type(at) is not int or not (uid is None or type(uid) is str):
        raise Refused("not a sealed journal: a frame has no start", remedy=REMEDY)
    return Before(_count(header, "seq", MAX_SEQ), _text(header, "head"), at, uid)


def encode_index(index: Index) -> bytes:
    """The index as the skippable frame that ends the file.

    Raises:
        TooLarge: more frames than an index may name (over 100 GiB of journal).
    """
    raw = orjson.dumps({"version": VERSION, **asdict(index)})
    if len(raw) > MAX_INDEX:
        raise TooLarge(f"the index has {len(raw)} bytes, over {MAX_INDEX}")
    foot = _FOOT.pack(sha256(raw).digest(), len(raw), _MAGIC)
    return _HEAD.pack(_SKIPPABLE, len(raw) + FOOTER) + raw + foot


def index_size(footer: bytes) -> int:
    """Bytes of the whole index frame, from the last ``FOOTER`` bytes of a file.

    Raises:
        Refused: no sealed journal, or its end is gone. TooLarge: over ``MAX_INDEX``.
    """
    if len(footer) != FOOTER or footer[-8:] != _MAGIC:
        raise Refused("not a sealed journal, or its end is gone", remedy=REMEDY)
    return _count({"index": _FOOT.unpack(footer)[1]}, "index", MAX_INDEX) + _HEAD.size + FOOTER


def decode_index(raw: bytes, offset: int) -> Index:
    """The index in its frame ``raw``, which begins at ``offset`` of the file.

    Frames must lie end to end, from the first byte to ``offset``: nothing hides between.

    Raises:
        Refused: it is damaged, or of a later version. TooLarge: a frame is over the limit.
    """
    body, foot = raw[_HEAD.size : -FOOTER], raw[-FOOTER:]
    digest, size, _ = _FOOT.unpack(foot)
    if _HEAD.pack(_SKIPPABLE, size + FOOTER) != raw[: _HEAD.size] or len(body) != size:
        raise Refused("the index is damaged", remedy=REMEDY)
    if sha256(body).digest() != digest:
        raise Refused("the index is damaged: it is not what its digest says", remedy=REMEDY)
    found = _object(body)
    if found.get("version") != VERSION:
        raise Refused(
            f"sealed in version {found.get('version')!r:.20}", remedy="Use a later playhead"
        )
    items = found.get("frames")
    if not isinstance(items, list):
        raise Refused("not a sealed journal: the index has no frames", remedy=REMEDY)
    at = plain = rows = 0
    frames = []
    for item in items:
        frame = _frame(item if isinstance(item, dict) else {})
        if (frame.offset, frame.plain_offset, frame.first_row) != (at, plain, rows):
            raise Refused("the index is damaged: its frames do not join", remedy=REMEDY)
        at, plain, rows = at + frame.length, plain + frame.plain, rows + frame.rows
        frames.append(frame)
    if (at, plain, rows) != (offset, found.get("plain"), found.get("rows")):
        raise Refused("the index is damaged: its frames are not the file", remedy=REMEDY)
    return Index(tuple(frames), plain, rows, _text(found, "sha256"))


def _frame(item: dict[str, JSON]) -> Frame:
    limits = {"length": MAX_FRAME, "content": MAX_FRAME, "plain": MAX_FRAME}
    numbers = {
        field.name: _count(item, field.name, limits.get(field.name, 1 << 62))
        for field in fields(Frame)
        if field.name not in ("sha256", "head")
    }
    return Frame(**numbers, sha256=_text(item, "sha256"), head=_text(item, "head"))
