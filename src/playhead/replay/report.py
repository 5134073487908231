"""What ``playhead replay RUN`` finds out: one run folded to a place, with the verdict over it.

Every decision of the command stands here; the command line parses and prints. Rows are numbered
from 1 as in the contract (``sequence_number``); a step counts from 0, so step N is row N + 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playhead.core.fold import Projection
from playhead.core.model import GENESIS, JSON, Event, Report
from playhead.core.projections import BUILT_IN
from playhead.errors import NotFound, Place, ReplayTurnNotFoundError, UsageError
from playhead.replay.arguments import Snapshots, Verify
from playhead.replay.cache import CacheReadMode, CacheStats, SqliteCache
from playhead.replay.results import ReplayDoneResult, turn_ids
from playhead.replay.source import StoreRuntime
from playhead.replay.sync import SyncReplayClient, SyncReplayHandle
from playhead.store.onechain import OneChain
from playhead.store.stores import ChainRef, Store

Progress = Callable[[int, int], None]
CORE = "core"
_STRIDE = 4096
"""Rows that are folded between two looks at the progress."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How a run is replayed. ``states`` are keys of projections, ``core`` among them or not;
    ``cache`` is the file of a replay cache, None looks nothing up."""

    states: tuple[str, ...] = ()
    cache_mode: str = CacheReadMode.CROSS_MODE_READABLE.value
    cache: Path | None = None
    snapshots: Snapshots = "use"
    verify: Verify = "open"
    unreadable: str = "raise"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state of a run behind row ``rows`` of the ``size`` that were there at opening.

    ``head`` is that row's hash; ``digest`` covers the core state and the projections in ``views``.
    ``cache`` is None where nothing was looked up; ``events`` are those of the turn asked for.
    """

    ref: ChainRef
    rows: int
    size: int
    head: str
    digest: str
    report: Report | None
    state: dict[str, JSON]
    views: dict[str, JSON]
    cache: CacheStats | None = None
    turn: str | None = None
    events: tuple[Event, ...] = ()

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values; every part of the state, whole."""
        found: dict[str, JSON] = {
            "tenant_id": self.ref.tenant_id,
            "chat_id": self.ref.chat_id,
            "run_id": self.ref.run_id,
            "sequence_number": self.rows,
            "rows": self.size,
            "head": self.head,
            "state_digest": self.digest,
            "state": self.state,
            "projections": self.views,
        }
        if self.cache is not None:
            stats = self.cache
            found["cache"] = {
                "hits": stats.hits,
                "misses": stats.misses,
                "cross_mode": stats.cross_mode,
                "live": stats.live,
            }
        return found


def projections_named(keys: tuple[str, ...]) -> tuple[Projection, ...]:
    """The built-in projections behind ``keys``; ``core`` is always folded and is none of them.

    Raises:
        UsageError: there is no such projection; it names those there are.
    """
    known = {one.key: one for one in BUILT_IN}
    for key in keys:
        if key != CORE and key not in known:
            raise UsageError(
                f"there is no state {key!r:.40}",
                remedy=f"Name one of {', '.join([CORE, *known])}",
            )
    return tuple(known[key] for key in dict.fromkeys(keys) if key != CORE)


class Replay:
    """A handle on one run, made by `opened_replay`, and how to get to a place with it."""

    def __init__(
        self, handle: SyncReplayHandle, ref: ChainRef, asked: Asked, progress: Progress | None
    ) -> None:
        self._handle = handle
        self._ref = ref
        self._asked = asked
        self._progress = progress

    @property
    def size(self) -> int:
        """Rows there were at opening."""
        return self._handle.window.stop or 0

    def to_row(self, number: int | None) -> Replayed:
        """The state behind row ``number``; None is the head. With a cache every row on the way
        is looked up, as a run would have done.

        Raises:
            NotFound: there is no such row.
            ReplayCacheMissError, ReplayUnknownEventError, ReplayDivergenceError: on the way.
        """
        wanted = self.size if number is None else number
        if not 0 <= wanted <= self.size:
            there = f"rows are 1 to {self.size}" if self.size else "the run has no rows"
            raise NotFound(f"no row {wanted}: {there}", remedy="Row N is step N - 1")
        if self._asked.cache is not None:
            while self._handle.current_sequence_number() < wanted:
                self._handle.step()
                self._tell(wanted)
        elif self._asked.snapshots == "use":
            for stop in range(_STRIDE, wanted, _STRIDE):
                self._handle.seek(stop)
                self._tell(wanted)
        self._handle.seek(wanted)
        return self._here()

    def to_turn(self, name: str) -> Replayed:
        """The turn that ``name`` names (its message id or turn id): its events and the state
        behind it.

        Raises:
            ReplayTurnNotFoundError: no turn of this name ended in the run.
            What `to_row` raises.
        """
        events: list[Event] = []
        while True:
            result = self._handle.step()
            if isinstance(result, ReplayDoneResult):
                raise ReplayTurnNotFoundError(
                    f"no turn {name!r:.80} ended in this run",
                    chat_id=self._ref.chat_id,
                    tenant_id=self._ref.tenant_id,
                )
            self._tell(self.size)
            event = result.row.event
            if event.type == "turn.started":
                events.clear()  # what stands between two turns belongs to neither
            events.append(event)
            if event.type == "turn.completed":
                if name in turn_ids(result.row):
                    return self._here(turn=name, events=tuple(events))
                events.clear()

    def events(self) -> Iterator[Event]:
        """The events from here on, one step each.

        Raises:
            What `to_row` raises.
        """
        for result in self._handle:
            yield result.row.event

    def _tell(self, total: int) -> None:
        if self._progress is not None:
            self._progress(self._handle.current_sequence_number(), total)

    def _here(self, turn: str | None = None, events: tuple[Event, ...] = ()) -> Replayed:
        handle = self._handle
        return Replayed(
            self._ref,
            handle.current_sequence_number(),
            self.size,
            handle.row_hash or GENESIS,
            handle.state_digest(),
            handle.report,
            handle.current_state().to_wire(),
            {one.key: handle.view(one.key) for one in handle.folded.projections},
            None if self._asked.cache is None else handle.cache_stats(),
            turn,
            events,
        )

    def stats(self) -> CacheStats:
        """Look-ups so far."""
        return self._handle.cache_stats()


@contextmanager
def opened_replay(
    store: Store, ref: ChainRef, asked: Asked, progress: Progress | None = None
) -> Iterator[Replay]:
    """A fresh handle on the chain ``ref``, verified as ``asked`` says, closed afterwards.

    Raises:
        UsageError: no such state or cache mode. NotFound: no such cache file.
        ReplayDivergenceError: the chain does not hold; it names the place.
        StoreError, Unreadable: the store or the cache cannot be read.
    """
    projections = projections_named(asked.states)
    backend = None if asked.cache is None else _cache(asked.cache)
    client = SyncReplayClient(StoreRuntime(OneChain(store, ref)), cache_backend=backend)
    try:
        handle = client.from_event_log(
            ref.chat_id,
            tenant_id=ref.tenant_id,
            cache_read_mode=asked.cache_mode,
            projections=projections,
            verify=asked.verify,
            snapshots=asked.snapshots,
            unreadable=asked.unreadable,
        )
        with handle:
            yield Replay(handle, ref, asked, progress)
    finally:
        client.close()
        if backend is not None:
            backend.close()


def _cache(path: Path) -> SqliteCache:
    if not os.path.lexists(path):  # a cache is made at its first use: not by who only reads
        raise NotFound(
            "no such cache file", place=Place(str(path)), remedy="Name a cache that a host filled"
        )
    return SqliteCache(path)
