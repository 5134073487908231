"""Journals in tests: what one holds, and that it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import playhead
from playhead import Journal, JournalReader, Verdict


def words(folder: Path) -> list[Any]:
    return [step.prompt for step in JournalReader(folder).entries()]


def check(folder: Path, expected: list[str], *, perhaps: str | None = None) -> None:
    """Reopen, append, and verify; ``perhaps`` is a step whose outcome nobody could know."""
    with Journal.open(folder, durability="os") as journal:
        found = words(folder)
        assert found in (expected, [*expected, perhaps] if perhaps else expected)
        assert journal.next_seq == len(found)
        journal.append(input_hash="", prompt="next")
    assert words(folder) == [*found, "next"]
    report = playhead.verify(folder)
    assert (report.verdict, report.findings) == (Verdict.VERIFIED, ())
