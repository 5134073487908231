"""A cache around a host's own calls: it fills the cache, and gives the key to put on an event.

    cached = cache_middleware(SqliteCache("answers.db"), tenant_id="acme", mode="test")
    answer = await cached.call(ask, request_stamp("m-1", {"temperature": 0}), messages)
    run.event("shop.answered", {"cache_key": answer.key})

The key is the one that `playhead.record` stamps on the answer of the same call: values are
normalised and credentials removed before they are hashed (resolution 16).
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from playhead.core.cacheentry import CacheEntry, RuntimeMode, check_owner, check_runtime_mode
from playhead.core.cachekey import CacheStamp, derive_content_hash_key
from playhead.core.model import JSON
from playhead.core.redact import Policy, Redactor
from playhead.core.values import Normaliser
from playhead.errors import PlayheadError, ReplayArgumentError
from playhead.replay.cache import CacheBackend, failed, read_entry

if TYPE_CHECKING:
    from playhead.replay.sync import LoopThread

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer and the key of what was asked.

    ``hit``: it came from the cache and nothing was called. ``problem``: the answer is good, but
    could not be kept in the cache, and why.
    """

    value: object
    key: str
    hit: bool
    problem: PlayheadError | None = None


def request_stamp(
    model: str | None, parameters: Mapping[str, object], *, policy: Policy | None = None
) -> CacheStamp:
    """The stamp of a request, as `playhead.record` makes it from the same parameters.

    Args:
        parameters: as they are sent (`CacheStamp.of_request` says which part each one is).
        policy: what is redacted; by default what a recording removes: credentials.
    """
    clean = _cleaned(Redactor(policy), dict(parameters))
    return CacheStamp.of_request(model, clean if isinstance(clean, dict) else {}, normal=True)


def _cleaned(redactor: Redactor, value: object) -> JSON:
    return redactor.value(Normaliser().value(value))[0]


class CacheMiddleware:
    """Looks an answer up, else calls and keeps what came. Made by `cache_middleware`."""

    def __init__(
        self, backend: CacheBackend, tenant_id: str, mode: RuntimeMode, policy: Policy | None
    ) -> None:
        self._backend = backend
        self._tenant = tenant_id
        self._mode: RuntimeMode = mode
        self._redactor = Redactor(policy)
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None

    def key(self, stamp: CacheStamp, messages: Iterable[object]) -> str:
        """The key of a request, without asking anybody.

        Raises:
            ValueRefused: a part of the stamp is no plain JSON value.
        """
        return derive_content_hash_key(
            stamp, (_cleaned(self._redactor, message) for message in messages)
        )

    async def call(
        self,
        ask: Callable[[CacheStamp, list[object]], Awaitable[object]],
        stamp: CacheStamp,
        messages: Iterable[object],
    ) -> CachedAnswer:
        """The answer to a request: from the cache, or from ``ask(stamp, messages)``.

        A call's own exception passes through and nothing is kept. A call that was paid for is
        never lost: when its answer cannot be kept, that is the answer's ``problem`` and a warning.

        Raises:
            StoreError: the cache could not be read; nothing was called.
            ValueRefused: a part of the stamp is no plain JSON value.
        """
        said = list(messages)
        key = self.key(stamp, said)
        found = await self._find(key)
        if found is not None:
            return CachedAnswer(found.value, key, hit=True)
        return await self._kept(await ask(stamp, said), key)

    def call_sync(
        self,
        ask: Callable[[CacheStamp, list[object]], object],
        stamp: CacheStamp,
        messages: Iterable[object],
    ) -> CachedAnswer:
        """`call` for a plain function, which runs in the caller's thread. Also inside of a running
        event loop, which it blocks."""
        said = list(messages)
        key = self.key(stamp, said)
        found = self._wait(self._find(key))
        if found is not None:
            return CachedAnswer(found.value, key, hit=True)
        answer = ask(stamp, said)
        return self._wait(self._kept(answer, key))

    def close(self) -> None:
        """End the thread of `call_sync`. Idempotent; the backend stays open."""
        with self._lock:
            if self._thread is not None:
                self._thread.close()

    def _wait(self, work: Coroutine[object, object, T]) -> T:
        from playhead.replay.sync import LoopThread

        with self._lock:
            if self._thread is None:
                self._thread = LoopThread()
            thread = self._thread
        return thread.run(work)

    async def _find(self, key: str) -> CacheEntry | None:
        """An entry that this mode may use: a test run takes what production recorded, and never
        the other way round."""
        entry = await read_entry(self._backend, key, self._tenant)
        if entry is not None and self._mode == "prod" and entry.recorded_mode != "prod":
            return None
        return entry

    async def _kept(self, answer: object, key: str) -> CachedAnswer:
        problem: PlayheadError | None = None
        try:
            await self._put(key, CacheEntry(answer, self._mode, time.time_ns() // 1_000_000))
        except PlayheadError as error:
            problem = error
        if problem is not None:
            warnings.warn(f"playhead: not in the cache: {problem}", RuntimeWarning, stacklevel=3)
        return CachedAnswer(answer, key, hit=False, problem=problem)

    async def _put(self, key: str, entry: CacheEntry) -> None:
        try:
            await self._backend.put(key, entry, tenant_id=self._tenant)
        except PlayheadError:
            raise
        except Exception as error:
            raise failed(error) from error


def cache_middleware(
    backend: CacheBackend,
    *,
    tenant_id: str,
    mode: RuntimeMode = "prod",
    policy: Policy | None = None,
) -> CacheMiddleware:
    """A cache around calls of one tenant.

    Args:
        tenant_id: whose answers they are; no default, never blank.
        mode: "prod" or "test": kept with every answer. A test run takes production's answers,
            production takes no answer of a test run, and replaces it.
        policy: what is redacted before a message is hashed; that of the recording.

    Raises:
        ReplayArgumentError: a blank tenant, another mode, a backend without get or put.
    """
    check_owner("-", tenant_id)
    check_runtime_mode("mode", mode)
    for name in ("get", "put"):
        if not callable(getattr(backend, name, None)):
            raise ReplayArgumentError("backend", f"({type(backend).__name__}) has no {name}()")
    return CacheMiddleware(backend, tenant_id, mode, policy)
