"""The same replay without ``await``: ``SyncReplayClient`` and its handle.

It works inside a running event loop too: what has to wait runs on one loop in a thread of its
own. A step whose row was read ahead does not wait, and takes no other way than `ReplayHandle`'s.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Self, TypeVar

from playhead.core.fold import Folded, Projection
from playhead.core.model import JSON, Report
from playhead.core.state import State
from playhead.replay.arguments import Base, Snapshots, Verify
from playhead.replay.cache import CacheBackend, CacheReadMode, CacheStats
from playhead.replay.client import ReplayClient
from playhead.replay.facet import ReplayRuntimeFacet
from playhead.replay.handle import ReplayHandle, Stepped
from playhead.replay.persisted import SnapshotUse
from playhead.replay.results import ReplayDoneResult, ReplayStepResult, ReplayTurnResult
from playhead.replay.window import Window
from playhead.store.snapshots import SnapshotStore

T = TypeVar("T")


class LoopThread:
    """One event loop in a daemon thread, started when it is first used, stopped by `close` or
    when nobody holds it any more."""

    def __init__(self) -> None:
        self._start = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: weakref.finalize[..., LoopThread] | None = None

    def run(self, work: Coroutine[object, object, T]) -> T:
        """The result of ``work``; Ctrl-C in the caller cancels it there."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._start:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_forever, args=(loop,), name="playhead-replay", daemon=True
                )
                thread.start()
                self._loop = loop
                self._stop = weakref.finalize(self, _stop, loop, thread)
            return self._loop

    def close(self) -> None:
        """Stop the thread. Idempotent; the next use starts another one."""
        with self._start:
            self._loop = None
            if self._stop is not None:
                self._stop()


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join()


class SyncReplayClient:
    """`ReplayClient` without ``await``. Arguments and errors are those of `ReplayClient`."""

    def __init__(
        self,
        runtime: ReplayRuntimeFacet,
        *,
        cache_backend: CacheBackend | None = None,
        snapshot_store: SnapshotStore | None = None,
    ) -> None:
        self._client = ReplayClient(
            runtime, cache_backend=cache_backend, snapshot_store=snapshot_store
        )
        self._thread = LoopThread()

    @classmethod
    def over(cls, client: ReplayClient) -> SyncReplayClient:
        """The synchronous form of a client that is there."""
        made = cls.__new__(cls)
        made._client = client
        made._thread = LoopThread()
        return made

    def from_event_log(
        self,
        chat_id: str,
        *,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
        cache_read_mode: CacheReadMode | str = CacheReadMode.CROSS_MODE_READABLE,
        projections: Iterable[Projection] | None = None,
        base: Base = "zero",
        verify: Verify = "open",
        snapshots: Snapshots = "use",
        unreadable: str = "raise",
        snapshot_store: SnapshotStore | None = None,
    ) -> SyncReplayHandle:
        """A fresh handle, open. See `ReplayClient.from_event_log`."""
        opening = self._client.from_event_log(
            chat_id,
            tenant_id=tenant_id,
            from_sequence_number=from_sequence_number,
            up_to_sequence_number=up_to_sequence_number,
            cache_read_mode=cache_read_mode,
            projections=projections,
            base=base,
            verify=verify,
            snapshots=snapshots,
            unreadable=unreadable,
            snapshot_store=snapshot_store,
        )

        async def opened() -> ReplayHandle:
            return await opening

        return SyncReplayHandle(self._thread.run(opened()), self._thread)

    def close(self) -> None:
        """Stop the thread that waits and close the client below; its handles stand still."""
        self._thread.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class SyncReplayHandle:
    """`ReplayHandle` without ``await``; moves of several threads wait for one another."""

    def __init__(self, handle: ReplayHandle, thread: LoopThread) -> None:
        self._handle = handle
        self._thread = thread
        self._turn = threading.Lock()

    @property
    def window(self) -> Window:
        return self._handle.window

    @property
    def report(self) -> Report | None:
        return self._handle.report

    @property
    def folded(self) -> Folded:
        return self._handle.folded

    @property
    def row_hash(self) -> str:
        return self._handle.row_hash

    def current_state(self) -> State:
        """See `ReplayHandle.current_state`."""
        return self._handle.current_state()

    def current_sequence_number(self) -> int:
        """See `ReplayHandle.current_sequence_number`."""
        return self._handle.current_sequence_number()

    def view(self, key: str) -> JSON:
        """See `ReplayHandle.view`."""
        return self._handle.view(key)

    def state_digest(self) -> str:
        """See `ReplayHandle.state_digest`."""
        return self._handle.state_digest()

    def snapshot(self) -> bytes:
        """See `ReplayHandle.snapshot`."""
        return self._handle.snapshot()

    def cache_stats(self) -> CacheStats:
        """See `ReplayHandle.cache_stats`."""
        return self._handle.cache_stats()

    def snapshot_stats(self) -> SnapshotUse:
        """See `ReplayHandle.snapshot_stats`."""
        return self._handle.snapshot_stats()

    def step(self) -> Stepped:
        """See `ReplayHandle.step`."""
        with self._turn:
            ready = self._handle.step_ready()
            return self._thread.run(self._handle.step()) if ready is None else ready

    def seek(self, sequence_number: int) -> None:
        """See `ReplayHandle.seek`."""
        with self._turn:
            self._thread.run(self._handle.seek(sequence_number))

    def back(self) -> None:
        """See `ReplayHandle.back`."""
        with self._turn:
            self._thread.run(self._handle.back())

    def replay_turn(self, message_id: str | None = None) -> ReplayTurnResult:
        """See `ReplayHandle.replay_turn`."""
        with self._turn:
            return self._thread.run(self._handle.replay_turn(message_id))

    def close(self) -> None:
        """See `ReplayHandle.close`."""
        with self._turn:
            self._thread.run(self._handle.close())

    def __iter__(self) -> Iterator[ReplayStepResult]:
        while True:
            result = self.step()
            if isinstance(result, ReplayDoneResult):
                return
            yield result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
