"""The replay cache: the table of modes, keys of rows, tenants, two backends, hostile files."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.core import cacheentry
from playhead.core.cachekey import derive_content_hash_key as derived
from playhead.errors import (
    PlayheadError,
    ReplayArgumentError,
    ReplayCacheMissError,
    ReplayDivergenceError,
    StoreError,
    TooLarge,
    Unreadable,
    ValueRefused,
)
from playhead.replay.cache import (
    CacheBackend,
    CacheEntry,
    CacheLookup,
    CacheReadMode,
    CacheStamp,
    CacheStats,
    MemoryCache,
    SqliteCache,
    cache_key_of,
    derive_content_hash_key,
    look_up,
    read_mode,
)
from playhead.replay.middleware import CachedAnswer, cache_middleware, request_stamp

KEY = "ck1:" + "0" * 64
ANSWER = {"text": "Grüezi", "parts": [1, 1.0, None, True]}
MODES = [mode.value for mode in CacheReadMode]
READING = ["cross-mode-readable", "best-effort"]
Backend = MemoryCache | SqliteCache


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return MemoryCache() if request.param == "memory" else SqliteCache(tmp_path / "cache" / "c.db")


class Untouchable:
    """A backend that nobody may ask."""

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        raise AssertionError("it was read")

    put: Any = get


class Failing:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def get(self, key: str, *, tenant_id: str) -> CacheEntry | None:
        raise self.error

    async def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
        raise self.error


async def ask(backend: CacheBackend, mode: Any = "best-effort", **more: Any) -> CacheLookup:
    where: dict[str, Any] = {
        "key": KEY,
        "mode": mode,
        "tenant_id": "acme",
        "chat_id": "chat-1",
        "sequence_number": 7,
    }
    return await look_up(backend, **{**where, **more})


# -- the table of modes


@pytest.mark.parametrize("mode", READING)
@pytest.mark.parametrize("recorded", ["prod", "test"])
@pytest.mark.parametrize("runtime", ["prod", "test"])
async def test_a_hit_is_given_whatever_mode_it_was_recorded_in(
    backend: Backend, mode: str, recorded: Any, runtime: Any
) -> None:
    await backend.put(KEY, CacheEntry(ANSWER, recorded, 1_700_000_000_000), tenant_id="acme")
    found = await ask(backend, mode, runtime_mode=runtime)
    assert found == CacheLookup(KEY, "cache", True, recorded != runtime, ANSWER)
    assert await ask(backend, CacheReadMode(mode), runtime_mode=runtime) == found


async def test_an_answer_of_null_is_a_hit(backend: Backend) -> None:
    await backend.put(KEY, CacheEntry(None), tenant_id="acme")
    assert await ask(backend, "cross-mode-readable") == CacheLookup(KEY, "cache", True)


async def test_a_miss_raises_in_the_default_mode(backend: Backend) -> None:
    with pytest.raises(ReplayCacheMissError) as raised:
        await ask(backend, "cross-mode-readable")
    error = raised.value
    assert (error.key, error.mode, error.reason) == (KEY, "cross-mode-readable", "miss")
    assert (error.chat_id, error.tenant_id, error.sequence_number) == ("chat-1", "acme", 7)
    assert (error.kind, error.code, error.exit_code) == ("cache", "replay-cache-miss", 1)
    assert isinstance(error, ReplayDivergenceError)


async def test_a_miss_of_best_effort_goes_on_and_calls_nobody(backend: Backend) -> None:
    assert await ask(backend) == CacheLookup(
        key=KEY, via="live", hit=False, cross_mode=False, value=None
    )


async def test_strict_mode_raises_before_the_backend_is_read(backend: Backend) -> None:
    await backend.put(KEY, CacheEntry(ANSWER), tenant_id="acme")
    with pytest.raises(ReplayCacheMissError, match="event 7"):
        await ask(backend, "strict-mode")
    with pytest.raises(ReplayCacheMissError) as raised:
        await ask(Untouchable(), "strict-mode")
    error = raised.value
    assert (error.key, error.mode, error.reason) == (KEY, "strict-mode", "read_forbidden")
    assert (error.chat_id, error.tenant_id, error.sequence_number) == ("chat-1", "acme", 7)


@pytest.mark.parametrize(
    "mode", ["", "strict", "STRICT-MODE", "BEST_EFFORT", "best-effort ", None, True, 1, b"x", []]
)
async def test_another_mode_is_refused_with_the_list_of_modes(mode: Any) -> None:
    with pytest.raises(ReplayArgumentError) as raised:
        await ask(Untouchable(), mode)
    assert raised.value.field == "cache_read_mode"
    assert all(word in str(raised.value) for word in MODES)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, ValueError)


def test_a_mode_is_taken_as_itself_or_as_its_text() -> None:
    assert MODES == ["cross-mode-readable", "strict-mode", "best-effort"]
    for mode in CacheReadMode:
        assert read_mode(mode) is read_mode(mode.value) is mode


@pytest.mark.parametrize("mode", ["Prod", "", None, 1])
async def test_another_runtime_mode_is_refused(mode: Any) -> None:
    with pytest.raises(ReplayArgumentError, match="runtime_mode"):
        await ask(Untouchable(), runtime_mode=mode)
    with pytest.raises(ReplayArgumentError, match="recorded_mode"):
        CacheEntry(1, mode)


@pytest.mark.parametrize("mode", READING)
@pytest.mark.parametrize("error", [KeyError("s3cret row"), OSError(5), ValueRefused("s3cret")])
async def test_what_a_backend_raises_reaches_the_replay(mode: str, error: Exception) -> None:
    with pytest.raises(StoreError) as raised:
        await ask(Failing(error), mode)
    assert raised.value.__cause__ is error
    assert type(error).__name__ in str(raised.value)
    assert "s3cret" not in str(raised.value)


async def test_a_store_error_and_a_cancellation_pass_as_they_are() -> None:
    mine = StoreError("mine")
    with pytest.raises(StoreError) as raised:
        await ask(Failing(mine))
    assert raised.value is mine
    with pytest.raises(asyncio.CancelledError):
        await ask(Failing(asyncio.CancelledError()))


async def test_a_backend_that_gives_something_else_is_told() -> None:
    class Odd(Untouchable):
        async def get(self, key: str, *, tenant_id: str) -> Any:
            return {"value": "s3cret"}

    with pytest.raises(StoreError, match="gave dict") as raised:
        await ask(Odd())
    assert "s3cret" not in str(raised.value)


# -- the key of a row


@pytest.mark.parametrize(
    ("payload", "key"),
    [
        ({}, None),
        ({"cache_key": None}, None),
        ({"cacheKey": None, "cache_key": None}, None),
        ({"cache_key": KEY}, KEY),
        ({"cacheKey": KEY}, KEY),
        ({"cacheKey": KEY, "cache_key": KEY}, KEY),
        ({"cacheKey": KEY, "cache_key": None}, KEY),
        ({"cache_key": "a host's own"}, "a host's own"),
        ({"result": {"cache_key": KEY}, "cachekey": KEY, "Cache_Key": KEY}, None),
    ],
)
def test_the_key_of_a_row(payload: dict[str, object], key: str | None) -> None:
    assert cache_key_of(payload) == key


@pytest.mark.parametrize("name", ["cache_key", "cacheKey"])
@pytest.mark.parametrize(
    "value", ["", " \n", 1, True, False, [], {}, ["k"], "x" * 1025, "a\0b", "s3cret\ud800"]
)
def test_a_key_that_is_none_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueRefused) as raised:
        cache_key_of({name: value})
    assert name in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_two_keys_that_differ_are_refused() -> None:
    with pytest.raises(ValueRefused, match="two different keys") as raised:
        cache_key_of({"cache_key": "s3cret", "cacheKey": "s3cret2"})
    assert "s3cret" not in str(raised.value)


# -- tenants


async def test_another_tenant_has_no_entry_under_the_same_key(backend: Backend) -> None:
    await backend.put(KEY, CacheEntry("acme's"), tenant_id="acme")
    assert await backend.get(KEY, tenant_id="other") is None
    with pytest.raises(ReplayCacheMissError) as raised:
        await ask(backend, "cross-mode-readable", tenant_id="other")
    assert "acme" not in str(raised.value)
    await backend.put(KEY, CacheEntry("other's"), tenant_id="other")
    assert [(await ask(backend, tenant_id=t)).value for t in ("acme", "other")] == [
        "acme's",
        "other's",
    ]


@pytest.mark.parametrize("tenant", [None, "", "  ", "\t\n", 7, True, b"acme", "a\0b", "\ud800"])
async def test_a_tenant_that_is_none_is_refused(backend: Backend, tenant: Any) -> None:
    uses: list[Callable[[], Any]] = [
        lambda: backend.get(KEY, tenant_id=tenant),
        lambda: backend.put(KEY, CacheEntry(1), tenant_id=tenant),
        *(lambda mode=mode: ask(Untouchable(), mode, tenant_id=tenant) for mode in MODES),
    ]
    for use in uses:
        with pytest.raises(ReplayArgumentError) as raised:
            await use()
        assert raised.value.field == "tenant_id"
    with pytest.raises(ReplayArgumentError):
        cache_middleware(backend, tenant_id=tenant)


async def test_the_tenant_has_no_default(backend: Any) -> None:
    with pytest.raises(TypeError):
        await backend.get(KEY)
    with pytest.raises(TypeError):
        await backend.put(KEY, CacheEntry(1))
    with pytest.raises(TypeError):
        cache_middleware(backend)


@pytest.mark.parametrize("key", [None, "", " ", 1, "x" * 1025])
async def test_a_key_that_no_store_can_keep_is_refused(backend: Backend, key: Any) -> None:
    for use in (backend.get(key, tenant_id="t"), backend.put(key, CacheEntry(1), tenant_id="t")):
        with pytest.raises(ReplayArgumentError) as raised:
            await use
        assert raised.value.field == "key"


# -- backends


async def test_a_value_comes_back_equal_and_fresh(backend: Backend) -> None:
    entry = CacheEntry(ANSWER, "test", 1_700_000_000_123, "ck1")
    await backend.put(KEY, entry, tenant_id="acme")
    one, two = [await backend.get(KEY, tenant_id="acme") for _ in range(2)]
    assert one == two == entry
    assert one is not None and two is not None
    assert [type(part) for part in one.value["parts"]] == [int, float, type(None), bool]
    one.value["parts"].clear()
    assert two.value == ANSWER


async def test_a_later_put_replaces(backend: Backend) -> None:
    for value in (1, 2):
        await backend.put(KEY, CacheEntry(value), tenant_id="acme")
    assert await backend.get(KEY, tenant_id="acme") == CacheEntry(2)


@pytest.mark.parametrize("bad", [float("nan"), "\ud800", {1: 2}, b"x", object()])
async def test_a_value_that_is_no_plain_json_is_refused(backend: Backend, bad: object) -> None:
    with pytest.raises(ValueRefused):
        await backend.put(KEY, CacheEntry([bad]), tenant_id="acme")
    assert await backend.get(KEY, tenant_id="acme") is None


async def test_a_value_over_the_limit_is_refused_and_one_at_it_is_kept(backend: Backend) -> None:
    most = cacheentry.MAX_VALUE - 2
    with pytest.raises(TooLarge):
        await backend.put(KEY, CacheEntry("x" * (most + 1)), tenant_id="acme")
    await backend.put(KEY, CacheEntry("x" * most), tenant_id="acme")
    found = await backend.get(KEY, tenant_id="acme")
    assert found is not None and found.value == "x" * most


@pytest.mark.parametrize("at", [-1, 1.5, True, None, 1 << 60])
def test_a_time_that_is_none_is_refused(at: Any) -> None:
    with pytest.raises(ReplayArgumentError, match="recorded_at_ms"):
        CacheEntry(1, "prod", at)
    with pytest.raises(ReplayArgumentError, match="key_version"):
        CacheEntry(1, "prod", 0, " ")


async def test_memory_is_bounded_and_the_least_used_goes_first() -> None:
    cache = MemoryCache(2)
    for key in ("a", "b"):
        await cache.put(key, CacheEntry(key), tenant_id="t")
    await cache.get("a", tenant_id="t")
    await cache.put("c", CacheEntry("c"), tenant_id="t")
    assert [await cache.get(key, tenant_id="t") is None for key in "abc"] == [False, True, False]
    with pytest.raises(ReplayArgumentError):
        MemoryCache(0)


async def test_the_file_is_owner_only_stays_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cache.db"
    first, second = SqliteCache(path), SqliteCache(path)
    assert not path.exists()
    await first.put(KEY, CacheEntry(ANSWER), tenant_id="acme")
    assert await second.get(KEY, tenant_id="acme") == CacheEntry(ANSWER)
    for found in (path, *path.parent.glob("cache.db-*")):
        assert stat.S_IMODE(found.stat().st_mode) == 0o600, found
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    first.close()
    first.close()
    assert await first.get(KEY, tenant_id="acme") == CacheEntry(ANSWER)
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone()[0] == "wal"


async def test_many_writers_of_one_file_lose_nothing(tmp_path: Path) -> None:
    caches = [SqliteCache(tmp_path / "c.db") for _ in range(4)]
    await asyncio.gather(
        *(
            cache.put(f"{number}-{at}", CacheEntry(at), tenant_id="t")
            for number, cache in enumerate(caches)
            for at in range(20)
        )
    )
    for number in range(4):
        for at in range(20):
            assert await caches[0].get(f"{number}-{at}", tenant_id="t") == CacheEntry(at)


def test_a_forked_child_opens_the_file_for_itself(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "c.db")
    file = cache._file
    file.put("a", CacheEntry("parent"), tenant_id="t")
    pid = os.fork()
    if pid == 0:
        try:
            file.put("b", CacheEntry("child"), tenant_id="t")
            found = file.get("a", tenant_id="t") == CacheEntry("parent")
            os._exit(0 if found else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert file.get("b", tenant_id="t") == CacheEntry("child")


# -- files that are damaged, hostile or of somebody else


def filled(path: Path, *, rows: int = 200) -> None:
    cache = SqliteCache(path)
    for number in range(rows):
        cache._file.put(f"k{number}", CacheEntry("s3cret " * 20 + str(number)), tenant_id="acme")
    cache.close()
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE answers SET value = CAST('\"other\"' AS BLOB)",
        "UPDATE answers SET value = '\"text, no blob\"'",
        "UPDATE answers SET value = x''",
        "UPDATE answers SET digest = x'00'",
        "UPDATE answers SET digest = 'text'",
        "UPDATE answers SET recorded_mode = 'test'",
        "UPDATE answers SET recorded_mode = 'odd'",
        "UPDATE answers SET recorded_at_ms = 5",
        "UPDATE answers SET recorded_at_ms = 'soon'",
        "UPDATE answers SET recorded_at_ms = -1",
        "UPDATE answers SET key_version = 'ck2'",
        "UPDATE answers SET key = 'k0' WHERE key = 'k1'",
        "UPDATE answers SET tenant_id = 'acme', key = 'k0' WHERE tenant_id = 'evil'",
        "UPDATE answers SET value = CAST(x'ff' AS TEXT) WHERE key = 'k0'",
        "UPDATE answers SET value = zeroblob(17000000) WHERE key = 'k0'",
    ],
)
async def test_an_entry_that_was_changed_is_an_error_and_no_miss(
    tmp_path: Path, change: str
) -> None:
    path = tmp_path / "c.db"
    cache = SqliteCache(path)
    await cache.put("k1", CacheEntry("one s3cret"), tenant_id="acme")
    await cache.put("k9", CacheEntry("evil"), tenant_id="evil")
    if "key = 'k0' WHERE" not in change:
        await cache.put("k0", CacheEntry("zero s3cret"), tenant_id="acme")
    cache.close()
    link = sqlite3.connect(path)
    link.execute(change)
    link.commit()
    link.close()
    with pytest.raises(StoreError) as raised:
        await ask(SqliteCache(path), key="k0")
    assert "s3cret" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_wherever_a_byte_of_the_file_is_damaged_no_other_value_comes(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    filled(path)
    good = path.read_bytes()
    rng = random.Random(3)
    outcomes = set()
    for _ in range(150):
        data = bytearray(good)
        for at in rng.sample(range(len(data)), rng.choice((1, 40))):
            data[at] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        outcomes.add(_read_all(path))
    assert outcomes <= {"whole", "refused"}
    assert len(outcomes) == 2


def _read_all(path: Path) -> str:
    """What comes of reading every entry: each is what was put, not there, or an error of ours."""
    for side in path.parent.glob(f"{path.name}-*"):
        side.unlink()
    file = SqliteCache(path)._file
    outcome = "whole"
    try:
        for number in range(200):
            try:
                found = file.get(f"k{number}", tenant_id="acme")
            except PlayheadError as error:
                assert isinstance(error, StoreError)
                assert "s3cret" not in str(error)
                outcome = "refused"
                continue
            assert found is None or found == CacheEntry("s3cret " * 20 + str(number))
    finally:
        file.close()
    return outcome


@pytest.mark.parametrize("size", [1, 16, 99, 100, 4096, 5000])
async def test_a_file_cut_short_is_refused_or_empty_of_that_entry(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "c.db"
    filled(path)
    os.truncate(path, size)
    with pytest.raises(StoreError):
        for number in range(200):
            await SqliteCache(path).get(f"k{number}", tenant_id="acme")


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE answers(tenant_id, key, value, digest, a, b, c)",
        "CREATE VIEW answers AS SELECT 1",
        "CREATE TABLE notes(text)",
    ],
)
async def test_somebody_elses_database_is_refused_and_stays_as_it_is(
    tmp_path: Path, schema: str
) -> None:
    path = tmp_path / "mine.db"
    link = sqlite3.connect(path)
    link.execute(schema)
    link.commit()
    link.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no replay cache"):
        await SqliteCache(path).put(KEY, CacheEntry(1), tenant_id="acme")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "trap",
    [
        "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "CREATE TABLE more(x)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON answers(key_version)",
        "PRAGMA application_id = 7",
    ],
)
async def test_a_schema_with_anything_more_is_refused(tmp_path: Path, trap: str) -> None:
    path = tmp_path / "c.db"
    filled(path, rows=1)
    link = sqlite3.connect(path)
    link.execute(trap)
    link.commit()
    link.close()
    with pytest.raises(StoreError, match="no replay cache"):
        await SqliteCache(path).get("k0", tenant_id="acme")


async def test_no_link_directory_or_other_file_is_taken(tmp_path: Path) -> None:
    filled(tmp_path / "c.db", rows=1)
    (tmp_path / "link.db").symlink_to(tmp_path / "c.db")
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "text.db").write_text("This is no database. " * 100)
    for name in ("link.db", "folder.db"):
        with pytest.raises(Unreadable):
            await SqliteCache(tmp_path / name).get("k0", tenant_id="acme")
    for name in ("pipe.db", "text.db"):
        with pytest.raises((StoreError, Unreadable)):
            await SqliteCache(tmp_path / name).get("k0", tenant_id="acme")


# -- what travels


@pytest.mark.parametrize(
    "value",
    [
        CacheEntry(ANSWER, "test", 5),
        CacheLookup(KEY, "cache", True, True, ANSWER),
        CacheStats(1, 2, 3, 4),
        CacheReadMode.STRICT_MODE,
        CachedAnswer(1, KEY, True),
    ],
)
def test_values_pickle(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


async def test_a_miss_pickles_with_every_field() -> None:
    with pytest.raises(ReplayCacheMissError) as raised:
        await ask(MemoryCache(), "cross-mode-readable")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is ReplayCacheMissError
    assert vars(again) == vars(raised.value)
    assert str(again) == str(raised.value)


def test_the_counts_of_a_handle() -> None:
    stats = CacheStats()
    for lookup in (
        CacheLookup("a", "cache", True),
        CacheLookup("b", "cache", True, True),
        CacheLookup("c", "live", False),
    ):
        stats = stats.counted(lookup)
    assert stats.missed() == CacheStats(hits=2, misses=1, cross_mode=1, live=1)
    assert stats.misses == 0


def test_the_name_of_the_contract_is_here() -> None:
    assert derive_content_hash_key is derived


# -- the middleware for hosts

STAMP = request_stamp("m-1", {"temperature": 0})


class Model:
    """Counts how often it is asked."""

    def __init__(self, answer: Any = None) -> None:
        self.asked = 0
        self.answer = answer

    def __call__(self, stamp: CacheStamp, messages: list[object]) -> Any:
        self.asked += 1
        return {"n": self.asked, "messages": messages} if self.answer is None else self.answer

    async def later(self, stamp: CacheStamp, messages: list[object]) -> Any:
        return self(stamp, messages)


async def test_what_was_asked_once_is_not_asked_again(backend: Backend) -> None:
    model, cached = Model(), cache_middleware(backend, tenant_id="acme")
    first = await cached.call(model.later, STAMP, iter(["Hello"]))
    again = await cached.call(model.later, STAMP, ["Hello"])
    assert (first.hit, again.hit, model.asked) == (False, True, 1)
    assert first.value == again.value == {"n": 1, "messages": ["Hello"]}
    assert first.key == again.key == derive_content_hash_key(STAMP, ["Hello"])
    other = await cached.call(model.later, STAMP, ["Hello", "Hello"])
    assert (other.hit, model.asked) == (False, 2)
    found = await ask(backend, "cross-mode-readable", key=first.key)
    assert found.value == first.value


def test_a_plain_function_is_called_in_its_own_thread(backend: Backend) -> None:
    threads = set()

    def answer(stamp: CacheStamp, messages: list[object]) -> str:
        threads.add(threading.get_ident())
        return "ok"

    cached = cache_middleware(backend, tenant_id="acme")
    assert [cached.call_sync(answer, STAMP, ["x"]).hit for _ in range(2)] == [False, True]

    async def inside() -> bool:
        return cached.call_sync(answer, STAMP, ["x"]).hit

    assert asyncio.run(inside())
    assert threads == {threading.get_ident()}
    cached.close()
    cached.close()


async def test_tenants_of_the_middleware_are_apart(backend: Backend) -> None:
    model = Model()
    for tenant in ("acme", "other"):
        answer = await cache_middleware(backend, tenant_id=tenant).call(model.later, STAMP, ["x"])
        assert not answer.hit
    assert model.asked == 2


async def test_production_takes_no_answer_of_a_test_run(backend: Backend) -> None:
    model = Model()
    test, prod = [
        cache_middleware(backend, tenant_id="acme", mode=mode) for mode in ("test", "prod")
    ]
    assert (await test.call(model.later, STAMP, ["x"])).value["n"] == 1
    assert (await prod.call(model.later, STAMP, ["x"])).value["n"] == 2
    assert (await test.call(model.later, STAMP, ["x"])).value["n"] == 2
    assert (await ask(backend, key=prod.key(STAMP, ["x"]))).cross_mode is False


async def test_the_calls_own_exception_passes_and_nothing_is_kept(backend: Backend) -> None:
    error = LookupError("mine")

    async def fails(stamp: CacheStamp, messages: list[object]) -> object:
        raise error

    cached = cache_middleware(backend, tenant_id="acme")
    with pytest.raises(LookupError) as raised:
        await cached.call(fails, STAMP, ["x"])
    assert raised.value is error
    assert await backend.get(cached.key(STAMP, ["x"]), tenant_id="acme") is None


async def test_an_answer_that_cannot_be_kept_is_not_lost(backend: Backend) -> None:
    answer = object()
    cached = cache_middleware(backend, tenant_id="acme")
    with pytest.warns(RuntimeWarning, match="not in the cache"):
        found = await cached.call(Model(answer).later, STAMP, ["x"])
    assert found.value is answer
    assert isinstance(found.problem, ValueRefused)


async def test_a_cache_that_fails_after_the_call_loses_no_answer() -> None:
    class Full(MemoryCache):
        async def put(self, key: str, entry: CacheEntry, *, tenant_id: str) -> None:
            raise KeyError("s3cret")

    with pytest.warns(RuntimeWarning) as told:
        found = await cache_middleware(Full(), tenant_id="acme").call(Model("ok").later, STAMP, [])
    assert found.value == "ok"
    assert isinstance(found.problem, StoreError)
    assert "s3cret" not in str(told[0].message)


async def test_a_cache_that_cannot_be_read_calls_nobody() -> None:
    model = Model()
    with pytest.raises(StoreError):
        await cache_middleware(Failing(OSError(5)), tenant_id="a").call(model.later, STAMP, [])
    assert model.asked == 0


def test_the_middleware_wants_a_backend_and_a_mode() -> None:
    nothing: Any = object()
    with pytest.raises(ReplayArgumentError, match="get"):
        cache_middleware(nothing, tenant_id="acme")
    odd: Any = "live"
    with pytest.raises(ReplayArgumentError, match="mode"):
        cache_middleware(MemoryCache(), tenant_id="acme", mode=odd)


async def test_the_key_of_a_host_is_the_key_on_record(root: Path, backend: Backend) -> None:
    import playhead
    from playhead.core.events import decode_event
    from playhead.store.root import Root

    messages: list[object] = ["https://me:pa55word@example.org", "x" * 400_000, ("a", 1.0)]
    asked = {"temperature": 0, "seed": None, "system": "y" * 400_000, "stop": ("a", "b")}
    with playhead.record("agent", root=root) as run, run.model_call("m-1", messages, **asked) as c:
        cached = cache_middleware(backend, tenant_id="acme")
        answer = await cached.call(Model("ok").later, request_stamp("m-1", asked), messages)
        c.respond(answer.value)
    reader = playhead.JournalReader(Root(root).journal_dir(run.id))
    answered = next(
        event for event in map(decode_event, reader.entries()) if event.type == "model.responded"
    )
    assert cache_key_of(answered.payload) == answer.key
    assert (await ask(backend, key=answer.key)).value == "ok"
