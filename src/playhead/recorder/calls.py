"""One tool call on record: intent before effect, one outcome after it (decisions 4 and 11)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.core.values import exception_value
from playhead.recorder.context import SCOPE, Scope, leave, scope_for

if TYPE_CHECKING:
    from contextvars import Token

    from playhead.recorder.session import Recording

Effects = Literal["pure", "read", "write"]


def failure(error: BaseException) -> dict[str, JSON]:
    """How a call ended that raised: its error, and whether it was cancelled or interrupted."""
    payload: dict[str, JSON] = {"error": exception_value(error)}
    if isinstance(error, asyncio.CancelledError):
        payload["outcome"] = "cancelled"
    elif isinstance(error, (KeyboardInterrupt, SystemExit)):
        payload["outcome"] = "interrupted"
    return payload


def bound_arguments(
    fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Arguments by parameter name, defaults included; positional where there is no signature."""
    try:
        signature = inspect.signature(fn)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {"args": list(args), "kwargs": dict(kwargs)}
    bound.apply_defaults()
    found = dict(bound.arguments)
    first = next(iter(signature.parameters), None)
    if first in ("self", "cls"):
        found.pop(first, None)
    return found


class ToolCall:
    """A call between its ``tool.called`` row and its outcome row. Ends once."""

    def __init__(
        self, run: Recording, name: str, arguments: dict[str, object], effects: Effects
    ) -> None:
        self._run = run
        self._name = name
        self._items: list[object] | None = None
        self._scope = scope_for(run)
        self.call_id = run.next_call_id()
        self._done = False
        payload: dict[str, object] = {
            "call_id": self.call_id,
            "arguments": arguments,
            "effects": effects,
        }
        event_id = run.write(self._draft("tool.called", payload))
        if effects == "write":
            run.sync_before_effect()
        self._inner = Scope(run, self._scope.turn_id, self._scope.subagent_run_id, event_id or None)

    def _draft(self, kind: str, payload: dict[str, object]) -> Draft:
        scope = self._scope
        return Draft(
            kind,
            payload,
            name=self._name,
            turn_id=scope.turn_id,
            subagent_run_id=scope.subagent_run_id,
            causation_id=scope.causation_id,
        )

    def enter(self) -> Token[Scope | None]:
        """What the tool itself calls is caused by this call."""
        return SCOPE.set(self._inner)

    def leave(self, token: Token[Scope | None] | None) -> None:
        if token is not None:
            leave(token)

    def item(self, item: object) -> None:
        """One value that a generator yielded, as it was at that moment."""
        if self._items is None:
            self._items = []
        self._items.append(self._run.frozen(item))

    def completed(self, result: object) -> None:
        payload: dict[str, object] = {"call_id": self.call_id, "result": result}
        if self._items is not None:
            payload["result"] = {"items": self._items, "returned": result}
            payload["stream"] = True
        self._end("tool.completed", payload)

    def stopped(self) -> None:
        """The consumer closed the generator before its end."""
        payload = {
            "call_id": self.call_id,
            "result": {"items": self._items or [], "returned": None},
            "stream": True,
            "outcome": "closed",
        }
        self._end("tool.completed", payload)

    def failed(self, error: BaseException) -> None:
        payload: dict[str, object] = {"call_id": self.call_id, **failure(error)}
        if self._items is not None:
            payload["items"] = self._items
        self._end("tool.failed", payload)

    def _end(self, kind: str, payload: dict[str, object]) -> None:
        if not self._done:
            self._done = True
            self._run.write(self._draft(kind, payload))


class NotRecorded:
    """Stands in for a `ToolCall` where no run is current: it does nothing."""

    def enter(self) -> Token[Scope | None] | None:
        return None

    def leave(self, token: Token[Scope | None] | None) -> None:
        return None

    def item(self, item: object) -> None:
        return None

    def completed(self, result: object) -> None:
        return None

    def stopped(self) -> None:
        return None

    def failed(self, error: BaseException) -> None:
        return None
