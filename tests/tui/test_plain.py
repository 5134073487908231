"""The walk without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.errors import NotFound
from playhead.replay.run import Run
from playhead.tui.plain import walk_all, walk_commands


def steps_of(lines: list[str]) -> list[int]:
    """The steps whose own line was printed, in order."""
    heads = [line for line in lines if line[:6].strip().isdecimal()]
    return [int(line[:6]) for line in heads]


def after(run: Run, *commands: str, start: int = 0) -> list[str]:
    lines: list[str] = []
    walk_commands(run, start, commands, lines.append)
    return lines


def test_forward_from_a_step_to_the_end(run: Run) -> None:
    lines: list[str] = []
    walk_all(run, 30, lines.append)
    assert steps_of(lines) == list(range(30, len(run)))
    assert "type: run.ended" in lines[-1]


def test_backward_from_a_step_to_the_beginning(run: Run) -> None:
    lines: list[str] = []
    walk_all(run, 3, lines.append, back=True)
    assert steps_of(lines) == [3, 2, 1, 0]
    assert "events: 1" in lines[-1]


def test_a_step_that_is_not_there_is_refused(run: Run) -> None:
    with pytest.raises(NotFound, match="no step 500"):
        walk_all(run, 500, print)
    with pytest.raises(NotFound, match="no step 500"):
        walk_commands(run, 500, [], print)


@pytest.mark.parametrize(
    ("commands", "steps"),
    [
        (["n", "", "p"], [0, 1, 2, 1]),
        (["g 12", "g -1", "g 0"], [0, 12, 38, 0]),
        (["e", "g -1", "E"], [0, 5, 38, 5]),
        (["t", "t", "T"], [0, 1, 8, 1]),
        (["/ZEBRA", "?missing"], [0, 37, 4]),
        (["n", "q", "n"], [0, 1]),
    ],
)
def test_commands_lead_to_steps(run: Run, commands: list[str], steps: list[int]) -> None:
    assert steps_of(after(run, *commands)) == steps


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("p", "the first step"),
        ("g 99", "no step 99: the last one is 38"),
        ("g -99", "no step -99"),
        ("g x", "no step 'x'"),
        ("g 9999999999999999999999", "no step"),
        ("/quagga", "no further 'quagga'"),
        ("E", "no further error"),
        ("bogus \x1b[2J", "no command"),
        ("n 5", "no command 'n 5'"),
    ],
)
def test_a_command_that_leads_nowhere_says_so_and_stays(run: Run, command: str, words: str) -> None:
    lines = after(run, command, "n")
    assert any(words in line for line in lines)
    assert steps_of(lines) == [0, 1]
    assert "\x1b" not in "".join(lines)


def test_an_empty_run(root: Path) -> None:
    folder = root / "runtime" / "journal" / "empty"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(b"")
    lines: list[str] = []
    with Run.open(folder) as empty:
        walk_all(empty, 0, lines.append)
        walk_commands(empty, 0, ["n"], lines.append)
    assert lines == ["an empty run", "an empty run"]


def test_lines_that_are_no_rows_have_their_place_in_the_walk(root: Path) -> None:
    folder = root / "runtime" / "journal" / "broken"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(b'{"seq":0}\n\xff\xfe\x1b[31m\n[1,2]\n')
    lines: list[str] = []
    with Run.open(folder) as broken:
        walk_all(broken, 0, lines.append)
    assert steps_of(lines) == [0, 1, 2]
    assert "unreadable" in "".join(lines)
    assert "\x1b" not in "".join(lines)
