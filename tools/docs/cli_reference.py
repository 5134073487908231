"""Write docs/reference/cli.md from the help texts; ``--check`` only compares (status 1).

The page is what ``playhead COMMAND --help`` prints, at a fixed width, so it cannot say
anything else than the program does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from playhead.cli.main import COMMANDS, playhead

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
WIDTH = 90

HEAD = """\
# Command line

<!-- written by tools/docs/cli_reference.py: change the help texts and run `make docs` -->

One program, `playhead`. RUN is a run id, a unique prefix of one, a path, or `@last`. STEP counts
from 0; `last` and negative numbers count from the end. The runs lie under `--root`, a directory or
the URL of a database, else `PLAYHEAD_ROOT`, else `.sdd`. Whose run it is says `--tenant`, else
`PLAYHEAD_TENANT`; in a directory it is `local` without, a database needs one, and another tenant's
run is not there. With `--json` a command prints one JSON document on stdout and
nothing else there; an error is an object too. What comes from a recording is shown with control
and bidi characters spelled out (`⟨U+001B⟩`), markup in it is never interpreted, and a command
that only reads writes nothing. Colours appear on a terminal only, and not where `NO_COLOR` is
set. Exit statuses: [exit-status.md](exit-status.md).

`eval "$(_PLAYHEAD_COMPLETE=bash_source playhead)"` completes commands and options in bash;
`zsh_source` and `fish_source` do so in the other two.
"""


def commands() -> Iterator[tuple[str, click.Context]]:
    """Every command with its full name and a context to ask for help, groups before members."""
    settings = dict(playhead.context_settings)
    top = click.Context(playhead, info_name="playhead", terminal_width=WIDTH, **settings)
    for name in COMMANDS:
        command = playhead.get_command(top, name)
        assert command is not None
        context = click.Context(command, parent=top, info_name=name, terminal_width=WIDTH)
        yield name, context
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                member = command.get_command(context, inner)
                assert member is not None
                yield (
                    f"{name} {inner}",
                    click.Context(member, parent=context, info_name=inner, terminal_width=WIDTH),
                )


def page() -> str:
    """The whole page."""
    found = list(commands())
    lines = [HEAD, "| command | what it does |", "| --- | --- |"]
    for name, context in found:
        short = context.command.get_short_help_str(limit=120)
        short = COMMANDS[name][1] if name in COMMANDS else short
        lines.append(f"| [`playhead {name}`](#playhead-{name.replace(' ', '-')}) | {short} |")
    for name, context in found:
        help_text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        lines += ["", f"## playhead {name}", "", "```text", help_text, "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or compare it; returns the exit status."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, "utf-8")
        return 0
    if PAGE.read_text("utf-8") == text:
        return 0
    print(f"{PAGE.name} is not what the help texts say: run make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
