"""Spans of a run: turns, model calls, subagents, interrupts.

Each writes its intent when it begins and exactly one outcome when it ends. All work with
``with`` and ``async with``; none swallows an exception. What happens inside a turn or a
subagent is caused by it and says so by its id; a ``causation_id`` stands only where that is
not enough: inside a tool call or a model call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from playhead.core.events import Draft
from playhead.core.values import join_text
from playhead.recorder.calls import failure
from playhead.recorder.context import SCOPE, Scope, leave, scope_for

if TYPE_CHECKING:
    from contextvars import Token

    from playhead.recorder.session import Recording


class Span:
    """What turns, model calls and subagents share: a scope while they are open."""

    def __init__(self, run: Recording) -> None:
        self._run = run
        self._outer = scope_for(run)
        self._token: Token[Scope | None] | None = None

    def _begin(self) -> Scope:
        raise NotImplementedError  # every span below says how it begins

    def _finish(self, error: BaseException | None) -> None:
        raise NotImplementedError  # and how it ends

    def _write(self, kind: str, payload: Mapping[str, object], name: str | None = None) -> str:
        return self._run.write(
            Draft(
                kind,
                payload,
                name=name,
                turn_id=self._outer.turn_id,
                subagent_run_id=self._outer.subagent_run_id,
                causation_id=self._outer.causation_id,
            )
        )

    def __enter__(self) -> Self:
        self._outer = scope_for(self._run)
        self._token = SCOPE.set(self._begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            leave(self._token)
            self._token = None
        self._finish(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


def outcome_of(error: BaseException | None) -> str:
    """The word for how a span ended."""
    if error is None:
        return "completed"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


class Turn(Span):
    """One turn of a chat: what the user said, what the agent answered. Set ``output``."""

    def __init__(self, run: Recording, turn_id: str, user: object) -> None:
        super().__init__(run)
        self.turn_id = turn_id
        self.output: object = None
        self.usage: object = None
        self._user = user

    def _begin(self) -> Scope:
        self._outer = Scope(self._run, self.turn_id, self._outer.subagent_run_id)
        self._run.turn_opened(self.turn_id)
        payload = {} if self._user is None else {"input": self._user}
        self._write("turn.started", payload)
        return Scope(self._run, self.turn_id, self._outer.subagent_run_id)

    def _finish(self, error: BaseException | None) -> None:
        payload: dict[str, object] = {"message_id": self.turn_id, "outcome": outcome_of(error)}
        if error is not None:
            payload.update(failure(error))
            payload["outcome"] = outcome_of(error)
        if self.output is not None:
            payload["output"] = self.output
        if self.usage is not None:
            payload["usage"] = self.usage
        self._write("turn.completed", payload)
        self._run.turn_closed(self.turn_id)


def _conversation(messages: object) -> list[object]:
    """The messages of a request; text, or one message, stands for a conversation of one."""
    if isinstance(messages, Mapping) or not isinstance(messages, Iterable):
        return [messages]
    return [messages] if isinstance(messages, (str, bytes)) else list(messages)


class ModelCall(Span):
    """One request to a model. Call `respond` with what came back."""

    def __init__(
        self,
        run: Recording,
        model: str,
        messages: Iterable[object],
        parameters: Mapping[str, object],
    ) -> None:
        super().__init__(run)
        self.call_id = run.next_call_id()
        self._model = model
        self._messages = _conversation(messages)
        self._parameters = dict(parameters)
        self._parts: list[str] = []
        self._answered = False

    def _begin(self) -> Scope:
        draft = self._draft("model.requested", {"call_id": self.call_id, **self._parameters})
        event_id = self._run.write(draft, messages=self._messages)
        outer = self._outer
        return Scope(self._run, outer.turn_id, outer.subagent_run_id, event_id or None)

    def _draft(self, kind: str, payload: Mapping[str, object]) -> Draft:
        outer = self._outer
        return Draft(
            kind,
            payload,
            name=self._model,
            model=self._model,
            turn_id=outer.turn_id,
            subagent_run_id=outer.subagent_run_id,
            causation_id=outer.causation_id,
        )

    def respond(
        self,
        result: object,
        *,
        usage: object = None,
        stop_reason: str | None = None,
        model: str | None = None,
    ) -> None:
        """Record the answer. ``model`` is the one that answered, when it differs.

        An answer given twice is recorded once: the first.
        """
        if self._answered:
            return
        self._answered = True
        payload: dict[str, object] = {"call_id": self.call_id, "result": result}
        if usage is not None:
            payload["usage"] = usage
        if stop_reason is not None:
            payload["stop_reason"] = stop_reason
        if model is not None and model != self._model:
            payload["answered_by"] = model
        self._run.write(self._draft("model.responded", payload))

    def chunk(self, text: str) -> str:
        """One piece of a streamed answer; given back as it is, so it can be passed on.

        Without a `respond` the pieces together are the answer, and what came before an
        exception is kept with it. A surrogate pair split over two pieces is one character.
        """
        self._parts.append(text)
        return text

    def _finish(self, error: BaseException | None) -> None:
        if not self._answered and error is None and self._parts:
            self.respond(join_text(self._parts))
        if self._answered:
            return
        self._answered = True
        payload: dict[str, object] = {"call_id": self.call_id}
        if self._parts:
            payload["partial"] = join_text(self._parts)
        if error is not None:
            payload.update(failure(error))
        else:
            payload["outcome"] = "no answer was recorded"
        self._run.write(self._draft("model.failed", payload))


class Subagent(Span):
    """A subagent at work: what happens inside carries its id."""

    def __init__(self, run: Recording, name: str, subagent_run_id: str, prompt: object) -> None:
        super().__init__(run)
        self.subagent_run_id = subagent_run_id
        self.name = name
        self.output: object = None
        self._prompt = prompt

    def _begin(self) -> Scope:
        parent = self._outer.subagent_run_id
        self._outer = Scope(
            self._run, self._outer.turn_id, self.subagent_run_id, self._outer.causation_id
        )
        payload: dict[str, object] = {} if self._prompt is None else {"prompt": self._prompt}
        if parent is not None:
            payload["parent_subagent_run_id"] = parent
        self._write("subagent.started", payload, self.name)
        return Scope(self._run, self._outer.turn_id, self.subagent_run_id)

    def suspend(self, reason: str = "") -> None:
        """The subagent waits for something."""
        self._write("subagent.suspended", {"reason": reason}, self.name)

    def resume(self) -> None:
        """It goes on."""
        self._write("subagent.resumed", {}, self.name)

    def _finish(self, error: BaseException | None) -> None:
        word = outcome_of(error)
        if error is None:
            payload = {} if self.output is None else {"output": self.output}
            self._write("subagent.completed", payload, self.name)
        else:
            kind = "subagent.cancelled" if word == "cancelled" else "subagent.failed"
            self._write(kind, failure(error), self.name)


class Interrupt:
    """The agent waits for a person. It ends once: resolved, cancelled or expired."""

    def __init__(self, run: Recording, interrupt_id: str, reason: str, payload: object) -> None:
        self._run = run
        self.interrupt_id = interrupt_id
        self._scope = scope_for(run)
        self._closed = False
        self._write("interrupt.raised", {"reason": reason, "value": payload})

    def _write(self, kind: str, more: Mapping[str, object]) -> None:
        scope = self._scope
        payload = {"interrupt_id": self.interrupt_id, **more}
        self._run.write(
            Draft(
                kind,
                payload,
                turn_id=scope.turn_id,
                subagent_run_id=scope.subagent_run_id,
                causation_id=scope.causation_id,
            )
        )

    def _close(self, kind: str, more: Mapping[str, object]) -> None:
        if not self._closed:
            self._closed = True
            self._write(kind, more)

    def resolve(self, value: object = None) -> None:
        """A person answered."""
        self._close("interrupt.resolved", {"value": value})

    def cancel(self, reason: str = "") -> None:
        self._close("interrupt.cancelled", {"reason": reason})

    def expire(self) -> None:
        self._close("interrupt.expired", {})
