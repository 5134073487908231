"""``playhead ls``: the runs under a root."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from playhead.cli.reports import exit_status, verdict_word, worst
from playhead.cli.shared import (
    DONE,
    epilog,
    no_run,
    require_root,
    say,
    scoped,
    show_json,
    status_table,
)

if TYPE_CHECKING:
    from playhead.core.model import Report
    from playhead.replay.info import RunInfo
    from playhead.store.stores import ChainRef, Store

STATUS = status_table(0, 2, 4, s1="with --verify: a run failed")


@click.command("ls", epilog=epilog("playhead ls", status=STATUS))
@click.option("--verify", "checked", is_flag=True, help="Verify each run and show its verdict.")
@scoped
def command(store: Store, tenant_id: str, as_json: bool, checked: bool) -> int:
    """List the runs: id, agent, steps, started, status, the run it was forked from.

    With --verify also the verdict; without, nothing but the ends of each run is read. Only runs
    of the tenant are listed; --tenant names another one.
    """
    from playhead.replay.listing import list_chats

    require_root(store)
    found = list_chats(store, tenant_id)
    runs = [info for _, info in found]
    reports = [_verdict(store, ref) if checked else None for ref, _ in found]
    status = worst(exit_status(report, False) for report in reports if report is not None)
    if as_json:
        pairs = zip(runs, reports, strict=True)
        show_json({"runs": [_row(info, report) for info, report in pairs]})
        return status
    if not runs:
        say(no_run(store))
        return DONE
    _table(runs, reports)
    return status


def _verdict(store: Store, ref: ChainRef) -> Report:
    from playhead.core.model import Finding, Report, Verdict
    from playhead.errors import PlayheadError
    from playhead.verifier.target import verify_chain

    try:
        return verify_chain(store, ref)
    except PlayheadError as error:
        finding = Finding(error.code, "error", error.what, error.place, error.remedy)
        return Report(ref.run_id, Verdict.FAILED, "", 0, findings=(finding,))


def _row(info: RunInfo, report: Report | None) -> dict[str, object]:
    row: dict[str, object] = {
        "run_id": info.run_id,
        "kind": info.kind,
        "agent": info.agent,
        "steps": info.steps,
        "started": info.started,
        "ended": info.ended,
        "status": info.status,
        "parent": info.parent,
        "parent_step": info.parent_step,
        "size": info.size,
        "sealed": info.sealed,
        "problem": info.problem,
    }
    return row if report is None else {**row, "verdict": report.verdict.value}


def _table(runs: list[RunInfo], reports: list[Report | None]) -> None:
    from playhead.replay.text import visible

    head = ["RUN", "AGENT", "STEPS", "STARTED", "STATUS", "PARENT"]
    rows = [head] + [[visible(cell) for cell in _cells(info)] for info in runs]
    widths = [min(48, max(len(row[column]) for row in rows)) for column in range(len(head))]
    widest = max(len(row[0]) for row in rows)  # an id is never cut: it is there to be copied
    widths[0] = min(widest, get_terminal_size().columns)
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        report = reports[number - 1] if number else None
        say((line + (f"  {verdict_word(report.verdict.value)}" if report else "")).rstrip())


def _cells(info: RunInfo) -> list[str]:
    parent = info.parent or ""
    if info.parent and info.parent_step is not None:
        parent += f"@{info.parent_step}"
    status = info.problem or info.status or info.kind
    return [
        info.run_id,
        info.agent or "",
        str(info.steps),
        (info.started or "")[:19].replace("T", " "),
        f"{status} (sealed)" if info.sealed else status,
        parent,
    ]
