"""The states of a run that is being looked at: a replay handle over its rows, and nothing else.

A step on is `step`, a step back is `back`, anything else is `seek`. The rows are taken as they
are, damaged ones without effect: whether the chain holds is for ``verify`` to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from playhead.core.fold import Folded, Projection, fold
from playhead.core.logrow import LogRow
from playhead.core.projections import AgentState, ToolCalls, Turns, Usage
from playhead.replay.sync import SyncReplayClient

if TYPE_CHECKING:
    from playhead.replay.run import Run

_SCOPE = "run"  # one run, opened already: there is nobody else's row to be kept out


class RunEvents:
    """The events facet of one open run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def iterate(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> Iterator[LogRow]:
        """The rows as they are, numbered from 1."""
        for event in self._run.events(from_sequence_number, up_to_sequence_number):
            yield LogRow(None, None, event.seq + 1, event, event.step_hash)

    def fold(self, projection: Projection, *, chat_id: str, tenant_id: str) -> object:
        """The state of ``projection`` behind every row."""
        return fold(self._run.events(), (projection,)).of(projection.key)


class RunStates:
    """State by step number, from 0; -1 is before any."""

    def __init__(self, run: Run) -> None:
        projections = (Turns(), ToolCalls(), Usage(), AgentState())
        self.events = RunEvents(run)
        self._client = SyncReplayClient(self)
        self._handle = self._client.from_event_log(
            _SCOPE, tenant_id=_SCOPE, projections=projections, verify="off", unreadable="count"
        )

    def at(self, number: int) -> Folded:
        """The state behind step ``number``, which is there."""
        handle, wanted = self._handle, number + 1
        here = handle.current_sequence_number()
        if wanted == here + 1:
            handle.step()
        elif wanted == here - 1:
            handle.back()
        elif wanted != here:
            handle.seek(wanted)
        return handle.folded

    def close(self) -> None:
        """Let the handle and its thread go."""
        self._handle.close()
        self._client.close()
