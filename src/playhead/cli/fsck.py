"""``playhead fsck``: everything under a root, derived again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from playhead.cli.reports import SHOWN, exit_status, show_report, verdict_word, worst
from playhead.cli.shared import common, epilog, no_run, require_root, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.core.model import Report
    from playhead.store.root import Root


@click.command("fsck", epilog=epilog("playhead fsck", status=status_table(0, 1, 2, 3, 4)))
@click.option("--strict", is_flag=True, help="Unproven is status 3.")
@common
def command(root: Root, as_json: bool, strict: bool) -> int:
    """Check every run and blob under the root.

    Beyond 'verify': every prompt is rebuilt, every blob hashed, the field commitments derived
    again, and kept source transcripts restored. Nothing is repaired or removed.
    """
    from playhead.store.dirstore import DirStore
    from playhead.verifier.fsck import fsck

    require_root(DirStore(root))
    reports = fsck(root, progress=None if as_json or not sys.stderr.isatty() else _watch)
    status = worst(exit_status(report, strict) for report in reports)
    if as_json:
        show_json({"reports": [report.to_dict() for report in reports], "status": status})
        return status
    for report in reports:
        _show(report)
    say(f"{len(reports)} checked" if reports else no_run(DirStore(root)))
    return status


def _watch(run_id: str) -> None:
    click.echo(f"checking {run_id}", err=True)


def _show(report: Report) -> None:
    from playhead.replay.text import visible

    if not report.ok:
        show_report(report)
        return
    say(f"{verdict_word(report.verdict.value)}  {visible(report.target)}  {report.steps} steps")
    for finding in report.findings[:SHOWN]:
        say(f"    {visible(str(finding))}")
