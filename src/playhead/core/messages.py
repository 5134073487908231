"""The projection ``messages``: the conversation as it stands after any step.

A prompt is a delta against earlier rows, so its state refers to every request and answer; the
messages themselves are put together only when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector
from playhead.core.prompts import answer_segments, messages_of_result, parse_segments, rebuild
from playhead.errors import PlayheadError

MAIN = ""
"""The thread of the run itself; a subagent's thread is named by its id."""


def segments_of(event: Event) -> Sequence[JSON]:
    """What a later prompt may take messages from: a request's segments or an answer's messages."""
    if event.type == "model.requested":
        return parse_segments(event.prompt)
    if event.type == "model.responded":
        return answer_segments(event.payload.get("result"))
    return []


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation: its latest request, and the messages that came after it."""

    request: int | None = None
    tail: Vector[JSON] = field(default_factory=Vector)


@dataclass(frozen=True, slots=True)
class Said:
    """Everything said so far. ``rows`` are the events that later prompts may refer to, found
    by seq; ``threads`` the conversations, found by name."""

    rows: Vector[Event] = field(default_factory=Vector)
    row_of: Index = field(default_factory=Index)
    threads: Vector[Thread] = field(default_factory=Vector)
    thread_of: Index = field(default_factory=Index)


class Messages:
    """The conversation as it stands: the latest prompt and what was said after it.

    Holds a reference to every request and answer, because a prompt is a delta against them.
    Results of tools join the conversation with the next request that carries them.
    """

    key = "messages"
    version = 1

    def init(self) -> Said:
        return Said()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Said)
        kind = event.type
        if kind == "model.requested":
            state = _keep(state, event)
            return _thread(state, event, lambda _: Thread(event.seq))
        if kind == "model.responded":
            state = _keep(state, event)
            said = messages_of_result(event.payload.get("result"))
        elif kind == "message.received":
            said = _received(event)
        elif kind == "step" and event.prompt is not None:
            said = [event.prompt]
        else:
            return state
        return _thread(state, event, lambda old: _longer(old, said)) if said else state

    def view(self, state: object) -> JSON:
        """The run's own conversation; one that cannot be rebuilt is a marked value saying why."""
        return self.conversation(state)

    def conversation(self, state: object, thread: str = MAIN) -> list[JSON]:
        """The messages of one thread, oldest first."""
        assert isinstance(state, Said)
        at = state.thread_of.get(thread)
        if at is None:
            return []
        found = state.threads[at]
        if found.request is None:
            return list(found.tail)
        try:
            before = rebuild(found.request, _source(state))
        except PlayheadError as error:
            before = [{"$playhead": "refused", "what": str(error)}]
        return [*before, *found.tail]


def _keep(state: Said, event: Event) -> Said:
    row_of = state.row_of.set(str(event.seq), len(state.rows))
    return replace(state, rows=state.rows.append(event), row_of=row_of)


def _source(state: Said) -> Callable[[int], Sequence[JSON]]:
    def source(seq: int) -> Sequence[JSON]:
        at = state.row_of.get(str(seq))
        return [] if at is None else segments_of(state.rows[at])

    return source


def _thread(state: Said, event: Event, change: Callable[[Thread], Thread]) -> Said:
    name = event.subagent_run_id or MAIN
    at = state.thread_of.get(name)
    if at is None:
        index = state.thread_of.set(name, len(state.threads))
        return replace(state, threads=state.threads.append(change(Thread())), thread_of=index)
    return replace(state, threads=state.threads.replace(at, change(state.threads[at])))


def _longer(thread: Thread, said: Sequence[JSON]) -> Thread:
    tail = thread.tail
    for message in said:
        tail = tail.append(message)
    return Thread(thread.request, tail)


def _received(event: Event) -> list[JSON]:
    message = event.payload.get("message")
    if isinstance(message, dict):
        return [message]
    content = event.payload.get("content", message)
    if content is None:
        return []
    role = event.payload.get("role")
    return [{"role": role if isinstance(role, str) else "user", "content": content}]
