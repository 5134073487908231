"""The projection ``messages``: the conversation as it stands after any step.

A prompt is a delta against earlier rows, so its state holds what later prompts may refer to; the
messages themselves are put together only when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector, freeze, thaw
from playhead.core.prompts import answer_segments, messages_of_result, parse_segments, rebuild
from playhead.errors import PlayheadError, ValueRefused

MAIN = ""
"""The thread of the run itself; a subagent's thread is named by its id."""


def segments_of(event: Event) -> Sequence[JSON]:
    """What a later prompt may take messages from: a request's segments or an answer's messages."""
    if event.type == "model.requested":
        return parse_segments(event.prompt)
    if event.type == "model.responded":
        return answer_segments(event.payload.get("result"))
    return []


_NO_VALUES: Vector[JSON] = Vector()


class Thread(NamedTuple):
    """One conversation: its latest request, and the messages that came after it."""

    request: int | None = None
    tail: Vector[JSON] = _NO_VALUES


_NO_THREADS: Vector[Thread] = Vector()
_NO_INDEX = Index()


class Said(NamedTuple):
    """Everything said so far. ``rows`` is what later prompts may refer to, found by seq: the text
    of a request as it stands in its row, or frozen segments. ``threads`` are the conversations,
    found by name."""

    rows: Vector[JSON] = _NO_VALUES
    row_of: Index = _NO_INDEX
    threads: Vector[Thread] = _NO_THREADS
    thread_of: Index = _NO_INDEX


class Messages:
    """The conversation as it stands: the latest prompt and what was said after it.

    Results of tools join the conversation with the next request that carries them.
    """

    key = "messages"
    version = 1
    event_types = frozenset(("model.requested", "model.responded", "message.received", "step"))

    def init(self) -> Said:
        return Said()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Said)
        kind = event.type
        if kind == "model.requested":
            prompt = event.prompt
            kept = prompt if isinstance(prompt, str) else freeze(parse_segments(prompt))
            return _thread(_keep(state, event, kept), event, None)
        if kind == "model.responded":
            result = event.payload.get("result")
            state = _keep(state, event, freeze(answer_segments(result)))
            said = messages_of_result(result)
        elif kind == "message.received":
            said = _received(event)
        elif kind == "step" and event.prompt is not None:
            said = [event.prompt]
        else:
            return state
        return _thread(state, event, said) if said else state

    def view(self, state: object) -> JSON:
        """The run's own conversation; one that cannot be rebuilt is a marked value saying why."""
        return self.conversation(state)

    def conversation(self, state: object, thread: str = MAIN) -> list[JSON]:
        """The messages of one thread, oldest first; the caller may change them."""
        assert isinstance(state, Said)
        at = state.thread_of.get(thread)
        if at is None:
            return []
        found = state.threads[at]
        after = [thaw(message) for message in found.tail]
        if found.request is None:
            return after
        try:
            before = rebuild(found.request, _source(state))
        except PlayheadError as error:
            before = [{"$playhead": "refused", "what": str(error)}]
        return [*before, *after]

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Said)
        names = _names(state.row_of), _names(state.thread_of)
        return [
            [[int(seq), thaw(row)] for seq, row in zip(names[0], state.rows, strict=True)],
            [
                [name, thread.request, [thaw(message) for message in thread.tail]]
                for name, thread in zip(names[1], state.threads, strict=True)
            ],
        ]

    def load(self, dumped: JSON) -> Said:
        match dumped:
            case [list(rows), list(threads)]:
                kept = [_load_row(row) for row in rows]
                known = [_load_thread(thread) for thread in threads]
                return Said(
                    Vector.of([value for _, value in kept]),
                    Index.of([str(seq) for seq, _ in kept]),
                    Vector.of([thread for _, thread in known]),
                    Index.of([name for name, _ in known]),
                )
        raise ValueRefused("no dump of messages")


def _names(index: Index) -> list[str]:
    return [index.key(place) for place in range(len(index))]


def _load_row(row: JSON) -> tuple[int, JSON]:
    match row:
        case [int(seq), (str() | list()) as value]:
            return seq, freeze(value)
    raise ValueRefused("no dump of a request or answer")


def _load_thread(thread: JSON) -> tuple[str, Thread]:
    match thread:
        case [str(name), int() | None as request, list(tail)]:
            return name, Thread(request, Vector.of([freeze(message) for message in tail]))
    raise ValueRefused("no dump of a conversation")


def _keep(state: Said, event: Event, row: JSON) -> Said:
    """With what a later prompt may take from ``event``; a seq seen twice keeps the later row."""
    name = str(event.seq)
    at = state.row_of.get(name)
    if at is not None:
        return state._replace(rows=state.rows.replace(at, row))
    return state._replace(rows=state.rows.append(row), row_of=state.row_of.add(name))


def _source(state: Said) -> Callable[[int], Sequence[JSON]]:
    def source(seq: int) -> Sequence[JSON]:
        at = state.row_of.get(str(seq))
        if at is None:
            return []
        row = state.rows[at]
        if isinstance(row, str):
            return parse_segments(row)
        found = thaw(row)
        return found if isinstance(found, list) else []

    return source


def _thread(state: Said, event: Event, said: Sequence[JSON] | None) -> Said:
    """With ``said`` at the end of the event's thread; None begins it anew from this request."""
    rows, row_of, threads, thread_of = state
    name = event.subagent_run_id or MAIN
    at = thread_of.get(name)
    old = Thread() if at is None else threads[at]
    if said is None:
        new = Thread(event.seq)
    else:
        tail = old.tail
        for message in said:
            tail = tail.append(freeze(message))
        new = Thread(old.request, tail)
    if at is None:
        return Said(rows, row_of, threads.append(new), thread_of.add(name))
    return Said(rows, row_of, threads.replace(at, new), thread_of)


def _received(event: Event) -> list[JSON]:
    message = event.payload.get("message")
    if isinstance(message, dict):
        return [message]
    content = event.payload.get("content", message)
    if content is None:
        return []
    role = event.payload.get("role")
    return [{"role": role if isinstance(role, str) else "user", "content": content}]
