"""One journal line to one row, with its step hash recomputed (docs/reference/formats/journal.md).

The hash covers *parsed values* (seed: "Step-hash encoding"), so the plain way is
``json.loads`` and ``json.dumps`` for every row. The quick way accepts a row only when the
plain way would accept it too, by one of two proofs that the line is already canonical:

1. orjson writes the parsed row back to the same bytes, the line is ASCII without DEL, and
   no float in a hashed field lies where orjson and Python spell it differently. (orjson
   turns integers beyond 64 bit into floats; those never come back to the same bytes.)
2. Python's own encoder writes the parsed row back to the same bytes.

A canonical line without unknown keys holds the hash's pre-image as two slices. Whatever is
in doubt goes the plain way, which also names the tolerated spelling.
"""

from __future__ import annotations

from hashlib import sha256
from json.encoder import encode_basestring_ascii as _text

import orjson

from playhead.core.canonical import encode_step
from playhead.core.model import JSON
from playhead.core.plain import (
    OVER_LIMIT,
    BadRow,
    Row,
    compute_step_hash,
    hashed_fields,
    make_row,
    missing_keys,
    plain_row,
    shown,
    to_seq,
)
from playhead.core.quick import ROW_KEYS, after_blobs, image_hash, spelled_alike

__all__ = [
    "OVER_LIMIT",
    "BadRow",
    "Row",
    "compute_step_hash",
    "decode_row",
    "hashed_fields",
    "missing_keys",
    "shown",
    "spelled_alike",
    "to_seq",
]

_SORT = orjson.OPT_SORT_KEYS
_dumps = orjson.dumps


def decode_row(line: bytes) -> Row | BadRow | None:
    """Decode one line without its newline; None when it is blank."""
    try:
        obj = orjson.loads(line)
    except orjson.JSONDecodeError:
        return plain_row(line)
    if type(obj) is not dict:
        return BadRow("not-an-object", "the line is JSON but not an object")
    try:
        text = _dumps(obj, None, _SORT)
    except TypeError:  # orjson reads deeper nesting than it writes
        return plain_row(line)
    same = text == line
    if b"\x7f" not in text and (line.isascii() if same else _escaped(text) == line):
        computed = _sliced_hash(line, obj, True)
        if computed is not None and computed == obj["step_hash"]:
            return Row(obj, computed, obj["prev_hash"], obj["step_hash"], (), True)
    try:
        if line.isascii() and encode_step(obj).encode("ascii") == line:
            computed = _sliced_hash(line, obj, False)
            if computed is not None and computed == obj["step_hash"]:
                return Row(obj, computed, obj["prev_hash"], obj["step_hash"], (), True)
            return make_row(obj, ())
    except (RecursionError, ValueError):
        return plain_row(line)
    if same and b"\x7f" not in text and spelled_alike(obj):
        computed = _parts_hash(obj)
        if computed is not None:
            return Row(obj, computed, obj["prev_hash"], obj["step_hash"], ("raw UTF-8",))
        return make_row(obj, ("raw UTF-8",))
    return plain_row(line)


def _parts_hash(obj: dict[str, JSON]) -> str | None:
    """The step hash of a standard row, each text escaped by itself; None for another row."""
    if tuple(obj) != ROW_KEYS:
        return None
    _, given, model, prev, prompt, _, _, stored, call, result, _ = obj.values()
    if not (type(given) is str and type(prev) is str and type(stored) is str):
        return None
    image = (
        f'{{"input_hash":{_text(given)},"model":{_part(model)},"prev_hash":{_text(prev)},'
        f'"prompt":{_part(prompt)},"tool_call":{_part(call)},"tool_result":{_part(result)}}}'
    )
    return sha256(image.encode("ascii")).hexdigest()


def _part(value: JSON) -> str:
    return _text(value) if type(value) is str else encode_step(value)


def _escaped(text: bytes) -> bytes | None:
    r"""JSON text with ``\uXXXX`` for every character of U+0100..U+FFFF, as Python writes it.

    None where the quick escape of the standard library does not agree with JSON's: Latin-1
    letters (UTF-8 lead bytes C2, C3) and characters beyond U+FFFF (lead bytes F0..F4).
    """
    if b"\xc3" in text or b"\xf0" in text or b"\xc2" in text or text.isascii():
        return None
    if b"\xf1" in text or b"\xf2" in text or b"\xf3" in text or b"\xf4" in text:
        return None
    return text.decode().encode("ascii", "backslashreplace")


def _sliced_hash(line: bytes, obj: dict[str, JSON], check_spelling: bool) -> str | None:
    """The step hash over two slices of a canonical line; None when that is not safe.

    Safe means: the row has exactly the known keys (in order, the line being canonical), so
    that the metadata between ``prompt`` and ``tool_call`` has a known length, and ``ts`` is a
    float, so that the last comma is its own. Should a tool call hold the same metadata text,
    the slice is wrong and holds the stored hash itself; it cannot hash to that hash, and the
    plain way decides. ``check_spelling`` asks for the float bounds of proof 1 as well.
    """
    if tuple(obj) != ROW_KEYS:
        return None
    blobs, inp, model, prev, prompt, version, seq, stored, call, result, ts = obj.values()
    if (
        type(ts) is not float
        or type(seq) is not int
        or type(version) is not int
        or version != 2
        or type(inp) is not str
        or type(prev) is not str
        or type(stored) is not str
        or not (prompt is None or type(prompt) is str)
        or not (model is None or type(model) is str)
    ):
        return None
    if check_spelling and not (1e-4 <= ts < 1e16 and spelled_alike(result) and spelled_alike(call)):
        return None
    return image_hash(line, after_blobs(blobs), seq)
