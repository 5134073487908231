"""The state that is shown after a step: the agent's own, the calls that wait, the core's."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import write_events
from playhead.core import tallies
from playhead.core.events import Draft
from playhead.core.fold import fold
from playhead.core.model import Event
from playhead.core.projections import AgentState, Entries, ToolCalls, pending
from playhead.replay.run import Run
from playhead.replay.states import state_document, state_parts
from playhead.replay.view import detail, line_of

LOG = [
    Draft("run.started", {"uid": "u", "agent": "a"}),
    Draft("tool.called", {"call_id": "a", "arguments": {}}, "read"),
    Draft("state.changed", {"key": "mood", "value": "calm"}),
    Draft("state.changed", {"key": "mood", "value": {"now": "\x1b[2J"}}),
    Draft("interrupt.raised", {"interrupt_id": "i"}),
    Draft("interrupt.resolved", {"interrupt_id": "i"}),
    Draft("tool.completed", {"call_id": "a", "result": 1}, "read"),
]


def parts(run: Run, step: int) -> dict[str, str]:
    return dict(state_parts(run, step, False))


def test_state_calls_and_diff_are_told_in_steps(tmp_path: Path) -> None:
    with Run.open(write_events(tmp_path / "run", LOG)) as run:
        assert line_of(run, 2).detail == "mood = calm"
        assert "changed" not in parts(run, 0)
        assert parts(run, 0)["state after it"] == "events: 1"
        assert parts(run, 1)["changed"] == "calls: + read (step 1)"
        assert "  read (step 1): pending" in parts(run, 2)["state after it"]
        assert parts(run, 2)["changed"] == "state: + mood = calm"
        assert parts(run, 3)["changed"].startswith("state: mood calm → ")
        assert "\x1b" not in parts(run, 3)["changed"]
        assert "closed at step 5" in parts(run, 5)["changed"]
        assert parts(run, 6)["changed"] == "calls: read (step 1) pending → completed"
        assert "without a result" not in parts(run, 6)["state after it"]
        document = state_document(run, 3)
        assert document["state"] == {"mood": {"now": "\x1b[2J"}}
        assert document["pendingCalls"] == [
            {"call_id": "a", "name": "read", "status": "pending", "step": 1}
        ]


def test_the_number_of_keys_and_waiting_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MAX_KEYS", 3)
    events = [Event("state.changed", n, {"key": f"k{n}", "value": n}) for n in range(5)]
    events += [Event("state.changed", 5, {"kind": "k1", "value": 0})]
    events += [Event("tool.called", n, {"call_id": f"c{n}"}, "t") for n in range(6, 106)]
    folded = fold(events, (AgentState(), ToolCalls()))
    assert folded.view("state") == {"k0": 0, "k1": 5, "k2": 2}
    calls = folded.of("tool_calls")
    assert isinstance(calls, Entries)
    assert [call.opened for call in pending(calls)] == list(range(42, 106))


def test_a_step_is_told_without_the_fold_when_nobody_asks_for_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Run.open(write_events(tmp_path / "run", LOG)) as run:
        monkeypatch.setattr(run, "folded", None)
        titles = [part.title for part in detail(run, 3, state=False)]
        assert titles == ["step", "parameters", "chain"]
