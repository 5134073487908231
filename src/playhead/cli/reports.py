"""A verification report on a terminal: the verdict first, then what is proven and what is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from playhead.cli.shared import DONE, FAILED, UNPROVEN, say

if TYPE_CHECKING:
    from playhead.core.model import Report

SHOWN: Final = 20
"""Findings that are listed; the rest is counted."""
_COLOUR: Final = {"verified": "green", "unproven": "yellow", "failed": "red"}
_WORST: Final = (FAILED, 4, 2, UNPROVEN)


def exit_status(report: Report, strict: bool) -> int:
    """1 when it failed, 3 when it is unproven under ``--strict``, else 0."""
    if not report.ok:
        return FAILED
    return UNPROVEN if strict and report.verdict.value == "unproven" else DONE


def worst(statuses: Iterable[int]) -> int:
    """The status of several targets: the first of 1, 4, 2, 3 that is among them, else 0."""
    seen = set(statuses)
    return next((status for status in _WORST if status in seen), DONE)


def verdict_word(word: str) -> str:
    """A verdict in its colour; the colour goes where stdout is no terminal."""
    return click.style(word, fg=_COLOUR.get(word), bold=True)


def show_report(report: Report) -> None:
    """The report of one target as a block of lines."""
    from playhead.replay.text import visible

    steps = "1 step" if report.steps == 1 else f"{report.steps} steps"
    say(f"{verdict_word(report.verdict.value)}  {visible(report.target)}  {steps}")
    if report.steps:
        say(f"  head {report.head}")
    for title, sentences in (("proven", report.proven), ("not proven", report.unproven)):
        if sentences:
            say(f"  {title}:")
        for sentence in sentences:
            say(f"    {visible(sentence)}")
    _show_findings(report)


def _show_findings(report: Report) -> None:
    from playhead.replay.text import visible

    if report.findings:
        say("  findings:")
    for finding in report.findings[:SHOWN]:
        say(f"    {visible(str(finding))}")
    left = len(report.findings) - SHOWN + report.suppressed
    if left > 0:
        say(f"    and {left} more (--json lists them)")
