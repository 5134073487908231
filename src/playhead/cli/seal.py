"""``playhead seal``: an ended run as compressed frames, read in place by every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, common, epilog, find_run, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.store.root import Root


@click.command(
    "seal",
    epilog=epilog(
        "playhead seal @last",
        status=status_table(0, 1, 2, 4, s1="it has no end, is being written, or does not verify"),
    ),
)
@click.argument("run", metavar="RUN")
@click.option("--force", is_flag=True, help="Also a run without an end, as other recorders leave.")
@common
def command(root: Root, as_json: bool, run: str, force: bool) -> int:
    """Pack an ended run.

    Its rows keep their bytes and its head stays the same; every command reads it as it lies.
    """
    from playhead.store.seal import seal_folder

    folder = find_run(root, run)
    report = seal_folder(folder, force=force)
    if as_json:
        sizes = {"plain_bytes": report.plain_bytes, "sealed_bytes": report.sealed_bytes}
        show_json({"run_id": folder.name, "already": report.already, "rows": report.rows, **sizes})
    else:
        word = "sealed already" if report.already else "sealed"
        say(f"{word} {folder.name}  {report.plain_bytes} -> {report.sealed_bytes} bytes")
    return DONE
