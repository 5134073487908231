"""The key of a model's answer: a digest of all that was asked (docs/reference/replay-cache.md).

A key starts from the stamp of the request and takes in one message after the other, so the key
of a longer conversation costs only its new messages (study 3G)::

    m_0 = SHA-256("playhead/ck1/start\\n" + stamp digest)
    m_i = SHA-256("playhead/ck1/next\\n" + m_(i-1) + digest of message i)
    key = "ck1:" + hex(m_n)

A value's bytes are the ``step`` canonical form, as everywhere in the chain. So ``0``, ``0.0`` and
``-0.0`` are three values, ``1.0`` and ``1e0`` are one, and an explicit ``None`` is not the same
as a parameter that was not given. Ids, times and the tenant are no part of a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from playhead.core.encode import fast_bytes
from playhead.core.model import JSON
from playhead.core.values import require_plain
from playhead.errors import ValueRefused

KEY_VERSION: Final = "ck1"
_STAMP: Final = b"playhead/ck1/stamp\n"
_START: Final = b"playhead/ck1/start\n"
_NEXT: Final = b"playhead/ck1/next\n"

SYSTEM: Final = ("system", "system_instruction", "instructions")
SAFETY: Final = ("safety_policy", "safety_settings")
TOOLS: Final = ("tools", "functions")
FORMAT: Final = ("response_format", "response_schema")
NOT_ASKED: Final = frozenset(
    "call_id chat_id request_id run_id session_id tenant_id trace_id turn_id idempotency_key "
    "metadata user timeout max_retries stream stream_options api_key base_url headers "
    "extra_headers redacted cache_key cacheKey".split()
)
"""Parameters of a request that say who asks, when and how, not what: no part of a key."""
_APART: Final = NOT_ASKED.union(("provider", "transport"), SYSTEM, SAFETY, TOOLS, FORMAT)


def value_digest(value: JSON) -> str:
    """SHA-256 hex of a value's ``step`` canonical form, as a stamp holds it.

    Raises:
        ValueRefused: NaN, a lone surrogate, a key that is no string, or no JSON value.
    """
    require_plain(value)
    return _digest(value)


def _digest(value: JSON) -> str:
    return sha256(fast_bytes(value)).hexdigest()


@dataclass(frozen=True, slots=True)
class CacheStamp:
    """What is asked beside the messages; exactly these eight parts make the stamp digest.

    ``sampling`` holds the parameters as they were sent, an explicit ``None`` included. The
    digests are those of `value_digest`, or None for a part that was not given.
    """

    model: str | None = None
    provider: str | None = None
    transport: str | None = None
    sampling: Mapping[str, JSON] = field(default_factory=dict)
    system_prompt: str | None = None
    safety_policy: str | None = None
    tools: str | None = None
    response_format: str | None = None

    @classmethod
    def of_request(
        cls, model: str | None, parameters: Mapping[str, JSON], *, normal: bool = False
    ) -> CacheStamp:
        """The stamp of a request as a ``model.requested`` holds it: this is what is recorded.

        ``provider`` and ``transport`` are taken by name, system prompt, safety policy, tools and
        response format by the names in `SYSTEM`, `SAFETY`, `TOOLS` and `FORMAT`; `NOT_ASKED` is
        left out. Every other parameter counts as sampling: one that nobody knows may change the
        answer, and a key that is too narrow misses where one that is too wide would lie.
        ``normal`` values are known to be plain and are not looked at again.

        Raises:
            ValueRefused: a parameter is no plain JSON value.
        """
        if not normal:
            require_plain(dict(parameters))
        return cls(
            model=model,
            provider=_text(parameters, "provider"),
            transport=_text(parameters, "transport"),
            sampling={key: value for key, value in parameters.items() if key not in _APART},
            system_prompt=_part(parameters, SYSTEM),
            safety_policy=_part(parameters, SAFETY),
            tools=_part(parameters, TOOLS),
            response_format=_part(parameters, FORMAT),
        )

    def digest(self) -> bytes:
        """SHA-256 of the tag and the canonical form of the eight parts.

        Raises:
            ValueRefused: a part is no plain JSON value.
        """
        for name, value in self.sampling.items():
            require_plain(name, "/sampling")
            require_plain(value, f"/sampling/{name}")
        parts: dict[str, JSON] = {
            "model": self.model,
            "provider": self.provider,
            "transport": self.transport,
            "sampling": dict(self.sampling),
            "system_prompt": self.system_prompt,
            "safety_policy": self.safety_policy,
            "tools": self.tools,
            "response_format": self.response_format,
        }
        return sha256(_STAMP + fast_bytes(parts)).digest()


def _text(parameters: Mapping[str, JSON], name: str) -> str | None:
    value = parameters.get(name)
    return value if value is None or isinstance(value, str) else _digest(value)


def _part(parameters: Mapping[str, JSON], names: tuple[str, ...]) -> str | None:
    """The digest of the one of these parameters that was given, of all of them when several."""
    given = {name: parameters[name] for name in names if name in parameters}
    if not given:
        return None
    return _digest(next(iter(given.values())) if len(given) == 1 else given)


@dataclass(frozen=True, slots=True)
class ContentKey:
    """A key while it grows; immutable, so every prefix of a conversation keeps its own."""

    state: bytes
    count: int = 0

    @classmethod
    def start(cls, stamp: CacheStamp) -> ContentKey:
        """The key of a request without messages.

        Raises:
            ValueRefused: the stamp holds what is no plain JSON value.
        """
        return cls(sha256(_START + stamp.digest()).digest())

    def add(self, message: JSON) -> ContentKey:
        """The key with one message more; this one stays as it is.

        Raises:
            ValueRefused: the message is no plain JSON value.
        """
        require_plain(message)
        return self.add_digest(sha256(fast_bytes(message)).digest())

    def add_digest(self, digest: bytes) -> ContentKey:
        """`add` for a message whose digest (SHA-256 of the canonical bytes) is known.

        Raises:
            ValueRefused: it is not 32 bytes.
        """
        if len(digest) != 32:
            raise ValueRefused("a message digest is 32 bytes")
        return ContentKey(sha256(_NEXT + self.state + digest).digest(), self.count + 1)

    def extend(self, messages: Iterable[JSON]) -> ContentKey:
        """The key with these messages more, in their order."""
        found = self
        for message in messages:
            found = found.add(message)
        return found

    @property
    def key(self) -> str:
        """``ck1:`` and 64 hexadecimal digits."""
        return f"{KEY_VERSION}:{self.state.hex()}"


def derive_content_hash_key(stamp: CacheStamp, messages: Iterable[JSON]) -> str:
    """The cache key of a request: ``ck1:`` and 64 hexadecimal digits.

    The same as `ContentKey.start`, extended by ``messages``.

    Raises:
        ValueRefused: a message or a part of the stamp is no plain JSON value.
    """
    return ContentKey.start(stamp).extend(messages).key
