"""What the raw append takes: an event as it will be written, or a refusal that says where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from playhead.core.events import TYPES, Draft
from playhead.core.values import require_plain
from playhead.errors import UsageError, ValueRefused
from playhead.store.scope import MAX_KEY, column_text

_TEXTS = ("name", "model", "prompt", "run_id", "turn_id", "subagent_run_id", "causation_id")


def checked(event: Draft, tenant_id: str, chat_id: str) -> Draft:
    """``event`` when the raw append may write it; the payload is a plain dict then.

    Nothing is normalised: the caller learns of a bad value instead (resolution 10).

    Raises:
        ValueRefused: with the JSON pointer of what is refused.
        UsageError: it names another tenant or chat than the one it is appended to.
    """
    kind: object = event.type  # the annotation of a draft binds nobody
    if not isinstance(kind, str) or not _named(kind):
        raise ValueRefused("/type: not noun.verb or vendor.name", remedy="Name it vendor.name")
    if not isinstance(event.payload, Mapping):
        raise ValueRefused(f"/payload: {type(event.payload).__name__} is not an object")
    payload = dict(event.payload)
    require_plain(payload, "/payload")
    for key in TYPES.get(kind, ()):
        if key not in payload:
            raise ValueRefused(f"/payload/{key}: {kind} needs it", remedy="Add the key")
    if kind == "run.started" and not _text(payload["uid"]):
        raise ValueRefused("/payload/uid: not a text", remedy="Give each chain a random text")
    for field in _TEXTS:
        value = getattr(event, field)
        if value is not None and not isinstance(value, str):
            raise ValueRefused(f"/{field}: {type(value).__name__} is not a string")
        require_plain(value, f"/{field}")
    if event.id is not None and column_text(event.id) is None:
        raise ValueRefused(
            f"/id: not a text of 1 to {MAX_KEY} characters", remedy="Give a short text, or none"
        )
    if event.blobs and not all(_text(digest) for digest in event.blobs):
        raise ValueRefused("/blobs: not a list of digests")
    if event.tenant_id not in (None, tenant_id) or event.chat_id not in (None, chat_id):
        raise UsageError(
            "the event names another tenant or chat than it is appended to",
            remedy="Leave tenant_id and chat_id of the event away",
        )
    return replace(event, payload=payload)


def _named(kind: str) -> bool:
    noun, dot, verb = kind.partition(".")
    return bool(noun and dot and verb) and column_text(kind) is not None and kind.isprintable()


def _text(value: object) -> bool:
    return column_text(value) is not None
