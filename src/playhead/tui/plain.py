"""The walk without a screen: for pipes, logs and people who read with their ears.

Commands, one a line, are the keys of the screen: ``n`` ``p`` ``g N`` ``e`` ``E`` ``t`` ``T``
``/text`` ``?text`` ``q``; an empty line is ``n``. Each prints the step it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from playhead.replay.text import one_liner
from playhead.replay.view import detail, line_of
from playhead.replay.walker import Walker
from playhead.tui.lines import section_text, step_text

if TYPE_CHECKING:
    from playhead.replay.run import Run

Say = Callable[[str], None]


def walk_all(run: Run, start: int, say: Say, *, back: bool = False, full: bool = False) -> None:
    """Every step from ``start`` to the end, or back to the beginning, each with its detail.

    Raises:
        NotFound: there is no step ``start``.
    """
    if not run.has(0):
        say("an empty run")
        return
    step = start
    run.event(start)
    while step >= 0 and run.has(step):
        show(run, step, say, full)
        step += -1 if back else 1


def walk_commands(
    run: Run, start: int, commands: Iterable[str], say: Say, *, full: bool = False
) -> None:
    """Show ``start``, then the step that each command leads to, until ``q`` or the end.

    Raises:
        NotFound: there is no step ``start``.
    """
    if not run.has(0):
        say("an empty run")
        return
    run.event(start)
    walker = Walker(run, start)
    show(run, start, say, full)
    for command in commands:
        word = command.rstrip("\n")
        if word.strip() == "q":
            return
        problem = _obey(walker, word)
        if problem:
            say(problem)
        else:
            show(run, walker.position, say, full)


def show(run: Run, step: int, say: Say, full: bool = False) -> None:
    """The line of a step and its detail below it."""
    say(step_text(line_of(run, step)))
    say(section_text(detail(run, step, full=full), indent="        "))


def _obey(walker: Walker, word: str) -> str | None:
    """Move; what went wrong, if anything."""
    if word[:1] in ("/", "?"):
        found = walker.search(word[1:], forward=word[0] == "/")
        return None if found is not None else f"no further {one_liner(repr(word[1:]), 60)}"
    key, _, rest = word.strip().partition(" ")
    before = walker.position
    if key in ("n", "", "p") and not rest:
        after = walker.back() if key == "p" else walker.forward()
        return None if after != before else f"{'the first' if key == 'p' else 'the last'} step"
    if key == "g":
        return _jump(walker, rest.strip())
    searches = {
        "e": (walker.next_error, "error"),
        "E": (walker.previous_error, "error"),
        "t": (walker.next_turn, "turn"),
        "T": (walker.previous_turn, "turn"),
    }
    if key not in searches or rest:
        return f"no command {one_liner(repr(word), 60)}: n p g N e E t T /text ?text q"
    search, what = searches[key]
    return None if search() is not None else f"no further {what}"


def _jump(walker: Walker, word: str) -> str | None:
    if not word.removeprefix("-").isdecimal() or len(word) > 18:
        return f"no step {one_liner(repr(word), 40)}: give a number, -1 for the last"
    step = int(word)
    at = step + len(walker.run) if step < 0 else step
    if at < 0 or not walker.run.has(at):
        return f"no step {step}: the last one is {len(walker.run) - 1}"
    walker.jump(at)
    return None
