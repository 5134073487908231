"""Recorded values as text for people. Total: whatever a value is, some text comes out.

The text is not yet safe for a terminal: `playhead.replay.text.visible` makes it so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from playhead.core.model import JSON, Event
from playhead.core.prompts import is_range, messages_of_result, parse_segments
from playhead.core.values import MARK

_BRIEF = 40
_TOO_DEEP = "(nested too deeply to be shown)"


def value_text(value: object, *, compact: bool = False) -> str:
    """A value as text: text as it is, anything else as JSON, on one line if ``compact``."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return _bytes_text(value)
    try:
        return json.dumps(
            value, ensure_ascii=False, indent=None if compact else 2, default=_other_text
        )
    except RecursionError:
        return _TOO_DEEP if compact else value_text(value, compact=True)
    except (TypeError, ValueError):  # keys that are no text, a number of too many digits
        return _repr_text(value)


def _repr_text(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:
        return _TOO_DEEP
    except ValueError:
        return "(a number of too many digits to be shown)"


def _other_text(value: object) -> str:
    return _bytes_text(value) if isinstance(value, (bytes, bytearray)) else _repr_text(value)


def _bytes_text(value: bytes | bytearray) -> str:
    start = value[:32].hex(" ")
    return f"({len(value)} bytes: {start}{' …' if len(value) > 32 else ''})"


def content_text(content: object) -> str:
    """The content of a message as text: text blocks, calls of tools, their results."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(_block_text, content) if part)
    if isinstance(content, Mapping):
        return _block_text(content)
    return "" if content is None else value_text(content, compact=True)


def _block_text(block: object) -> str:
    if not isinstance(block, Mapping):
        return value_text(block, compact=True)
    if isinstance(block.get(MARK), str):
        return mark_text(block)
    kind = block.get("type")
    said = block.get("text")
    if kind in ("text", "input_text", "output_text") and isinstance(said, str):
        return said
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return f"(thinking) {block['thinking']}"
    if kind == "tool_use":
        return f"→ {_word(block.get('name'))} {value_text(block.get('input'), compact=True)}"
    if kind == "tool_result":
        sign = "✗" if block.get("is_error") is True else "←"
        inner = block.get("content")
        flat = isinstance(inner, str) or (isinstance(inner, list) and not any(map(_nests, inner)))
        return f"{sign} {content_text(inner) if flat else value_text(inner, compact=True)}"
    if kind in ("image", "document", "image_url"):
        return f"({kind})"
    return value_text(block, compact=True)


def _nests(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") not in ("text", "image")


def mark_text(mark: Mapping[str, object]) -> str:
    """What stands for a marked value where it is not looked up."""
    kind = mark.get(MARK)
    if kind == "blob" and type(mark.get("size")) is int:
        return f"(blob of {mark['size']} bytes, {_word(mark.get('sha256'))[:12]}…)"
    return value_text(mark, compact=True)


def _word(value: object) -> str:
    return value if isinstance(value, str) else value_text(value, compact=True)


def message_text(message: object) -> tuple[str, str]:
    """Role and text of one message, whatever its shape."""
    if not isinstance(message, Mapping):
        return "", content_text(message)
    if isinstance(message.get(MARK), str):
        return "", mark_text(message)
    role = message.get("role")
    parts = [content_text(message["content"])] if "content" in message else []
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        parts += [f"→ {_call_text(call)}" for call in calls]
    if not any(parts):
        rest = {key: item for key, item in message.items() if key not in ("role", "content")}
        parts = [value_text(rest, compact=True)] if rest else []
    return role if isinstance(role, str) else "", "\n".join(part for part in parts if part)


def _call_text(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return value_text(call, compact=True)
    return f"{_word(function.get('name'))} {_word(function.get('arguments'))}"


def answer_text(result: JSON) -> str:
    """A model's answer as text."""
    messages = messages_of_result(result)
    if not messages:
        return "" if result is None else content_text(result)
    return "\n".join(message_text(message)[1] for message in messages)


def request_text(event: Event) -> str:
    """What a request adds to the conversation: its last new message, and how many are new."""
    segments = parse_segments(event.prompt)
    new = [segment for segment in segments if not is_range(segment)]
    if not new:
        return "the same messages again" if segments else ""
    role, text = message_text(new[-1])
    more = f"+{len(new)} messages, " if len(new) > 1 else ""
    return f"{more}{role}: {text}" if role else more + text


def error_text(payload: Mapping[str, JSON]) -> str:
    """The error that a payload names."""
    error = payload.get("error", payload.get("message"))
    if isinstance(error, Mapping):
        parts = [error.get("type"), content_text(error.get("message"))]
        return ": ".join(str(part) for part in parts if part and isinstance(part, str))
    return "" if error is None else content_text(error)


def arguments_text(arguments: JSON) -> str:
    """Arguments of a call on one line; a long one among several does not hide the others."""
    if not isinstance(arguments, Mapping):
        return value_text(arguments, compact=True)
    pairs: Sequence[tuple[object, object]] = list(arguments.items())
    if len(pairs) == 1:
        return f"{pairs[0][0]}={value_text(pairs[0][1], compact=True)}"
    return ", ".join(f"{key}={_brief(value_text(item, compact=True))}" for key, item in pairs)


def _brief(text: str) -> str:
    return text if len(text) <= _BRIEF else text[: _BRIEF - 1] + "…"
