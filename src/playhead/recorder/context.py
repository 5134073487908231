"""Where in a run the code that runs now stands: carried by contextvars.

asyncio tasks and ``asyncio.to_thread`` inherit the scope by themselves. A thread started by
hand inherits nothing: `carry` takes the scope along, and without it a call still finds its
run (the one that decorated the tool, or the only one that is open) and the run's open turn.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from playhead.recorder.session import Recording

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Scope:
    """The recording, and the turn, subagent and event that the current code belongs to."""

    run: Recording
    turn_id: str | None = None
    subagent_run_id: str | None = None
    causation_id: str | None = None


SCOPE: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("playhead", default=None)


class _Open:
    """The recordings that are open in this process. "The current run" has no other home for
    threads that inherit no context."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[Recording] = []

    def add(self, run: Recording) -> None:
        with self._lock:
            self._runs.append(run)

    def remove(self, run: Recording) -> None:
        with self._lock:
            if run in self._runs:
                self._runs.remove(run)

    def only(self) -> Recording | None:
        with self._lock:
            return self._runs[0] if len(self._runs) == 1 else None


OPEN = _Open()


def leave(token: contextvars.Token[Scope | None]) -> None:
    """Go back to the scope before. A span that is left in another context than it was entered
    in (a fixture, a stepped generator) has nothing to go back to there."""
    with contextlib.suppress(ValueError):
        SCOPE.reset(token)


def current_run() -> Recording | None:
    """The recording that the current code belongs to, or None."""
    scope = SCOPE.get()
    return scope.run if scope is not None else OPEN.only()


def scope_for(run: Recording) -> Scope:
    """The current scope when it is of ``run``, else the run's own (a thread without context)."""
    scope = SCOPE.get()
    if scope is not None and scope.run is run:
        return scope
    return Scope(run, turn_id=run.open_turn())


def carry(fn: Callable[P, R]) -> Callable[P, R]:
    """``fn`` bound to the current context, for a thread or executor started by hand.

        executor.submit(playhead.carry(work), item)

    Each call runs in its own copy, so one result may be used by several threads at once.
    """
    context = contextvars.copy_context()

    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(fn, *args, **kwargs)

    return carried
