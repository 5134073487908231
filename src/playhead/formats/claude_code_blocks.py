"""What a Claude Code message holds: text, calls, results, marks of an interruption.

Content is a text or a list of blocks, and in real files also missing or a list of anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from playhead.core.model import JSON
from playhead.formats.claude_code_rows import Row, mapping, text

INTERRUPTED = "[Request interrupted by user"
"""How the text begins that Claude Code writes in the user's name on an interruption."""


@dataclass(frozen=True, slots=True)
class Call:
    """A ``tool_use`` block; ``key`` is unique in its session, ``id`` need not be (case C16)."""

    key: int
    id: str | None
    name: str
    arguments: JSON
    row: Row


@dataclass(frozen=True, slots=True)
class Result:
    """A ``tool_result`` block and the row that it stands in."""

    id: str | None
    content: JSON
    failed: bool
    row: Row


def content(row: Row) -> JSON:
    """The content of a message row: text or blocks; None when it has none."""
    message = row.obj.get("message")
    if isinstance(message, str):
        return message or None
    found = mapping(message).get("content")
    return found if isinstance(found, (str, list)) and found else None


def blocks(row: Row) -> list[JSON]:
    """The content as a list of blocks; a text is one text block."""
    found = content(row)
    if isinstance(found, str):
        return [{"type": "text", "text": found}]
    return found if isinstance(found, list) else []


def results(row: Row) -> Iterator[Result]:
    """The tool results in a user row."""
    if row.type != "user":
        return
    for block in blocks(row):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield Result(
                text(block.get("tool_use_id")),
                block.get("content"),
                block.get("is_error") is True,
                row,
            )


def has_results(row: Row) -> bool:
    return next(results(row), None) is not None


def calls(row: Row) -> Iterator[tuple[str | None, str, JSON]]:
    """(id, tool name, arguments) of the calls in an assistant row."""
    if row.type != "assistant":
        return
    for block in blocks(row):
        if isinstance(block, dict) and block.get("type") == "tool_use":
            name = text(block.get("name")) or "(no name)"
            yield text(block.get("id")), name, block.get("input")


def is_interruption(row: Row) -> bool:
    """True for the row that Claude Code writes when the user stops it."""
    if row.type != "user":
        return False
    return any(
        isinstance(block, dict) and str(block.get("text", "")).startswith(INTERRUPTED)
        for block in blocks(row)
    )


def is_prompt(row: Row) -> bool:
    """True for a user row that begins a turn: words of the user, no result, no summary."""
    return (
        row.type == "user"
        and content(row) is not None
        and row.obj.get("isMeta") is not True
        and not row.is_summary
        and not has_results(row)
        and not is_interruption(row)
    )


def is_api_error(row: Row) -> bool:
    return row.type == "assistant" and row.obj.get("isApiErrorMessage") is True


def is_synthetic(row: Row) -> bool:
    """True for an assistant row that Claude Code wrote itself, without a model."""
    made = row.type == "assistant" and row.message.get("model") == "<synthetic>"
    return made and not is_api_error(row)


def result_block(row: Row, place: int) -> JSON:
    """The ``place``-th result block of a row."""
    found = content(row)
    kept = found if isinstance(found, list) else []
    marked = [b for b in kept if isinstance(b, dict) and b.get("type") == "tool_result"]
    return marked[place]
