"""Frames between ``playhead run`` and the programs it runs: one JSON object a line.

The child asks, the server answers, one at a time and in order::

    {"op":"hello","v":1,"agent":...,"pid":...}   {"run_id","uid","root","head","seq","durable"}
    {"op":"emit","draft":{...},"at","messages"}  {"seq","durable","head"}
    {"op":"sync"}                                {"seq","durable","head"}
    {"op":"bye"}                                 {"seq","durable","head"}
    anything else                                {"error":{"code","what","remedy"}}

The server trusts no child: what it reads here has a limit of size, and what it does not
understand is answered with an error. Values in a frame are normalised already (core/values).
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Final, NoReturn

from playhead.core.events import TYPES, Draft
from playhead.core.model import JSON
from playhead.core.values import require_plain
from playhead.errors import TooLarge, UsageError

VERSION: Final = 1
MAX_FRAME: Final = 32 * 1024 * 1024
"""Bytes of one frame. Large values travel as blobs, so that only a long list comes near it."""
_BLOCK: Final = 256 * 1024
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}(\.[a-z][a-z0-9_-]{0,63}){1,3}\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")
_TEXTS: Final = ("name", "model", "id", "turn_id", "subagent_run_id", "causation_id")
_MAX_TEXT: Final = 4096
_OWNED: Final = frozenset(("run.started", "run.ended", "run.forked"))


def encode_frame(value: Mapping[str, JSON]) -> bytes:
    """One frame with its newline.

    Raises:
        TooLarge: it is over `MAX_FRAME`.
    """
    data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(data) > MAX_FRAME:
        raise TooLarge(
            f"one event of {len(data)} bytes, over {MAX_FRAME}",
            remedy="Record large values as strings or bytes: they are kept as blobs",
        )
    return data


def decode_frame(data: bytes) -> dict[str, JSON]:
    """The object in a frame.

    Raises:
        UsageError: no JSON object, NaN, or nested too deeply.
    """
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a frame is no JSON: {error}"[:200]) from None
    if not isinstance(value, dict):
        raise UsageError("a frame is no JSON object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class Frames:
    """Reads frames from a socket. A frame over the limit is skipped, not kept."""

    def __init__(self, link: socket.socket, limit: int = MAX_FRAME) -> None:
        self._link = link
        self._limit = limit
        self._rest = bytearray()

    def read(self) -> bytes | None:
        """The next frame without its newline; None at the end of the connection.

        Raises:
            TooLarge: the frame was over the limit; the next one can still be read.
            OSError: the connection broke.
        """
        too_large = False
        start = 0
        while (end := self._rest.find(b"\n", start)) < 0:
            start = len(self._rest)
            if start > self._limit:
                too_large, start = True, 0
                self._rest.clear()
            block = self._link.recv(_BLOCK)
            if not block:
                return None
            self._rest += block
        frame = bytes(memoryview(self._rest)[:end])
        del self._rest[: end + 1]
        if too_large or end > self._limit:
            raise TooLarge(f"a frame over {self._limit} bytes")
        return frame


def draft_to_json(draft: Draft, payload: JSON, blobs: tuple[str, ...]) -> dict[str, JSON]:
    """A draft for a frame; ids of the first row are the server's and are left out."""
    found: dict[str, JSON] = {"type": draft.type, "payload": payload}
    found |= {key: text for key in _TEXTS if (text := getattr(draft, key)) is not None}
    if draft.prompt is not None:
        found["prompt"] = draft.prompt
    if blobs:
        found["blobs"] = list(blobs)
    return found


def draft_from_json(value: JSON) -> Draft:
    """A draft that a child sent, checked.

    Raises:
        UsageError: not a draft, a type that is not the taxonomy's nor ``vendor.name``, one
            that only the owner of the run writes, or a payload key is missing.
        ValueRefused: a value no journal may hold.
    """
    if not isinstance(value, dict):
        raise UsageError("draft: no object")
    kind, payload = value.get("type"), value.get("payload")
    if not isinstance(kind, str) or not (kind in TYPES or _TYPE.match(kind)):
        raise UsageError(f"event type {kind!r:.80}", remedy="Name it vendor.name")
    if kind in _OWNED:
        raise UsageError(f"{kind} is written by the owner of the run only")
    if not isinstance(payload, dict):
        raise UsageError("payload: no object")
    missing = [key for key in TYPES.get(kind, ()) if key not in payload]
    if missing:
        raise UsageError(f"{kind} needs {', '.join(missing)} in its payload")
    require_plain(payload, "/payload")
    name, model, own_id, turn, subagent, cause = (_text(value, key) for key in _TEXTS)
    return Draft(
        kind,
        payload,
        name=name,
        model=model,
        prompt=_text(value, "prompt", MAX_FRAME),
        id=own_id,
        turn_id=turn,
        subagent_run_id=subagent,
        causation_id=cause,
        blobs=_digests(value.get("blobs")),
    )


def _text(value: dict[str, JSON], key: str, limit: int = _MAX_TEXT) -> str | None:
    text = value.get(key)
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > limit:
        raise UsageError(f"{key}: no text of at most {limit} characters")
    require_plain(text, f"/{key}")
    return text


def _digests(value: JSON) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > 10_000:
        raise UsageError("blobs: no list of digests")
    if not all(isinstance(item, str) and _DIGEST.match(item) for item in value):
        raise UsageError("blobs: not a SHA-256 digest")
    return tuple(value)
