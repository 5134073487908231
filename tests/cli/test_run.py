"""``playhead run`` and ``playhead demo``: real programs, real streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Cli

AGENT = """\
import sys, playhead
print(sys.stdin.read().upper(), end="")
print("to stderr", file=sys.stderr)
with playhead.record("inner") as run:
    run.state("arguments", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


def playhead(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "playhead", *arguments]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def agent(here: Path) -> str:
    (here / "agent.py").write_text(AGENT)
    return "agent.py"


@pytest.mark.parametrize("status", [0, 7])
def test_streams_arguments_and_status_are_the_programs_own(
    cli: Cli, agent: str, status: int
) -> None:
    words = ["--", sys.executable, agent, str(status), "--json", "-x"]
    done = playhead("run", "--agent", "outer", "--run-id", "r1", *words, text="hello\n")
    assert done.returncode == status
    assert done.stdout == "HELLO\n"
    assert done.stderr.splitlines()[0] == "to stderr"
    assert f"playhead: r1: {'failed' if status else 'completed'}, " in done.stderr
    log = cli("log", "r1").out
    assert all(word in log for word in (str(status), "--json", "-x")), log
    assert cli("verify", "r1").out.startswith("verified")
    assert "outer" in cli("ls").out


def test_with_json_the_summary_is_one_document_on_stderr(cli: Cli, here: Path) -> None:
    done = playhead("run", "--json", "--", sys.executable, "-c", "print('out')")
    assert (done.returncode, done.stdout) == (0, "out\n")
    summary = json.loads(done.stderr)
    assert summary["status"] == "completed"
    assert summary["events_from_program"] == 0
    assert json.loads(cli("ls", "--json").out)["runs"][0]["run_id"] == summary["run_id"]


def test_a_program_that_records_nothing_is_told_so(here: Path) -> None:
    done = playhead("run", "--", sys.executable, "-c", "pass")
    assert "recorded nothing through the library" in done.stderr


def test_a_file_that_cannot_be_executed_is_126(cli: Cli, here: Path) -> None:
    (here / "text.txt").write_text("no program\n")
    done = cli("run", "--", "./text.txt")
    assert done.status == 126
    assert done.err.count("\n") == 1


def test_a_root_that_cannot_be_is_125(cli: Cli, here: Path) -> None:
    (here / "file").write_text("")
    done = cli("run", "--root", "file", "--", sys.executable, "-c", "print('ran')")
    assert done.status == 125
    assert (done.out, done.err.count("\n")) == ("", 1)


def test_a_signal_that_ended_the_program_is_128_and_its_number(here: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = playhead("run", "--run-id", "killed", "--", sys.executable, "-c", code)
    assert done.returncode == 137
    assert "playhead: killed: failed" in done.stderr


def test_the_demo_tells_its_story_and_leaves_a_run_to_walk(cli: Cli, here: Path) -> None:
    done = cli("demo", "--root", "told")
    assert done.status == 0, done
    assert "VERIFY" in done.out
    assert "CHANGE ONE BYTE" in done.out
    assert "\x1b" not in done.out
    again = cli("demo", "--root", "told")
    assert again.status == 2
    assert again.err.count("\n") == 1


def test_the_demo_as_one_document(cli: Cli, here: Path) -> None:
    done = cli("demo", "--json")
    assert done.status == 0
    assert json.loads(done.out)["status"] == 0
    assert (here / "playhead-demo").is_dir()
