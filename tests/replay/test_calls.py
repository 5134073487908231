"""Which call a result answers, and the call that none answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers import write_events
from playhead.core.events import Draft
from playhead.replay import calls
from playhead.replay.run import Run
from playhead.replay.view import Walker, detail, line_of

PARALLEL = [
    Draft("run.started", {"uid": "u", "agent": "a"}),
    Draft("tool.called", {"call_id": "a", "arguments": {"p": "x" * 200, "q": 1}}, "read"),
    Draft("tool.called", {"call_id": "b", "arguments": {"p": "x" * 200, "q": 2}}, "read"),
    Draft("tool.called", {"call_id": "c", "arguments": {}}, "pay"),
    Draft("tool.completed", {"call_id": "b", "result": "two"}, "read"),
    Draft("tool.failed", {"call_id": "a", "error": "no"}, "read"),
    Draft("tool.completed", {"call_id": "zz", "result": "nobody asked"}, "read"),
]
ENDED = [*PARALLEL, Draft("run.ended", {"status": "completed"})]


def made(folder: Path, log: Sequence[Draft]) -> Run:
    return Run.open(write_events(folder / "run", log))


def test_a_result_names_the_step_of_its_call(tmp_path: Path) -> None:
    with made(tmp_path, ENDED) as run:
        assert [line_of(run, step).call for step in range(8)] == [None] * 4 + [2, 1, None, None]
        assert "answers: step 2" in detail(run, 4)[0].text
        assert "answers" not in detail(run, 6)[0].text


def test_a_long_argument_does_not_hide_the_others(tmp_path: Path) -> None:
    with made(tmp_path, ENDED) as run:
        assert line_of(run, 1).detail == "p=" + "x" * 39 + "…, q=1"


def test_a_call_without_a_result_is_marked_and_found_in_a_run_that_is_over(tmp_path: Path) -> None:
    with made(tmp_path, ENDED) as run:
        marked = [step for step in range(8) if "unanswered" in line_of(run, step).marks]
        assert marked == [3]
        walker = Walker(run)
        assert [walker.next_error() for _ in range(3)] == [3, 5, None]


@pytest.mark.parametrize(("pid", "lost"), [(str(os.getpid()), False), ("99999999", True)])
def test_without_an_end_it_is_lost_only_when_nobody_writes(
    tmp_path: Path, pid: str, lost: bool
) -> None:
    with made(tmp_path, PARALLEL) as run:
        (run.folder / ".lock").write_text(pid)
        assert run.lost(run.event(3)) is lost
        assert not run.lost(run.event(1))


def test_nothing_is_said_of_what_lies_too_far_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "NEAR", 2)
    with made(tmp_path, ENDED) as run:
        assert line_of(run, 5).call is None
        assert "unanswered" not in line_of(run, 3).marks


def test_a_generator_left_early_is_closed(tmp_path: Path) -> None:
    log = [Draft("tool.completed", {"call_id": "a", "result": {}, "outcome": "closed"}, "read")]
    with made(tmp_path, log) as run:
        assert line_of(run, 0).status == "closed"
