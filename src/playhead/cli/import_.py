"""``playhead import``: foreign transcripts into runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from playhead.cli.reports import SHOWN
from playhead.cli.shared import (
    DONE,
    FAILED,
    epilog,
    progress,
    say,
    show_json,
    status_table,
    writing,
)

if TYPE_CHECKING:
    from playhead.convert.importer import Imported
    from playhead.store.urls import Where

STATUS = status_table(0, 2, 4, s1="a transcript of which nothing could be understood")


@click.command("import", epilog=epilog("playhead import session.jsonl", status=STATUS))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--format", "kind", metavar="NAME", help="Read it as this (default: told by form).")
@click.option("--agent", metavar="ID", help="A label for who ran.")
@click.option("--run-id", metavar="ID", help="The run to make, for one session.")
@click.option("--redact", is_flag=True, help="Remove secrets; gives up the byte-exact export.")
@writing
def command(
    root: Where,
    tenant_id: str,
    as_json: bool,
    files: tuple[str, ...],
    kind: str | None,
    agent: str | None,
    run_id: str | None,
    redact: bool,
) -> int:
    """Turn foreign transcripts into runs, one a session.

    The original rows are kept by hash: 'playhead export --original' gives them back byte for
    byte. Importing the same file again finds the run that is there.
    """
    from playhead.convert.importer import import_files
    from playhead.errors import NotFound

    if any(not name or "\0" in name for name in files):
        raise NotFound("a file without a name", remedy="Name a session file")
    for name in files:
        _check(name)
    with progress("importing") as bar:
        watch = None if bar is None else lambda _, written, total: bar(written, total)
        done = import_files(
            root,
            files,
            format=kind,
            run_id=run_id,
            agent=agent,
            redact=redact,
            tenant_id=tenant_id,
            progress=watch,
        )
    if as_json:
        show_json({"imported": [one.to_dict() for one in done]})
    else:
        for one in done:
            _show(one)
    return DONE if all(one.ok for one in done) else FAILED


def _check(name: str) -> None:
    """Refuse what is not there or a directory, in words about transcripts.

    Raises:
        NotFound, Unreadable: it is.
    """
    from playhead.errors import NotFound, Place, Unreadable

    place = Place(name)
    if not os.path.lexists(name):
        raise NotFound("no such file", place=place, remedy="Name a session file")
    if os.path.isdir(name) and not os.path.islink(name):
        files = os.path.join(name, "*.jsonl")
        raise Unreadable(
            "not a regular file but a directory", place=place, remedy=f"Name its files: {files}"
        )


def _counted(count: int, name: str) -> str:
    return f"{count} {name.removesuffix('s') if count == 1 else name}"


def _show(one: Imported) -> None:
    from playhead.replay.text import visible

    word = "already there" if one.already else "imported" if one.ok else "not understood"
    say(f"{word}  {visible(one.run_id)}  {one.steps} steps")
    counts = [_counted(count, name) for name, count in one.counts.items() if isinstance(count, int)]
    if counts:
        say(f"  {visible(', '.join(counts))}")
    say(f"  head {one.head}")
    for finding in one.findings[:SHOWN]:
        say(f"  {visible(str(finding))}")
    left = len(one.findings) - SHOWN
    if left > 0:
        say(f"  and {left} more findings (--json lists them)")
