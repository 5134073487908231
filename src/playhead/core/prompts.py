"""Prompts as deltas (decision 3; docs/reference/formats/prompts.md).

Every model call sends the whole conversation again. A ``model.requested`` row therefore holds
a list of segments: ``[seq, from, to]`` for messages ``from <= i < to`` of an earlier row of the
chain, or a new message. Matching is by message content, wherever the message stood before, so
a clock in the first message, compaction or a cleared history stay cheap.

A message that is itself a list, or an object with the key ``$message``, is written as
``{"$message": <message>}``.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from playhead.core.canonical import encode_step
from playhead.core.encode import fast_bytes
from playhead.core.model import JSON
from playhead.errors import TooLarge, ValueRefused

MAX_MESSAGES = 1_000_000
_KEEP_DIGESTS = 65_536
_KEEP_LISTS = 64


def messages_of_result(result: JSON) -> list[JSON]:
    """The messages that a model's answer adds to a conversation, as later requests repeat them.

    A plain text is an assistant message; ``{"message": {...}}`` and ``{"choices": [{"message":
    ...}]}`` hold them; an object with ``role`` and ``content`` is one, reduced to those two.
    """
    if isinstance(result, str):
        return [{"role": "assistant", "content": result}]
    if not isinstance(result, dict):
        return []
    if isinstance(result.get("message"), dict):
        return [result["message"]]
    choices = result.get("choices")
    if isinstance(choices, list):
        found = [c.get("message") for c in choices if isinstance(c, dict)]
        return [m for m in found if isinstance(m, dict)]
    if "role" in result and "content" in result:
        return [{"role": result["role"], "content": result["content"]}]
    return []


@dataclass(frozen=True, slots=True)
class Delta:
    """A request's ``prompt`` text, and which of its messages stand in it as they are."""

    text: str
    new: tuple[int, ...]


class PromptIndex:
    """Finds earlier messages while recording. Bounded: what it forgets is stored again."""

    def __init__(self) -> None:
        self._lists: OrderedDict[int, tuple[bytes, ...]] = OrderedDict()
        self._where: dict[bytes, tuple[int, int]] = {}
        self._held = 0

    def encode(self, seq: int, messages: Sequence[JSON]) -> str:
        """The ``prompt`` text of the request at ``seq``; remembers its messages."""
        return self.delta(seq, messages, [_digest(message) for message in messages]).text

    def delta(self, seq: int, messages: Sequence[JSON], digests: Sequence[bytes]) -> Delta:
        """`encode` for messages whose digests (SHA-256 of the canonical bytes) are known."""
        new: list[int] = []
        segments: list[JSON] = []
        at = 0
        while at < len(messages):
            found = self._where.get(digests[at])
            if found is None:
                segments.append(_literal(messages[at]))
                new.append(at)
                at += 1
                continue
            row, start = found
            known = self._lists[row]
            length = 1
            while (
                at + length < len(digests)
                and start + length < len(known)
                and digests[at + length] == known[start + length]
            ):
                length += 1
            segments.append([row, start, start + length])
            at += length
        self._remember(seq, digests)
        return Delta(fast_bytes(segments).decode("ascii"), tuple(new))

    def answered(self, seq: int, result: JSON) -> None:
        """Remember the messages of the answer at ``seq``."""
        messages = messages_of_result(result)
        if messages:
            self.remember(seq, messages)

    def remember(self, seq: int, messages: Sequence[JSON]) -> None:
        """Know the messages of a row that an earlier writer of the chain made."""
        self._remember(seq, [_digest(message) for message in messages])

    def _remember(self, seq: int, digests: Sequence[bytes]) -> None:
        self._lists[seq] = tuple(digests)
        self._held += len(digests)
        for index, item in enumerate(digests):
            self._where[item] = (seq, index)
        while len(self._lists) > 1 and (
            self._held > _KEEP_DIGESTS or len(self._lists) > _KEEP_LISTS
        ):
            old, gone = self._lists.popitem(last=False)
            self._held -= len(gone)
            for index, item in enumerate(gone):
                if self._where.get(item) == (old, index):
                    del self._where[item]


def _digest(message: JSON) -> bytes:
    return sha256(fast_bytes(message)).digest()


def _literal(message: JSON) -> JSON:
    if isinstance(message, list) or (isinstance(message, dict) and "$message" in message):
        return {"$message": message}
    return message


def full_prompt(messages: Sequence[JSON]) -> str:
    """All messages as they are: what ``prompts="full"`` writes."""
    return encode_step([_literal(message) for message in messages])


def answer_segments(result: JSON) -> list[JSON]:
    """An answer's messages as segments, so that `rebuild` can take them from its row."""
    return [_literal(message) for message in messages_of_result(result)]


def _unwrap(segment: JSON) -> JSON:
    if isinstance(segment, dict) and set(segment) == {"$message"}:
        return segment["$message"]
    return segment


def is_range(segment: JSON) -> bool:
    """True for ``[seq, from, to]``."""
    return (
        isinstance(segment, list)
        and len(segment) == 3
        and all(type(part) is int for part in segment)
    )


def parse_segments(prompt: JSON) -> list[JSON]:
    """The segments of a ``prompt`` field; a text that is no segment list is one message.

    A plain text is what ``prompts="full"`` and foreign rows hold.
    """
    if prompt is None:
        return []
    if isinstance(prompt, str) and prompt.startswith("["):
        try:
            found = json.loads(prompt)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list):
            return found
    return [prompt]


def rebuild(seq: int, source: Callable[[int], Sequence[JSON]]) -> list[JSON]:
    """All messages of the request at ``seq``.

    ``source(seq)`` gives a row's segments (a request) or messages (an answer). Each range is
    replaced by the segments behind it, leftmost first, so the work is linear in the rows
    passed and the messages found, and there is no recursion.

    Raises:
        ValueRefused: a range points forward or at messages that are not there.
        TooLarge: more than a million messages (a hostile row can double itself).
    """
    out: list[JSON] = []
    todo: list[tuple[int, int, int | None] | _Message] = [(seq, 0, None)]
    budget = 4 * MAX_MESSAGES
    while todo:
        top = todo.pop()
        if isinstance(top, _Message):
            out.append(top.value)
            continue
        segments = source(top[0])
        budget -= len(segments) + 1
        pieces = _pieces(top, segments)
        if budget < 0 or len(out) > MAX_MESSAGES:
            raise TooLarge(f"the prompt of step {seq} has over {MAX_MESSAGES} messages")
        todo.extend(reversed(pieces))
    return out


@dataclass(frozen=True, slots=True)
class _Message:
    value: JSON


def _pieces(
    wanted: tuple[int, int, int | None], segments: Sequence[JSON]
) -> list[tuple[int, int, int | None] | _Message]:
    """The part of ``segments`` that covers the messages ``[start, end)`` of one row."""
    row, start, end = wanted
    pieces: list[tuple[int, int, int | None] | _Message] = []
    position = 0
    for segment in segments:
        target, first, length = _measure(segment, row)
        low = max(start - position, 0)
        high = length if end is None else min(end - position, length)
        if low < high:
            if target is None:
                pieces.append(_Message(_unwrap(segment)))
            else:
                pieces.append((target, first + low, first + high))
        position += length
    if end is not None and position < end:
        raise ValueRefused(f"step {row} has {position} messages, a later prompt wants {end}")
    return pieces


def _measure(segment: JSON, row: int) -> tuple[int | None, int, int]:
    """Target row (None for a message), first message, number of messages."""
    if not is_range(segment):
        return None, 0, 1
    assert isinstance(segment, list)
    target, first, last = int(segment[0]), int(segment[1]), int(segment[2])
    if not 0 <= target < row or not 0 <= first < last:
        raise ValueRefused(f"the prompt of step {row} refers to step {target}, which is not before")
    return target, first, last - first
