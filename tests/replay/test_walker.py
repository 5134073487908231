"""The cursor: it moves as told, stops at the ends, and stays where nothing is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import event_rows, write_events, write_lines
from playhead.core.events import Draft
from playhead.replay.run import Run
from playhead.replay.view import Walker

LOG = [
    Draft("run.started", {"uid": "u", "agent": "a"}),
    Draft("turn.started", {"input": "Grüße"}, turn_id="t1"),
    Draft("model.requested", {"call_id": "c"}, prompt='[{"content":"say \\"Tschüß\\""}]'),
    Draft("tool.failed", {"call_id": "k", "error": "no"}),
    Draft("turn.started", {"input": "second"}, turn_id="t2"),
    Draft("error.raised", {"message": "Oops"}),
    Draft("run.ended", {"status": "completed"}),
]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(write_events(tmp_path / "run", LOG)) as found:
        yield found


def test_moves_stop_at_the_ends(run: Run) -> None:
    walker = Walker(run)
    assert walker.position == 0
    assert walker.back() == 0
    assert walker.forward(3) == 3
    assert walker.forward(100) == 6
    assert walker.back(2) == 4
    assert walker.jump(2) == 2
    assert walker.jump(-1) == 6
    assert walker.jump(-100) == 0
    assert walker.jump(10**30) == 6
    assert Walker(run, 4).position == 4


def test_errors_are_found_both_ways_and_the_cursor_stays_after_the_last(run: Run) -> None:
    walker = Walker(run)
    assert [walker.next_error() for _ in range(4)] == [2, 3, 5, None]
    assert walker.position == 5
    assert [walker.previous_error() for _ in range(3)] == [3, 2, None]
    assert walker.position == 2


def test_turns_are_found_both_ways(run: Run) -> None:
    walker = Walker(run)
    assert [walker.next_turn() for _ in range(3)] == [1, 4, None]
    assert [walker.previous_turn() for _ in range(2)] == [1, None]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("oops", 5),
        ("OOPS", 5),
        ("Grüße", 1),
        ("say", 2),
        ('"Tschüß"', 2),
        ("turn.started", 1),
        ("no such text", None),
        ("", None),
    ],
)
def test_text_is_found_however_the_row_spells_it(run: Run, text: str, step: int | None) -> None:
    walker = Walker(run)
    assert walker.search(text) == step
    assert walker.position == (step or 0)


def test_raw_letters_of_another_writer_are_found_too(tmp_path: Path) -> None:
    rows = [b'{"prompt":"x"}', '{"prompt":"Grüße"}'.encode()]
    with Run.open(write_lines(tmp_path / "other", rows)) as run:
        assert Walker(run).search("grüße") == 1


def test_search_goes_backward_too(run: Run) -> None:
    walker = Walker(run, 6)
    assert walker.search("turn.started", forward=False) == 4
    assert walker.search("turn.started", forward=False) == 1
    assert walker.search("turn.started", forward=False) is None
    assert walker.position == 1


def test_an_empty_run_has_no_position(tmp_path: Path) -> None:
    with Run.open(write_lines(tmp_path / "empty", [])) as run:
        walker = Walker(run, 5)
        assert walker.position == -1
        assert (walker.forward(), walker.back(), walker.jump(3), walker.jump(-1)) == (-1,) * 4
        assert walker.next_error() is None
        assert walker.search("x") is None
        assert run.info.kind == "empty"


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from("forward back jump".split()), st.integers(0, 9))))
def test_any_walk_stays_in_the_run_and_a_move_and_its_reverse_cancel(
    tmp_path: Path, moves: list[tuple[str, int]]
) -> None:
    folder = write_lines(tmp_path / "run", event_rows(LOG))
    with Run.open(folder) as run:
        walker, expected = Walker(run), 0
        for move, count in moves:
            to = {"forward": expected + count, "back": expected - count, "jump": count}[move]
            expected = min(max(to, 0), len(LOG) - 1)
            assert getattr(walker, move)(count) == expected == walker.position
