"""A replayed run as lines: its place, the verdict, the state. Recorded text is made visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from playhead.cli.reports import verdict_word
from playhead.cli.shared import say
from playhead.replay.text import visible

if TYPE_CHECKING:
    from playhead.core.model import JSON, Event, Report
    from playhead.replay.cache import CacheStats
    from playhead.replay.report import Asked, Replayed

SHOWN: Final = 40
"""Lines of a state that was not asked for by name."""
_WIDE: Final = 400
"""Characters of such a line."""


def show_replayed(
    found: Replayed, asked: Asked, given: Mapping[str, Any], cache: bool = True
) -> None:
    """Run, place, verdict, turn and state. ``cache`` off: its line comes later."""
    say(visible(f"{found.ref.run_id}  chat {found.ref.chat_id} of tenant {found.ref.tenant_id}"))
    behind = f"behind row {found.rows}" if found.rows else "before any row"
    say(f"  state    {behind} of {found.size}")
    say(f"  head     {found.head}")
    say(f"  digest   {found.digest}")
    _show_verdict(found.report, asked)
    if cache and (found.cache is not None or given["cache_mode"]):
        say(cache_line(found.cache))
    if found.turn is not None:
        say(visible(f"turn {found.turn}"))
        for event in found.events:
            show_event(event)
    show_state("core", found.state, whole="core" in asked.states)
    for key, view in found.views.items():
        show_state(key, view, whole=True)


def _show_verdict(report: Report | None, asked: Asked) -> None:
    if report is None:
        how = "each row was checked" if asked.verify == "step" else "not verified"
        say(f"  chain    {how} (--verify-mode {asked.verify})")
        return
    say(f"  chain    {verdict_word(report.verdict.value)}")
    for sentence in report.unproven:
        say(visible(f"           not proven: {sentence}"))


def cache_line(stats: CacheStats | None) -> str:
    """What came of the look-ups; None is that there were none."""
    if stats is None:
        return "  cache    nothing was looked up: no --cache"
    crossed = f" ({stats.cross_mode} of another mode)" if stats.cross_mode else ""
    return f"  cache    hits {stats.hits}{crossed}, misses {stats.misses}, live {stats.live}"


def show_event(event: Event) -> None:
    """One event on one line."""
    from playhead.replay.view import one_line
    from playhead.tui.lines import step_text

    say(step_text(one_line(event)))


def show_state(key: str, value: JSON, whole: bool) -> None:
    """A state under its key; cut to `SHOWN` lines unless ``whole``."""
    from playhead.replay.render import value_text

    say(visible(key))
    lines = visible(value_text(value), newlines=True).split("\n")
    if whole:
        for line in lines:
            say(f"  {line}")
        return
    for line in lines[:SHOWN]:
        say(f"  {line}" if len(line) <= _WIDE else f"  {line[:_WIDE]}…")
    left = len(lines) - SHOWN
    if left > 0:
        say(f"  … {left} more lines (--state {key} or --json shows all)")
    elif any(len(line) > _WIDE for line in lines):
        say(f"  … long lines are cut (--state {key} or --json shows all)")
