"""JSON as other programs wrote it: read what can be read, and say what was odd.

``parse`` takes one piece of bytes; ``rescue`` takes a line on which several records, or a
record and the rest of a broken one, stand together (case C01). Neither runs out of stack or
time on hostile input.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from playhead.core.model import JSON

_INT_DIGITS = 4300
"""Digits that Python turns into an int by default; a longer integer is kept as its text."""
_TRIES = 256
_WORK = 64 * 1024 * 1024
"""Characters that ``rescue`` looks at, over all its tries."""
_OPEN = re.compile(r'\{\s*"')
_GAP = re.compile(r"[\s\0]*")


class NotJson(ValueError):
    """The bytes are not one JSON value. ``kind`` is the finding's kind."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value and what was odd about its spelling, as (kind, sentence) pairs."""

    value: JSON
    odd: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, as byte offsets in it. ``value`` is None for a part that is lost."""

    start: int
    end: int
    value: dict[str, JSON] | None


def decode(raw: bytes) -> tuple[str, bool]:
    """The text, and whether it was valid UTF-8. Bytes that are not become lone surrogates
    (Python's ``surrogateescape``), so that none is lost."""
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape"), False


def parse(raw: bytes) -> Parsed:
    """The JSON value of ``raw``.

    NaN and Infinity are accepted and noted (case C07), so are bytes that are not UTF-8 and
    integers too long for Python, which become text.

    Raises:
        NotJson: of kind ``bad-line`` or ``too-deep`` (case C12).
    """
    text, valid = decode(raw)
    odd = [] if valid else [("invalid-utf8", "bytes that are not UTF-8 are kept as they are")]
    try:
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise NotJson("bad-line", f"not JSON: {error.msg} at character {error.pos}") from None
        except ValueError:
            value = json.loads(text, parse_int=_int)
            odd.append(("big-integer", "an integer of over 4300 digits is kept as text"))
    except RecursionError:
        raise NotJson("too-deep", "nested too deeply to be read") from None
    if ("NaN" in text or "Infinity" in text) and _has_constant(text):
        odd.append(("not-finite", "NaN or Infinity, which JSON does not have, is kept and marked"))
    return Parsed(value, tuple(odd))


def _int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _INT_DIGITS else digits


def _has_constant(text: str) -> bool:
    seen: list[str] = []

    def note(name: str) -> float:
        seen.append(name)
        return float(name)

    try:
        json.loads(text, parse_constant=note, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return bool(seen)


def rescue(raw: bytes) -> list[Piece]:
    """The records on a line that is not one JSON value, and the parts between that are lost.

    Records that are whole from the start of the line are taken; after a broken part, the
    first place from which whole records reach the end of the line. An object *inside* the
    broken part is therefore never taken for a record.
    """
    text, _ = decode(raw)
    found, at = _whole(text, 0)
    if at < len(text):
        lost_from = at
        for number, match in enumerate(_OPEN.finditer(text, at + 1)):
            work = (number + 1) * (len(text) - at)
            if number >= _TRIES or work > max(_WORK, len(text)):
                break
            more, end = _whole(text, match.start())
            if more and end == len(text):
                found += [(lost_from, match.start(), None), *more]
                lost_from = end
                break
        if lost_from < len(text):
            found.append((lost_from, len(text), None))
    return _as_bytes(text, found)


_Span = tuple[int, int, dict[str, JSON] | None]


def _whole(text: str, at: int) -> tuple[list[_Span], int]:
    """Objects one after the other from ``at``, and where that ends."""
    decoder = json.JSONDecoder(parse_int=_int)
    found: list[_Span] = []
    at = _skip(text, at)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict):
            break
        found.append((at, end, value))
        at = _skip(text, end)
    return found, at


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _as_bytes(text: str, spans: list[_Span]) -> list[Piece]:
    pieces = []
    done = offset = 0
    for start, end, value in spans:
        offset += _size(text[done:start])
        size = _size(text[start:end])
        pieces.append(Piece(offset, offset + size, value))
        offset += size
        done = end
    return pieces


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
