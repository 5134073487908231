"""The walk: a timeline, the step under the cursor, and the state after it.

Nothing here holds the whole run. Steps are read when they come into sight; counting, searching
and folding go on in slices of some milliseconds between two key strokes, so that a run of a
million steps opens at once and a key is never waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.timer import Timer
from textual.widgets import Input, Static

from playhead.replay.text import visible
from playhead.replay.walker import Walker
from playhead.tui.errands import Errand, Folder, Look, hunt
from playhead.tui.help import HelpScreen
from playhead.tui.sight import Sight
from playhead.tui.timeline import Timeline

if TYPE_CHECKING:
    from playhead.replay.run import Run

SLICE: Final = 0.02
"""Seconds of work between two looks at the keyboard."""
TICK: Final = 0.025
"""Seconds from the begin of one slice to that of the next."""
CHUNK: Final = 8192
"""Steps counted in one go."""

KEY_LINE: Final = "? help  q quit  j k step  g jump  / search  e error  t turn  d diff"
"""The most wanted first: a narrow terminal cuts the end."""


class WalkApp(App[None]):
    """Walk ``run``, beginning at step ``start`` (from 0)."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "playhead walk"
    CSS = """
    #title { height: 1; background: $primary; color: $text; padding: 0 1; }
    #timeline { width: 6fr; }
    #side { width: 5fr; border-left: vkey $primary; }
    .-narrow #panes { layout: vertical; }
    .-narrow #timeline { width: 100%; height: 2fr; }
    .-narrow #side { width: 100%; height: 3fr; border-left: none; border-top: hkey $primary; }
    #step-pane { height: 3fr; padding: 0 1; }
    #state-pane { height: 2fr; padding: 0 1; border-top: hkey $primary; }
    #prompt { display: none; height: 1; border: none; padding: 0 1; }
    #prompt.open { display: block; }
    #status { height: 1; color: $text-muted; padding: 0 1; }
    #keys { height: 1; background: $panel; padding: 0 1; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("g", "ask('jump')", "Jump"),
        Binding("slash", "ask('search')", "Search"),
        Binding("n", "again(1)", "Next match", show=False),
        Binding("N", "again(-1)", "Previous match", show=False),
        Binding("e", "error(1)", "Error"),
        Binding("E", "error(-1)", "Previous error", show=False),
        Binding("t", "turn(1)", "Turn"),
        Binding("T", "turn(-1)", "Previous turn", show=False),
        Binding("d", "diff", "Diff"),
        Binding("f", "full", "Full", show=False),
        Binding("escape", "stop", "Stop", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, run: Run, start: int = 0) -> None:
        super().__init__()
        self.sight = Sight(run)
        self.walked = run
        self._start = start
        self._counted = False
        self._errand: Errand | None = None
        self._fold: Errand | None = None
        self._folder = Folder(run)
        self._asked = "jump"
        self._wanted = ""
        self._differing = False
        self._full = False
        self._ticker: Timer | None = None

    # -- what is on the screen

    def compose(self) -> ComposeResult:
        yield Static(self.sight.title(), id="title", markup=False)
        with Horizontal(id="panes"):
            yield Timeline(self.sight.line, id="timeline")
            with Vertical(id="side"):
                with VerticalScroll(id="step-pane"):
                    yield Static("", id="step", markup=False)
                with VerticalScroll(id="state-pane"):
                    yield Static("", id="state", markup=False)
        yield Static("", id="status", markup=False)
        yield Input(id="prompt")
        yield Static(KEY_LINE, id="keys", markup=False)

    def on_mount(self) -> None:
        self._ticker = self.set_interval(TICK, self._work, pause=True)
        self._count(self._start)
        self.timeline.focus()
        self.timeline.cursor = self._start
        self.show_step()

    @property
    def timeline(self) -> Timeline:
        return self.query_one("#timeline", Timeline)

    @property
    def at(self) -> int:
        """The step under the cursor."""
        return self.timeline.cursor

    def on_timeline_moved(self, _: Timeline.Moved) -> None:
        self.show_step()

    def show_step(self) -> None:
        """Show the step under the cursor; its state follows as soon as it is folded."""
        if not self.timeline.count:
            self._say("an empty run")
            return
        self._put("step", self.sight.step(self.at, full=self._full))
        self._fold = self._folder.to(self.at, self._show_state)
        self._go()

    def _show_state(self, step: int) -> None:
        self._put("state", self.sight.state(step, full=self._full, differing=self._differing))

    def _put(self, name: str, text: str) -> None:
        self.query_one(f"#{name}", Static).update(text)
        self.query_one(f"#{name}-pane", VerticalScroll).scroll_home(animate=False)

    def _say(self, text: str) -> None:
        self.query_one("#status", Static).update(visible(text))

    # -- work in slices

    def _go(self) -> None:
        self._work()
        if self._ticker is not None and self.working:
            self._ticker.resume()

    @property
    def working(self) -> bool:
        """True while something is being counted, searched or folded."""
        return not self._counted or self._errand is not None or self._fold is not None

    def _work(self) -> None:
        until = monotonic() + SLICE
        self._fold = self._advance(self._fold, until, lambda words: self._put("state", words))
        self._errand = self._advance(self._errand, until, self._say)
        while not self._counted and monotonic() < until:
            self._count(self.timeline.count)
        if self._ticker is not None and not self.working:
            self._ticker.pause()

    def _advance(
        self, work: Errand | None, until: float, tell: Callable[[str], None]
    ) -> Errand | None:
        """Go on with ``work`` until the time is over; None when it is done."""
        while work is not None:
            words = next(work, None)
            if words is None:
                break
            if monotonic() >= until:
                tell(words)
                return work
        return None

    def _count(self, beyond: int) -> None:
        """Count on until step ``beyond`` is known and some more."""
        reach = beyond + CHUNK
        if self.walked.has(reach - 1):
            self.timeline.count = max(self.timeline.count, reach)
        else:
            self._counted = True
            self.timeline.count = len(self.walked)

    # -- keys

    def goto(self, step: int) -> None:
        """To ``step``; a negative one counts from the end."""
        if step < 0:
            step += len(self.walked)
        if not self.walked.has(step):
            self._say(f"no step {step}: the last one is {len(self.walked) - 1}")
            return
        if step >= self.timeline.count:
            self._count(step)
        self.timeline.cursor = step
        self._say("")

    def action_last(self) -> None:
        self.goto(-1)

    def action_ask(self, asked: str) -> None:
        self._asked = asked
        prompt = self.query_one("#prompt", Input)
        prompt.placeholder = "step" if asked == "jump" else "search for"
        prompt.value = ""
        prompt.add_class("open")
        prompt.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        word = event.value
        self._close_prompt()
        if self._asked == "search":
            self._wanted = word or self._wanted
            self.action_again(1)
        elif word.strip().lstrip("-").isdecimal() and len(word) < 20:
            self.goto(int(word))
        elif word.strip():
            self._say(f"{word!r:.40} is no step: give a number, -1 for the last")

    def _close_prompt(self) -> None:
        self.query_one("#prompt", Input).remove_class("open")
        self.timeline.focus()

    def action_stop(self) -> None:
        self._close_prompt()
        if self._errand is not None:
            self._errand = None
            self._say("stopped")

    def action_again(self, by: int) -> None:
        word = self._wanted
        if word:
            self._hunt(lambda walker: walker.search(word, forward=by > 0), by, f"{word!r:.60}")
        else:
            self._say("nothing to search for: press / first")

    def action_error(self, by: int) -> None:
        self._hunt(Walker.next_error if by > 0 else Walker.previous_error, by, "error")

    def action_turn(self, by: int) -> None:
        self._hunt(Walker.next_turn if by > 0 else Walker.previous_turn, by, "turn")

    def _hunt(self, look: Look, by: int, what: str) -> None:
        self._say("")
        self._errand = hunt(self.walked, self.at, by, look, lambda step: self._found(step, what))
        self._go()

    def _found(self, step: int | None, what: str) -> None:
        if step is None:
            self._say(f"no further {what}")
        else:
            self.goto(step)

    def action_diff(self) -> None:
        self._differing = not self._differing
        self.show_step()

    def action_full(self) -> None:
        self._full = not self._full
        self.show_step()

    def action_help(self) -> None:
        self.push_screen(HelpScreen())


def walk(run: Run, start: int = 0) -> None:
    """Show the screen until it is left."""
    WalkApp(run, start).run()
