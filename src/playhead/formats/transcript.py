"""What every reader of a foreign transcript hands over, whatever the file looked like.

A reader (``formats/claude_code.py`` and its like) turns bytes into one `Transcript`: entries in
causal order, each with the place in the source that it comes from, and the findings made on
the way. Nothing here knows a foreign format, and nothing here writes a run: that is the work
of ``convert/importer.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from playhead.core.model import JSON, Finding, Severity
from playhead.errors import Place

Status = Literal["completed", "incomplete", "empty"]
Role = Literal["session", "subagent", "meta"]

_KEEP_OF_A_KIND = 50
"""Findings of one kind that are kept one by one; the rest are counted in one more."""


@dataclass(frozen=True, slots=True)
class SourceInput:
    """A file to read: its name for people, and its bytes.

    ``chunks()`` starts over each time it is called and gives the bytes in pieces of any size.
    ``agent_id`` is what the file's name says about whose file it is, if it says anything.
    """

    name: str
    chunks: Callable[[], Iterator[bytes]]
    role: Role = "session"
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: SHA-256 hex of all its bytes, and how many (bytes)."""

    name: str
    sha256: str
    size: int
    role: Role = "session"


@dataclass(frozen=True, slots=True)
class Source:
    """Where an entry comes from: index into ``Transcript.files``, 1-based line, byte offset of
    the record, SHA-256 hex of the record's bytes."""

    file: int
    line: int
    byte: int
    sha256: str


class Prompt(Sequence[JSON]):
    """The messages ``[start, end)`` of one growing history: a view, so that the prompts of
    a long session do not take space that grows with its square."""

    __slots__ = ("end", "history", "start")

    def __init__(self, history: list[JSON], start: int, end: int) -> None:
        self.history = history
        self.start = start
        self.end = end

    def __len__(self) -> int:
        return self.end - self.start

    @overload
    def __getitem__(self, index: int) -> JSON: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JSON]: ...
    def __getitem__(self, index: int | slice) -> JSON | Sequence[JSON]:
        if isinstance(index, slice):
            return [self.history[self.start + i] for i in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return self.history[self.start + at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event to be: ``type`` is a key of ``core.events.TYPES``.

    ``at`` is RFC 3339 UTC with microseconds, or None when the source gives no time whose zone
    is known. ``messages`` is the prompt of a ``model.requested`` as far as the source allows
    it to be put together, else None.
    """

    type: str
    payload: Mapping[str, JSON]
    source: Source
    at: str | None = None
    name: str | None = None
    model: str | None = None
    messages: Prompt | None = None
    turn_id: str | None = None
    subagent_run_id: str | None = None
    causation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of the source's tree that the active path leaves out: it hangs on the row
    ``after`` (uuid), its rows lie between two lines, its newest row is ``leaf`` (uuid)."""

    after: str | None
    leaf: str | None
    first_line: int
    last_line: int
    rows: int

    def to_dict(self) -> dict[str, JSON]:
        return {
            "after": self.after,
            "leaf": self.leaf,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """What was found. ``turns`` are those of the session itself, the others with subagents."""

    turns: int = 0
    model_requests: int = 0
    tool_calls: int = 0
    subagents: int = 0
    records: int = 0
    unknown: Mapping[str, int] | None = None

    def to_dict(self) -> dict[str, JSON]:
        return {
            "turns": self.turns,
            "model_requests": self.model_requests,
            "tool_calls": self.tool_calls,
            "subagents": self.subagents,
            "records": self.records,
            "unknown": dict(self.unknown or {}),
        }


@dataclass(frozen=True, slots=True)
class Transcript:
    """One session, read. ``cwd`` is what the rows say, never a folder name (case C51)."""

    format: str
    session_id: str | None
    agent: str | None
    cwd: str | None
    entries: Sequence[Entry]
    findings: Sequence[Finding]
    counts: Counts
    status: Status
    branches: Sequence[Branch]
    files: Sequence[SourceFile]


class Notes:
    """Collects findings; of one kind it keeps the first fifty and counts the others, so that
    a file of broken lines does not fill the memory."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._of_kind: Counter[str] = Counter()

    def add(
        self,
        kind: str,
        severity: Severity,
        what: str,
        *,
        file: str | None = None,
        line: int | None = None,
        byte: int | None = None,
        remedy: str = "",
    ) -> None:
        self._of_kind[kind] += 1
        if self._of_kind[kind] <= _KEEP_OF_A_KIND:
            self._found.append(Finding(kind, severity, what, Place(file, line, byte), remedy))

    def count(self, kind: str) -> int:
        """How many findings of ``kind`` were made, those that were only counted too."""
        return self._of_kind[kind]

    def findings(self) -> tuple[Finding, ...]:
        severity = {f.kind: f.severity for f in self._found}
        more = [
            Finding(kind, severity[kind], f"{number - _KEEP_OF_A_KIND} more of the same kind")
            for kind, number in self._of_kind.items()
            if number > _KEEP_OF_A_KIND
        ]
        return (*self._found, *more)
