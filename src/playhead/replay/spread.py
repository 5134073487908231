"""Every chat of some tenants, folded in processes of their own (``playhead replay --all``)."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from playhead.errors import StoreError, UsageError
from playhead.replay.aggregate import Aggregation, replay_all, require_tenants
from playhead.replay.outcomes import AggregateResult

MAX_JOBS = 256


def replay_spread(
    url: str,
    tenant_ids: Sequence[str],
    *,
    jobs: int,
    aggregation: Aggregation = "per-tenant",
    progress: Callable[[int, int], None] | None = None,
) -> AggregateResult:
    """Fold every chat of the tenants in the store at ``url``.

    Args:
        url: a directory or the URL of a store; ``memory://`` holds nothing that is to be found.
        jobs: processes at work; 1 folds in this one.

    Raises:
        UsageError: no tenant, one twice, a bad number of jobs.
        StoreError: the store, or a worker that was killed.
    """
    require_tenants(tenant_ids)
    if not 1 <= jobs <= MAX_JOBS:
        raise UsageError(f"--jobs is outside 1..{MAX_JOBS}", remedy="As many as there are cores")
    try:
        with _workers(jobs) as executor:
            return replay_all(
                url, tenant_ids, executor=executor, aggregation=aggregation, progress=progress
            )
    except BrokenProcessPool:
        raise StoreError(
            "a worker process ended early: killed, or out of memory",
            remedy="Use fewer --jobs",
        ) from None


@contextmanager
def _workers(jobs: int) -> Iterator[Executor]:
    """An executor; leaving it cancels what has not begun and waits for what has."""
    executor: Executor
    if jobs == 1:
        executor = ThreadPoolExecutor(1)
    else:
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=die_quietly)
    try:
        if jobs > 1:
            _start(executor)
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _start(executor: Executor) -> None:
    """Start the workers with Ctrl-C held back, so that none of them meets it half imported: a
    worker takes the mask over and lets it go in `die_quietly`."""
    if threading.current_thread() is not threading.main_thread():
        executor.submit(int)
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        executor.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_quietly() -> None:
    """In a worker: Ctrl-C ends it without a word; the parent says that it was interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
