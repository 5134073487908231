"""The runs of a store, each told from its first and its last row only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from playhead.core.decode import UNREADABLE, event_at, row_of, step_of
from playhead.core.model import Event
from playhead.core.rows import BadRow
from playhead.errors import PlayheadError
from playhead.formats.journal import MAX_ROW
from playhead.replay.info import RunInfo, info_of
from playhead.store.reader import blocks_of, open_segment, split_lines
from playhead.store.root import Root
from playhead.store.stores import ChainRef, Store

_TAIL = 64 * 1024
_MAX_SEQ = 1 << 53  # what a row claims is not believed beyond what JSON readers agree on

End = tuple[Event, float | None]


def list_runs(root: Root) -> list[RunInfo]:
    """Every run under ``root``, oldest first; one that cannot be read says why.

    The number of steps is what the last row claims; ``verify`` counts them. A fork is known
    here by the run id in its first row, which is its parent's.
    """
    found = []
    for run_id in root.runs():
        folder = root.journal_dir(run_id)
        try:
            found.append(peek(folder))
        except PlayheadError as error:
            problem = f"{error.code}: {error.what}"
            found.append(RunInfo(run_id, folder, "unreadable", problem=problem))
    return found


def list_chats(store: Store, tenant_id: str) -> list[tuple[ChainRef, RunInfo]]:
    """Every run of the tenant in any store, oldest first, as `list_runs` tells them.

    Raises:
        UsageError: a blank tenant. StoreError, Unreadable: the store does not answer.
    """
    found = []
    for ref in store.list_chats(tenant_id):
        folder = store.folder(ref)
        try:
            info = peek(folder) if folder is not None else _peek_stored(store, ref)
        except PlayheadError as error:
            problem = f"{error.code}: {error.what}"
            info = RunInfo(ref.run_id, folder, "unreadable", problem=problem)
        found.append((ref, info))
    return found


def _peek_stored(store: Store, ref: ChainRef) -> RunInfo:
    """The info of one chain of a database; its tip says how many rows there are."""
    tip = store.tip(ref)
    lines = store.lines(ref)
    try:
        count = lines.count()
        ends: list[End | None] = []
        for number in (0, count - 1) if count else ():
            line = next(iter(lines.walk(number, number + 1)))[2]
            ends.append((event_at(0, line), None) if isinstance(line, BadRow) else _end(line))
    finally:
        lines.close()
    first, last = ends if ends else (None, None)
    return info_of(ref.run_id, count, first, last, size=tip.length)


def peek(folder: Path) -> RunInfo:
    """The info of one run from its outer rows.

    Raises:
        NotFound: there is no journal. Unreadable, Refused, CheckFailed: it cannot be read.
    """
    fd, sealed = open_segment(folder)
    with open(fd, "rb", buffering=0):
        size = os.fstat(fd).st_size
        if sealed:
            first, last = _sealed_ends(fd, str(folder))
        else:
            first, last = _first(blocks_of(fd, 0, size)), _last(fd, size)
    steps = 0 if last is None else last[0].seq + 1
    name = folder.name
    return info_of(name, steps, first, last, size=size, sealed=sealed, folder=folder)


def _end(text: bytes) -> End:
    row = row_of(text)
    claimed = min(max(step_of(0, row).seq, 0), _MAX_SEQ)
    return event_at(claimed, row), step_of(0, row).ts


def _first(blocks: Iterator[bytes]) -> End | None:
    """The first row; a first line over every limit is no row."""
    for _, _, text in split_lines(blocks):
        if isinstance(text, BadRow):
            return event_at(0, text), None
        if text.strip():
            return _end(text)
    return None


def _last(fd: int, size: int) -> End | None:
    """The last line that is a row, looked for from the end; a torn tail is passed over."""
    want = min(_TAIL, size)
    while True:
        tail = os.pread(fd, want, size - want)
        whole = tail if want == size else tail[tail.find(b"\n") + 1 :]
        found = _last_of(whole)
        if found is not None or want == size or want > 2 * MAX_ROW:
            return found
        want = min(want * 8, size)


def _last_of(data: bytes) -> End | None:
    lines = [text for _, _, text in split_lines([data]) if isinstance(text, bytes)]
    for text in reversed(lines):
        if text.strip():
            end = _end(text)
            if end[0].type != UNREADABLE:
                return end
    return None


def _sealed_ends(fd: int, name: str) -> tuple[End | None, End | None]:
    from playhead.store.sealed import read_frame, read_index

    frames = read_index(fd, name).frames
    if not frames:
        return None, None
    last = _last_of(read_frame(fd, name, frames[-1]))
    return _first(iter([read_frame(fd, name, frames[0])])), last
