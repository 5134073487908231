"""One run on disk, to be looked at step by step. Reads only; never follows what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from playhead.core.decode import event_at, row_of, step_of
from playhead.core.fold import Folded
from playhead.core.model import JSON, Event, Step
from playhead.core.prompts import rebuild
from playhead.core.restore import restore
from playhead.core.rows import BadRow, Row
from playhead.core.state import State
from playhead.core.values import MARK
from playhead.errors import BlobError, NotFound, Place, PlayheadError
from playhead.replay.calls import over, unanswered
from playhead.replay.info import RunInfo, info_of
from playhead.replay.runstates import RunStates
from playhead.replay.segments import Segments
from playhead.store.lines import open_lines
from playhead.store.reader import segment_path
from playhead.store.stores import Blobs, ChainRef, Lines, Store

_FEW = 32
_MAX_SHOWN_BLOB = 256 * 1024 * 1024


class Run:
    """The rows of one journal as they are at opening, by number from 0.

    A line that is no row is an event of type ``unreadable``, so that every line of the file
    has its place in the walk. States come from a replay handle over these very rows.
    """

    def __init__(
        self, lines: Lines, run_id: str, where: str, blobs: Blobs | None, folder: Path | None
    ) -> None:
        self.run_id = run_id
        self.where = where
        self.folder = folder
        self._lines = lines
        self._blobs = blobs
        self._states: RunStates | None = None
        self._segments = Segments(self._line)
        self._info: RunInfo | None = None

    @classmethod
    def open(cls, folder: Path | str, cas: Blobs | None = None) -> Run:
        """The run in ``folder``; ``cas`` holds its blobs.

        Raises:
            NotFound: there is no journal. Unreadable: a link, a directory, no permission.
        """
        place = Path(folder)
        return cls(open_lines(place), place.name, str(segment_path(place)), cas, place)

    @classmethod
    def stored(cls, store: Store, ref: ChainRef) -> Run:
        """The chain ``ref`` of a store, as it is now.

        Raises:
            NotFound, Unreadable, StoreError: it is not there, or the store does not answer.
        """
        folder = store.folder(ref)
        blobs = store.blobs(ref.tenant_id)
        return cls(store.lines(ref), ref.run_id, ref.where, blobs, folder)

    @classmethod
    def there(cls, store: Store, ref: ChainRef) -> Run:
        """As `stored`, and of a journal every line of its file: also half a row at its end.

        Raises:
            NotFound, Unreadable, StoreError: as `stored`.
        """
        folder = store.folder(ref)
        if folder is None:
            return cls.stored(store, ref)
        return cls.open(folder, store.blobs(ref.tenant_id))

    def close(self) -> None:
        """Give the file back."""
        if self._states is not None:
            self._states.close()
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
            raise NotFound(what, place=Place(self.where), remedy="Choose one of them")
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
        return Place(self.where, line_no, None if offset < 0 else offset, number)

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
        if number != -1:
            self._line(number)
        if self._states is None:
            self._states = RunStates(self)
        return self._states.at(number)

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
        found = rebuild(number, self._segments.source(number))
        return [self.restored(message, mark=mark) for message in found]

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
        if self._blobs is None:
            raise BlobError(f"blob {digest[:16]!r}... is not at hand: no blob store is open")
        return self._blobs.get(digest, _MAX_SHOWN_BLOB)

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
        ends = [(self.event(n), self.step(n).ts) for n in (0, count - 1)] if count else [None, None]
        size, sealed = self._on_disk()
        first, last = ends
        return info_of(
            self.run_id, count, first, last, fork, size=size, sealed=sealed, folder=self.folder
        )

    def _on_disk(self) -> tuple[int, bool]:
        """Bytes of the journal's file, and whether it is sealed; elsewhere of the rows."""
        if self.folder is None:
            return sum(len(block) for block in self._lines.blocks()), False
        path = segment_path(self.folder)
        try:
            return os.stat(path).st_size, path.suffix == ".zst"
        except OSError:
            return 0, path.suffix == ".zst"
