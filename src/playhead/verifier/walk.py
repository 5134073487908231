"""One walk over a journal that gathers what the verdict needs, in flat memory.

The walk feeds the one chain walker and keeps a Merkle frontier over the raw rows, when a
signed head is there to compare with. At each size that a head names it notes the root and the
step hash, so that the heads can be compared afterwards without a second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from playhead.core.chain import ChainWalker
from playhead.core.merkle import Frontier, leaf_hashes
from playhead.core.model import Finding, Severity
from playhead.core.rows import BadRow
from playhead.errors import CheckFailed, Place, Refused, Unreadable
from playhead.store.reader import Batch
from playhead.verifier.pieces import Confirmed

_LEAVES = 2048
_AT_ONCE = 2048
_DOUBTS = 64

Progress = Callable[[int], None]


@dataclass(slots=True)
class Gathered:
    """What one walk saw. ``at`` maps a size to (root, step hash) there.

    ``root`` is empty when no size was asked for: no head is there to compare it with.
    """

    steps: int = 0
    head: str = ""
    blank: int = 0
    native: int = 0
    errors: int = 0
    warnings: int = 0
    suppressed: int = 0
    findings: list[Finding] = field(default_factory=list)
    at: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    expected_at: int | None = None
    root: bytes = b""
    run_uid: str | None = None

    def add(self, finding: Finding) -> None:
        self.count(finding.severity)
        self.suppressed -= 1
        self.findings.append(finding)

    def count(self, severity: Severity) -> None:
        """A finding that is counted and not kept."""
        self.errors += severity == "error"
        self.warnings += severity == "warning"
        self.suppressed += 1


def gather(
    batches: Iterable[Batch | Confirmed],
    *,
    file: str,
    sizes: Iterable[int] = (),
    expected_head: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Gathered:
    """Walk ``batches``; ``sizes`` are row counts at which root and step hash are noted.

    ``progress`` is called with the byte offset reached, about every megabyte.
    """
    seen = Gathered()
    walker = ChainWalker(seen.add, file=file, strict=strict, count=seen.count)
    notes = _Notes(seen, sizes, expected_head)
    try:
        for batch in batches:
            if isinstance(batch, Confirmed):
                if walker.follows(batch.seq, batch.prev):
                    walker.take(batch.hashes, batch.native)
                    notes.rows(batch.leaves, batch.hashes)
                else:
                    for part in batch.again():
                        _feed(walker, part, notes)
                offset = batch.span[0]
            else:
                _feed(walker, batch, notes)
                offset = batch[1]
            if progress is not None:
                progress(offset)
    except (CheckFailed, Refused) as error:
        if isinstance(error, Unreadable):
            raise
        seen.add(Finding("sealed-frame", "error", error.what, error.place, error.remedy))
    walker.finish()
    seen.steps, seen.head, seen.native = walker.steps, walker.head, walker.native
    seen.blank = walker.blank
    seen.root, seen.run_uid = notes.root(), walker.run_uid
    return seen


def _feed(walker: ChainWalker, batch: Batch, notes: _Notes) -> None:
    """Feed the lines of a batch: sure rows many at a time, rows in doubt one by one.

    After a line in doubt more and more are fed one by one, so that a file whose rows all have
    a tolerated spelling is not parsed twice.
    """
    line_no, offset, lines = batch
    if isinstance(lines, BadRow):
        walker.feed_bad(line_no, offset, lines)
        return
    at, doubts = 0, 1
    while at < len(lines):
        some = lines[at : at + _AT_ONCE]
        hashes = walker.feed_sure(some)
        sure = len(hashes)
        if sure:
            notes.rows(notes.leaves(some[:sure]), hashes)
            offset += sum(map(len, some[:sure])) + sure
            doubts = 1
        for number, line in enumerate(some[sure : sure + doubts], line_no + at + sure):
            row = walker.feed(number, line, offset)
            if row is not None:
                notes.rows(notes.leaves((line,)), (row.stored_hash,))
            offset += len(line) + 1
        at += min(sure + doubts, len(some))
        doubts = min(2 * doubts, _DOUBTS)


class _Notes:
    """Writes down root and step hash at the sizes asked for, and where the given head stood."""

    def __init__(self, seen: Gathered, sizes: Iterable[int], expected: str | None) -> None:
        self._seen = seen
        self._sizes = sorted(set(sizes), reverse=True)
        self._expected = expected
        self._tree = Frontier() if self._sizes else None
        self._waiting: list[bytes] = []
        self._size = 0

    def leaves(self, lines: Sequence[bytes]) -> list[bytes]:
        """The leaf hashes of rows; none when no tree is kept."""
        return [] if self._tree is None else leaf_hashes(lines)

    def rows(self, leaves: Sequence[bytes], hashes: Sequence[str]) -> None:
        """The next rows, by their leaf hashes and the step hashes that they store."""
        if self._expected is not None and self._expected in hashes:
            last = max(at for at, stored in enumerate(hashes, 1) if stored == self._expected)
            self._seen.expected_at = self._size + last
        done = 0
        while self._sizes and self._sizes[-1] <= self._size + len(hashes):
            size = self._sizes.pop()
            if size > self._size:
                upto = size - self._size
                self._waiting += leaves[done:upto]
                self._seen.at[size] = (self.root(), hashes[upto - 1])
                done = upto
        self._waiting += leaves[done:]
        self._size += len(hashes)
        if len(self._waiting) >= _LEAVES:
            self._drain()

    def _drain(self) -> None:
        if self._tree is not None:
            self._tree.extend(self._waiting)
        self._waiting.clear()

    def root(self) -> bytes:
        """The root so far; empty when no tree is kept."""
        self._drain()
        return b"" if self._tree is None else self._tree.root()


def note(kind: str, what: str, remedy: str = "", file: str | None = None) -> Finding:
    """A finding that is no fault by itself."""
    return Finding(kind, "notice", what, Place(file), remedy)
