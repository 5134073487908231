"""``JournalReader``: the seed's name for reading and verifying one journal directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from playhead.core.decode import to_step
from playhead.core.model import GENESIS, Report, Step
from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import NotFound
from playhead.store.reader import Batch, journal_lines, open_segment, segment_path
from playhead.verifier.api import judge
from playhead.verifier.pieces import Confirmed, journal_pieces
from playhead.verifier.walk import gather


class JournalReader:
    """Reads ``<folder>/000000.jsonl`` (or its sealed form). Never writes, needs no key."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def verify(self, expected_head: str | None = None, *, strict: bool = False) -> Report:
        """Walk the chain from genesis to the tail (seed: "Verification").

        Signed heads are left out: this is what anybody with the file alone can check. Use
        `playhead.verify` for a verdict against them. A missing journal is an empty chain.

        Raises:
            Unreadable: a link, a directory, no permission.
        """
        file = str(segment_path(self.folder))
        try:
            os.close(open_segment(self.folder)[0])
            lines: Iterable[Batch | Confirmed] = journal_pieces(self.folder, leaves=False)
        except NotFound:
            lines = ()
        seen = gather(lines, file=file, expected_head=expected_head, strict=strict)
        if not seen.steps:
            seen.head = seen.head or GENESIS
        return judge(str(self.folder), file, seen, (), expected_head)

    def entries(self) -> Iterator[Step]:
        """Every row that is a JSON object, as a step; other lines are passed over."""
        for _, _, line in journal_lines(self.folder):
            if isinstance(line, BadRow):
                continue
            row = decode_row(line)
            if isinstance(row, Row):
                yield to_step(row.obj)

    def head(self) -> str:
        """The last stored step hash; 64 zeros for an empty chain."""
        last = GENESIS
        for step in self.entries():
            last = step.step_hash
        return last
