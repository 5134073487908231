"""A step as one line of plain text: what the log, the plain walk and the timeline show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.replay.view import LogLine, Section


def step_text(line: LogLine, *, number: bool = True) -> str:
    """One line; ``number`` puts step and time of day before it. Safe to print as it is."""
    words = [f"{line.kind:<15}"]
    if line.title:
        words.append(line.title)
    if line.call is not None and (line.kind.startswith("tool.") or line.call != line.step - 1):
        words.append(f"← step {line.call}")
    if line.detail and line.detail != line.title:
        words.append(line.detail)
    if line.status:
        words.append(f"({line.status})")
    words += [f"[{mark}]" for mark in line.marks]
    text = "  ".join(words).rstrip()
    return f"{line.step:>6}  {line.time[11:23]:<12}  {text}" if number else text


def section_text(sections: list[Section], indent: str = "") -> str:
    """Sections under their titles; safe to print as it is."""
    blocks = []
    for section in sections:
        body = "\n".join(f"{indent}  {line}" for line in section.text.split("\n"))
        blocks.append(f"{indent}{section.title}\n{body}")
    return "\n".join(blocks)
