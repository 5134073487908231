r"""Rows that are right beyond doubt, confirmed many at a time: the hot path of every walk.

`confirm` answers for a line only when the plain way (`playhead.core.plain`) would find nothing
to say about it: canonical, exactly the known keys, linked to the row before, and hashing to
what it stores. It never says that a row is wrong: what it leaves, the walker decides.

Why that holds.

1. The line is canonical: orjson writes the parsed values back to the same bytes with sorted
   keys; the line is ASCII without DEL; and no float lies where orjson and Python spell it
   differently. (orjson reads integers beyond 64 bit as floats over 9e18: out of those bounds.)
2. A canonical line with exactly the known keys holds the hash's pre-image as two slices: from
   ``input_hash`` to before ``schema_version``, and from ``tool_call`` to before ``ts``. Inside
   a string every quote is escaped, so the text of `_CUT` can stand only where it belongs or in
   an object of the call or the result, behind it. A slice cut there would hold the stored hash
   itself, and no text can be found that hashes to a hash it holds.
3. The digest of the slices is the stored hash, as text, which proves its 64 digits as well.

A line with ``\uXXXX`` is proven in two parts, because parsing such text is what costs; see
`without_escapes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

import orjson

from playhead.core.model import JSON

ROW_KEYS = (
    "blob_refs",
    "input_hash",
    "model",
    "prev_hash",
    "prompt",
    "schema_version",
    "seq",
    "step_hash",
    "tool_call",
    "tool_result",
    "ts",
)
_CUT = b',"schema_version":2,"seq":'
_TOOL_CALL = b',"tool_call":'
_AFTER_SEQ = len(_CUT) + len(',"step_hash":""') + 64 + len(_TOOL_CALL)
_NO_BLOBS = len(b'{"blob_refs":[],')
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_BEYOND_ASCII = re.compile(rb"(?!00[0-7])[0-9a-f]{4}")
_FEW = 20
"""Escapes up to which it is cheaper to look at each."""
_NOT_CAPITAL_HEX = bytes(code for code in range(256) if code not in b"ABCDEF")
_STARTS = ("run.started", "run.forked")
_LOOK_AHEAD = 32
"""Lines after one with escapes in which escapes are looked for before parsing."""
_DEEP = 200
"""Levels of nesting that both encoders write and no recursion limit cuts short."""


def confirm(lines: Sequence[bytes], prev: str, seq: int, hashes: list[str]) -> int:
    """Confirm leading ``lines``, the first being row ``seq`` behind the step hash ``prev``.

    Appends the step hash of each confirmed row to ``hashes`` and stops at the first line in
    doubt. Returns how many of the confirmed rows are native events. A row that starts or forks
    a run is left to the walker, which learns the run's id from it.
    """
    loads, dumps, sort, keys = orjson.loads, orjson.dumps, orjson.OPT_SORT_KEYS, ROW_KEYS
    native = ahead = 0
    for line in lines:
        text = line if not ahead else without_escapes(line)
        ahead -= ahead > 0
        try:
            obj = loads(text)
            if dumps(obj, None, sort) != text:
                text = without_escapes(line)
                obj = loads(text)
                if dumps(obj, None, sort) != text:
                    break
        except (orjson.JSONDecodeError, TypeError):  # TypeError: deeper than orjson writes
            break
        if text is not line:
            ahead = _LOOK_AHEAD
        if obj.__class__ is not dict or b"\x7f" in line or not line.isascii():
            break
        names = (*obj,)
        if names != keys:
            break
        keys = names  # the parser's own strings: the next comparison is one of identity
        blobs, given, model, before, prompt, version, number, stored, call, result, ts = (
            obj.values()
        )
        if (
            before != prev
            or number != seq
            or version != 2
            or number.__class__ is not int
            or version.__class__ is not int
            or ts.__class__ is not float
            or not 1e-4 <= ts < 1e16
            or given.__class__ is not str
            or (prompt.__class__ is not str and prompt is not None)
            or (model.__class__ is not str and model is not None)
            or (result.__class__ is not str and not spelled_alike(result))
        ):
            break
        if call is not None:
            if not spelled_alike(call):
                break
            if call.__class__ is dict and call.get("v") == 1 and type(call.get("event")) is str:
                if call["event"] in _STARTS or call.get("seq") != seq:
                    break
                native += 1
        if (
            text is not line
            and text.find(b"?", text.find(_CUT)) >= 0
            and (_veiled(call) or _veiled(result))
        ):
            break
        if image_hash(line, after_blobs(blobs), seq) != stored:
            break
        hashes.append(stored)
        prev = stored
        seq += 1
    return native


def image_hash(line: bytes, start: int, seq: int) -> str | None:
    """SHA-256 over the two slices of a canonical line (point 2); None when they are not there.

    ``start`` is the offset behind ``blob_refs``, 0 when that is not known.
    """
    cut = line.rfind(_CUT, start)
    if cut < 0 or not start:
        return None
    after = cut + _AFTER_SEQ + len(str(seq))
    tail = line[after : line.rfind(b",")]
    return sha256(b"".join((b"{", line[start:cut], _TOOL_CALL, tail, b"}"))).hexdigest()


def without_escapes(line: bytes) -> bytes:
    r"""``line`` with ``?`` for each ``\uXXXX``; empty when one is not as Python writes it.

    Python writes every character beyond ASCII so, with small digits (a pair of surrogates as
    two). A backslash before the escape may be an escaped backslash before a plain ``u``: then
    the line is in doubt.
    """
    parts = line.split(b"\\u", _FEW + 1)
    if len(parts) > _FEW:
        return _without_many(line)
    before = parts[0]
    out = [before]
    is_escape = _BEYOND_ASCII.match
    for part in parts[1:]:
        if before[-1:] == b"\\" or is_escape(part) is None:
            return b""
        out.append(part[4:])
        before = part
    return b"?".join(out)


def _without_many(line: bytes) -> bytes:
    r"""`without_escapes` at one price, however many there are.

    ``raw_unicode_escape`` reads these escapes and no others, and keeps ``\\u`` apart.
    Each shortens the line by five; an escape of eight digits or for an ASCII character would
    break that sum. A capital digit goes with its escape and is missed in the count of A to F.
    """
    try:
        read = line.decode("raw_unicode_escape")
    except UnicodeDecodeError:
        return b""
    if read.isascii():
        return line if len(read) == len(line) else b""
    text = read.encode("ascii", "replace")
    beyond = text.count(b"?") - line.count(b"?")
    if len(line) - len(read) != 5 * beyond:
        return b""
    capitals = len(line.translate(None, _NOT_CAPITAL_HEX))
    return text if capitals == len(text.translate(None, _NOT_CAPITAL_HEX)) else b""


def _veiled(value: JSON) -> bool:
    """True when a key below ``value`` holds ``?``, behind which its place in the order hides."""
    if isinstance(value, dict):
        return any("?" in key or _veiled(item) for key, item in value.items())
    return isinstance(value, list) and any(_veiled(item) for item in value)


def after_blobs(blobs: JSON) -> int:
    """The offset behind ``blob_refs`` in a canonical line; 0 when an entry is no digest."""
    if not isinstance(blobs, list):
        return 0
    if not blobs:
        return _NO_BLOBS
    for ref in blobs:
        if type(ref) is not str or not _DIGEST.match(ref):
            return 0
    return _NO_BLOBS + 67 * len(blobs) - 1


def spelled_alike(value: JSON, depth: int = 0) -> bool:
    """True when orjson and Python's encoder spell every number of ``value`` alike."""
    items: Iterable[JSON]
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, list):
        items = value
    else:
        return type(value) is not float or value == 0 or 1e-4 <= abs(value) < 1e16
    if depth > _DEEP:
        return False
    for item in items:
        kind = type(item)
        if kind is str or kind is int or item is None or kind is bool:
            continue
        if not spelled_alike(item, depth + 1):
            return False
    return True
