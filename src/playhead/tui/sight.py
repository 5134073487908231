"""What the screen shows of a run, as text: the same values that 'log' and 'show' print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.replay.text import visible
from playhead.replay.view import detail, line_of
from playhead.tui.lines import section_text, step_text

if TYPE_CHECKING:
    from playhead.replay.run import Run

STATE_TITLES = ("changed", "state after it")


class Sight:
    """Texts of ``run``, all safe to show as they are."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def title(self) -> str:
        """Who ran; from the first row only, so that it costs nothing."""
        name = visible(self._run.folder.name)
        first = line_of(self._run, 0) if self._run.has(0) else None
        if first is None:
            return f"{name}: no steps"
        return f"{name}  {first.title}  {first.time[:19].replace('T', ' ')}".rstrip()

    def line(self, step: int) -> tuple[str, bool]:
        """The line of a step, and whether something is wrong there."""
        line = line_of(self._run, step)
        bad = any(mark in ("error", "changed", "misplaced") for mark in line.marks)
        return step_text(line, number=False), bad

    def panes(self, step: int, *, full: bool, differing: bool) -> tuple[str, str]:
        """The step, and the state after it or what changed in it. Folds up to the step."""
        try:
            sections = detail(self._run, step, full=full)
        except PlayheadError as error:  # what cannot be read is part of what there is to see
            return visible(str(error), newlines=True), ""
        states = [section for section in sections if section.title in STATE_TITLES]
        if differing:
            states = [section for section in states if section.title == "changed"]
        about = [section for section in sections if section.title not in STATE_TITLES]
        return section_text(about), section_text(states) or "nothing changed in the state here"
