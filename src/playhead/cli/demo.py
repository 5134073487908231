"""``playhead demo``: the first thing a stranger runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from playhead.cli.shared import epilog, json_option, say, show_json, status_table


@click.command(
    "demo",
    epilog=epilog("playhead demo", status=status_table(0, 2, 4, s1="the story did not come out")),
)
@click.option(
    "--root", "folder", metavar="DIR", help="Where everything goes (default: playhead-demo here)."
)
@json_option
def command(folder: str | None, as_json: bool) -> int:
    """A whole story in a few seconds, offline.

    Records a small agent with tools against a scripted model server on loopback, verifies it,
    walks it, changes one byte and shows the line that is caught. The run stays in a folder
    that it names.
    """
    from playhead.demo.story import tell

    place = Path(folder) if folder else None
    if not as_json:
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        return tell(say, place, color=coloured)
    lines: list[str] = []
    status = tell(lines.append, place)
    show_json({"story": lines, "status": status})
    return status
