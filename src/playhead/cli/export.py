"""``playhead export``: a run as a file, the ending says which."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, epilog, find_chain, say, scoped, show_json, status_table

if TYPE_CHECKING:
    from playhead.store.stores import Store


@click.command(
    "export",
    epilog=epilog(
        "playhead export @last -o run.jsonl",
        status=status_table(0, 2, 4, s1="it does not verify, or the disk refused"),
    ),
)
@click.argument("run", metavar="RUN")
@click.option("-o", "--output", metavar="FILE", required=True, help="Where to; - is stdout.")
@click.option("--original", is_flag=True, help="The transcript it was imported from, unchanged.")
@click.option("--force", is_flag=True, help="Replace a file; write a run that fails.")
@scoped
def command(
    store: Store,
    tenant_id: str,
    as_json: bool,
    run: str,
    output: str,
    original: bool,
    force: bool,
) -> int:
    """Write a run to a file, owner-only, and read it back to check it.

    FILE.jsonl is the journal: the same rows, the same head. With --original it is the source
    transcript byte for byte; where that had several files, FILE is a directory for them. A run
    that does not verify is refused; --force writes it as it is, with a warning.
    """
    from playhead.convert.exporter import export_jsonl, export_stream, require_sound
    from playhead.errors import CheckFailed, UsageError
    from playhead.replay.text import visible

    if not output or "\0" in output:
        raise UsageError("--output is no path", remedy="Name a file")
    ref = find_chain(store, tenant_id, run)
    try:
        require_sound(store, ref)
    except CheckFailed as error:
        if not force:
            raise
        click.echo(f"playhead: warning: {visible(f'{error.place}: {error.what}')}", err=True)
    if output == "-":
        if as_json:
            raise UsageError("--json and -o - both want stdout", remedy="Name a file")
        for block in export_stream(store, ref, original=original):
            sys.stdout.buffer.write(block)
        return DONE
    report = export_jsonl(store, ref, Path(output), original=original, force=force)
    if as_json:
        show_json(report.to_dict())
        return DONE
    for file in report.files:
        say(f"{visible(str(file.path))}  {file.size} bytes  sha256 {file.sha256}")
    return DONE
