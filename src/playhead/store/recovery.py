"""Finding the chain's tip before anything is appended (seed: "Recovery on open (fail-closed)").

Recovery runs the same walker as verify. In order:

(1) With a signed head: the file must hold at least the signed bytes, and they must hash to
    the signed digest. Fewer rows or other bytes are refused, never walked around: a chain
    that was rewritten as a whole would pass a walk.
(2) With a resume file that gives the signed root, the walk starts behind the signed rows;
    every byte before was hashed in (1). Without one it starts at the first row.
(3) Every row walked must verify. Malformed lines at the very end are a torn tail: they are
    reported for the caller to cut off. Anything else is refused and named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from playhead.core.chain import ChainWalker, envelope_of
from playhead.core.commit import step_commitment
from playhead.core.decode import to_step
from playhead.core.merkle import Frontier
from playhead.core.model import GENESIS, Finding
from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import JournalBroken, Place, Refused, ValueRefused
from playhead.formats.head import Head
from playhead.formats.journal import SEGMENT
from playhead.store.anchor import Anchor
from playhead.store.durable import open_regular
from playhead.store.heads import Resume
from playhead.store.source import FileSource, Source


@dataclass(frozen=True, slots=True)
class Recovered:
    """The tip: ``size`` rows ending in ``head``; valid bytes end at ``end`` (of ``length``)."""

    size: int
    head: str
    end: int
    length: int
    needs_newline: bool
    walked: int


def recover(folder: Path, anchor: Anchor) -> Recovered:
    """Validate the journal in ``folder`` (which must exist) and bring ``anchor`` up to its end.

    Raises:
        JournalBroken: a row, or the whole, does not verify; the line is named.
        Unreadable: not a regular file.
    """
    path = folder / SEGMENT
    fd = open_regular(path)
    with open(fd, "rb", buffering=0):
        return recover_source(FileSource(fd, path), anchor)


def recover_source(source: Source, anchor: Anchor) -> Recovered:
    """`recover` for a chain wherever it lies.

    Raises:
        JournalBroken: as `recover`.
    """
    signed, *others = trusted_heads(anchor) or [None]
    start = 0
    step_hash = GENESIS
    if signed is not None:
        start, step_hash = _check_signed(source, anchor, signed)
    for other in others:  # an older head must sign a beginning of the same bytes
        if other is not None and source.digest(other.length).hexdigest() != other.bytes_sha256:
            raise _changed(source, other)
    state = _walk_tail(source, anchor, start, step_hash)
    if signed is not None and start == 0:
        _check_size(source, state, signed)
    return state


def trusted_heads(anchor: Anchor) -> list[Head | None]:
    """The heads that trusted keys signed, the longest first, each once."""
    seen = anchor.files.read(anchor.ring.trusted())
    heads = list(dict.fromkeys(found.head for found in seen if found.head is not None))
    return [*sorted(heads, key=lambda head: head.size, reverse=True)]


def _check_signed(source: Source, anchor: Anchor, signed: Head) -> tuple[int, str]:
    """(1) and (2). Returns where to start walking and the step hash that stands there."""
    length = source.length()
    if length < signed.length:
        raise JournalBroken(
            f"cut tail: {signed.length - length} bytes that the signed head of step "
            f"{signed.size - 1} covers are gone",
            place=Place(source.name),
            remedy="Restore the journal from a copy; 'playhead verify' shows what is left",
        )
    sha = source.digest(signed.length)
    if sha.hexdigest() != signed.bytes_sha256:
        raise _changed(source, signed)
    resume = anchor.files.read_resume()
    if resume is None or not _continues(resume, signed) or resume.uid != _first_uid(source):
        return 0, GENESIS
    anchor.restore(resume, sha, signed.length)
    return signed.length, signed.step_hash


def _first_uid(source: Source) -> str | None:
    """The run's uid as its first row has it, which is under the signed bytes."""
    row = decode_row(source.first())
    envelope = envelope_of(row.obj) if isinstance(row, Row) else None
    payload = None if envelope is None else envelope.get("payload")
    uid = payload.get("uid") if isinstance(payload, dict) else None
    return uid if isinstance(uid, str) else None


def _continues(resume: Resume, signed: Head) -> bool:
    """True when the resume file gives both signed roots: it is nobody's word but theirs."""
    if resume.size != signed.size or (resume.fields is None) != (signed.fields_root is None):
        return False
    try:
        fields = None if resume.fields is None else Frontier(resume.size, resume.fields).root()
        return resume.tree().root() == signed.root and fields == signed.fields_root
    except Refused:
        return False


def _changed(source: Source, signed: Head) -> JournalBroken:
    """Name the first bad line where the walk can; else the chain was rewritten as a whole."""
    findings: list[Finding] = []
    walker = ChainWalker(findings.append, file=source.name)
    for line_no, offset, line in source.lines(0, 0, signed.length):
        if isinstance(line, BadRow):
            walker.feed_bad(line_no, offset, line)
        else:
            walker.feed(line_no, line, offset)
        if findings and findings[0].severity == "error":
            first = findings[0]
            return JournalBroken(f"{first.kind}: {first.what}", place=first.place)
    if walker.head == signed.step_hash:
        what = "a field outside the step hash (ts, blob_refs, spelling) was changed"
    else:
        what = "the chain was rewritten: it verifies by itself but is not the signed one"
    return JournalBroken(what, place=Place(source.name))


def _walk_tail(source: Source, anchor: Anchor, start: int, step_hash: str) -> Recovered:
    findings: list[Finding] = []
    walker = ChainWalker(findings.append, file=source.name)
    walker.resume(anchor.size, step_hash, anchor.uid, anchor.native)
    length = source.length()
    needs_newline = False
    for line_no, offset, line in source.lines(anchor.size if start else 0, start):
        if isinstance(line, BadRow):
            walker.feed_bad(line_no, offset, line)
            row = None
        else:
            row = walker.feed(line_no, line, offset)
        error = next((f for f in findings if f.severity == "error"), None)
        if error is not None:
            raise JournalBroken(f"{error.kind}: {error.what}", place=error.place)
        findings.clear()
        if isinstance(line, BadRow):
            continue
        stop = min(offset + len(line) + 1, length)
        needs_newline = stop == offset + len(line)
        if row is not None:
            raw = line if needs_newline else line + b"\n"
            anchor.add(raw, line, commitment_of(anchor, row))
    end = length if walker.malformed_tail < 0 else walker.malformed_tail
    if source.odd or anchor.bytes != end:  # blank lines, or rows apart by something else
        anchor.rehash(source.digest(end), end)
    anchor.uid, anchor.native = walker.run_uid, walker.native
    return Recovered(
        size=walker.expected_seq,
        head=walker.head,
        end=end,
        length=length,
        needs_newline=needs_newline and walker.malformed_tail < 0,
        walked=walker.steps,
    )


def commitment_of(anchor: Anchor, row: Row) -> bytes | None:
    """The field commitment of a row behind the last signed head, derived again.

    A run whose secret is at hand keeps its commitments over a crash; without it they end.
    """
    envelope = envelope_of(row.obj)
    if anchor.size == 0 and envelope is not None and envelope["event"] == "run.started":
        payload = envelope.get("payload")
        uid = payload.get("uid") if isinstance(payload, dict) else None
        anchor.uid = uid if isinstance(uid, str) and uid else None
        if anchor.secret() is not None:
            anchor.start_commitments()
    secret = anchor.secret() if anchor.commits else None
    if secret is None:
        return None
    try:
        return step_commitment(secret, to_step(row.obj), envelope)
    except ValueRefused:
        return None


def _check_size(source: Source, state: Recovered, signed: Head) -> None:
    if state.size < signed.size:
        raise JournalBroken(
            f"cut tail: {state.size} steps, the signed head covers {signed.size}",
            place=Place(source.name),
        )
