"""Interrupts, closed pipes, faults of the system and of playhead itself."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import playhead
from commands import Cli
from playhead.cli import main
from playhead.errors import NotFound, Place
from story import HOSTILE, a_run


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make every command end with an exception."""

    def arrange(error: BaseException) -> None:
        def fail(_: list[str]) -> int:
            raise error

        monkeypatch.setattr(main, "_invoke", fail)

    return arrange


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_status_130_and_one_line(cli: Cli, failing, error: BaseException) -> None:
    failing(error)
    done = cli("ls")
    assert (done.status, done.out, done.err) == (130, "", "playhead: interrupted\n")


def test_a_fault_of_playhead_asks_for_a_report(
    cli, failing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(ZeroDivisionError("x"))
    with pytest.raises(ZeroDivisionError):
        cli("ls")
    monkeypatch.delenv("PLAYHEAD_DEBUG")
    with pytest.raises(SystemExit) as ended:
        main.run(["ls"])
    assert ended.value.code == 70
    err = capsys.readouterr().err
    assert err.startswith("playhead: a fault in playhead itself: ZeroDivisionError at test_faults")
    assert err.count("\n") == 1
    with pytest.raises(SystemExit):
        main.run(["ls", "--json"])
    assert json.loads(capsys.readouterr().out)["code"] == "bug"


def test_an_error_is_one_safe_line(cli: Cli, failing) -> None:
    failing(NotFound(f"no {HOSTILE}\nnext line", place=Place("a\x1b[2J", 3), remedy="Look"))
    done = cli("ls")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(done.err)
    assert "[bold]x[/bold]" in done.err


def test_with_json_an_error_is_an_object(cli: Cli, failing) -> None:
    failing(NotFound("no such thing", place=Place("a", 3, 40, 2), remedy="Look"))
    done = cli("ls", "--json")
    assert (done.status, done.err) == (2, "")
    assert json.loads(done.out) == {
        "error": True,
        "code": "not-found",
        "what": "no such thing",
        "where": {"file": "a", "line": 3, "byte": 40, "step": 2},
        "remedy": "Look",
    }


def test_json_after_the_dashes_belongs_to_the_program(cli: Cli) -> None:
    done = cli("run", "--", "no-such-program-anywhere", "--json")
    assert (done.status, done.out) == (127, "")
    assert done.err.startswith("playhead: no program")


def test_an_error_of_the_system_is_a_refusal(cli: Cli, failing) -> None:
    failing(PermissionError(13, "Permission denied", "secret.txt"))
    done = cli("ls")
    assert done.status == 4
    assert done.err.startswith("playhead: secret.txt: permission denied. ")


def spawn(*arguments: str, **more: object) -> subprocess.Popen[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "playhead", *arguments], **pipes | more)


def test_a_reader_that_goes_away_is_no_error() -> None:
    with playhead.record("long", run_id="long") as run:
        for number in range(2000):
            run.state("number", "x" * 100 + str(number))
    process = spawn("log", "long", "--limit", "0")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_ctrl_c_ends_a_real_process_with_130() -> None:
    a_run()
    process = spawn("walk", "--plain", "first", "--keys", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"n\n")
    process.stdin.flush()
    os.read(process.stdout.fileno(), 10)  # it runs, and waits for more
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().endswith(b"playhead: interrupted")
    assert err.count(b"\n") == 1


def test_a_terminal_that_cannot_spell_a_character_gets_an_escape(root: Path) -> None:
    with playhead.record("tester", run_id="first") as run:
        run.state("word", "a → b")
    process = spawn("log", "first", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"word = a \\u2192 b" in out


def test_no_colour_where_nobody_sees_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    a_run()
    assert "\x1b" not in cli("log", "first").out
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda stream, color: color is False)
    assert "\x1b[31m" in cli("log", "first").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli("log", "first").out


class Terminal(io.StringIO):
    """A stdin that somebody sits at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("more", "screen"),
    [([], True), (["3"], True), (["--plain"], False), (["--back"], False), (["--json"], False)],
)
def test_walk_opens_a_screen_on_a_terminal_unless_told_otherwise(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, more: list[str], screen: bool
) -> None:
    a_run()
    opened: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "playhead.tui.walk.walk", lambda run, start: opened.append((len(run), start))
    )
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    done = cli("walk", "first", *more)
    assert done.status == 0
    assert opened == ([(15, int(more[0]) if more else 0)] if screen else [])
    assert bool(done.out) is not screen
