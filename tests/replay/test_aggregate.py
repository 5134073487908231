"""Many tenants and chats: one order whatever finishes first, nobody without leave, any executor."""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import playhead
from facets import Runtime, row
from playhead.errors import (
    NotFound,
    ReplayArgumentError,
    ReplayTenantMismatchError,
    UsageError,
)
from playhead.formats.journal import SEGMENT
from playhead.replay import create_replay_runtime, replay_all
from playhead.replay.outcomes import AggregateResult
from playhead.replay.source import StoreRuntime, projections_of
from playhead.store.urls import open_store

CHATS = {"b": ["y", "x"], "a": ["z"]}


class ManyEvents:
    """Chats of two tenants; each read waits for its turn in ``order``, if one is given."""

    def __init__(self, order: list[str] | None = None) -> None:
        self.order = order or []
        self.turn = asyncio.Event()

    async def iterate(
        self, *, chat_id: str, tenant_id: str, from_sequence_number: int = 0
    ) -> AsyncIterator[Any]:
        while self.order and chat_id != self.order[0]:
            await asyncio.sleep(0)
        for number in (1, 2):
            payload = {"interrupt_id": "same-id", "reason": f"{tenant_id}/{chat_id}"}
            yield row(number, "interrupt.raised" if number == 1 else "a.b", payload)
        if self.order:
            self.order.pop(0)

    async def fold(self) -> None: ...

    async def list_chats(self, tenant_id: str) -> list[str]:
        return CHATS.get(tenant_id, [])


def runtime(order: list[str] | None = None, **options: Any) -> Any:
    options.setdefault("authorize", lambda tenant: True)
    return create_replay_runtime(
        tenant_id="a", session_runtime=Runtime(ManyEvents(order)), **options
    )


@pytest.mark.parametrize("order", [None, ["x", "y", "z"], ["z", "y", "x"], ["y", "z", "x"]])
async def test_the_order_is_that_of_the_tenants_given_and_then_of_the_chats(order: Any) -> None:
    found = await runtime(order).aggregate_multi_tenant(["b", "a"], aggregation="merged")
    assert [one.tenant_id for one in found.tenants] == ["b", "a"]
    assert [[c.chat_id for c in one.chats] for one in found.tenants] == [["x", "y"], ["z"]]
    assert [one.event_count for one in found.tenants] == [4, 2]
    assert found.merged is not None
    assert found.merged["eventCount"] == 6
    said = [
        (r["tenant_id"], r["chat_id"], r["value"]["value"]["reason"])
        for r in found.merged["interrupts"]
    ]
    assert said == [("b", "x", "b/x"), ("b", "y", "b/y"), ("a", "z", "a/z")]
    json.dumps(found.to_dict())


async def test_per_tenant_merges_nothing() -> None:
    found = await runtime().aggregate_multi_tenant(["a", "b"])
    assert found.merged is None and "merged" not in found.to_dict()


async def test_chats_may_be_named() -> None:
    found = await runtime().aggregate_multi_tenant(["b", "a"], chats={"b": ["y"]})
    assert [[c.chat_id for c in one.chats] for one in found.tenants] == [["y"], []]


async def test_every_tenant_needs_leave_the_own_one_too() -> None:
    for authorize in (None, lambda tenant: False, lambda tenant: tenant != "b", lambda tenant: 1):
        with pytest.raises(ReplayTenantMismatchError) as caught:
            await runtime(authorize=authorize).aggregate_multi_tenant(["a", "b"])
        assert caught.value.tenant_id in ("a", "b")
    asked = []

    async def ask(tenant: str) -> bool:
        asked.append(tenant)
        return True

    found = await runtime(authorize=None).aggregate_multi_tenant(["b", "a"], authorize=ask)
    assert asked == ["b", "a"] and len(found.tenants) == 2

    def broken(tenant: str) -> bool:
        raise OSError("the directory is gone")

    with pytest.raises(OSError, match="the directory is gone"):
        await runtime(authorize=broken).aggregate_multi_tenant(["a"])


@pytest.mark.parametrize(
    ("tenants", "options", "field"),
    [
        ([], {}, "tenant_ids"),
        ("ab", {}, "tenant_ids"),
        (None, {}, "tenant_ids"),
        (["a", ""], {}, "tenant_ids"),
        (["a", None], {}, "tenant_ids"),
        (["a", "a"], {}, "tenant_ids"),
        (["a"], {"aggregation": "all"}, "aggregation"),
        (["a"], {"on_error": "ignore"}, "on_error"),
        (["a"], {"max_concurrency": 0}, "max_concurrency"),
        (["a"], {"chats": {"a": [""]}}, "chats"),
        (["a"], {"chats": {"a": "xy"}}, "chats"),
        (["a"], {"chats": {"a": ["x", "x"]}}, "chats"),
        (["a"], {"chats": {"b": ["x"]}}, "chats"),
        (["a"], {"chats": ["x"]}, "chats"),
        (["a"], {"authorize": "yes"}, "authorize"),
    ],
)
async def test_bad_arguments_are_named(tenants: Any, options: Any, field: str) -> None:
    with pytest.raises(ReplayArgumentError) as caught:
        await runtime().aggregate_multi_tenant(tenants, **options)
    assert caught.value.field == field


async def test_a_fault_is_raised_or_collected() -> None:
    class Faulty(ManyEvents):
        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            if words["chat_id"] == "x":
                raise NotFound("the chat is gone")
            async for item in super().iterate(**words):
                yield item

    replay = create_replay_runtime(
        tenant_id="a", session_runtime=Runtime(Faulty()), authorize=lambda tenant: True
    )
    with pytest.raises(NotFound):
        await replay.aggregate_multi_tenant(["a", "b"])
    found = await replay.aggregate_multi_tenant(["a", "b"], on_error="collect")
    assert [(c.tenant_id, c.chat_id) for c in found.failed] == [("b", "x")]
    assert found.failed[0].error is not None and found.failed[0].error["code"] == "not-found"
    assert [len(one.chats) for one in found.tenants] == [1, 2]


async def test_a_row_of_somebody_else_stops_it() -> None:
    class Leaking(ManyEvents):
        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            yield row(1, "a.b", {"v": "SECRET"}) | {"tenant_id": "SECRET"}

    replay = create_replay_runtime(
        tenant_id="a", session_runtime=Runtime(Leaking()), authorize=lambda tenant: True
    )
    with pytest.raises(ReplayTenantMismatchError) as caught:
        await replay.aggregate_multi_tenant(["a"])
    assert "SECRET" not in repr(caught.value)


@pytest.mark.parametrize("how", ["cancelled", "raised"])
async def test_nothing_goes_on_behind_one_that_ended_early(how: str) -> None:
    class Waiting(ManyEvents):
        open = 0

        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            Waiting.open += 1
            try:
                if words["chat_id"] == "x" and how == "raised":
                    raise OSError("the disk is gone")
                await asyncio.Event().wait()
                yield None
            finally:
                Waiting.open -= 1

    replay = create_replay_runtime(
        tenant_id="a", session_runtime=Runtime(Waiting()), authorize=lambda tenant: True
    )
    task = asyncio.ensure_future(replay.aggregate_multi_tenant(["a", "b"], on_error="collect"))
    if how == "cancelled":
        while Waiting.open < 3:
            await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError if how == "cancelled" else OSError):
        await task
    assert Waiting.open == 0 and asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_cache_is_never_asked() -> None:
    class Keyed(ManyEvents):
        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            yield row(1, "model.responded", {"call_id": "c", "cache_key": "ck1:x"})

    class Broken:
        def get(self, key: object, **more: object) -> object:
            raise AssertionError

    replay = create_replay_runtime(
        tenant_id="a",
        session_runtime=Runtime(Keyed()),
        authorize=lambda tenant: True,
        cache_backend=Broken(),  # type: ignore[arg-type]
    )
    assert not (await replay.aggregate_multi_tenant(["a", "b"])).failed


# -- a store, any executor


def fill(url: str) -> None:
    for tenant in ("acme", "globex"):
        for number in range(3):
            with playhead.record(
                "agent", root=url, tenant_id=tenant, chat_id=f"{tenant}-{number}"
            ) as run:
                for step in range(number + 1):
                    run.event("interrupt.raised", {"interrupt_id": f"i{step}", "reason": tenant})


@pytest.fixture(params=["directory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    places = {"directory": str(tmp_path / "r"), "sqlite": f"sqlite:///{tmp_path / 'r.db'}"}
    fill(places[request.param])
    return places[request.param]


def whole(url: str, executor: Executor, **options: Any) -> AggregateResult:
    return replay_all(
        url,
        ["globex", "acme"],
        executor=executor,
        aggregation="merged",
        projections=("usage",),
        **options,
    )


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


@contextmanager
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


@contextmanager
def dask() -> Iterator[Executor]:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client.get_executor()


@pytest.mark.parametrize("where", [threads, processes, pytest.param(dask, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_any_executor_gives_the_same_result(where: Any, url: str) -> None:
    seen: list[tuple[int, int]] = []
    with where() as executor:
        found = whole(url, executor, progress=lambda done, total: seen.append((done, total)))
    with threads() as executor:
        assert found == whole(url, executor)
    assert [one.tenant_id for one in found.tenants] == ["globex", "acme"]
    assert [chat.chat_id for chat in found.tenants[1].chats] == ["acme-0", "acme-1", "acme-2"]
    assert {chat.verdict for one in found.tenants for chat in one.chats} == {"verified"}
    assert found.merged is not None and len(found.merged["interrupts"]) == 12
    assert seen[-1] == (6, 6) and not found.failed
    assert json.dumps(found.to_dict()).count("usage") == 6


@pytest.mark.parametrize("where", [threads, processes])
def test_a_damaged_chain_is_one_failed_outcome_and_the_rest_is_there(
    tmp_path: Path, where: Any
) -> None:
    root = str(tmp_path / "r")
    fill(root)
    [path] = (Path(root) / "runtime" / "journal" / "acme-1").glob(SEGMENT)
    path.write_bytes(path.read_bytes().replace(b"interrupt.raised", b"interrupt.r4ised", 1))
    with where() as executor:
        found = whole(root, executor)
    with threads() as executor:
        assert found == whole(root, executor) == pickle.loads(pickle.dumps(found))
    assert [chat.chat_id for chat in found.failed] == ["acme-1"]
    assert found.failed[0].error is not None
    assert found.failed[0].error["code"] == "replay-divergence"
    assert [len(one.chats) for one in found.tenants] == [3, 3]


async def test_a_runtime_over_the_store_gives_what_the_workers_give(url: str) -> None:
    with StoreRuntime.open(url) as opened:
        replay = create_replay_runtime(
            tenant_id="acme",
            session_runtime=opened,
            authorize=lambda tenant: True,
            projections=projections_of(("usage",)),
        )
        here = await replay.aggregate_multi_tenant(["globex", "acme"], aggregation="merged")
    with threads() as executor:
        assert whole(url, executor) == here


def test_what_has_not_begun_is_cancelled(tmp_path: Path) -> None:
    root = str(tmp_path / "r")
    fill(root)

    class Held(ThreadPoolExecutor):
        futures: tuple[Any, ...] = ()

        def submit(self, *words: Any, **more: Any) -> Any:
            self.futures += (super().submit(*words, **more),)
            if len(self.futures) == 1:
                self.go = Event()
                self.futures += (super().submit(self.go.wait),)
            return self.futures[0] if len(self.futures) == 2 else self.futures[-1]

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with Held(1) as executor:
        with pytest.raises(KeyboardInterrupt):
            replay_all(root, ["acme", "globex"], executor=executor, progress=interrupted)
        executor.go.set()
        assert [future.cancelled() for future in executor.futures] == [False, False, *[True] * 5]


INTERRUPTED = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from playhead.replay import replay_all

def seen(done, total):
    print("working", flush=True)
    sys.stdin.readline()

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        try:
            replay_all(sys.argv[1], ["acme"], executor=executor, progress=seen)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_run_over_processes(tmp_path: Path) -> None:
    root = str(tmp_path / "r")
    fill(root)
    script = tmp_path / "all.py"
    script.write_text(INTERRUPTED)
    child = subprocess.Popen(
        [sys.executable, str(script), root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(60) == 0


def test_many_small_chats_are_handed_over_in_pieces(tmp_path: Path) -> None:
    root = str(tmp_path / "r")
    for number in range(150):
        with playhead.record("a", root=root, tenant_id="acme", chat_id=f"c{number:03}"):
            pass

    class Counted(ThreadPoolExecutor):
        tasks = 0

        def submit(self, *words: Any, **more: Any) -> Any:
            self.tasks += 1
            return super().submit(*words, **more)

    with Counted(2) as executor:
        found = replay_all(root, ["acme"], executor=executor)
    assert [c.chat_id for c in found.tenants[0].chats] == [f"c{n:03}" for n in range(150)]
    assert executor.tasks == 75


def test_arguments_of_a_whole_store_are_checked(tmp_path: Path) -> None:
    with threads() as executor:
        for tenants in ([], ["", "a"], [None], ["a", "a"]):
            with pytest.raises(ReplayArgumentError):
                replay_all(str(tmp_path), tenants, executor=executor)  # type: ignore[arg-type]
        with pytest.raises(ReplayArgumentError) as caught:
            replay_all(str(tmp_path), ["a"], executor=executor, projections=["nobody"])
        assert caught.value.field == "projections" and "turns" in str(caught.value)
        with pytest.raises(UsageError):
            replay_all("mongodb://x", ["a"], executor=executor)
        found = replay_all(str(tmp_path / "none"), ["a"], executor=executor)
        assert found.tenants[0].chats == ()


def test_memory_is_not_shared_with_a_worker(tmp_path: Path) -> None:
    for url in ("memory://", "Memory://"):
        with threads() as executor, pytest.raises(UsageError, match="worker can open"):
            replay_all(url, ["a"], executor=executor)


def test_an_open_store_is_no_url(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "r"))
    with threads() as executor, pytest.raises(UsageError):
        replay_all(store, ["a"], executor=executor)  # type: ignore[arg-type]
    store.close()
