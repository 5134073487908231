"""Transcripts: a command, its exit status, what it prints, what it leaves behind.

    = scene            set up (tests/story.py)
    $ command          run it
    ? status           must be its exit status
    anything           a line of stdout; ``*`` stands for anything, ``...`` for any lines
    ! anything         a line of stderr, likewise
    - path             must not exist afterwards

A command without lines must print nothing.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from commands import Cli
from story import SCENES

HERE = Path(__file__).parent
FILES = sorted(path.name for path in HERE.glob("*.txt"))


@dataclass(slots=True)
class Call:
    """One command with what it must do."""

    line: int
    words: list[str]
    status: int = 0
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def parse(text: str) -> list[str | Call]:
    """The scenes and calls of a transcript, in order."""
    steps: list[str | Call] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        call = steps[-1] if steps else None
        if not line or mark == "#":
            continue
        if mark == "=":
            steps.append(rest)
        elif mark == "$":
            words = shlex.split(rest)
            assert words[0] == "playhead", f"line {number}"
            steps.append(Call(number, words[1:]))
        elif not isinstance(call, Call):
            raise AssertionError(f"line {number}: no command before it")
        elif mark == "?":
            call.status = int(rest)
        elif mark == "!":
            call.err.append(rest)
        elif mark == "-":
            call.absent.append(rest)
        else:
            call.out.append(line)
    return steps


def fits(pattern: list[str], text: str) -> bool:
    """Whether the lines of ``text`` are those of ``pattern``."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()).replace(r"\*", ".*") + r"\s*\n"
        for line in pattern
    ]
    return re.fullmatch("".join(parts), text) is not None


@pytest.mark.parametrize("name", FILES)
def test_transcript(name: str, cli: Cli, here: Path) -> None:
    for step in parse((HERE / name).read_text("utf-8")):
        if isinstance(step, str):
            SCENES[step]()
            continue
        done = cli(*step.words)
        shown = f"{name}:{step.line}: playhead {shlex.join(step.words)}\n{done}"
        assert done.status == step.status, shown
        assert fits(step.out, done.out), f"stdout of {shown}"
        assert fits(step.err, done.err), f"stderr of {shown}"
        assert not [path for path in step.absent if (here / path).exists()], shown


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (["a*c"], "abbc\n", True),
        (["a*c"], "abbd\n", False),
        (["a", "...", "z"], "a\nm\nn\nz\n", True),
        (["a", "...", "z"], "a\nm\n", False),
        (["a"], "a\nb\n", False),
        ([], "", True),
        ([], "a\n", False),
        (["[x] (y)?"], "[x] (y)?\n", True),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: list[str], text: str, expected: bool) -> None:
    assert fits(pattern, text) is expected
