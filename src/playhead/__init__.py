"""Record an AI agent's run once; walk it, replay it, and prove that nobody changed it.

    import playhead

    with playhead.record("my-agent") as run:
        ...

Names are imported when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

_WHERE = {
    "record": "playhead.recorder.start",
    "Recording": "playhead.recorder.session",
    "tool": "playhead.recorder.tools",
    "carry": "playhead.recorder.context",
    "current_run": "playhead.recorder.context",
    "Journal": "playhead.store.journal",
    "JournalReader": "playhead.verifier.reader",
    "verify": "playhead.verifier.api",
    "compute_step_hash": "playhead.core.rows",
    "JournalError": "playhead.errors",
    "PlayheadError": "playhead.errors",
    "RecordError": "playhead.errors",
    "Root": "playhead.store.root",
    "Run": "playhead.replay.run",
    "Verdict": "playhead.core.model",
    "Finding": "playhead.core.model",
    "Report": "playhead.core.model",
    "import_files": "playhead.convert.importer",
    "open_store": "playhead.store.urls",
    "EventLog": "playhead.store.asynclog",
    "BlockingLog": "playhead.store.eventlog",
    "LogRow": "playhead.core.logrow",
    "ReplayClient": "playhead.replay.client",
    "SyncReplayClient": "playhead.replay.sync",
    "create_default_replay_client": "playhead.replay.client",
    "create_replay_runtime": "playhead.replay.runtime",
    "create_strict_handle_replay": "playhead.replay.strict",
    "create_strict_replay": "playhead.replay.strict",
    "replay_all": "playhead.replay.aggregate",
    "derive_content_hash_key": "playhead.replay.cache",
    "ReplayError": "playhead.errors",
}

_PACKAGES = ("errors", "replay")
"""Public packages; ``playhead.replay`` is one, so no name may ever be called that."""

__all__ = [
    "BlockingLog",
    "EventLog",
    "Finding",
    "Journal",
    "JournalError",
    "JournalReader",
    "LogRow",
    "PlayheadError",
    "RecordError",
    "Recording",
    "ReplayClient",
    "ReplayError",
    "Report",
    "Root",
    "Run",
    "SyncReplayClient",
    "Verdict",
    "__version__",
    "carry",
    "compute_step_hash",
    "create_default_replay_client",
    "create_replay_runtime",
    "create_strict_handle_replay",
    "create_strict_replay",
    "current_run",
    "derive_content_hash_key",
    "import_files",
    "open_store",
    "record",
    "replay_all",
    "tool",
    "verify",
]


def __getattr__(name: str) -> object:
    module = _WHERE.get(name)
    if module is None and name not in _PACKAGES:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    import importlib

    if module is None:
        return importlib.import_module(f"playhead.{name}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from playhead.convert.importer import import_files
    from playhead.core.logrow import LogRow
    from playhead.core.model import Finding, Report, Verdict
    from playhead.core.rows import compute_step_hash
    from playhead.errors import JournalError, PlayheadError, RecordError, ReplayError
    from playhead.recorder.context import carry, current_run
    from playhead.recorder.session import Recording
    from playhead.recorder.start import record
    from playhead.recorder.tools import tool
    from playhead.replay.aggregate import replay_all
    from playhead.replay.cache import derive_content_hash_key
    from playhead.replay.client import ReplayClient, create_default_replay_client
    from playhead.replay.run import Run
    from playhead.replay.runtime import create_replay_runtime
    from playhead.replay.strict import create_strict_handle_replay, create_strict_replay
    from playhead.replay.sync import SyncReplayClient
    from playhead.store.asynclog import EventLog
    from playhead.store.eventlog import BlockingLog
    from playhead.store.journal import Journal
    from playhead.store.root import Root
    from playhead.store.urls import open_store
    from playhead.verifier.api import verify
    from playhead.verifier.reader import JournalReader
