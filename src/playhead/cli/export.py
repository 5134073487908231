"""``playhead export``: a run as a file, the ending says which."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, common, epilog, find_run, say, show_json, status_table
from playhead.errors import Place

if TYPE_CHECKING:
    from playhead.store.root import Root


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
@common
def command(root: Root, as_json: bool, run: str, output: str, original: bool, force: bool) -> int:
    """Write a run to a file, owner-only, and read it back to check it.

    FILE.jsonl is the journal: the same rows, the same head. With --original it is the source
    transcript byte for byte; where that had several files, FILE is a directory for them. A run
    that does not verify is refused; --force writes it as it is, with a warning.
    """
    from playhead.convert.exporter import export_jsonl, export_stream
    from playhead.errors import UsageError
    from playhead.replay.text import visible

    if not output or "\0" in output:
        raise UsageError("--output is no path", remedy="Name a file")
    folder = find_run(root, run)
    _check(root, folder, force)
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


def _check(root: Root, folder: Path, force: bool) -> None:
    """Refuse a run that does not verify, or with ``force`` say so.

    Raises:
        CheckFailed: it does not verify, and ``force`` is off.
    """
    from playhead.errors import CheckFailed
    from playhead.replay.text import visible
    from playhead.verifier.api import verify

    report = verify(folder, root=root)
    if report.ok:
        return
    bad = next((one for one in report.findings if one.severity == "error"), None)
    what = "the run does not verify" + (f": {bad.kind}: {bad.what}" if bad else "")
    place = bad.place if bad else Place(str(folder))
    if not force:
        raise CheckFailed(what, place=place, remedy="--force writes it as it is")
    click.echo(f"playhead: warning: {visible(f'{place}: {what}')}", err=True)
