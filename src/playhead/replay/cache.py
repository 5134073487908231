"""``playhead.replay.cache``: recorded answers, looked up by what was asked.

A handle asks a backend for every row that has a ``cache_key``; `look_up` is the whole table of
modes (design: "ReplayClient and ReplayHandle"), and it never makes a call. Keys, modes and what
a backend promises: docs/reference/replay-cache.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from playhead.core.cacheentry import (
    MAX_KEY,
    CacheEntry,
    RuntimeMode,
    check_owner,
    check_runtime_mode,
)
from playhead.core.cachekey import CacheStamp, ContentKey, derive_content_hash_key
from playhead.core.model import JSON
from playhead.errors import ReplayArgumentError, ReplayCacheMissError, StoreError, ValueRefused
from playhead.replay.backends import CacheBackend, MemoryCache, SqliteCache

__all__ = [
    "CacheBackend",
    "CacheEntry",
    "CacheLookup",
    "CacheReadMode",
    "CacheStamp",
    "CacheStats",
    "ContentKey",
    "MemoryCache",
    "RuntimeMode",
    "SqliteCache",
    "cache_key_of",
    "derive_content_hash_key",
    "look_up",
    "read_mode",
]


class CacheReadMode(StrEnum):
    """How a replay reads the cache; locked when a handle is opened."""

    CROSS_MODE_READABLE = "cross-mode-readable"
    STRICT_MODE = "strict-mode"
    BEST_EFFORT = "best-effort"


def read_mode(value: object) -> CacheReadMode:
    """A mode from itself or its exact string.

    Raises:
        ReplayArgumentError: field ``cache_read_mode``; it names the modes there are.
    """
    if isinstance(value, str):
        for mode in CacheReadMode:
            if value == mode.value:
                return mode
    raise ReplayArgumentError(
        "cache_read_mode", f"must be one of {', '.join(mode.value for mode in CacheReadMode)}"
    )


@dataclass(frozen=True, slots=True)
class CacheLookup:
    """What came of a row's key.

    ``via`` is "cache" on a hit. "live" means that a run would have made a call here; replay makes
    none, and ``value`` is None. ``cross_mode``: the entry was recorded in another runtime mode.
    """

    key: str
    via: Literal["cache", "live"]
    hit: bool
    cross_mode: bool = False
    value: JSON = None


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Look-ups so far: ``hits`` (of them ``cross_mode``), ``misses`` that raised, ``live``."""

    hits: int = 0
    misses: int = 0
    cross_mode: int = 0
    live: int = 0

    def counted(self, lookup: CacheLookup) -> CacheStats:
        """With one look-up more that came back."""
        if not lookup.hit:
            return replace(self, live=self.live + 1)
        crossed = self.cross_mode + lookup.cross_mode
        return replace(self, hits=self.hits + 1, cross_mode=crossed)

    def missed(self) -> CacheStats:
        """With one look-up more that raised `ReplayCacheMissError`."""
        return replace(self, misses=self.misses + 1)


def cache_key_of(payload: Mapping[str, JSON]) -> str | None:
    """The key of a row: ``cache_key``, or its alias ``cacheKey``; None when it has none.

    An explicit null is no key. The caller turns the error into one with chat and row.

    Raises:
        ValueRefused: both are there and differ; or a key is no text, blank, over 1024 characters
            or holds what no store can keep. The message never holds the value.
    """
    found: str | None = None
    for name in ("cache_key", "cacheKey"):
        value = payload.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or not value.strip():
            raise ValueRefused(f"/{name}: a cache key is a text that is not blank", remedy="")
        try:
            check_owner(value, "-")
        except ReplayArgumentError:
            raise ValueRefused(
                f"/{name}: over {MAX_KEY} characters, or what no store can keep", remedy=""
            ) from None
        if found is not None and found != value:
            raise ValueRefused("/cache_key and /cacheKey are two different keys", remedy="")
        found = value
    return found


async def look_up(
    backend: CacheBackend,
    *,
    key: str,
    mode: CacheReadMode | str,
    tenant_id: str,
    chat_id: str,
    sequence_number: int,
    runtime_mode: RuntimeMode = "prod",
) -> CacheLookup:
    """What the cache says about a row's key, under ``mode``. Makes no call, in any mode.

    Args:
        runtime_mode: the mode of the runtime that reads; an entry of the other one is a hit too,
            and marked ``cross_mode``.

    Raises:
        ReplayCacheMissError: ``reason`` is "read_forbidden" in strict-mode, before the backend is
            read, or "miss" in cross-mode-readable.
        ReplayArgumentError: an unknown mode; a key or tenant that is no text or blank.
        StoreError: the backend failed, or gave what is no `CacheEntry`.
    """
    wanted = read_mode(mode)
    check_owner(key, tenant_id)
    check_runtime_mode("runtime_mode", runtime_mode)

    def missed(reason: Literal["miss", "read_forbidden"]) -> ReplayCacheMissError:
        return ReplayCacheMissError(
            chat_id=chat_id,
            tenant_id=tenant_id,
            key=key,
            mode=wanted.value,
            sequence_number=sequence_number,
            reason=reason,
        )

    if wanted is CacheReadMode.STRICT_MODE:
        raise missed("read_forbidden")
    entry = await read_entry(backend, key, tenant_id)
    if entry is not None:
        crossed = entry.recorded_mode != runtime_mode
        return CacheLookup(key, "cache", True, crossed, entry.value)
    if wanted is CacheReadMode.CROSS_MODE_READABLE:
        raise missed("miss")
    return CacheLookup(key, "live", False)


async def read_entry(backend: CacheBackend, key: str, tenant_id: str) -> CacheEntry | None:
    """One read of any backend.

    Raises:
        StoreError: it failed (the cause is kept), or gave what is no `CacheEntry`.
    """
    try:
        entry = await backend.get(key, tenant_id=tenant_id)
    except StoreError:
        raise
    except Exception as error:
        raise failed(error) from error
    if entry is not None and not isinstance(entry, CacheEntry):
        raise StoreError(
            f"the cache backend gave {type(entry).__name__}", remedy="It gives a CacheEntry or None"
        )
    return entry


def failed(error: Exception) -> StoreError:
    """A backend's own error as a `StoreError`; its words may hold anything and are left out."""
    return StoreError(
        f"the cache backend failed: {type(error).__name__}",
        remedy="Its error is the cause of this one",
    )
