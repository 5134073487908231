"""Claude Code sessions: JSONL with subagent files (docs/reference/formats/claude-code.md).

``read`` takes the session file and the files of its subagents and gives one `Transcript`. It
never raises for what the bytes are: what cannot be read becomes a finding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from playhead.core.model import JSON
from playhead.formats.claude_code_family import Family
from playhead.formats.claude_code_map import Mapper, Totals
from playhead.formats.claude_code_rows import Rows, first_text, mapping, read_rows
from playhead.formats.claude_code_tree import plan
from playhead.formats.claude_code_turns import Book, Ids
from playhead.formats.lines import Tally
from playhead.formats.loose import NotJson, parse
from playhead.formats.transcript import (
    Counts,
    Notes,
    SourceFile,
    SourceInput,
    Status,
    Transcript,
)

NAME = "claude-code"
META_LIMIT = 1024 * 1024
"""Bytes of a subagent's meta.json that are read."""

_SESSION = re.compile(rb'"(?:sessionId|parentUuid)"\s*:')
_MESSAGE = tuple(re.compile(rb'"%s"\s*:' % key) for key in (b"type", b"uuid", b"message"))


def detect(head: bytes) -> bool:
    """True when the first bytes of a file look like a Claude Code session."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n\0").startswith(b"{"):
        return False
    return bool(_SESSION.search(head)) or all(key.search(head) for key in _MESSAGE)


def read(files: Sequence[SourceInput]) -> Transcript:
    """Read a session: the session file first, then the files found with it."""
    notes = Notes()
    read_files = [_read_one(index, source, notes) for index, source in enumerate(files)]
    main = read_files[0].rows
    assert main is not None  # the first file is the session
    made = plan(main.rows, main.file.name, notes)
    totals, ids = Totals(), Ids()
    family = Family(notes, totals, ids)
    for source, one in zip(files[1:], read_files[1:], strict=True):
        if one.rows is not None:
            family.add_file(source, one.rows)
        elif source.agent_id is not None:
            family.describe(source.agent_id, one.meta)
    family.add_asides(made, main.file.name)
    book = Book(main.file.name, notes, ids)
    mapper = Mapper(made, book, totals, family.children)
    family.expect(mapper.calls)
    mapper.run()
    for entry in family.left_over():
        book.adopt(entry)
    status = _status(main, book)
    _say_empty(main, book, notes)
    return Transcript(
        format=NAME,
        session_id=first_text(main.rows, "sessionId"),
        agent=_agent(main),
        cwd=first_text(main.rows, "cwd"),
        entries=tuple(book.entries),
        findings=notes.findings(),
        counts=_counts(read_files, book, totals, family),
        status=status,
        branches=(*made.branches, *family.branches),
        files=tuple(one.file for one in read_files),
    )


class _Read:
    """One file: rows, or the object in a meta file."""

    __slots__ = ("file", "meta", "rows")

    def __init__(self, file: SourceFile, rows: Rows | None, meta: Mapping[str, JSON]) -> None:
        self.file = file
        self.rows = rows
        self.meta = meta


def _read_one(index: int, source: SourceInput, notes: Notes) -> _Read:
    if source.role != "meta":
        rows = read_rows(index, source, notes)
        return _Read(rows.file, rows, {})
    tally = Tally(source.chunks())
    data = b"".join(_head(tally, META_LIMIT))
    file = SourceFile(source.name, tally.sha256, tally.size, source.role)
    try:
        return _Read(file, None, mapping(parse(data).value))
    except NotJson as error:
        notes.add("bad-meta", "warning", str(error), file=source.name)
        return _Read(file, None, {})


def _head(chunks: Tally, limit: int) -> Iterator[bytes]:
    """The first ``limit`` bytes; the rest passes through the tally only."""
    for chunk in chunks:
        if limit > 0:
            yield chunk[:limit]
        limit -= len(chunk)


def _agent(main: Rows) -> str | None:
    """Whose file it is, when it is a subagent's: what its first message says."""
    return first_text([row for row in main.rows if row.is_spine][:1], "agentId")


def _status(main: Rows, book: Book) -> Status:
    if book.turns == 0:
        return "empty"
    return "completed" if book.last_outcome == "completed" and not main.torn else "incomplete"


def _say_empty(main: Rows, book: Book, notes: Notes) -> None:
    name = main.file.name
    if main.file.size == 0:
        notes.add("empty-run", "warning", "empty run: the file is empty", file=name)
    elif book.turns == 0:
        notes.add(
            "no-turns",
            "error",
            f"0 turns in {main.file.size} bytes ({main.records} records): an empty run",
            file=name,
            remedy="If it is a real session, its layout is new: keep the file and report it",
        )


def _counts(read_files: Sequence[_Read], book: Book, totals: Totals, family: Family) -> Counts:
    rows = [one.rows for one in read_files if one.rows is not None]
    unknown: Counter[str] = Counter()
    for one in rows:
        unknown.update(one.unknown)
    return Counts(
        turns=book.turns,
        model_requests=totals.model_requests,
        tool_calls=totals.tool_calls,
        subagents=family.size,
        records=sum(one.records for one in rows),
        unknown=dict(unknown),
    )
