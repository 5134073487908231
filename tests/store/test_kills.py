"""Ctrl-C at any line, kill -9 at any time: acknowledged steps are there, the chain goes on."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import playhead
from journals import check, words
from playhead import Journal, Verdict
from procs import kill

SEGMENT = "000000.jsonl"
LEVELS = ["step", "batch", "os"]

pytestmark = pytest.mark.crash


class Struck(KeyboardInterrupt):
    pass


def strike(at: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that raises at the ``at``-th line run below playhead/store."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if "playhead/store/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise Struck
        return trace

    return trace


@pytest.mark.parametrize("level", ["os", "step"])
def test_ctrl_c_at_any_line_of_an_append(
    folder: Path, level: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is there or it is not; the chain goes on either way, and is signed."""
    monkeypatch.setattr("playhead.store.anchor._BATCH", 3)
    expected: list[str] = []
    struck = True
    at = 0
    outer = sys.gettrace()
    journal = Journal.open(folder, durability=level)
    while struck:
        at += 1
        journal.append(input_hash="", prompt=f"before {at}", commitment=b"c")
        expected.append(f"before {at}")
        seq, struck = journal.next_seq, False
        sys.settrace(strike(at))
        try:
            journal.append(input_hash="", prompt=f"struck {at}", commitment=b"c")
        except Struck:
            struck = True
        finally:
            sys.settrace(outer)
        if journal.next_seq > seq:
            expected.append(f"struck {at}")
        assert struck or expected[-1] == f"struck {at}"
        if at % 10 == 0:
            journal.close()
            assert playhead.verify(folder).verdict is Verdict.VERIFIED
            journal = Journal.open(folder, durability=level)
    journal.close()
    assert at > 20, "the lines of an append were reached"
    assert words(folder) == expected
    check(folder, expected)


# --- kill -9 ---------------------------------------------------------------------------------

CHILD = """
import os, sys
from playhead import Journal
folder, level, often = sys.argv[1], sys.argv[2], int(sys.argv[3])
say = lambda text: os.write(1, (text + chr(10)).encode())
while True:
    with Journal.open(folder, durability=level) as journal:
        for _ in range(often):
            word = f"{os.getpid()}-{journal.next_seq}"
            say("try " + word)
            step = journal.append(input_hash="", prompt=word, tool_result="x" * 200)
            say(f"ack {step.seq} " + word)
"""


def killed_rounds(folder: Path, rounds: int) -> Iterator[tuple[list[str], dict[int, str]]]:
    """Attempts and acknowledgements of children that were killed while they appended."""
    dice = random.Random(20260101)
    for number in range(rounds):
        level = LEVELS[number % 3]
        often = dice.choice([1, 2, 5, 1000])  # 1: nearly all of the time is signing heads
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), level, str(often)], stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout
            said = [child.stdout.readline() for _ in range(dice.randrange(1, 60))]
            kill(child.pid)
            said += child.stdout.readlines()
            child.wait()
        lines = [line.decode().split() for line in said if line.endswith(b"\n")]
        attempts = [words[1] for words in lines if words[0] == "try"]
        acked = {int(words[1]): words[2] for words in lines if words[0] == "ack"}
        assert attempts, "the child opened the run: it was not refused after the kill before"
        yield attempts, acked


def test_kill_9_while_appending(folder: Path, kills: int) -> None:
    attempted: set[str] = set()
    acked: dict[int, str] = {}
    for attempts, acknowledged in killed_rounds(folder, max(kills, 3)):
        attempted |= set(attempts)
        assert not acked.keys() & acknowledged.keys(), "a step was acknowledged twice"
        acked |= acknowledged
        present = words(folder)
        assert {seq: present[seq] for seq in acked} == acked
        assert set(present) <= attempted
        errors = [finding.kind for finding in playhead.verify(folder).errors()]
        assert set(errors) <= {"torn-tail"}
        with Journal.open(folder, durability="os") as journal:
            word = f"parent-{journal.next_seq}"
            step = journal.append(input_hash="", prompt=word)
            attempted.add(word)
            acked[step.seq] = word
    assert playhead.verify(folder).verdict is Verdict.VERIFIED
    assert not list(folder.glob(".*.tmp")), "an append leaves no temp file"
