"""The cache as one handle asks it: which rows have a key, what came back, how often."""

from __future__ import annotations

from playhead.core.logrow import LogRow
from playhead.errors import ReplayCacheMissError, ValueRefused
from playhead.replay.cache import CacheBackend, CacheLookup, CacheStats, cache_key_of, look_up
from playhead.replay.window import Window


class Lookups:
    """Asks ``backend`` for the rows of ``window``; None asks nothing, in every mode."""

    def __init__(self, backend: CacheBackend | None, window: Window) -> None:
        self.stats = CacheStats()
        self._backend = backend
        self._window = window

    def wanted(self, row: LogRow) -> bool:
        """True when the row must be looked up before it is folded.

        Raises:
            ReplayDivergenceError: its key is none, or it has two (kind "cache").
        """
        return self._backend is not None and self._key(row) is not None

    def _key(self, row: LogRow) -> str | None:
        try:
            return cache_key_of(row.event.payload)
        except ValueRefused as error:
            raise self._window.diverged("cache", error.what, row.sequence_number) from None

    async def look_up(self, row: LogRow) -> CacheLookup | None:
        """What the cache says about the row; None for a row that is not looked up.

        Raises:
            ReplayCacheMissError, StoreError: see `playhead.replay.cache.look_up`.
        """
        key = self._key(row)
        if key is None or self._backend is None:
            return None
        try:
            lookup = await look_up(
                self._backend,
                key=key,
                mode=self._window.mode,
                tenant_id=self._window.tenant_id,
                chat_id=self._window.chat_id,
                sequence_number=row.sequence_number,
            )
        except ReplayCacheMissError:
            self.stats = self.stats.missed()
            raise
        self.stats = self.stats.counted(lookup)
        return lookup
