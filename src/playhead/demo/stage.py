"""How the story looks: 80 columns, numbered chapters, colour only where it is wanted."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from playhead.core.model import Finding, Report, Verdict
from playhead.replay.view import LogLine

WIDTH = 80
_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_VERDICTS = {Verdict.VERIFIED: "green", Verdict.UNPROVEN: "yellow", Verdict.FAILED: "red"}


class Stage:
    """Prints through ``out``, one line a call."""

    def __init__(self, out: Callable[[str], None], color: bool) -> None:
        self._out = out
        self._color = color
        self._chapters = 0

    def paint(self, text: str, colour: str) -> str:
        """``text`` in a colour, where colours are on."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._color else text

    def line(self, text: str = "", colour: str | None = None) -> None:
        """A line as it is."""
        self._out(text if colour is None else self.paint(text, colour))

    def chapter(self, word: str, about: str) -> None:
        """A numbered heading."""
        self._chapters += 1
        self.line()
        self.line(f"{self._chapters}  {self.paint(word, 'bold')}  {about}")

    def text(self, text: str, colour: str | None = None, first: str = "   ") -> None:
        """A paragraph, wrapped and indented; long paths are not broken."""
        wrapped = textwrap.wrap(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in wrapped:
            self.line(line, colour)

    def step(self, line: LogLine, mark: str = " ") -> None:
        """One step of the walk."""
        who = line.title[:11]
        left = f" {mark}{line.step:>3}  {line.kind:<15} {who:<11} "
        detail = " ".join(part for part in (line.detail, *_flags(line)) if part)
        room = WIDTH - len(left)
        shown = detail if len(detail) <= room else detail[: room - 1] + "…"
        self.line((left + shown).rstrip(), "red" if "error" in line.marks else None)

    def report(self, report: Report) -> None:
        """The verdict and its errors, each with its place."""
        word = self.paint(report.verdict.value, _VERDICTS[report.verdict])
        self.line(f"   {word}  {report.steps} steps, head {report.head[:16]}…")
        for proven in report.proven:
            self.text(proven, first="   + ")
        for finding in report.errors():
            self.finding(finding)

    def finding(self, finding: Finding) -> None:
        """An error: kind, place, what."""
        place = ", ".join(
            f"{word} {value}"
            for word, value in (
                ("line", finding.place.line),
                ("byte", finding.place.byte),
                ("step", finding.place.step),
            )
            if value is not None
        )
        where = f" ({place})" if place else ""
        self.text(f"{finding.kind}{where}: {finding.what}", "red", "   - ")


def _flags(line: LogLine) -> list[str]:
    return [f"[{mark}]" for mark in line.marks if mark not in ("error", "subagent")]
