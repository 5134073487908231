"""Runs to walk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead.replay.run import Run
from story import HOSTILE


@pytest.fixture
def run(root: Path) -> Iterator[Run]:
    """40 steps: two turns, one failure (step 5), hostile text, and 25 changes of state."""
    with playhead.record("tester", run_id="first") as recording:

        @recording.tool(effects="read", name=HOSTILE)
        def look(path: str) -> str:
            if path == "missing":
                raise FileNotFoundError(HOSTILE)
            return f"content of {path} {HOSTILE}"

        with recording.turn(HOSTILE):
            look("here")
            try:
                look("missing")
            except FileNotFoundError:
                recording.state("seen", HOSTILE)
        with recording.turn("again"):
            pause = recording.interrupt("which one?")
            pause.resolve("this one")
        for number in range(25):
            recording.state("number", number)
        recording.state("last", "the zebra's state")
    with Run.open(root / "runtime" / "journal" / "first") as opened:
        yield opened
