"""The list of steps: lines are drawn when they come into sight, so its length costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

Draw = Callable[[int], tuple[str, bool]]
"""The line of a step, safe to show, and whether it is an error."""


class Timeline(ScrollView, can_focus=True):
    """One line a step. ``count`` grows while the file is still being counted."""

    COMPONENT_CLASSES = {"timeline--cursor", "timeline--error", "timeline--number"}  # noqa: RUF012
    DEFAULT_CSS = """
    Timeline { overflow-x: hidden; overflow-y: scroll; }
    Timeline > .timeline--cursor { background: $accent; color: $text; text-style: bold; }
    Timeline > .timeline--error { color: $error; }
    Timeline > .timeline--number { color: $text-muted; }
    """
    BINDINGS = [  # noqa: RUF012
        Binding("down,j,right,l", "move(1)", "Forward"),
        Binding("up,k,left,h", "move(-1)", "Back"),
        Binding("pagedown,space", "page(1)", "Page", show=False),
        Binding("pageup", "page(-1)", "Page back", show=False),
        Binding("home", "first", "First", show=False),
        Binding("end,G", "app.last", "Last", show=False),
    ]

    cursor: reactive[int] = reactive(0)
    count: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor stands on another step."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, draw: Draw, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw = draw

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, self.count - 1))

    def watch_count(self, count: int) -> None:
        self.virtual_size = Size(1, count)
        self.refresh()

    def watch_cursor(self, cursor: int) -> None:
        self._show_cursor()
        self.refresh()
        self.post_message(self.Moved(cursor))

    def on_resize(self) -> None:
        self._show_cursor()

    def _show_cursor(self) -> None:
        height = self.scrollable_content_region.height or 1
        top = round(self.scroll_offset.y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True, immediate=True)

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, direction: int) -> None:
        self.cursor += direction * max(1, self.scrollable_content_region.height - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = round(self.scroll_offset.y) + y
        plain = self.rich_style
        if not 0 <= number < self.count:
            return Strip.blank(width, plain)
        text, error = self._draw(number)
        style = plain + self.get_component_rich_style("timeline--error") if error else plain
        counted = plain + self.get_component_rich_style("timeline--number")
        if number == self.cursor:
            style = counted = Style.combine(
                [style, self.get_component_rich_style("timeline--cursor")]
            )
        strip = Strip([Segment(f"{number:>7} ", counted), Segment(text, style)])
        return strip.adjust_cell_length(width, style)
