"""One walk over a journal that gathers what the verdict needs, in flat memory.

The walk feeds the one chain walker and keeps a Merkle frontier over the raw rows. At each
size that a signed head names it notes the root and the step hash, so that the heads can be
compared afterwards without a second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from playhead.core.chain import ChainWalker
from playhead.core.merkle import Frontier
from playhead.core.model import Finding
from playhead.core.rows import BadRow
from playhead.errors import CheckFailed, Place
from playhead.store.reader import Line

CAP = 1000
"""Findings kept; the rest are counted."""
_BATCH = 2048

Progress = Callable[[int], None]


@dataclass(slots=True)
class Gathered:
    """What one walk saw. ``at`` maps a size to (root, step hash) there."""

    steps: int = 0
    head: str = ""
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
        if finding.severity == "error":
            self.errors += 1
        elif finding.severity == "warning":
            self.warnings += 1
        if len(self.findings) < CAP:
            self.findings.append(finding)
        else:
            self.suppressed += 1


def gather(
    lines: Iterable[Line],
    *,
    file: str,
    sizes: Iterable[int] = (),
    expected_head: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Gathered:
    """Walk ``lines``; ``sizes`` are row counts at which root and step hash are noted.

    ``progress`` is called with the byte offset reached, about every 2,000 rows.
    """
    seen = Gathered()
    walker = ChainWalker(seen.add, file=file, strict=strict)
    tree = Frontier()
    stops = set(sizes)
    leaves: list[bytes] = []
    feed = walker.feed
    try:
        for line_no, offset, line in lines:
            if isinstance(line, BadRow):
                walker.feed_bad(line_no, offset, line)
                continue
            row = feed(line_no, line, offset)
            if row is None:
                continue
            leaves.append(sha256(b"\0" + line).digest())
            if row.stored_hash == expected_head:
                seen.expected_at = walker.steps
            if len(leaves) >= _BATCH or walker.steps in stops:
                tree.extend(leaves)
                leaves.clear()
                if walker.steps in stops:
                    seen.at[walker.steps] = (tree.root(), walker.head)
                if progress is not None:
                    progress(offset)
    except CheckFailed as error:
        seen.add(Finding("sealed-frame", "error", error.what, error.place, error.remedy))
    walker.finish()
    tree.extend(leaves)
    seen.steps, seen.head, seen.native = walker.steps, walker.head, walker.native
    seen.root, seen.run_uid = tree.root(), walker.run_uid
    return seen


def note(kind: str, what: str, remedy: str = "", file: str | None = None) -> Finding:
    """A finding that is no fault by itself."""
    return Finding(kind, "notice", what, Place(file), remedy)
