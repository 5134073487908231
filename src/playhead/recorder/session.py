"""``playhead.record``: one agent's run on record.

Nothing recorded changes what the agent sees, and nothing is raised into it unless the disk
fails; then ``on_error`` decides: ``"raise"`` gives a `RecordError`, ``"warn"`` one warning and
a run that says how many events it lost. An event before the run is opened or after it was
closed is lost as well, and never an error.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from playhead.core.chain import event_id
from playhead.core.events import TYPES, Draft
from playhead.core.values import Frozen, Normaliser, exception_value
from playhead.errors import EventConflict, JournalClosed, PlayheadError, RecordError, UsageError
from playhead.recorder.calls import Effects
from playhead.recorder.context import OPEN, SCOPE, Scope, leave, scope_for
from playhead.recorder.sink import LATE, Sink
from playhead.recorder.spans import Interrupt, ModelCall, Subagent, Turn, outcome_of
from playhead.recorder.tools import wrap

if TYPE_CHECKING:
    from contextvars import Token

# Any: a decorator must take and give back functions of every signature.
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
OnError = Literal["raise", "warn"]


class Recording:
    """A run being recorded. Made by `record`; use it with ``with`` or ``async with``."""

    def __init__(self, open_sink: Callable[[], Sink], agent: str, on_error: OnError) -> None:
        self.agent = agent
        self.lost = 0
        """How many of the agent's events are not in the chain."""
        self._open_sink = open_sink
        self._sink: Sink | None = None
        self._on_error = on_error
        self._numbers = itertools.count(1)
        self._turns: list[str] = []
        self._lock = threading.Lock()
        self._token: Token[Scope | None] | None = None
        self._pid = os.getpid()
        self._entered = False
        self._ended = False
        self._warned = False

    # -- the run itself

    @property
    def id(self) -> str:
        """The run id; it names the journal's directory."""
        return self._sink.run_id if self._sink is not None else ""

    @property
    def head(self) -> str:
        """The last step hash; keep it elsewhere to prove the run later."""
        return self._sink.head if self._sink is not None else ""

    @property
    def durable_upto(self) -> int:
        """How many steps are known to survive a power cut."""
        return self._sink.durable_upto if self._sink is not None else 0

    @property
    def is_open(self) -> bool:
        return self._sink is not None and not self._ended and self._is_here()

    def _is_here(self) -> bool:
        """False in a forked child of a run whose journal this process does not own: there
        tools just run, and nothing is recorded."""
        sink = self._sink
        return os.getpid() == self._pid or (sink is not None and sink.follows_fork)

    @property
    def is_current(self) -> bool:
        """Whether calls belong to it: begun and not ended, even if it could not be opened."""
        return self._entered and not self._ended and self._is_here()

    def sync(self) -> int:
        """Make every step so far durable; returns ``durable_upto``.

        Raises:
            RecordError: the disk failed and ``on_error`` is "raise".
        """
        if not self._is_here():
            return 0
        return self._guard(lambda: self._sink.sync() if self._sink else 0, 0)

    def sync_before_effect(self) -> None:
        """Decision 6: intents are durable before a ``write`` effect starts."""
        self.sync()

    def open(self) -> Recording:
        """Start the run. ``with`` does this."""
        if not self._entered:
            self._sink = self._guard(self._open_sink, None)
            self._entered = True
            OPEN.add(self)
        return self

    def close(self, error: BaseException | None = None) -> None:
        """End the run with ``run.ended`` and a signed head. Idempotent."""
        if not self._is_here():
            return
        if not self.is_current:
            return
        self._ended = True
        OPEN.remove(self)
        sink = self._sink
        if sink is None:
            return
        detail = None if error is None else exception_value(error)
        self._guard(lambda: sink.close(outcome_of(error), detail), "", closing=True)

    def __enter__(self) -> Recording:
        self.open()
        self._token = SCOPE.set(Scope(self))
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
        self.close(error)

    async def __aenter__(self) -> Recording:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    # -- what happens in it

    def tool(
        self, fn: F | None = None, /, *, effects: Effects = "write", name: str | None = None
    ) -> Any:
        """Decorate a function: each call of it is a tool call of this run."""

        def find() -> Recording:
            return self

        if fn is not None:
            return wrap(fn, find, effects, name)
        return lambda inner: wrap(inner, find, effects, name)

    def model_call(self, model: str, messages: Iterable[object], **parameters: object) -> ModelCall:
        """A request to ``model`` with the whole conversation; ``parameters`` as they were sent.

        A text or a mapping in place of ``messages`` is one message.

        with run.model_call("m-1", messages, temperature=0) as call:
            call.respond(client.chat(messages))
        """
        return ModelCall(self, model, messages, parameters)

    def turn(self, user: object = None, *, turn_id: str | None = None) -> Turn:
        """One turn of the chat; ``user`` is what started it."""
        return Turn(self, turn_id or self._next("turn"), user)

    def subagent(
        self, name: str, prompt: object = None, *, subagent_run_id: str | None = None
    ) -> Subagent:
        """A subagent's part of the run."""
        return Subagent(self, name, subagent_run_id or self._next(name), prompt)

    def interrupt(self, reason: str, value: object = None) -> Interrupt:
        """The agent waits for a person's decision."""
        return Interrupt(self, self._next("interrupt"), reason, value)

    def state(self, key: str, value: object) -> None:
        """A change of the agent's own state, worth seeing in the walk."""
        self.event("state.changed", {"key": key, "value": value})

    def event(self, kind: str, payload: Mapping[str, object], *, id: str | None = None) -> str:
        """Any event of the taxonomy, or a vendor's own ``vendor.name``; returns its id.

        Raises:
            UsageError: not such a name, or a payload key that the type must have is missing.
        """
        if "." not in kind:
            raise UsageError(f"event type {kind!r}", remedy="Name it vendor.name")
        missing = [key for key in TYPES.get(kind, ()) if key not in payload]
        if missing:
            raise UsageError(f"{kind} needs {', '.join(missing)} in its payload")
        scope = scope_for(self)
        return self.write(
            Draft(
                kind,
                dict(payload),
                id=id,
                turn_id=scope.turn_id,
                subagent_run_id=scope.subagent_run_id,
                causation_id=scope.causation_id,
            )
        )

    # -- for spans and calls

    def write(self, draft: Draft, *, messages: Sequence[object] | None = None) -> str:
        """Append one event; returns its id, or "" when it was lost: under ``on_error="warn"``,
        or because the run is not open."""
        sink = self._sink
        seq = -1
        if not self._is_here():
            return ""
        if sink is None or self._ended:
            self._warn(f"{draft.type} is lost, the run is not open")
        else:
            seq = self._guard(lambda: sink.emit(draft, messages=messages), -1)
        if seq == LATE:
            return draft.id or ""
        if sink is None or seq < 0:
            with self._lock:
                self.lost += 1
            return ""
        if draft.type == "turn.completed":
            self.sync()
        return draft.id or event_id(sink.uid, seq)

    def frozen(self, value: object) -> Frozen:
        """``value`` as it is now, for values that are recorded later."""
        return Frozen(Normaliser().value(value))

    def next_call_id(self) -> str:
        return self._next("call")

    def _next(self, word: str) -> str:
        return f"{word}-{next(self._numbers)}"

    def turn_opened(self, turn_id: str) -> None:
        with self._lock:
            self._turns.append(turn_id)

    def turn_closed(self, turn_id: str) -> None:
        with self._lock:
            if turn_id in self._turns:
                self._turns.remove(turn_id)

    def open_turn(self) -> str | None:
        """The open turn when there is exactly one: what a thread without context is part of."""
        with self._lock:
            return self._turns[0] if len(self._turns) == 1 else None

    def _guard(self, act: Callable[[], T], instead: T, *, closing: bool = False) -> T:
        try:
            return act()
        except (PlayheadError, OSError) as error:
            if isinstance(error, UsageError | EventConflict):
                raise  # the caller's own words, not a fault of the recording
            if self._ended and not closing and isinstance(error, JournalClosed):
                return instead  # the run ended in another thread while this call went on
            if self._on_error == "raise":
                what = f"recording failed: {error}"
                raise RecordError(what, remedy=_remedy(error)) from error
            self._warn(f"recording failed: {error}")
            return instead

    def _warn(self, what: str) -> None:
        """One warning a run."""
        if not self._warned:
            self._warned = True
            with contextlib.suppress(RuntimeWarning):  # warnings may have been made errors
                warnings.warn(f"playhead: {what}", RuntimeWarning, stacklevel=5)


def _remedy(error: Exception) -> str | None:
    return "" if isinstance(error, PlayheadError) and error.remedy else None
