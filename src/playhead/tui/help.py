"""The keys of the walk, on a page of their own."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = """\
Walk a run

  j  down  right      forward one step
  k  up    left       back one step
  space  pgup  pgdn   a page forward or back
  home  end           the first, the last step
  g                   jump to a step (-1 is the last)
  /                   search forward; n and N go on, forward and back
  e  E                next, previous error
  t  T                next, previous turn
  d                   the state, or how it differs from the one before
  f                   long texts whole, or their beginnings
  tab                 to the step and the state, to scroll them
  escape              stop searching
  ?                   this page
  q                   quit

In the list:  → a tool is called   ← its result (of that step)   ✗ an error
              ? a model is asked   ! it answers   = the agent's state changes
              ▸ a turn begins      ◂ it ends

What the run holds is shown as it was recorded; characters that would act
on a terminal are spelled out, as in ⟨U+001B⟩.
"""


class HelpScreen(ModalScreen[None]):
    """Shown over the walk until a key is pressed."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 76; height: auto; max-height: 90%; padding: 1 2;
        border: round $accent; background: $surface;
    }
    """
    BINDINGS = [  # noqa: RUF012
        Binding("escape,question_mark,q,enter,space", "close", "Close"),
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(KEYS, markup=False)

    def action_close(self) -> None:
        self.dismiss(None)
