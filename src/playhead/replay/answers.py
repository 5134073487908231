"""The text of a chat's last answer, as an evaluation wants it: what was said, and all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from playhead.core.blobs import blob_checked
from playhead.core.model import JSON, Event
from playhead.core.persistent import freeze, plain
from playhead.core.prompts import messages_of_result
from playhead.core.values import MARK
from playhead.errors import BlobError
from playhead.replay.render import value_text

_TEXTS = frozenset(("text", "output_text"))
"""Types of a content block that say something; thoughts, calls and pictures do not."""
_DEEP = 8
"""Levels of content in content; what lies deeper was written to hurt."""

Read = Callable[[str], bytes]


class BlobReader(Protocol):
    """Where blobs are read by their SHA-256; blocking."""

    def get(self, digest: str) -> bytes: ...


class LastResult:
    """The last answer of the run's own model that says anything; None before any. A long one is a
    blob, and then no message of the conversation."""

    key = "last_result"
    version = 1
    event_types = frozenset(("model.responded", "message.received"))

    def init(self) -> object:
        return None

    def apply(self, state: object, event: Event) -> object:
        if event.subagent_run_id:
            return state
        found = event.payload.get("result")
        if event.type == "message.received":
            found = event.payload.get("message", dict(event.payload))
        says = _is_blob(found) or _answer(found, lambda mark: "something")
        return freeze(found) if says else state

    def view(self, state: object) -> JSON:
        return plain(state)

    def dump(self, state: object) -> JSON:
        return plain(state)

    def load(self, dumped: JSON) -> object:
        return freeze(dumped)


def last_text(messages: JSON, result: JSON, read: Read) -> str:
    """The text of the last answer.

    Args:
        messages: the conversation, as the projection ``messages`` shows it; looked at for rows
            that playhead did not write.
        result: what `LastResult` shows.

    Raises:
        BlobError: a blob of the answer cannot be read, or is not its digest.
    """

    def of_blob(mark: JSON) -> JSON:
        return _of_blob(mark, read)

    if result is not None:
        return _answer(of_blob(result) if _is_blob(result) else result, of_blob)
    for message in reversed(messages if isinstance(messages, list) else []):
        text = _answer(message, of_blob) if isinstance(message, dict) else ""
        if text:
            return text
    return ""


OfBlob = Callable[[JSON], JSON]


def _answer(result: JSON, of_blob: OfBlob) -> str:
    """What an answer of a model, or a message of the assistant, says."""
    parts = [
        _said(message.get("content"), of_blob)
        for message in messages_of_result(result)
        if isinstance(message, dict) and message.get("role") == "assistant"
    ]
    return "\n".join(part for part in parts if part)


def _said(content: JSON, of_blob: OfBlob, depth: int = 0) -> str:
    if isinstance(content, str):
        return content
    if depth > _DEEP:
        return ""
    if isinstance(content, list):
        return "\n".join(
            part for part in (_said(block, of_blob, depth + 1) for block in content) if part
        )
    if not isinstance(content, dict):
        return "" if content is None else value_text(content, compact=True)
    if _is_blob(content):
        return _said(of_blob(content), of_blob, depth + 1)
    kind = content.get("type")
    if isinstance(kind, str):
        return _said(content.get("text"), of_blob, depth + 1) if kind in _TEXTS else ""
    return value_text(content, compact=True)


def _of_blob(mark: JSON, read: Read) -> JSON:
    """The value that became a blob; None for one that was no text."""
    assert isinstance(mark, dict)
    digest, form = mark.get("sha256"), mark.get("form")
    if not isinstance(digest, str):
        raise BlobError("the answer is a blob without a digest")
    if form not in ("text", "json"):
        return None
    raw = blob_checked(digest, read(digest))
    try:
        text = raw.decode("utf-8")
        value: JSON = json.loads(text) if form == "json" else text
    except (ValueError, RecursionError):
        raise BlobError(f"blob {digest[:16]}... is not the {form} that its row says") from None
    return value


def _is_blob(value: object) -> bool:
    return isinstance(value, dict) and value.get(MARK) == "blob"
