"""Runs of which only the signed head is left: somebody took the journal away."""

from __future__ import annotations

import os
from collections.abc import Iterator

from playhead.core.model import Finding, Report, Verdict
from playhead.errors import InvalidId, NotFound, Place, PlayheadError
from playhead.formats.head import Head
from playhead.formats.journal import SEALED, SEGMENT
from playhead.store.durable import read_bounded
from playhead.store.heads import HeadFiles, read_note
from playhead.store.keys import KeyRing
from playhead.store.root import Root

_LIMIT = 64 * 1024


def missing_run(root: Root, run_id: str, ring: KeyRing) -> Report | None:
    """A failed report when ``run_id`` has a signed head of this root and no journal."""
    try:
        folder = root.journal_dir(run_id)
    except InvalidId:
        return None
    if any(os.path.lexists(folder / name) for name in (SEGMENT, SEALED)):
        return None
    for seen in HeadFiles(folder, ring.state).read(ring.trusted()):
        if seen.head is not None:
            return _report(run_id, str(folder), seen.head, seen.where)
    return None


def _report(run_id: str, folder: str, head: Head, where: str) -> Report:
    finding = Finding(
        "missing-run",
        "error",
        f"the journal is gone; the head {where} the root signs {head.size} steps of it",
        Place(folder),
        "Restore the journal from a copy that verifies",
    )
    return Report(run_id, Verdict.FAILED, "", 0, findings=(finding,))


def missing_runs(root: Root, ring: KeyRing) -> Iterator[Report]:
    """Every run of this root that has a signed head, inside or outside, and no journal."""
    told: set[str] = set()
    for run_id in sorted(_named_inside(root) | _named_outside(root, ring)):
        report = None if run_id in told else missing_run(root, run_id, ring)
        told.add(run_id)
        if report is not None:
            yield report


def _named_inside(root: Root) -> set[str]:
    try:
        names = os.listdir(root.heads)
    except OSError:
        return set()
    ending = ".checkpoint"
    return {name[: -len(ending)] for name in names if name.endswith(ending)}


def _named_outside(root: Root, ring: KeyRing) -> set[str]:
    """Runs whose head outside is named by a path under this root."""
    found: set[str] = set()
    place = ring.state / "heads"
    try:
        names = os.listdir(place)
    except OSError:
        return found
    for name in names:
        try:
            raw = read_bounded(place / name, _LIMIT).decode("utf-8")
            head = read_note(raw, ring.trusted(), "outside", place / name, None).head
            if head is not None:
                files = HeadFiles(root.journal_dir(head.run_id), ring.state)
                if files.outside.name == name:
                    found.add(head.run_id)
        except (PlayheadError, UnicodeDecodeError, NotFound):
            continue
    return found
