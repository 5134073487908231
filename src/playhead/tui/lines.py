"""A step as one line of plain text: what the log, the plain walk and the timeline show."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playhead.replay.view import LogLine, Section


_BAD: Final = frozenset(("error", "changed", "misplaced", "unanswered"))


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


_SIGNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool.called": "→",
        "tool.completed": "←",
        "model.requested": "?",
        "model.responded": "!",
        "turn.started": "▸",
        "turn.completed": "◂",
        "state.changed": "=",
    }
)
"""Short words for the types that a run is full of; the help page says what they mean."""


def short_text(line: LogLine) -> str:
    """The line for a narrow list: a sign for the type, ``✗`` where something is wrong."""
    bad = is_bad(line)
    sign = _SIGNS.get(line.kind, line.kind)
    if line.kind.endswith(".failed"):
        sign = f"{line.kind.partition('.')[0]} failed"
    words = [f"✗ {sign}" if bad else sign]
    if line.title:
        words.append(line.title)
    if line.call is not None and line.kind.startswith("tool."):
        words.append(f"of {line.call}")
    odd = [mark for mark in line.marks if mark in _BAD and mark != "error"]
    words += [f"[{mark}]" for mark in odd]
    if line.status and line.status not in ("ok", "failed"):
        words.append(f"({line.status})")
    if line.detail and line.detail != line.title:
        words.append(line.detail)
    return " ".join(words)


def is_bad(line: LogLine) -> bool:
    """True where something is wrong: an error, a changed row, a call without a result."""
    return not _BAD.isdisjoint(line.marks)


def section_text(sections: list[Section], indent: str = "") -> str:
    """Sections under their titles; safe to print as it is."""
    blocks = []
    for section in sections:
        body = "\n".join(f"{indent}  {line}" for line in section.text.split("\n"))
        blocks.append(f"{indent}{section.title}\n{body}")
    return "\n".join(blocks)
