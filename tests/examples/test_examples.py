"""The examples run as they stand, and the verifier by hand agrees with the one in the house."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead.core.model import Verdict
from playhead.store.root import Root


def run(repo: Path, name: str, *arguments: str, bare: bool = False) -> tuple[int, str]:
    flags = ["-I", "-S"] if bare else []
    env = {**os.environ, "PYTHONPATH": str(repo / "src")}
    done = subprocess.run(
        [sys.executable, *flags, str(repo / "examples" / name), *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def journal(repo: Path, root: Path) -> Path:
    code, said = run(repo, "agent.py")
    assert code == 0, said
    return Root(root).journal_dir(Root(root).last()) / "000000.jsonl"


def test_the_agent_leaves_a_run_that_verifies(repo: Path, root: Path) -> None:
    code, said = run(repo, "agent.py")
    assert code == 0, said
    first, walk, check = said.splitlines()
    assert first == "ordered 12 tea"
    run_id = walk.removeprefix("playhead walk ")
    head = check.rpartition(" --head ")[2]
    report = playhead.verify(run_id, root=Root(root), head=head)
    assert report.verdict is Verdict.VERIFIED, report.findings


def test_by_hand_agrees_on_a_good_journal(repo: Path, root: Path, journal: Path) -> None:
    report = playhead.verify(journal.parent.name, root=Root(root))
    code, said = run(repo, "verify_by_hand.py", str(journal), report.head, bare=True)
    assert (code, said.splitlines()[0]) == (0, f"{report.steps} steps, head {report.head}")


def test_by_hand_names_the_changed_line(repo: Path, journal: Path) -> None:
    rows = journal.read_bytes().splitlines(keepends=True)
    copy = journal.with_name("copy.jsonl")
    for line, row in enumerate(rows, 1):
        at = row.index(b'"id":"') + 6
        other = b"0" if row[at : at + 1] != b"0" else b"1"
        changed = row[:at] + other + row[at + 1 :]
        copy.write_bytes(b"".join([*rows[: line - 1], changed, *rows[line:]]))
        code, said = run(repo, "verify_by_hand.py", str(copy), bare=True)
        assert code == 1
        assert f"line {line}: step_hash" in said
        assert playhead.verify(copy).errors()[0].place.line == line


def test_by_hand_sees_a_cut_a_swap_and_a_torn_line(repo: Path, root: Path, journal: Path) -> None:
    head = playhead.verify(journal.parent.name, root=Root(root)).head
    rows = journal.read_bytes().splitlines(keepends=True)
    swapped = [*rows[:3], rows[4], rows[3], *rows[5:]]
    for made, what in (
        (rows[:-1], "the head is"),
        (rows[1:], "line 1: prev_hash"),
        (swapped, "line 4: prev_hash"),
        ([*rows, b'{"seq":'], f"line {len(rows) + 1}: no step"),
    ):
        copy = journal.with_name("copy.jsonl")
        copy.write_bytes(b"".join(made))
        code, said = run(repo, "verify_by_hand.py", str(copy), head, bare=True)
        assert code == 1
        assert what in said


def test_by_hand_takes_the_directory_of_a_run(repo: Path, journal: Path) -> None:
    by_file = run(repo, "verify_by_hand.py", str(journal), bare=True)
    assert run(repo, "verify_by_hand.py", str(journal.parent), bare=True) == by_file
    assert by_file[0] == 0


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "000000.jsonl/x"])
def test_by_hand_says_in_one_line_that_there_is_no_journal(
    repo: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "run").mkdir()
    code, said = run(repo, "verify_by_hand.py", str(tmp_path / "run" / name), bare=True)
    assert code == 2
    assert len(said.splitlines()) == 1
    assert "No such file or directory" in said


def test_the_examples_are_short(repo: Path) -> None:
    """They stand in the README and are read by strangers."""
    assert len((repo / "examples" / "agent.py").read_text().splitlines()) <= 35
    assert len((repo / "examples" / "verify_by_hand.py").read_text().splitlines()) <= 75
