"""The book of one session being mapped: entries, the open turn, the prompt so far, ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from playhead.core.model import JSON, Severity
from playhead.formats.claude_code_rows import Row
from playhead.formats.transcript import Entry, Notes, Prompt


class Ids:
    """Call ids, unique over a session and its subagents: a source may use one twice (C16)."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """``wanted``, or ``wanted#2`` and so on when it is taken."""
        name = wanted
        while name in self._used:
            self._used[wanted] += 1
            name = f"{wanted}#{self._used[wanted]}"
        self._used[name] = 1
        return name


class Book:
    """What mapping writes into. ``history`` holds every message of the path; a prompt is the
    part of it since the last compaction. ``agent_id`` is None for the session itself."""

    def __init__(self, file: str, notes: Notes, ids: Ids, agent_id: str | None = None) -> None:
        self.entries: list[Entry] = []
        self.history: list[JSON] = []
        self.known = True
        self.turns = 0
        self.last_outcome: str | None = None
        self.in_turn = False
        self._file = file
        self._notes = notes
        self._ids = ids
        self._agent_id = agent_id
        self._prefix = f"{agent_id}/" if agent_id else ""
        self._start = 0
        self._requests = 0
        self._row: Row | None = None
        self._open: list[str] = []
        self._output: JSON = None
        self._replied = False
        self._interrupted = False
        self._interrupts = 0
        self._pending: list[str] = []

    @property
    def turn_id(self) -> str | None:
        return f"{self._prefix}turn-{self.turns}" if self.in_turn else None

    def add(
        self,
        row: Row,
        kind: str,
        payload: Mapping[str, JSON],
        *,
        name: str | None = None,
        model: str | None = None,
        messages: Prompt | None = None,
        at: str | None = None,
    ) -> None:
        """One entry for ``row``; ``at`` overrides the row's own time."""
        self.entries.append(
            Entry(
                type=kind,
                payload=payload,
                source=row.source,
                at=at or row.at,
                name=name,
                model=model,
                messages=messages,
                turn_id=self.turn_id,
                subagent_run_id=self._agent_id,
            )
        )
        self._row = row

    def adopt(self, entry: Entry) -> None:
        """Take over an entry of a subagent as it is, within the open turn."""
        if entry.turn_id is None:
            entry = dataclasses.replace(entry, turn_id=self.turn_id)
        self.entries.append(entry)

    def request(self, row: Row, payload: Mapping[str, JSON], model: str | None) -> None:
        """A ``model.requested``. The source has no time for it; it was sent after the row
        before and before the reply, and the earlier of the two is taken."""
        before = self._row.at if self._row is not None else None
        prompt = Prompt(self.history, self._start, len(self.history))
        self.add(
            row, "model.requested", payload, name=model, model=model, messages=prompt, at=before
        )

    def say(self, kind: str, severity: Severity, row: Row, what: str) -> None:
        place = row.source
        self._notes.add(kind, severity, what, file=self._file, line=place.line, byte=place.byte)

    def forget(self, *, known: bool = True) -> None:
        """The prompt starts empty here; ``known`` is False when something unknown precedes."""
        self._start = len(self.history)
        self.known = known

    # --- ids ----------------------------------------------------------------------------------

    def model_call_id(self) -> str:
        self._requests += 1
        return self._ids.take(f"{self._prefix}m{self._requests}")

    def tool_call_id(self, wanted: str | None) -> str:
        return self._ids.take(wanted or f"{self._prefix}call")

    # --- turns --------------------------------------------------------------------------------

    def begin_turn(self, row: Row, said: JSON) -> None:
        """End the open turn and begin the next; going on resolves what interrupted the last.

        ``said`` is None when the file does not show what began the turn.
        """
        self.end_turn()
        self.in_turn = True
        self.turns += 1
        self._open = []
        self._output = None
        self._replied = self._interrupted = False
        payload: dict[str, JSON] = {"implicit": True} if said is None else {"input": said}
        self.add(row, "turn.started", payload)
        for interrupt_id in self._pending:
            self.add(row, "interrupt.resolved", {"interrupt_id": interrupt_id})
        self._pending = []

    def answered(self, output: JSON) -> None:
        self._replied = True
        self._output = output

    def unresolved(self, call_id: str) -> None:
        """A call of the open turn that has no result anywhere."""
        self._open.append(call_id)

    def interrupt(self, row: Row, reason: str) -> None:
        """The turn was stopped. A stream that breaks off and the words that say so are one."""
        if self._interrupted and self.in_turn:
            return
        self._interrupted = True
        self._interrupts += 1
        interrupt_id = f"{self._prefix}interrupt-{self._interrupts}"
        self._pending.append(interrupt_id)
        self.add(row, "interrupt.raised", {"interrupt_id": interrupt_id, "reason": reason})

    def end_turn(self) -> None:
        """``outcome`` is ``interrupted`` when the user stopped it or a call has no result,
        ``unanswered`` when no reply followed, else ``completed``."""
        if not self.in_turn or self._row is None:
            return
        outcome = "completed" if self._replied else "unanswered"
        if self._interrupted or self._open:
            outcome = "interrupted"
        payload: dict[str, JSON] = {"message_id": self.turn_id, "outcome": outcome}
        if self._open:
            payload["unresolved"] = list(self._open)
        if self._output is not None and outcome == "completed":
            payload["output"] = self._output
        self.add(self._row, "turn.completed", payload)
        self.last_outcome = outcome
        self.in_turn = False
