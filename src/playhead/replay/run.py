"""One run on disk, to be looked at step by step. Reads only; never follows what it reads."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from playhead.core.decode import event_at, row_of, step_of
from playhead.core.fold import Folded, Projection, start
from playhead.core.messages import segments_of
from playhead.core.model import JSON, Event, Step
from playhead.core.projections import AgentState, ToolCalls, Turns, Usage
from playhead.core.prompts import rebuild
from playhead.core.restore import restore
from playhead.core.rows import BadRow, Row
from playhead.core.state import State
from playhead.core.values import MARK
from playhead.errors import BlobError, NotFound, Place, PlayheadError, TooLarge
from playhead.replay.calls import over, unanswered
from playhead.replay.info import RunInfo, info_of
from playhead.store.cas import Cas
from playhead.store.lines import Lines, open_lines
from playhead.store.reader import segment_path

SNAPSHOT_EVERY = 256
"""Steps between two kept states: a jump to a place already passed folds at most so many."""
_RECENT = 512
_FEW = 32
_MAX_SEGMENTS = 8_000_000
_MAX_SHOWN_BLOB = 256 * 1024 * 1024
_KEEP_PARSED = 32 * 1024 * 1024


class Run:
    """The rows of one journal as they are at opening, by number from 0.

    A line that is no row is an event of type ``unreadable``, so that every line of the file
    has its place in the walk. States are kept at intervals: stepping is cheap both ways.
    """

    def __init__(self, folder: Path, lines: Lines, cas: Cas | None) -> None:
        self.folder = folder
        self._lines = lines
        self._cas = cas
        projections: tuple[Projection, ...] = (Turns(), ToolCalls(), Usage(), AgentState())
        self._snapshots: list[Folded] = [start(projections)]
        self._recent: OrderedDict[int, Folded] = OrderedDict()
        self._parsed: OrderedDict[int, tuple[int, Sequence[JSON]]] = OrderedDict()
        self._parsed_size = 0
        self._info: RunInfo | None = None

    @classmethod
    def open(cls, folder: Path | str, cas: Cas | None = None) -> Run:
        """The run in ``folder``; ``cas`` holds its blobs.

        Raises:
            NotFound: there is no journal. Unreadable: a link, a directory, no permission.
        """
        place = Path(folder)
        return cls(place, open_lines(place), cas)

    def close(self) -> None:
        """Give the file back."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._lines.count()

    def has(self, number: int) -> bool:
        """True when there is a step ``number``; cheaper than ``len`` near the beginning."""
        return self._lines.has(number)

    def _line(self, number: int) -> bytes | BadRow:
        if not self._lines.has(number):
            count = len(self)
            what = f"no step {number}: " + (f"steps are 0 to {count - 1}" if count else "no steps")
            raise NotFound(what, place=Place(str(self.folder)), remedy="Choose one of them")
        return self._lines.get(number)[2]

    def raw(self, number: int) -> bytes:
        """The line of step ``number`` without its newline; empty when it is too long to hold.

        Raises:
            NotFound: there is no such step.
        """
        text = self._line(number)
        return b"" if isinstance(text, BadRow) else text

    def row(self, number: int) -> Row | BadRow:
        """The decoded row with its recomputed hash, or why the line is none.

        Raises:
            NotFound: there is no such step.
        """
        return row_of(self._line(number))

    def place(self, number: int) -> Place:
        """File, line and byte offset of a step.

        Raises:
            NotFound: there is no such step.
        """
        self._line(number)
        line_no, offset, _ = self._lines.get(number)
        return Place(str(segment_path(self.folder)), line_no, offset, number)

    def step(self, number: int) -> Step:
        """The row as a step.

        Raises:
            NotFound: there is no such step.
        """
        return step_of(number, self.row(number))

    def event(self, number: int) -> Event:
        """The event at step ``number``; its ``seq`` is that number.

        Raises:
            NotFound: there is no such step.
        """
        return event_at(number, self.row(number))

    def lost(self, event: Event) -> bool:
        """True for a call whose result never came: the run is over and holds none (decision 4)."""
        return unanswered(self, event) and over(self)

    def events(self, begin: int = 0, end: int | None = None) -> Iterator[Event]:
        """Events of the steps from ``begin`` up to ``end``; a long range is read in blocks."""
        if end is not None and end - begin <= _FEW:
            for number in range(begin, end):
                if not self._lines.has(number):
                    return
                yield event_at(number, row_of(self._lines.get(number)[2]))
            return
        for number, line in enumerate(self._lines.walk(begin, end), begin):
            yield event_at(number, row_of(line[2]))

    def folded(self, number: int) -> Folded:
        """The state after step ``number`` with turns, tool calls and usage; -1: before any.

        Raises:
            NotFound: there is no such step.
        """
        if number == -1:
            return self._snapshots[0]
        found = self._recent.get(number)
        if found is not None:
            return found
        self._line(number)
        at = min(number // SNAPSHOT_EVERY, len(self._snapshots) - 1)
        folded, begin = self._snapshots[at], at * SNAPSHOT_EVERY
        if number - 1 in self._recent:
            folded, begin = self._recent[number - 1], number
        for step, event in enumerate(self.events(begin, number + 1), begin):
            folded = folded.apply(event)
            self._keep(step, folded)
        return folded

    def _keep(self, step: int, folded: Folded) -> None:
        if step + 1 == len(self._snapshots) * SNAPSHOT_EVERY:
            self._snapshots.append(folded)
        self._recent[step] = folded
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def state(self, number: int) -> State:
        """The core state after step ``number``; -1: before any.

        Raises:
            NotFound: there is no such step.
        """
        return self.folded(number).state

    def messages(self, number: int, *, mark: bool = False) -> list[object]:
        """The whole prompt of a ``model.requested``, rebuilt; what a foreign row asked; else [].

        ``mark`` puts a sentence in place of a blob that is not there.

        Raises:
            NotFound: there is no such step. ValueRefused: the prompt refers to what is not there.
            TooLarge: it grows beyond every bound. BlobError: a blob is missing or changed.
        """
        event = self.event(number)
        if event.type == "step":
            return [] if event.prompt is None else [self.restored(event.prompt, mark=mark)]
        if event.type != "model.requested":
            return []
        found = rebuild(number, self._source(number))
        return [self.restored(message, mark=mark) for message in found]

    def _source(self, number: int) -> Callable[[int], Sequence[JSON]]:
        """Segments by step. A hostile row may make each look a long one: they are counted."""
        seen = 0

        def source(step: int) -> Sequence[JSON]:
            nonlocal seen
            segments = self._segments(step)
            seen += len(segments)
            if seen > _MAX_SEGMENTS:
                raise TooLarge(f"the prompt of step {number} takes over {_MAX_SEGMENTS} segments")
            return segments

        return source

    def _segments(self, step: int) -> Sequence[JSON]:
        known = self._parsed.get(step)
        if known is not None:
            self._parsed.move_to_end(step)
            return known[1]
        text = self._line(step)
        segments = segments_of(event_at(step, row_of(text)))
        size = 0 if isinstance(text, BadRow) else len(text)
        self._parsed[step] = (size, segments)
        self._parsed_size += size
        while self._parsed_size > _KEEP_PARSED and len(self._parsed) > 1:
            self._parsed_size -= self._parsed.popitem(last=False)[1][0]
        return segments

    def payload(self, number: int, *, mark: bool = False) -> dict[str, object]:
        """The payload of a step as it was recorded: blobs and repeated values put back.

        Raises:
            NotFound: there is no such step. BlobError: a blob is missing or changed.
        """
        found: dict[str, object] = {}
        for key, value in self.event(number).payload.items():
            found[key] = self.restored(self._same(number, value), mark=mark)
        return found

    def _same(self, number: int, value: JSON) -> JSON:
        """The value that a ``same`` mark refers to; the mark itself when it leads nowhere."""
        if not isinstance(value, dict) or value.get(MARK) != "same":
            return value
        step, key = value.get("seq"), value.get("key")
        if type(step) is not int or not 0 <= step < number or not isinstance(key, str):
            return value
        return self.event(step).payload.get(key, value)

    def restored(self, value: JSON, *, mark: bool = False) -> object:
        """A value with its marks undone and its blobs read (docs/reference/formats/values.md).

        Raises:
            BlobError: a blob is missing or changed, unless ``mark`` is given.
        """
        try:
            return restore(value, self._marked_blob if mark else self._blob)
        except RecursionError:  # nested deeper than anything recorded: shown as it is
            return value

    def _blob(self, digest: str) -> bytes:
        if self._cas is None:
            raise BlobError(f"blob {digest[:16]!r}... is not at hand: no blob store is open")
        return self._cas.get(digest, _MAX_SHOWN_BLOB)

    def _marked_blob(self, digest: str) -> bytes:
        try:
            return self._blob(digest)
        except PlayheadError as error:
            return f"⟨{error.what}⟩".encode("utf-8", "backslashreplace")

    @property
    def info(self) -> RunInfo:
        """Who ran, when, and how it ended; counts every step and looks for a fork."""
        if self._info is None:
            self._info = self._read_info()
        return self._info

    def _read_info(self) -> RunInfo:
        fork: Event | None = None
        for number, line in enumerate(self._lines.walk(0, None)):
            if not isinstance(line[2], BadRow) and b'"run.forked"' in line[2]:
                event = event_at(number, row_of(line[2]))
                fork = event if event.type == "run.forked" else fork
        count = len(self)
        path = segment_path(self.folder)
        try:
            size = os.stat(path).st_size
        except OSError:
            size = 0
        ends = [(self.event(n), self.step(n).ts) for n in (0, count - 1)] if count else [None, None]
        sealed = path.suffix == ".zst"
        return info_of(self.folder, count, ends[0], ends[1], fork, size=size, sealed=sealed)
