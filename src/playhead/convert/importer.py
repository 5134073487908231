"""``import``: foreign transcripts into runs, lossless and repeatable.

One session becomes one chain, its subagents inside it. The originals are kept by hash before
the first event is written, so whatever a reader does not understand is never lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from playhead.convert.discover import Session, sessions
from playhead.convert.imported import Imported
from playhead.convert.originals import look
from playhead.convert.writing import Progress, Scrubber, clean, write_entries
from playhead.core.events import Draft
from playhead.core.model import JSON, Finding
from playhead.errors import Place, Refused, UsageError
from playhead.formats.journal import check_run_id
from playhead.formats.lines import Tally
from playhead.formats.registry import READERS
from playhead.formats.transcript import SourceFile, Transcript
from playhead.recorder.writer import RunWriter, WriterOptions
from playhead.store.recipes import blobs_of, keep
from playhead.store.stores import Blobs, ChainRef, Store
from playhead.store.urls import Where, open_store

__all__ = ["Imported", "import_files"]

_SLUG = re.compile(r"[^a-z0-9]+")
_FINDINGS_KEPT = 200
"""Findings that the run itself holds; the caller gets all."""
_BRANCHES_KEPT = 1000
_OTHER_ID = "Import under another run id"
_MOVE_AWAY = "Move that directory away and import again"


def import_files(
    root: Where,
    paths: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    run_id: str | None = None,
    agent: str | None = None,
    redact: bool = False,
    tenant_id: str = "local",
    progress: Progress | None = None,
) -> list[Imported]:
    """Import every session among ``paths``, each as one run.

    ``redact`` removes secrets from the content as well, and then no original is kept: the run
    cannot be exported byte for byte (resolution 6). Without it nothing is removed, and all
    that is written is readable by its owner only. ``progress`` is told how far each file is.

    Raises:
        UsageError: no path, or ``run_id`` for several sessions. InvalidId: a bad run id.
        NotFound, Unreadable, Refused: a path is no transcript; then nothing is written.
        JournalError: the disk or another writer is in the way.
    """
    found = sessions(paths, format)
    if not found:
        raise UsageError("nothing to import", remedy="Name a session file")
    if run_id is not None:
        check_run_id(run_id)
        if len(found) > 1:
            raise UsageError(
                f"one run id for {len(found)} sessions", remedy="Import them one by one"
            )
    store = open_store(root)
    try:
        return [_import(store, one, run_id, agent, redact, tenant_id, progress) for one in found]
    finally:
        if store is not root:
            store.close()


def _import(
    store: Store,
    session: Session,
    run_id: str | None,
    agent: str | None,
    redact: bool,
    tenant_id: str,
    progress: Progress | None,
) -> Imported:
    transcript = READERS[session.format].read(session.files)
    scrub = Scrubber(redact)
    findings = [*transcript.findings, *(_refused(error) for error in session.refused)]
    findings = [scrub.finding(finding) for finding in findings]
    label = clean(agent or session.format, scrub)
    name = run_id or _run_id(transcript, scrub, agent, redact)
    there = store.run_named(tenant_id, name)
    if there is not None:
        return _already(store, there, session, transcript, findings)
    cas = store.blobs(tenant_id)
    recipes = [] if redact else _keep(cas, session, transcript)
    writer = RunWriter.create(
        store,
        agent=label,
        run_id=name,
        tenant_id=tenant_id,
        meta=_meta(transcript, scrub),
        options=WriterOptions(durability="os", policy=scrub.policy),
        at=_first_time(transcript),
        fresh=True,
    )
    about = _about(transcript, recipes, findings, redact)
    blobs = [blob for recipe in recipes for blob in blobs_of(cas, recipe)]
    first = Draft("source.imported", about, blobs=tuple(dict.fromkeys(blobs)))
    tell = None if progress is None else partial(progress, str(session.path))
    head = write_entries(writer, transcript, scrub, first, tell)
    steps = writer.journal.next_seq
    return _result(session, transcript, name, findings, head, steps)


def _refused(error: object) -> Finding:
    place = getattr(error, "place", Place())
    return Finding("file-refused", "warning", str(getattr(error, "what", error)), place)


def _run_id(t: Transcript, scrub: Scrubber, agent: str | None, redact: bool) -> str:
    """Made of what the session is called and what its bytes are: the same files give the same
    id. No foreign id becomes a path as it is (case C62b)."""
    called = scrub.text(agent or t.agent or t.session_id or t.format)
    slug = _SLUG.sub("-", called.lower())[:48].strip("-") or "session"
    digests = [file.sha256 for file in t.files]
    digest = digests[0] if len(digests) == 1 else sha256("\n".join(digests).encode()).hexdigest()
    return check_run_id(f"{slug}-{digest[:12]}" + ("-redacted" if redact else ""))


def _keep(cas: Blobs, session: Session, transcript: Transcript) -> list[str]:
    """Keep the originals; the bytes kept must be the bytes read.

    Raises:
        Refused: a file changed in between.
    """
    recipes = []
    for source, file in zip(session.files, transcript.files, strict=True):
        tally = Tally(source.chunks())
        recipes.append(keep(cas, tally))
        if tally.sha256 != file.sha256:
            raise Refused(
                "the file changed while it was read",
                place=Place(source.name),
                remedy="Import it again when nothing writes to it",
            )
    return recipes


def _meta(t: Transcript, scrub: Scrubber) -> dict[str, JSON]:
    return {"imported_from": t.format, "session_id": scrub.value(t.session_id)}


def _first_time(t: Transcript) -> str | None:
    """The time of the first entry that has one."""
    return next((entry.at for entry in t.entries if entry.at is not None), None)


def _about(
    t: Transcript, recipes: Sequence[str], findings: Sequence[Finding], redact: bool
) -> dict[str, JSON]:
    """The payload of ``source.imported`` (docs/reference/formats/source.md).

    A redacted run names no digest of the original: whoever guesses a secret could check the
    guess against it.
    """

    def file(index: int, one: SourceFile) -> dict[str, JSON]:
        kept: dict[str, JSON] = {"name": one.name, "size": one.size, "role": one.role}
        if not redact:
            kept |= {"sha256": one.sha256, "recipe": recipes[index]}
        return kept

    return {
        "format": t.format,
        "files": [file(index, one) for index, one in enumerate(t.files)],
        "session_id": t.session_id,
        "cwd": t.cwd,
        "status": t.status,
        "counts": t.counts.to_dict(),
        "branches": [branch.to_dict() for branch in t.branches[:_BRANCHES_KEPT]],
        "findings": [finding.to_dict() for finding in findings[:_FINDINGS_KEPT]],
        "redacted": redact,
    }


def _already(
    store: Store, there: ChainRef, session: Session, t: Transcript, findings: list[Finding]
) -> Imported:
    """The run that an earlier import made, after a look whether it is of the same files.

    Raises:
        UsageError: it holds something else.
    """
    name = there.run_id
    lines = store.lines(there)
    made = look(lines)
    lines.close()
    same = made.redacted or made.sha256s == [file.sha256 for file in t.files]
    if not made.imported or not same:
        raise UsageError(f"the run {name} is there and holds something else", remedy=_OTHER_ID)
    if not made.ended:
        what = f"an earlier import of {name} stopped half-way"
        place = Place(there.where)
        findings.append(Finding("unfinished-import", "error", what, place, _MOVE_AWAY))
    else:
        findings.append(Finding("already-imported", "notice", f"already imported as {name}"))
    return _result(session, t, name, findings, made.head, made.steps, already=True)


def _result(
    session: Session,
    t: Transcript,
    name: str,
    findings: Sequence[Finding],
    head: str,
    steps: int,
    *,
    already: bool = False,
) -> Imported:
    return Imported(
        run_id=name,
        file=str(session.path),
        format=session.format,
        session_id=t.session_id,
        status=t.status,
        counts=t.counts.to_dict(),
        findings=tuple(findings),
        head=head,
        steps=steps,
        ok=not any(finding.severity == "error" for finding in findings),
        already=already,
    )
