"""``playhead walk``: a run on a screen, or as plain text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

import click

from playhead.cli.shared import DONE, epilog, say, scoped, status_table
from playhead.cli.steps import opened, step_number

if TYPE_CHECKING:
    from playhead.store.stores import Store


@click.command(
    "walk",
    epilog=epilog("playhead walk @last", status=status_table(0, 2, 4)),
    context_settings={"ignore_unknown_options": True},  # -1 is a step
)
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP]", required=False)
@click.option("--plain", is_flag=True, help="No screen: every step from STEP on, with its detail.")
@click.option("--back", is_flag=True, help="With --plain: backward.")
@click.option("--keys", metavar="FILE", help="With --plain: commands, one a line; - is stdin.")
@click.option("--full", is_flag=True, help="With --plain: every message and every character.")
@scoped
def command(
    store: Store,
    tenant_id: str,
    as_json: bool,
    run: str,
    step: str | None,
    plain: bool,
    back: bool,
    keys: str | None,
    full: bool,
) -> int:
    """Walk a run: forward, back, jump, next error, search, diff with the previous state.

    On a terminal a screen opens; ? shows its keys. Where stdout is no terminal, or with
    --plain, the walk is printed. --keys reads the commands n p g N e E t T /text ?text q and
    prints the step that each leads to. With --json the lines are one document.
    """
    commands = None if keys is None else _commands(keys)
    with opened(store, tenant_id, run) as found:
        start = 0
        if step is not None:
            start = step_number(found, step)
        elif back and found.has(0):
            start = len(found) - 1
        screen = sys.stdout.isatty() and sys.stdin.isatty()
        if screen and not (plain or keys or back or as_json):
            from playhead.tui.walk import walk

            walk(found, start)
            return DONE
        lines: list[str] = []
        out: Callable[[str], None] = lines.append if as_json else say
        from playhead.tui.plain import walk_all, walk_commands

        if commands is not None:
            walk_commands(found, start, commands, out, full=full)
        else:
            walk_all(found, start, out, back=back, full=full)
    if as_json:
        from playhead.cli.shared import show_json

        show_json({"run_id": found.run_id, "lines": lines})
    return DONE


def _commands(name: str) -> Iterator[str]:
    """The lines of ``name``, undecodable bytes made visible. A file is opened at once.

    Raises:
        NotFound, Unreadable: there is no such regular file.
    """
    if name == "-":
        return _lines(sys.stdin.buffer)
    from pathlib import Path

    from playhead.errors import NotFound, Unreadable
    from playhead.store.durable import open_regular

    remedy = "Name a file with commands; '--keys -' reads them from stdin"
    try:
        return _lines(open(open_regular(Path(name)), "rb"))
    except (NotFound, Unreadable) as error:
        raise type(error)(error.what, place=error.place, remedy=remedy) from None


def _lines(handle: BinaryIO) -> Iterator[str]:
    with handle:
        for line in handle:
            yield line.decode("utf-8", "backslashreplace")
