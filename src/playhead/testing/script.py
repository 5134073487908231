"""The script of a model server: what it answers, in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from playhead.core.model import JSON


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model asks for. ``id`` is made from the place in the script when empty."""

    name: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: text, tool calls, or both; or an HTTP error.

    Args:
        text: what the model says.
        calls: tools that it asks for.
        status: HTTP status; other than 200 the answer is an error with ``text`` as message.
        delay: seconds before each piece of a streamed answer (0: at once).
        cut: break the connection after this many pieces of a streamed answer.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    delay: float = 0.0
    cut: int | None = None


def say(text: str, *, delay: float = 0.0) -> Reply:
    """A reply of text; ``delay`` seconds before each piece when it is streamed."""
    return Reply(text, delay=delay)


def call(name: str, **arguments: JSON) -> Call:
    """A tool call, for `ask`."""
    return Call(name, arguments)


def ask(*calls: Call, text: str = "") -> Reply:
    """A reply that asks for tools, all at once."""
    return Reply(text, calls)


def pieces(text: str, size: int) -> list[str]:
    """``text`` in pieces of ``size`` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def words(value: JSON) -> int:
    """A count of tokens that depends on the value only: its JSON by four characters."""
    return max(1, len(json.dumps(value, ensure_ascii=False)) // 4)
