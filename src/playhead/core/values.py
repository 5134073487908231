"""Any Python value to a JSON value that every store can hold, and back (resolution 10).

What JSON cannot say becomes a *marked* value, an object with the key ``$playhead``
(docs/reference/formats/values.md). Turning a value into its marked form never raises: what
an agent hands over must not be able to stop it. Strings of 16 KiB and more go to the blob
store once and leave their digest behind (decision 3).
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath

from playhead.core.model import JSON
from playhead.errors import PlayheadError, ValueRefused

MARK = "$playhead"
BLOB_AT = 16 * 1024
"""Strings of this many UTF-8 bytes and more are kept as blobs."""
MAX_DEPTH = 48
"""Nesting of a recorded value; with the envelope a row stays within 64."""
MAX_CONTAINERS = 100_000
"""Lists, mappings and objects in one recorded value; those beyond are marked."""
_REPR_LIMIT = 2000
_MAX_INT_BITS = 14_000

PutBlob = Callable[[bytes], str]
GetBlob = Callable[[str], bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """A value that was normalised earlier, when it was seen: it is taken as it is."""

    value: JSON


class Normaliser:
    """Normalise values; ``put_blob`` stores bytes and returns their SHA-256 hex.

    ``blobs`` collects the digests in first-use order, for the row's ``blob_refs``.
    """

    def __init__(self, put_blob: PutBlob | None = None) -> None:
        self._put = put_blob
        self.blobs: list[str] = []
        self._left = MAX_CONTAINERS
        self._inside: set[int] = set()

    def value(self, value: object, depth: int = 0) -> JSON:
        kind = type(value)
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._int(value)  # type: ignore[arg-type]
        if kind is float:
            return value if math.isfinite(value) else _mark("float", value=repr(value))  # type: ignore[arg-type]
        return self._compound(value, depth)

    def _compound(self, value: object, depth: int) -> JSON:
        """A container or an object of the agent's own.

        A foreign object's code may run here (even ``isinstance`` can). Whatever it raises must
        not reach the agent, so it becomes a marked value that names the exception (resolution
        10). A value inside itself, and more containers than any row could show, are marked.
        """
        here = id(value)
        if here in self._inside:
            return _mark("object", type=_type_name(value), repr="the value that this lies in")
        self._left -= 1
        if self._left < 0:
            return _mark("object", type=_type_name(value), repr="one of too many values")
        self._inside.add(here)
        try:
            if depth >= MAX_DEPTH:
                return self._deep(value)
            kind = type(value)
            if kind is dict:
                return self._mapping(value, depth)  # type: ignore[arg-type]
            if kind is list or kind is tuple:
                return [self.value(item, depth + 1) for item in value]  # type: ignore[attr-defined]
            return self._other(value, depth)
        except (KeyboardInterrupt, PlayheadError):
            raise
        except BaseException as error:
            return _mark("object", type=_type_name(value), repr=f"unreadable: {_named(error)}")
        finally:
            self._inside.discard(here)

    def _text(self, text: str) -> JSON:
        size = len(text)
        if size < BLOB_AT and text.isascii():
            return text
        try:
            raw = text.encode("utf-8")
        except UnicodeEncodeError:
            return _mark("text", json=json.dumps(text))
        if len(raw) < BLOB_AT or self._put is None:
            return text
        return self._blob(raw, "text")

    def _blob(self, raw: bytes, form: str) -> JSON:
        assert self._put is not None
        digest = self._put(raw)
        if digest not in self.blobs:
            self.blobs.append(digest)
        return _mark("blob", form=form, sha256=digest, size=len(raw))

    def _int(self, number: int) -> JSON:
        return number if number.bit_length() <= _MAX_INT_BITS else _mark("int", hex=hex(number))

    def _mapping(self, items: Mapping[object, object], depth: int) -> JSON:
        if MARK in items or not _plain_keys(items):
            pairs = [
                [self.value(k, depth + 2), self.value(v, depth + 2)] for k, v in list(items.items())
            ]
            return _mark("map", items=pairs)
        return {key: self.value(item, depth + 1) for key, item in list(items.items())}

    def _deep(self, value: object) -> JSON:
        parts = _count(value, self._left + 1)
        self._left -= parts
        if self._left < 0:
            return _mark("object", type=_type_name(value), repr="nested too deeply, and too large")
        try:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_safe_repr)
        except (ValueError, TypeError, RecursionError):
            return _mark("object", type=_type_name(value), repr="nested too deeply or in itself")
        return _mark("deep", json=self._text(text))

    def _other(self, value: object, depth: int) -> JSON:
        if isinstance(value, Frozen):
            return value.value
        if isinstance(value, Enum):
            return self.value(value.value, depth + 1)
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self._int(int(value))
        if isinstance(value, float):
            return self.value(float(value), depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._bytes(bytes(value))
        if isinstance(value, (datetime, date, time)):
            return _mark("time", iso=value.isoformat())
        if isinstance(value, PurePath):
            return self._text(str(value))
        if isinstance(value, BaseException):
            return exception_value(value)
        return self._structure(value, depth)

    def _bytes(self, raw: bytes) -> JSON:
        if len(raw) >= BLOB_AT and self._put is not None:
            return self._blob(raw, "bytes")
        return _mark("bytes", base64=base64.b64encode(raw).decode("ascii"))

    def _structure(self, value: object, depth: int) -> JSON:
        """Sequences, sets, mappings, dataclasses, pydantic-like models; else the repr."""
        name = _type_name(value)
        if isinstance(value, (list, tuple)):
            return [self.value(item, depth + 1) for item in list(value)]
        if isinstance(value, (set, frozenset)):
            ordered = sorted(value, key=_safe_repr)
            return _mark("set", items=[self.value(item, depth + 2) for item in ordered])
        if isinstance(value, Mapping):
            return self._mapping(dict(value), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
            return _mark("object", type=name, value=self.value(fields, depth + 1))
        if callable(getattr(type(value), "model_dump", None)):
            dumped = value.model_dump()  # type: ignore[attr-defined]
            return _mark("object", type=name, value=self.value(dumped, depth + 1))
        return _mark("object", type=name, repr=self._text(_safe_repr(value)))


def _mark(kind: str, **parts: JSON) -> dict[str, JSON]:
    return {MARK: kind, **parts}


def _plain_keys(items: Iterable[object]) -> bool:
    for key in items:  # a loop: this is asked for every mapping of every row
        if type(key) is not str or not (key.isascii() or _encodable(key)):
            return False
    return True


def _count(value: object, limit: int) -> int:
    """How many parts writing a value out takes, shared ones each time; ``limit`` at most."""
    todo, seen = [value], 0
    while todo and seen < limit:
        top = todo.pop()
        seen += 1
        if isinstance(top, dict):
            todo += top.values()
        elif isinstance(top, (list, tuple)):
            todo += top
    return seen


def _named(error: BaseException) -> str:
    return type(error).__name__


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"[:200]


def _safe_repr(value: object) -> str:
    try:
        text = repr(value)[:_REPR_LIMIT]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an agent's __repr__ must not stop it: its place is marked
        return f"<{_type_name(value)} whose repr raised {type(error).__name__}>"
    return text if _encodable(text) else ascii(text)[:_REPR_LIMIT]


def exception_value(error: BaseException) -> dict[str, JSON]:
    """An exception as a value: its type and its message; never its traceback's locals."""
    try:
        message = str(error)[:_REPR_LIMIT]
    except KeyboardInterrupt:
        raise
    except BaseException as inner:  # its own __str__ raised: say so in its place
        message = f"<message raised {type(inner).__name__}>"
    if not _encodable(message):
        message = ascii(message)
    return {"type": _type_name(error), "message": message}


def join_text(parts: Iterable[str]) -> str:
    """Streamed text as one string; a surrogate pair split over two parts is one character."""
    text = "".join(parts)
    if _encodable(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def require_plain(value: JSON, pointer: str = "", depth: int = 0) -> None:
    """Check what the raw append accepts: JSON values without NaN, odd keys or lone surrogates.

    Raises:
        ValueRefused: with the JSON pointer of the first value that is refused.
    """
    problem = None
    if depth > 64:
        problem = "nested deeper than 64"
    elif isinstance(value, str):
        problem = None if value.isascii() or _encodable(value) else "a lone surrogate"
    elif isinstance(value, float):
        problem = None if math.isfinite(value) else "not a finite number"
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise ValueRefused(f"{pointer or '/'}: key {key!r} is not a string")
            require_plain(key, pointer, depth)
            require_plain(item, f"{pointer}/{key}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            require_plain(item, f"{pointer}/{index}", depth + 1)
    elif value is not None and not isinstance(value, int):
        problem = f"{type(value).__name__} has no JSON form"
    if problem:
        raise ValueRefused(f"{pointer or '/'}: {problem}")
