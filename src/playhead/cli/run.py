"""``playhead run``: a program under record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import common, epilog, status_table

if TYPE_CHECKING:
    from playhead.store.root import Root


@click.command(
    "run",
    epilog=epilog(
        "playhead run --agent helper -- python agent.py",
        status=status_table(
            s0="the program's own status is handed on",
            s2="the words are off",
            s125="playhead itself failed",
            s126="the program cannot be executed",
            s127="there is no such program",
        ),
    ),
)
@click.argument("argv", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--agent", metavar="ID", help="Who runs (default: the program's name).")
@common
def command(root: Root, as_json: bool, argv: tuple[str, ...], agent: str | None) -> int:
    """Record a program: what it does through the library goes onto one chain.

    Put '--' before the program. Its output passes through; with --json what would go to stderr
    at the end is one document on stderr, because stdout is the program's.
    """
    raise NotImplementedError
