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
}

__all__ = [
    "Finding",
    "Journal",
    "JournalError",
    "JournalReader",
    "PlayheadError",
    "RecordError",
    "Recording",
    "Report",
    "Root",
    "Run",
    "Verdict",
    "__version__",
    "carry",
    "compute_step_hash",
    "current_run",
    "import_files",
    "record",
    "tool",
    "verify",
]


def __getattr__(name: str) -> object:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from playhead.convert.importer import import_files
    from playhead.core.model import Finding, Report, Verdict
    from playhead.core.rows import compute_step_hash
    from playhead.errors import JournalError, PlayheadError, RecordError
    from playhead.recorder.context import carry, current_run
    from playhead.recorder.session import Recording
    from playhead.recorder.start import record
    from playhead.recorder.tools import tool
    from playhead.replay.run import Run
    from playhead.store.journal import Journal
    from playhead.store.root import Root
    from playhead.verifier.api import verify
    from playhead.verifier.reader import JournalReader
