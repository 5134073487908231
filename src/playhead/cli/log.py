"""``playhead log``: a run as one line a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, epilog, say, scoped, show_json, status_table
from playhead.cli.steps import opened

if TYPE_CHECKING:
    from playhead.replay.run import Run
    from playhead.replay.view import LogLine
    from playhead.store.stores import Store


@click.command(
    "log", epilog=epilog("playhead log @last --grep error", status=status_table(0, 2, 4))
)
@click.argument("run", metavar="RUN")
@click.option("--turns", is_flag=True, help="One line a turn: where it starts.")
@click.option("--grep", metavar="X", help="Only steps whose row holds this text, in any case.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="At most so many lines; 0 is all.",
)
@scoped
def command(
    store: Store, tenant_id: str, as_json: bool, run: str, turns: bool, grep: str | None, limit: int
) -> int:
    """Show one line a step: number, time, what happened, how it ended."""
    with opened(store, tenant_id, run) as found:
        lines = _lines(found, turns, grep)
        if as_json:
            shown = [asdict(line) for line in (islice(lines, limit) if limit else lines)]
            more = bool(limit) and next(lines, None) is not None
            show_json({"run_id": found.run_id, "lines": shown, "more": more})
        else:
            shown_any = _print(lines, limit)
            if grep and not shown_any:
                from playhead.replay.text import one_liner

                click.echo(f"no step holds {one_liner(repr(grep), 60)}", err=True)
    return DONE


def _lines(run: Run, turns: bool, grep: str | None) -> Iterator[LogLine]:
    """The lines that are asked for, one at a time."""
    from playhead.replay.view import line_of
    from playhead.replay.walker import Walker

    walker = Walker(run)
    walker.position = -1
    step: int | None = -1
    while True:
        if grep:
            step = walker.search(grep)
        elif turns:
            step = walker.next_turn()
        else:
            step = walker.position + 1
            walker.position = step
        if step is None or not run.has(step):
            return
        line = line_of(run, step)
        if not turns or line.kind == "turn.started":
            yield line


def _print(lines: Iterator[LogLine], limit: int) -> bool:
    """Print them; whether there was one."""
    from playhead.tui.lines import is_bad, step_text

    count = -1
    for count, line in enumerate(lines):
        if limit and count == limit:
            click.echo(f"... and more after {limit} lines: --limit 0 shows all", err=True)
            return True
        text = step_text(line)
        say(click.style(text, fg="red") if is_bad(line) else text)
    return count >= 0
