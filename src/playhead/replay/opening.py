"""Opening a handle: the head is frozen, the chain is verified, what precedes is folded.

Nothing is read before the opening is awaited or entered; every await gives a fresh handle.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType

from playhead.core.fold import Projection, start
from playhead.core.model import Report, Verdict
from playhead.errors import ReplayArgumentError, ReplayDivergenceError
from playhead.replay.ahead import Ahead
from playhead.replay.cache import CacheBackend
from playhead.replay.facet import ReplayEvents
from playhead.replay.handle import ReplayHandle
from playhead.replay.persisted import persisted_for
from playhead.replay.window import Spot, Window, check_row, fold_row
from playhead.store.snapshots import SnapshotStore


class Opening:
    """What `ReplayClient.from_event_log` returns: await it, or use it with ``async with``."""

    def __init__(
        self,
        events: ReplayEvents,
        window: Window,
        projections: tuple[Projection, ...],
        backend: CacheBackend | None,
        snapshot_store: SnapshotStore | None = None,
    ) -> None:
        self._events = events
        self._window = window
        self._projections = projections
        self._backend = backend
        self._snapshots = snapshot_store
        self._entered: ReplayHandle | None = None

    def __await__(self) -> Generator[object, None, ReplayHandle]:
        return self._open().__await__()

    async def __aenter__(self) -> ReplayHandle:
        self._entered = await self._open()
        return self._entered

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._entered is not None:
            await self._entered.close()

    async def _open(self) -> ReplayHandle:
        window = await self._frozen()
        report = await self._verified(window)
        first = Spot(window.start, start(self._projections))
        if window.start and window.base == "prefix":
            first = await self._prefix(window)
        persisted = persisted_for(
            self._snapshots, self._events, window, verified=report is not None
        )
        return ReplayHandle(self._events, window, first, self._backend, report, persisted)

    async def _frozen(self) -> Window:
        """The window with the head of this moment as its end, where the facet can tell it.

        Raises:
            ReplayArgumentError: the window begins behind the head.
        """
        head = getattr(self._events, "head", None)
        if head is None:
            return self._window
        window = self._window
        found = await head(chat_id=window.chat_id, tenant_id=window.tenant_id)
        size = 0 if found is None else found.size
        if window.start > size:
            raise ReplayArgumentError("from_sequence_number", "is behind the head of the chat")
        return replace(window, stop=size if window.stop is None else min(window.stop, size))

    async def _verified(self, window: Window) -> Report | None:
        """The verdict over the chain up to the window's end (resolution 15).

        Raises:
            ReplayDivergenceError: the chain does not hold (kind "chain").
        """
        verify = getattr(self._events, "verify", None)
        if window.verify != "open" or verify is None:
            return None
        report: Report = await verify(chat_id=window.chat_id, tenant_id=window.tenant_id)
        if report.verdict is Verdict.FAILED:
            raise broken_chain(window, report)
        if window.stop is not None and report.steps < window.stop:
            what = f"{window.stop} rows were here a moment ago, {report.steps} are left"
            raise window.diverged("head", what, report.steps)
        return report

    async def _prefix(self, window: Window) -> Spot:
        """What precedes the window, folded."""
        before = replace(window, start=0, stop=window.start)
        spot = Spot(0, start(self._projections))
        async with aclosing(Ahead(self._events, before).rows(0)) as rows:
            async for row in rows:
                check_row(before, spot, row)
                spot = fold_row(before, spot, row)
        return spot._replace(number=window.start)


def broken_chain(window: Window, report: Report) -> ReplayDivergenceError:
    """The first fault of a chain as an error; the report has them all."""
    fault = next(iter(report.errors()), None)
    what = "the chain does not hold" if fault is None else f"{fault.kind}: {fault.what}"
    number = None if fault is None or fault.place.step is None else fault.place.step + 1
    error = window.diverged("chain", what, number)
    if fault is not None:
        error.place, error.remedy = fault.place, fault.remedy
    return error
