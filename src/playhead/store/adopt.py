"""Finished rows into a chain: rows that another writer added, rows that are copied.

Everything passes the one chain walker; what does not follow is refused before it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from playhead.core.chain import ChainWalker, envelope_of
from playhead.core.model import GENESIS, Finding
from playhead.core.rows import BadRow, Row
from playhead.errors import JournalBroken
from playhead.formats.journal import MAX_ROW
from playhead.store.database import NewRow
from playhead.store.scope import column_text
from playhead.store.stores import Line


class Standing(NamedTuple):
    """Where a chain stands: what a walk behind it has to know."""

    size: int = 0
    head: str = GENESIS
    uid: str | None = None
    native: int = 0


class Adopted(NamedTuple):
    """A row that follows."""

    row: Row
    line: bytes
    step_hash: str


def adopt(lines: Iterable[Line], at: Standing, where: str) -> tuple[list[Adopted], Standing]:
    """``lines`` as rows that follow ``at``, and where the chain stands behind them.

    Raises:
        JournalBroken: one does not verify or does not follow.
    """
    findings: list[Finding] = []
    walker = ChainWalker(findings.append, file=where)
    walker.resume(*at)
    taken: list[Adopted] = []
    for number, offset, line in lines:
        if isinstance(line, BadRow):
            walker.feed_bad(number, offset, line)
            row = None
        else:
            row = walker.feed(number, line, offset)
        if row is None or not isinstance(line, bytes):
            walker.finish()
        for finding in findings:
            if finding.severity == "error":
                raise JournalBroken(f"{finding.kind}: {finding.what}", place=finding.place)
        findings.clear()
        if row is None or not isinstance(line, bytes):
            raise JournalBroken(f"row {number - 1} is blank")
        taken.append(Adopted(row, line, walker.head))
    return taken, Standing(walker.expected_seq, walker.head, walker.run_uid, walker.native)


def numbered(lines: Sequence[bytes], first: int) -> Iterable[Line]:
    """Lines without a newline in them, as they would be read; ``first`` counts from 0."""
    for number, line in enumerate(lines, first + 1):
        if b"\n" in line or b"\r" in line[:-1]:
            yield number, -1, BadRow("several-lines", "a row holds a line break")
        elif len(line) > MAX_ROW:
            yield number, -1, BadRow("too-long", f"a line of {len(line)} bytes")
        else:
            yield number, -1, line


def new_row(seq: int, row: Row, line: bytes) -> NewRow:
    """A row with its index as a database keeps it."""
    envelope = envelope_of(row.obj)
    kind = None if envelope is None else column_text(envelope["event"])
    event_id = None if envelope is None else column_text(envelope.get("id"))
    step_hash = column_text(row.stored_hash) or ""
    return NewRow(seq, kind or "step", event_id, step_hash, line)
