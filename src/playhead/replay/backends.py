"""Where a replay cache keeps its answers: a protocol, a SQLite file, memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from typing import Protocol

from playhead.core.cacheentry import CacheEntry, Kept, check_owner, keep, taken
from playhead.errors import ReplayArgumentError
from playhead.store.cachedb import CacheFile


class CacheBackend(Protocol):
    """Where answers are kept, by tenant and key. Whatever it raises reaches the replay."""

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        """The entry under this key of this tenant; None when there is none."""
        ...

    async def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
        """Keep an entry; one that is there is replaced."""
        ...


class MemoryCache:
    """A cache in memory, for tests and short programs. Thread-safe.

    Values are kept as canonical bytes, so every `get` gives a fresh value. ``max_entries`` bounds
    it; the entry that was not used for longest goes first.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        if type(max_entries) is not int or max_entries < 1:
            raise ReplayArgumentError("max_entries", "must be an int from 1 on")
        self._most = max_entries
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._lock = threading.Lock()

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        """See `CacheBackend`.

        Raises:
            ReplayArgumentError: a bad key or tenant.
        """
        check_owner(key, tenant_id)
        with self._lock:
            kept = self._kept.get((tenant_id, key))
            if kept is None:
                return None
            self._kept.move_to_end((tenant_id, key))
        return taken(kept, key=key, tenant_id=tenant_id, where="memory")

    async def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
        """See `CacheBackend`.

        Raises:
            ReplayArgumentError: a bad key or tenant. ValueRefused: no plain JSON value.
            TooLarge: over 16 MiB.
        """
        kept = keep(entry, key=key, tenant_id=tenant_id)
        with self._lock:
            self._kept[tenant_id, key] = kept
            self._kept.move_to_end((tenant_id, key))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class SqliteCache:
    """A cache in one SQLite file, made owner-only at its first use.

    Several processes may use the file at once. Work is done in a thread, so that a slow disk
    does not hold up the event loop.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = CacheFile(path)

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        """See `CacheBackend`.

        Raises:
            ReplayArgumentError: a bad key or tenant.
            StoreError: the file is damaged or no cache, or the entry is not what was put.
            Unreadable: a link, a device or no permission.
        """
        return await asyncio.to_thread(self._file.get, key, tenant_id=tenant_id)

    async def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
        """See `CacheBackend`.

        Raises:
            ReplayArgumentError: a bad key or tenant. ValueRefused: no plain JSON value.
            TooLarge: over 16 MiB. StoreError, Unreadable: as `get`.
        """
        await asyncio.to_thread(self._file.put, key, entry, tenant_id=tenant_id)

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        self._file.close()
