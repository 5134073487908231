"""Cache keys while recording: every answer is stamped with the key of what was asked.

The digests of the messages are there already, and a conversation that goes on takes up the key
where the last request left it, so a turn costs only its new messages. All memory here is bounded;
what is forgotten is computed again, and gives the same key. A `Stamper` may serve many threads,
and a signal handler in the middle of itself: every value in it is replaced whole.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from playhead.core.cachekey import CacheStamp, ContentKey
from playhead.core.events import Draft
from playhead.core.model import JSON

K = TypeVar("K")
V = TypeVar("V")

_CALLS: Final = 1024
"""Requests whose answer is awaited, and turns that are open."""
_CONVERSATIONS: Final = 8
_MESSAGES: Final = 4096
"""Messages of a conversation whose keys are remembered."""


class _Known(NamedTuple):
    """A conversation as last seen: digests of its messages, and the key behind each of them."""

    digests: tuple[bytes, ...]
    states: tuple[bytes, ...]


class Stamper:
    """Puts ``cache_key`` into ``model.responded`` and ``turn.completed``."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, ...], _Known] = OrderedDict()
        self._asked: OrderedDict[str, str] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str | None], str] = OrderedDict()

    def requested(
        self, model: str | None, parameters: Mapping[str, JSON], digests: Sequence[bytes]
    ) -> None:
        """A request goes out: its parameters and its messages' digests, as they were before
        anything in them became a blob."""
        call_id = parameters.get("call_id")
        if isinstance(call_id, str):
            stamp = CacheStamp.of_request(model, parameters, normal=True)
            key = self._key(ContentKey.start(stamp), tuple(digests))
            _keep(self._asked, call_id, key.key, _CALLS)

    def stamped(self, draft: Draft, payload: dict[str, JSON]) -> dict[str, JSON]:
        """The payload of an answer or of the end of a turn, with its key if there is one.

        A key that the host gave stays. A turn has the key of its last answer; what a subagent
        asked is the subagent's.
        """
        if draft.type not in ("model.responded", "model.failed", "turn.completed"):
            return payload
        turn = (draft.turn_id or "", draft.subagent_run_id)
        if draft.type == "turn.completed":
            key = self._turns.pop(turn, None)
        else:
            key = self._asked.pop(str(payload.get("call_id")), None)
        given = payload.get("cache_key", payload.get("cacheKey"))
        if given is None and key is not None and draft.type != "model.failed":
            payload = {**payload, "cache_key": key}
        if draft.type == "model.responded" and draft.turn_id is not None:
            last = key if given is None else given
            if isinstance(last, str):
                _keep(self._turns, turn, last, _CALLS)
        return payload

    def _key(self, start: ContentKey, digests: tuple[bytes, ...]) -> ContentKey:
        """The key behind all of ``digests``, from the longest beginning that is known."""
        name = (start.state, *digests[:2])
        known = self._known.get(name)
        same = 0 if known is None else _common(known.digests, digests)
        states = [] if known is None else list(known.states[:same])
        key = ContentKey(states[-1], same) if states else start
        for digest in digests[same:]:
            key = key.add_digest(digest)
            states.append(key.state)
        kept = _Known(digests[:_MESSAGES], tuple(states[:_MESSAGES]))
        _keep(self._known, name, kept, _CONVERSATIONS)
        return key


def _common(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    """How many digests both begin with."""
    if other[: len(one)] == one:
        return len(one)
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))


def _keep(where: OrderedDict[K, V], name: K, value: V, most: int) -> None:
    where[name] = value
    with contextlib.suppress(KeyError):  # another thread was first, here or just before
        where.move_to_end(name)
        while len(where) > most:
            where.popitem(last=False)
