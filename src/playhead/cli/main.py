"""The program `playhead`: a table of commands, loaded one at a time, and the exit statuses.

``playhead --help`` imports click and this file; a command's module is imported when the
command is named. What a command raises becomes one line and a status here, and only here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import click

from playhead.cli.faults import BROKEN_PIPE, BUG, INTERRUPTED, show_bug, show_error, show_usage
from playhead.errors import PlayheadError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo", "A whole story in a few seconds, offline."),
    "run": ("run", "Record a program."),
    "ls": ("ls", "List the runs."),
    "log": ("log", "One line a step."),
    "show": ("show", "One step whole."),
    "walk": ("walk", "Walk a run: forward, back, jump, search."),
    "replay": ("replay", "Fold a run's record and print the state."),
    "verify": ("verify", "Prove that nobody changed a run."),
    "import": ("import_", "Turn foreign transcripts into runs."),
    "export": ("export", "Write a run to a file."),
    "copy": ("copy", "Copy a run into other stores, and prove it."),
    "keys": ("keys", "Make, show and trust signing keys."),
    "fsck": ("fsck", "Check every run and blob under the root."),
    "seal": ("seal", "Pack an ended run."),
    "unseal": ("unseal", "Unpack a sealed run."),
    "store": ("store", "Make a database for runs, and check it."),
}
"""Each command: its module under ``cli/``, whose ``command`` it is, and its short help."""

EPILOG = """\b
EXAMPLE
  playhead demo

\b
EXIT STATUS
  0    done; verified, or unproven without --strict
  1    a check failed
  2    the words are off, or the thing is not there
  3    unproven under --strict
  4    refused: hostile or unreadable input
  70   a fault in playhead itself
  130  interrupted
"""


COMPLETE = "_PLAYHEAD_COMPLETE"
"""Set by a shell that completes a command line (docs/reference/cli.md)."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        loaded = import_module(f"playhead.cli.{COMMANDS[cmd_name][0]}")
        command = loaded.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from playhead import __version__

        click.echo(f"playhead {__version__}")
        ctx.exit(0)


@click.group(
    cls=LazyGroup,
    name="playhead",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and exit.",
)
def playhead() -> None:
    """Record an AI agent's run once; walk it, and prove that nobody changed it.

    RUN is a run id, a unique prefix of one, a path, or @last. 'playhead COMMAND --help' says
    what a command does.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status.

    Raises:
        SystemExit: a bug of playhead, with `BUG`; the bug itself when PLAYHEAD_DEBUG is set.
    """
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in own
    try:
        status = _invoke(list(arguments))
        sys.stdout.flush()
        return status
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return show_usage(error, as_json, _named(own))
    except PlayheadError as error:
        return show_error(error, as_json)
    except (KeyboardInterrupt, click.Abort):
        click.echo("playhead: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except OSError as error:
        return show_error(_of_system(error), as_json)
    except Exception as bug:
        if os.environ.get("PLAYHEAD_DEBUG"):
            raise
        show_bug(bug, as_json)
        raise SystemExit(BUG) from None


def _invoke(arguments: list[str]) -> int:
    colour = False if os.environ.get("NO_COLOR") else None
    with playhead.make_context("playhead", arguments, color=colour) as ctx:
        status = playhead.invoke(ctx)
    return status if isinstance(status, int) else 0


def _named(arguments: Sequence[str]) -> str:
    """The command that a line names, where click does not tell."""
    word = arguments[0] if arguments else ""
    return f"playhead {word}" if word in COMMANDS else "playhead"


def _of_system(error: OSError) -> PlayheadError:
    from playhead.errors import Place, Unreadable

    name = error.filename
    words = os.strerror(error.errno).lower() if error.errno else str(error)
    place = Place(os.fsdecode(name) if isinstance(name, (str, bytes)) else None)
    return Unreadable(words, place=place, remedy="Check its kind, owner and permissions")


def _forget_stdout() -> None:
    """Nobody reads any more: the flush at exit must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """The entry point: exits with the status of `run`."""
    if sys.stdout is None:  # closed by the caller (``>&-``): the status is what is asked for
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (it lives as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # what the terminal cannot spell is escaped, never a crash
            reconfigure(errors="backslashreplace")
    asked = os.environ.get(COMPLETE)
    if asked:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(playhead, {}, "playhead", COMPLETE, asked))
    if any("://" in word for word in sys.argv):
        from playhead.cli.title import hide_passwords

        hide_passwords()
    sys.exit(run(sys.argv[1:]))
