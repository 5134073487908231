"""The cache matrix, through a handle: modes x what the row and the backend hold.

Every cell has its exact outcome: the lookup, or the error with each field. Whatever comes of it,
the fold is the same: cache values never enter a state.
"""

from __future__ import annotations

from typing import Any

import pytest

from facets import CHAT, TENANT, ListEvents, Runtime, row
from playhead.errors import ReplayCacheMissError, ReplayDivergenceError, StoreError
from playhead.replay import ReplayClient
from playhead.replay.cache import CacheEntry, CacheLookup, CacheReadMode, CacheStats, MemoryCache
from playhead.replay.handle import ReplayHandle

KEY = "ck1:" + "0" * 64
MODES = [mode.value for mode in CacheReadMode]


class Counting(MemoryCache):
    """How often it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        self.reads += 1
        return await super().get(key, tenant_id=tenant_id)


async def opened(payload: dict[str, Any], mode: str, backend: Any) -> ReplayHandle:
    given = [row(1, "turn.started"), row(2, "model.responded", payload), row(3, "turn.completed")]
    client = ReplayClient(Runtime(ListEvents(given)), cache_backend=backend)
    handle = await client.from_event_log(CHAT, tenant_id=TENANT, cache_read_mode=mode)
    first = await handle.step()
    assert not first.done and first.cache_lookup is None
    return handle


async def filled(mode: str = "prod", *, tenant: str = TENANT) -> Counting:
    backend = Counting()
    await backend.put(KEY, CacheEntry({"said": "hello"}, mode), tenant_id=tenant)  # type: ignore[arg-type]
    return backend


async def missed(handle: ReplayHandle, mode: str, reason: str) -> None:
    """The step raises, twice alike, and moves nothing; a seek crosses the row."""
    before = handle.state_digest()
    for _ in range(2):
        with pytest.raises(ReplayCacheMissError) as caught:
            await handle.step()
        error = caught.value
        assert isinstance(error, ReplayDivergenceError)
        seen = (error.key, error.mode, error.sequence_number, error.reason, error.kind)
        assert seen == (KEY, mode, 2, reason, "cache")
        assert (error.chat_id, error.tenant_id) == (CHAT, TENANT)
        assert handle.current_sequence_number() == 1 and handle.state_digest() == before
    assert handle.cache_stats() == CacheStats(misses=2)
    await handle.seek(3)
    assert handle.current_state().event_count == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["cache_key", "cacheKey"])
async def test_a_hit(mode: str, name: str) -> None:
    backend = await filled()
    handle = await opened({name: KEY}, mode, backend)
    if mode == "strict-mode":
        await missed(handle, mode, "read_forbidden")
        assert backend.reads == 0  # it raises before the backend is read
        return
    result = await handle.step()
    assert not result.done
    assert result.cache_lookup == CacheLookup(KEY, "cache", True, False, {"said": "hello"})
    assert handle.cache_stats() == CacheStats(hits=1) and backend.reads == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_hit_that_was_recorded_in_the_other_mode(mode: str) -> None:
    handle = await opened({"cache_key": KEY}, mode, await filled("test"))
    if mode == "strict-mode":
        await missed(handle, mode, "read_forbidden")
        return
    result = await handle.step()
    assert not result.done
    assert result.cache_lookup == CacheLookup(KEY, "cache", True, True, {"said": "hello"})
    assert handle.cache_stats() == CacheStats(hits=1, cross_mode=1)


@pytest.mark.parametrize("mode", MODES)
async def test_a_miss(mode: str) -> None:
    handle = await opened({"cache_key": KEY}, mode, Counting())
    if mode != "best-effort":
        reason = "miss" if mode == "cross-mode-readable" else "read_forbidden"
        await missed(handle, mode, reason)
        return
    result = await handle.step()
    assert not result.done and result.cache_lookup == CacheLookup(KEY, "live", False)
    assert handle.cache_stats() == CacheStats(live=1)


@pytest.mark.parametrize("mode", MODES)
async def test_another_tenants_entry_is_a_miss(mode: str) -> None:
    handle = await opened({"cache_key": KEY}, mode, await filled(tenant="somebody-else"))
    if mode == "best-effort":
        result = await handle.step()
        assert not result.done and result.cache_lookup == CacheLookup(KEY, "live", False)
    else:
        reason = "miss" if mode == "cross-mode-readable" else "read_forbidden"
        await missed(handle, mode, reason)


@pytest.mark.parametrize("mode", MODES)
async def test_no_backend_looks_nothing_up_in_any_mode(mode: str) -> None:
    handle = await opened({"cache_key": KEY}, mode, None)
    result = await handle.step()
    assert not result.done and result.cache_lookup is None
    assert handle.cache_stats() == CacheStats()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("payload", [{}, {"cache_key": None}])
async def test_a_row_without_a_key_is_not_looked_up(mode: str, payload: dict[str, Any]) -> None:
    backend = await filled()
    handle = await opened(payload, mode, backend)
    result = await handle.step()
    assert not result.done and result.cache_lookup is None and backend.reads == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "payload", [{"cache_key": KEY, "cacheKey": "other"}, {"cache_key": ""}, {"cache_key": 7}]
)
async def test_a_key_that_is_none_diverges(mode: str, payload: dict[str, Any]) -> None:
    handle = await opened(payload, mode, await filled())
    with pytest.raises(ReplayDivergenceError) as caught:
        await handle.step()
    assert type(caught.value) is ReplayDivergenceError
    assert (caught.value.kind, caught.value.sequence_number) == ("cache", 2)
    assert handle.current_sequence_number() == 1


async def test_a_backend_that_breaks_is_no_miss() -> None:
    class Broken(MemoryCache):
        async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
            raise OSError("gone")

    handle = await opened({"cache_key": KEY}, "best-effort", Broken())
    with pytest.raises(StoreError):
        await handle.step()
    assert handle.current_sequence_number() == 1


async def test_the_value_never_enters_the_state() -> None:
    with_cache = await opened({"cache_key": KEY}, "best-effort", await filled())
    without = await opened({"cache_key": KEY}, "best-effort", None)
    for handle in (with_cache, without):
        await handle.step()
    assert with_cache.state_digest() == without.state_digest()
