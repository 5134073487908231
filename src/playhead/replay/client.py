"""``ReplayClient``: opens handles over the event log of a runtime (contract: "ReplayClient").

The client reads only ``runtime.events``, holds no state of any walk, and can open any number of
handles at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from playhead.core.fold import Projection, start
from playhead.errors import ReplayArgumentError, UsageError
from playhead.replay.arguments import (
    Base,
    Snapshots,
    Verify,
    require_bounds,
    require_choice,
    require_id,
    require_projections,
)
from playhead.replay.cache import CacheBackend, CacheReadMode, read_mode
from playhead.replay.facet import ReplayRuntimeFacet, require_events
from playhead.replay.opening import Opening
from playhead.replay.persisted import require_snapshot_store
from playhead.replay.window import Window

if TYPE_CHECKING:
    import os

    from playhead.replay.source import StoreRuntime
    from playhead.store.root import Root
    from playhead.store.snapshots import SnapshotStore
    from playhead.store.stores import Store


class ReplayClient:
    """Replays what a runtime's event log holds; it never runs an agent and never calls a model.

    Args:
        runtime: any object whose ``events`` has ``iterate`` and ``fold``.
        cache_backend: where `step` looks up rows with a cache key; None looks nothing up, in
            every mode.
        snapshot_store: where `seek` of every handle looks for kept states and keeps them; None
            keeps none beyond a handle.

    Raises:
        TypeError: ``runtime`` is missing, or lacks what it must have; the message says what.
        ReplayArgumentError: ``snapshot_store`` is no place for snapshots.
    """

    def __init__(
        self,
        runtime: ReplayRuntimeFacet,
        *,
        cache_backend: CacheBackend | None = None,
        snapshot_store: SnapshotStore | None = None,
    ) -> None:
        self._events = require_events(runtime)
        if cache_backend is not None and not callable(getattr(cache_backend, "get", None)):
            raise TypeError(f"cache_backend ({type(cache_backend).__name__}) has no get()")
        self._backend = cache_backend
        self._snapshots = require_snapshot_store(snapshot_store)
        self._owned: StoreRuntime | None = None

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
    ) -> Opening:
        """A fresh handle on one chat of one tenant, when it is awaited or entered.

        Every argument is checked now, before anything is awaited. The cache mode is locked; the
        head is frozen at opening, so rows that are added meanwhile are not seen.

        Args:
            chat_id: the conversation.
            tenant_id: whose it is. It has no default and is never guessed from the chat.
            from_sequence_number: the first row taken is the one after it.
            up_to_sequence_number: the last row; None is the head at opening.
            cache_read_mode: what a hit and a miss do ("cross-mode-readable", "strict-mode",
                "best-effort").
            projections: further folds beside the core state.
            base: "zero" folds the window by itself, "prefix" what precedes it as well.
            verify: "open" verifies the chain at opening, "step" each row when it is taken, "off"
                believes the rows.
            snapshots: "use" lets `seek` start at a state kept on the way, "verify" compares it
                with a full fold, "off" always folds from the window's start.
            unreadable: "raise" at a line that is no row, or "count" it as a row without effect.
            snapshot_store: where `seek` keeps states for handles to come, and looks for them;
                only rows that were verified are kept from, so not with verify="off". None is
                that of the client.

        Raises:
            ReplayArgumentError: an argument is off; it is a `TypeError` and a `ValueError` and
                names the field.

        Awaiting it raises `ReplayDivergenceError` (kind "chain") when the chain does not hold,
        `NotFound` when the tenant has no such chat.
        """
        begin, end = require_bounds(from_sequence_number, up_to_sequence_number)
        chosen = require_projections(projections)
        try:
            start(chosen)
        except UsageError as error:
            raise ReplayArgumentError("projections", f"do not fit: {error.what}") from None
        window = Window(
            chat_id=require_id("chat_id", chat_id),
            tenant_id=require_id("tenant_id", tenant_id),
            start=begin,
            stop=end,
            mode=read_mode(cache_read_mode),
            base=require_choice("base", base, ("zero", "prefix")),  # type: ignore[arg-type]
            verify=require_choice("verify", verify, ("open", "step", "off")),  # type: ignore[arg-type]
            snapshots=require_choice("snapshots", snapshots, ("off", "use", "verify")),  # type: ignore[arg-type]
            pass_unreadable=require_choice("unreadable", unreadable, ("raise", "count")) == "count",
        )
        store = self._snapshots
        if snapshot_store is not None:
            store = require_snapshot_store(snapshot_store)
        return Opening(self._events, window, chosen, self._backend, store)

    def close(self) -> None:
        """Give back the store that `create_default_replay_client` opened; a runtime that was
        given stays open. Idempotent."""
        if self._owned is not None:
            self._owned.close()


def create_default_replay_client(
    store_url: str | os.PathLike[str] | Root | Store | None = None,
    *,
    cache_backend: CacheBackend | None = None,
    snapshot_store: SnapshotStore | None = None,
) -> ReplayClient:
    """A client over a store: a directory, ``sqlite:///...``, ``postgresql://...``, ``memory://``.

    Args:
        store_url: where the chains lie; None is ``PLAYHEAD_ROOT``, else ``.sdd``.
        cache_backend, snapshot_store: as in `ReplayClient`.

    Raises:
        UsageError, StoreError, Unreadable: no such kind of store, or it does not answer.
    """
    from playhead.replay.source import StoreRuntime

    runtime = StoreRuntime.open(store_url)
    client = ReplayClient(runtime, cache_backend=cache_backend, snapshot_store=snapshot_store)
    client._owned = runtime
    return client
