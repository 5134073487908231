"""A reply as the two common wire forms say it, whole and in pieces.

``openai``: ``POST /v1/chat/completions``; ``anthropic``: ``POST /v1/messages``. Only the
members that clients read; ids, times and token counts depend on the script and the request
alone, so that the same script gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from playhead.core.model import JSON
from playhead.testing.script import Call, Reply, pieces, words

CREATED = 1_700_000_000
"""The time of every answer, in epoch seconds: a script has no clock."""
Chunks = Iterator[tuple[str | None, JSON]]
"""Server-sent events: name (None: unnamed) and data; text data is sent as it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its place in the script from 1, the model and the body."""

    number: int
    model: str
    body: Mapping[str, JSON]
    size: int = 12
    """Characters in one piece of a streamed answer."""

    def call_id(self, call: Call, index: int) -> str:
        return call.id or f"call_{self.number}_{index + 1}"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one API says a reply."""

    whole: Callable[[Asked, Reply], JSON]
    chunks: Callable[[Asked, Reply], Chunks]
    error: Callable[[str], JSON]


def _openai_calls(asked: Asked, reply: Reply) -> list[dict[str, JSON]]:
    return [
        {
            "id": asked.call_id(call, index),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for index, call in enumerate(reply.calls)
    ]


def _openai_usage(asked: Asked, reply: Reply) -> dict[str, JSON]:
    prompt = words(asked.body.get("messages"))
    answer = words([reply.text, _openai_calls(asked, reply)])
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }


def _openai_whole(asked: Asked, reply: Reply) -> JSON:
    message: dict[str, JSON] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _openai_calls(asked, reply)
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": _openai_usage(asked, reply),
    }


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _openai_chunks(asked: Asked, reply: Reply) -> Chunks:
    def chunk(delta: JSON, finish: str | None = None) -> tuple[None, JSON]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {**head, "choices": [choice]}

    head: dict[str, JSON] = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": asked.model,
    }
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.text, asked.size):
        yield chunk({"content": piece})
    for index, made in enumerate(_openai_calls(asked, reply)):
        function = made["function"]
        assert isinstance(function, dict)
        first = {**made, "index": index, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for piece in pieces(str(function["arguments"]), asked.size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    options = asked.body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield None, {**head, "choices": [], "usage": _openai_usage(asked, reply)}
    yield None, "[DONE]"


def _openai_error(text: str) -> JSON:
    return {"error": {"message": text, "type": "scripted_error", "param": None, "code": None}}


def _anthropic_blocks(asked: Asked, reply: Reply) -> list[dict[str, JSON]]:
    blocks: list[dict[str, JSON]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for index, call in enumerate(reply.calls):
        tool_id = asked.call_id(call, index)
        blocks.append(
            {"type": "tool_use", "id": tool_id, "name": call.name, "input": dict(call.arguments)}
        )
    return blocks


def _anthropic_whole(asked: Asked, reply: Reply) -> dict[str, JSON]:
    blocks = _anthropic_blocks(asked, reply)
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": words(asked.body.get("messages")),
            "output_tokens": words(blocks),
        },
    }


def _anthropic_chunks(asked: Asked, reply: Reply) -> Chunks:
    def event(name: str, **data: JSON) -> tuple[str, JSON]:
        return name, {"type": name, **data}

    whole = _anthropic_whole(asked, reply)
    opened = {**whole, "content": [], "stop_reason": None}
    yield event("message_start", message=opened)
    for index, block in enumerate(_anthropic_blocks(asked, reply)):
        text = block["type"] == "text"
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        yield event("content_block_start", index=index, content_block=empty)
        source = str(block["text"]) if text else json.dumps(block["input"])
        kind, key = ("text_delta", "text") if text else ("input_json_delta", "partial_json")
        for piece in pieces(source, asked.size):
            yield event("content_block_delta", index=index, delta={"type": kind, key: piece})
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage=whole["usage"])
    yield event("message_stop")


def _anthropic_error(text: str) -> JSON:
    return {"type": "error", "error": {"type": "scripted_error", "message": text}}


def dialect_of(path: str) -> Dialect | None:
    """The dialect that is spoken at a URL path, with any prefix; None for none."""
    if path.endswith("/chat/completions"):
        return Dialect(_openai_whole, _openai_chunks, _openai_error)
    if path.endswith("/messages"):
        return Dialect(_anthropic_whole, _anthropic_chunks, _anthropic_error)
    return None
