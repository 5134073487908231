"""From what an agent hands over to what a row may hold: normalise, redact, then blobs.

Redaction comes before anything is kept, so a large value is clean before it becomes a blob.
Messages repeat with every request; one that is unchanged, byte for byte, is prepared once.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from playhead.core.blobs import externalise, in_one_blob, is_small
from playhead.core.encode import fast_bytes
from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.core.redact import Policy, Redactor
from playhead.core.values import Normaliser, PutBlob
from playhead.recorder.keys import Stamper

HEAVY = 4 * 1024 * 1024
"""Characters of a value's JSON above which it leaves the row as one blob."""
_KEPT = 4096
_MARSHAL = 2  # the last version without references: equal values give equal bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A value as a row may hold it, its digest, and the blobs that it refers to.

    ``content`` is the digest of the value before anything in it became a blob.
    """

    value: JSON
    digest: bytes
    blobs: tuple[str, ...]
    content: bytes


class Preparer:
    """Prepares values for one run. ``put`` keeps large ones as blobs; with ``stamp_keys`` the
    answers of models and the ends of turns get their cache keys."""

    def __init__(self, policy: Policy, put: PutBlob | None, *, stamp_keys: bool = False) -> None:
        self._redactor = Redactor(policy)
        self.put = put
        self._seen: OrderedDict[bytes, Prepared] = OrderedDict()
        self._stamper = Stamper() if stamp_keys else None

    def event(
        self, draft: Draft, messages: Sequence[object] | None, *, normal: bool = False
    ) -> tuple[dict[str, JSON], tuple[str, ...], list[Prepared] | None]:
        """An event's payload with its cache key, the payload's blobs, and the messages.

        ``normal`` values come from another process, which stamped them: it has the whole values,
        and its call ids are its own.
        """
        payload, blobs = self.payload(draft.payload, normal=normal)
        said = None if messages is None else self.messages(messages, normal=normal)
        stamper = self._stamper
        if stamper is None or normal:
            return payload, blobs, said
        if draft.type == "model.requested" and said is not None:
            asked = self._whole(draft.payload) if blobs else payload
            stamper.requested(plain_text(draft.model), asked, [one.content for one in said])
        return stamper.stamped(draft, payload), blobs, said

    def _whole(self, payload: Mapping[str, object]) -> dict[str, JSON]:
        clean, _ = self._redactor.value(Normaliser().value(dict(payload)))
        return clean if isinstance(clean, dict) else {}

    def payload(
        self, payload: Mapping[str, object], *, normal: bool = False
    ) -> tuple[dict[str, JSON], tuple[str, ...]]:
        """A payload and its blobs. How much was redacted stands in it as ``redacted``.

        ``normal`` values were normalised in another process; their marks are left alone.
        """
        plain = dict(payload) if normal else Normaliser().value(dict(payload))
        normal_value, removed = self._redactor.value(plain)
        blobs: list[str] = []
        clean = normal_value if isinstance(normal_value, dict) else {"value": normal_value}
        if is_small(clean):
            kept = dict(clean)
        else:
            kept = {key: self._fit(value, blobs) for key, value in clean.items()}
        if removed:
            kept["redacted"] = len(removed)
        return kept, tuple(dict.fromkeys(blobs))

    def _fit(self, value: JSON, blobs: list[str]) -> JSON:
        if self.put is None or is_small(value):
            return value
        small = externalise(value, self.put, blobs)
        if isinstance(small, (dict, list)) and len(fast_bytes(small)) > HEAVY:
            return in_one_blob(small, self.put, blobs)
        return small

    def messages(self, messages: Sequence[object], *, normal: bool = False) -> list[Prepared]:
        """Every message of a request; ``normal`` as in `payload`."""
        if normal:
            return [self._finished(self._redactor.value(message)[0]) for message in messages]
        return [self._message(message) for message in messages]

    def _message(self, message: object) -> Prepared:
        try:
            # The stub names the types that marshal takes; any other raises ValueError.
            key = sha256(marshal.dumps(message, _MARSHAL)).digest()  # type: ignore[arg-type]
        except ValueError:  # an object of the agent's own: it is prepared every time
            return self._fresh(message)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._fresh(message)
            if len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(key)
        return found

    def _fresh(self, message: object) -> Prepared:
        return self._finished(self._redactor.value(Normaliser().value(message))[0])

    def _finished(self, clean: JSON) -> Prepared:
        blobs: list[str] = []
        value = self._fit(clean, blobs)
        digest = sha256(fast_bytes(value)).digest()
        content = sha256(fast_bytes(clean)).digest() if blobs else digest
        return Prepared(value, digest, tuple(dict.fromkeys(blobs)), content)


def plain_text(text: str | None) -> str | None:
    """A name or an id as an envelope may hold it: lone surrogates shown as escapes."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
