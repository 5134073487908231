"""The last rows of a walk, remembered to tell two writers from other damage."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

WINDOW = 1024
"""How many earlier rows are remembered."""


class Recent:
    """The stored ``prev_hash`` and ``step_hash`` of the last `WINDOW` rows, by ``seq``."""

    def __init__(self) -> None:
        self._rows: OrderedDict[int, tuple[str, str]] = OrderedDict()
        self._top = -1

    def get(self, seq: int) -> tuple[str, str] | None:
        """``prev_hash`` and ``step_hash`` as row ``seq`` stores them, if it was among the last."""
        return self._rows.get(seq)

    def add(self, seq: int, prev: str, stored: str) -> None:
        """Remember one row."""
        rows = self._rows
        rows[seq] = (prev, stored)
        self._top = max(self._top, seq)
        if len(rows) > WINDOW:
            rows.popitem(last=False)

    def add_linked(self, seq: int, prev: str, hashes: Sequence[str]) -> None:
        """Remember rows that follow one another, as `add` would one by one.

        When every ``seq`` is new, what remains is the last `WINDOW` of old and new together.
        """
        if seq <= self._top:
            for number, stored in enumerate(hashes, seq):
                self.add(number, prev, stored)
                prev = stored
            return
        rows = self._rows
        pairs = zip((prev, *hashes[:-1]), hashes, strict=True)
        rows.update(zip(range(seq, seq + len(hashes)), pairs, strict=True))
        self._top = seq + len(hashes) - 1
        while len(rows) > WINDOW:
            rows.popitem(last=False)
