"""What the screen shows of a run, as text: the same values that 'log' and 'show' print."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.replay.text import visible
from playhead.replay.view import detail, line_of
from playhead.tui.lines import is_bad, section_text, short_text

if TYPE_CHECKING:
    from playhead.replay.run import Run
    from playhead.replay.view import Section

STATE_TITLES = ("changed", "state after it")


class Sight:
    """Texts of ``run``, all safe to show as they are."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def title(self) -> str:
        """Who ran; from the first row only, so that it costs nothing."""
        name = visible(self._run.run_id)
        first = line_of(self._run, 0) if self._run.has(0) else None
        if first is None:
            return f"{name}: no steps"
        return f"{name}  {first.title}  {first.time[:19].replace('T', ' ')}".rstrip()

    def line(self, step: int) -> tuple[str, bool]:
        """The line of a step, and whether something is wrong there."""
        line = line_of(self._run, step)
        return short_text(line), is_bad(line)

    def step(self, step: int, *, full: bool) -> str:
        """The step itself, at once: nothing is folded for it."""
        return self._text(step, full, _is_of_step, state=False)

    def state(self, step: int, *, full: bool, differing: bool) -> str:
        """The state after the step, or what changed in it. Folds up to the step."""
        wanted = _is_change if differing else _is_of_state
        return self._text(step, full, wanted) or "nothing changed in the state here"

    def _text(
        self, step: int, full: bool, wanted: Callable[[Section], bool], *, state: bool = True
    ) -> str:
        try:
            parts = detail(self._run, step, full=full, state=state)
            return section_text([part for part in parts if wanted(part)])
        except PlayheadError as error:  # what cannot be read is part of what there is to see
            return visible(str(error), newlines=True)


def _is_change(part: Section) -> bool:
    return part.title == "changed"


def _is_of_state(part: Section) -> bool:
    return part.title in STATE_TITLES


def _is_of_step(part: Section) -> bool:
    return not _is_of_state(part)
