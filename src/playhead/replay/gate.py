"""What ``playhead replay RUN --verify`` finds out: the chain, and whether the fold is one.

The chain is verified against its signed heads; two handles walk in lockstep; the last state is
reached by steps, by a jump and by a plain fold, and every one must give the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from playhead.core.fold import fold
from playhead.core.logrow import LogRow
from playhead.core.model import JSON, Report
from playhead.core.projections import BUILT_IN
from playhead.core.wire import state_digest
from playhead.replay.client import ReplayClient
from playhead.replay.source import StoreEvents, StoreRuntime
from playhead.replay.strict import StrictVerdict, create_strict_handle_replay
from playhead.store.onechain import OneChain
from playhead.store.stores import ChainRef, Store

HANDLES = 2
_PASSES = HANDLES + 2
"""Times that the rows are read through handles: in lockstep, and to jump."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict over the chain and, where it holds, that over the fold.

    ``strict`` is None where the chain failed; ``seek`` and ``full`` are the digests of the last
    state, over core and every built-in projection, by a jump and by a plain fold.
    """

    report: Report
    strict: StrictVerdict | None = None
    seek: str = ""
    full: str = ""

    @property
    def same(self) -> bool:
        """True when every way gave one state."""
        return self.strict is not None and self.strict.deterministic and self.seek == self.full

    @property
    def ok(self) -> bool:
        """True when the chain holds and every way gave one state."""
        return self.report.ok and self.same

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values."""
        strict = self.strict
        return {
            "deterministic": None if strict is None else self.same,
            "handles": HANDLES,
            "steps": 0 if strict is None else strict.steps,
            "first_divergence_at": None if strict is None else strict.first_divergence_at,
            "sequence_number": None if strict is None else strict.sequence_number,
            "digests": [] if strict is None else list(strict.digests),
            "seek_digest": self.seek,
            "full_fold_digest": self.full,
        }


class _Watched(StoreEvents):
    """The events of a store, which tells how many of ``total`` rows were read."""

    def __init__(self, events: StoreEvents, progress: Progress | None) -> None:
        super().__init__(events.blocking)
        self.total = 0
        self._done = 0
        self._progress = progress

    def _open_rows(self, chat: str, tenant: str, after: int, upto: int | None) -> Iterator[LogRow]:
        for row in super()._open_rows(chat, tenant, after, upto):
            self._done += 1
            if self._progress is not None and self._done <= self.total:
                self._progress(self._done, self.total)
            yield row


def gate_run(store: Store, ref: ChainRef, progress: Progress | None = None) -> Gate:
    """Verify the chain ``ref`` and compare every way to its states.

    Args:
        progress: called with rows read and rows to read, each as often as it is read.

    Raises:
        ReplayUnknownEventError: a line is no row, and the chain holds all the same.
        NotFound, StoreError, Unreadable: the store.
    """
    runtime = StoreRuntime(OneChain(store, ref))
    watched = _Watched(runtime.events, progress)
    runtime.events = watched
    return asyncio.run(_gate(runtime, watched, ref))


async def _gate(runtime: StoreRuntime, events: _Watched, ref: ChainRef) -> Gate:
    chat, tenant = ref.chat_id, ref.tenant_id
    report = await events.verify(chat_id=chat, tenant_id=tenant)
    if not report.ok:
        return Gate(report)
    client = ReplayClient(runtime)
    async with client.from_event_log(
        chat, tenant_id=tenant, projections=BUILT_IN, verify="off"
    ) as handle:
        stop = handle.window.stop or 0
        events.total = stop * _PASSES
        strict = await create_strict_handle_replay(client, handles=HANDLES).replay(
            chat,
            tenant_id=tenant,
            projections=BUILT_IN,
            verify="off",
            up_to_sequence_number=stop,
        )
        await handle.seek(stop)
        rows = events.blocking.iterate(chat_id=chat, tenant_id=tenant, up_to_sequence_number=stop)
        full = fold((row.event for row in rows), BUILT_IN)
        return Gate(report, strict, handle.state_digest(), state_digest(full))
