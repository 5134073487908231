"""Replay: walk what was recorded, row by row, forward and back. It runs no code of the record.

The names of the contract are imported when they are first used.
"""

from __future__ import annotations

_WHERE = {
    "ReplayClient": "playhead.replay.client",
    "create_default_replay_client": "playhead.replay.client",
    "SyncReplayClient": "playhead.replay.sync",
    "SyncReplayHandle": "playhead.replay.sync",
    "ReplayHandle": "playhead.replay.handle",
    "ReplayStepResult": "playhead.replay.results",
    "ReplayDoneResult": "playhead.replay.results",
    "ReplayTurnResult": "playhead.replay.results",
    "ReplayRuntime": "playhead.replay.runtime",
    "ReplayRuntimeFacet": "playhead.replay.facet",
    "create_replay_runtime": "playhead.replay.runtime",
    "CacheReadMode": "playhead.replay.cache",
    "EvalReplayClient": "playhead.replay.evaluation",
    "LastAnswer": "playhead.replay.evaluation",
    "StoreRuntime": "playhead.replay.source",
    "replay_all": "playhead.replay.aggregate",
    "ReplayError": "playhead.errors",
    "ReplayArgumentError": "playhead.errors",
    "ReplayCacheMissError": "playhead.errors",
    "ReplayClosedError": "playhead.errors",
    "ReplayDivergenceError": "playhead.errors",
    "ReplayNotImplementedError": "playhead.errors",
    "ReplayTenantMismatchError": "playhead.errors",
    "ReplayTurnNotFoundError": "playhead.errors",
    "ReplayUnknownEventError": "playhead.errors",
}

__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'playhead.replay' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
