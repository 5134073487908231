"""``playhead export``: a run as a file, the ending says which."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, common, epilog, find_run, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.store.root import Root


@click.command(
    "export",
    epilog=epilog(
        "playhead export @last -o run.jsonl",
        status=status_table(0, 2, 4, s1="a kept file is damaged, or the disk refused"),
    ),
)
@click.argument("run", metavar="RUN")
@click.option("-o", "--output", metavar="FILE", required=True, help="Where to; - is stdout.")
@click.option("--original", is_flag=True, help="The transcript it was imported from, unchanged.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@common
def command(root: Root, as_json: bool, run: str, output: str, original: bool, force: bool) -> int:
    """Write a run to a file, owner-only, and read it back to check it.

    FILE.jsonl is the journal: the same rows, the same head. With --original it is the source
    transcript byte for byte; where that had several files, FILE is a directory for them.
    """
    from playhead.convert.exporter import export_jsonl, export_stream
    from playhead.errors import UsageError
    from playhead.replay.text import visible

    if not output or "\0" in output:
        raise UsageError("--output is no path", remedy="Name a file")
    folder = find_run(root, run)
    if output == "-":
        if as_json:
            raise UsageError("--json and -o - both want stdout", remedy="Name a file")
        for block in export_stream(root, folder, original=original):
            sys.stdout.buffer.write(block)
        return DONE
    report = export_jsonl(root, folder, Path(output), original=original, force=force)
    if as_json:
        show_json(report.to_dict())
        return DONE
    for file in report.files:
        say(f"{visible(str(file.path))}  {file.size} bytes  sha256 {file.sha256}")
    return DONE
