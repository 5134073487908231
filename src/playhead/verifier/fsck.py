"""``playhead fsck``: re-derive everything under a root, through what the public readers give.

Beyond `verify`, for each run: every prompt is rebuilt from its deltas, every blob that a row
names is read and hashed, the field commitments are derived again from the run's secret and
their root compared with the signed one, and a kept source transcript is restored and hashed.
Blobs that no row names are counted, not removed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from playhead.core.chain import envelope_of
from playhead.core.commit import step_commitment
from playhead.core.decode import to_step
from playhead.core.events import decode_event
from playhead.core.merkle import Frontier
from playhead.core.model import JSON, Event, Finding, Report, Step, Verdict
from playhead.core.prompts import answer_segments, parse_segments, rebuild
from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import Place, PlayheadError
from playhead.store.cas import Cas
from playhead.store.first import first_event
from playhead.store.heads import HeadFiles
from playhead.store.keys import KeyRing, state_dir
from playhead.store.reader import journal_lines
from playhead.store.recipes import restore
from playhead.store.root import Root
from playhead.verifier.api import verify
from playhead.verifier.missing import missing_runs

Watch = Callable[[str], None]
_CACHE = 256


def fsck(root: Root, *, ring: KeyRing | None = None, progress: Watch | None = None) -> list[Report]:
    """One report a run, there or gone, and one for the blobs when something is wrong with them.

    ``progress`` is called with each run id as its turn comes.
    """
    ring = ring or KeyRing(state_dir())
    reports = []
    named: set[str] = set()
    for run_id in root.runs():
        if progress is not None:
            progress(run_id)
        reports.append(_check_run(root, run_id, ring, named))
    reports += missing_runs(root, ring)
    broken = list(_check_blobs(root.cas, named))
    if broken:
        verdict = Verdict.FAILED
        reports.append(Report(str(root.cas.path), verdict, "", 0, findings=tuple(broken)))
    return reports


def _check_run(root: Root, run_id: str, ring: KeyRing, named: set[str]) -> Report:
    folder = root.journal_dir(run_id)
    try:
        report = verify(folder, root=root, ring=ring)
        more = [*report.findings, *_Rederive(root, folder, ring, named).findings()]
    except PlayheadError as error:
        finding = Finding(error.code, "error", error.what, error.place, error.remedy)
        return Report(run_id, Verdict.FAILED, "", 0, findings=(finding,))
    failed = any(finding.severity == "error" for finding in more)
    verdict = Verdict.FAILED if failed else report.verdict
    return replace(report, target=run_id, findings=tuple(more), verdict=verdict)


class _Rederive:
    """One pass over a run's rows that rebuilds what was derived when they were written."""

    def __init__(self, root: Root, folder: Path, ring: KeyRing, named: set[str]) -> None:
        self._cas = root.cas
        self._folder = folder
        self._named = named
        first = first_event(folder)
        uid = None if first is None else first.payload.get("uid")
        self._secret = ring.run_secret(uid) if isinstance(uid, str) and uid else None
        heads = HeadFiles(folder, ring.state).read(ring.trusted())
        signed = [seen.head for seen in heads if seen.head and seen.head.fields_root]
        self._signed = max(signed, key=lambda head: head.size, default=None)
        self._fields = Frontier()
        self._segments: OrderedDict[int, Sequence[JSON]] = OrderedDict()

    def findings(self) -> Iterator[Finding]:
        for line_no, offset, line in journal_lines(self._folder):
            row = None if isinstance(line, BadRow) else decode_row(line)
            if not isinstance(row, Row):
                continue
            step = to_step(row.obj)
            place = Place(str(self._folder), line_no, offset, step.seq)
            event = decode_event(step)
            yield from self._blobs(step, place)
            yield from self._prompt(event, place)
            yield from self._source(event, place)
            yield from self._commit(step, row.obj, place)

    def _blobs(self, step: Step, place: Place) -> Iterator[Finding]:
        for ref in step.blob_refs:
            if not isinstance(ref, str) or ref in self._named:
                continue
            self._named.add(ref)
            try:
                self._cas.get(ref)
            except PlayheadError as error:
                yield Finding("blob", "error", error.what, place, error.remedy)

    def _prompt(self, event: Event, place: Place) -> Iterator[Finding]:
        if event.type == "model.requested":
            self._segments[event.seq] = parse_segments(event.prompt)
        elif event.type == "model.responded":
            self._segments[event.seq] = answer_segments(event.payload.get("result"))
        else:
            return
        if event.type == "model.requested":
            try:
                rebuild(event.seq, self._lookup)
            except PlayheadError as error:
                yield Finding("prompt", "error", error.what, place, error.remedy)
        while len(self._segments) > _CACHE * 256:
            self._segments.popitem(last=False)

    def _lookup(self, seq: int) -> Sequence[JSON]:
        return self._segments.get(seq, ())

    def _source(self, event: Event, place: Place) -> Iterator[Finding]:
        if event.type != "source.imported":
            return
        files = event.payload.get("files")
        for entry in files if isinstance(files, list) else ():
            recipe = entry.get("recipe") if isinstance(entry, dict) else None
            if not isinstance(recipe, str):
                continue
            sha = sha256()
            try:
                for piece in restore(self._cas, recipe):
                    sha.update(piece)
            except PlayheadError as error:
                yield Finding("source", "error", error.what, place, error.remedy)
                continue
            if sha.hexdigest() != entry.get("sha256"):
                yield Finding("source", "error", "the kept source is not the imported one", place)

    def _commit(self, step: Step, obj: dict[str, JSON], place: Place) -> Iterator[Finding]:
        if self._signed is None or self._secret is None or self._fields.size >= self._signed.size:
            return
        commitment = step_commitment(self._secret, step, envelope_of(obj))
        self._fields.add(sha256(b"\0" + commitment).digest())
        if (
            self._fields.size == self._signed.size
            and self._fields.root() != self._signed.fields_root
        ):
            yield Finding(
                "commitments",
                "error",
                f"the field commitments of the first {self._fields.size} steps are not those "
                "that were signed",
                place,
                "A hashed field or the run's secret was changed",
            )


def _check_blobs(cas: Cas, checked: set[str]) -> Iterator[Finding]:
    for digest in cas:
        if digest in checked:
            continue
        try:
            cas.get(digest)
        except PlayheadError as error:
            yield Finding("blob", "error", error.what, error.place, error.remedy)
