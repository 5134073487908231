"""``copy``: a chain from one store into another, byte for byte, and the proof that it is the same.

Rows go in the order of the chain, in bounded batches, each behind the blobs that it refers to. So
a copy that is killed leaves a shorter chain that verifies, and the next one goes on from there.
What the target says afterwards is read back from it: rows, head, root and replayed state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final, Literal

from playhead.core.model import Verdict
from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import BlobError, CheckFailed, JournalBroken, Place, UsageError
from playhead.replay.facts import Facts, facts
from playhead.store.dirstore import DirStore
from playhead.store.first import first_of
from playhead.store.heads import Resume
from playhead.store.keys import KeyRing, state_dir
from playhead.store.scope import LOCAL, column_text
from playhead.store.stores import Blobs, ChainRef, Line, Lines, Store
from playhead.verifier.stored import verify_stored

_ROWS: Final = 512
_BYTES: Final = 4 * 1024 * 1024
_MAX_BLOB: Final = 256 * 1024 * 1024
Watch = Callable[[int, int], None]
Outcome = Literal["copied", "continued", "already there"]


@dataclass(frozen=True, slots=True)
class Copied:
    """One copy. ``written`` counts the rows that this call added, ``missing_blobs`` those that
    rows refer to and the source does not have."""

    run_id: str
    outcome: Outcome
    written: int
    missing_blobs: int
    source: Facts
    target: Facts

    @property
    def same(self) -> bool:
        """True when rows, head, root and state agree."""
        return self.source.same(self.target)

    def to_dict(self) -> dict[str, object]:
        """As JSON, with ``verdict``."""
        found: dict[str, object] = {name: getattr(self, name) for name in self.__slots__[:4]}
        found |= {"source": asdict(self.source), "target": asdict(self.target)}
        return {**found, "verdict": "same" if self.same else "different"}


def require_verified(store: Store, ref: ChainRef) -> bool:
    """Refuse to copy a chain that does not verify; True when signed heads cover all of it.

    Raises:
        CheckFailed: it does not, with the place of the first fault.
    """
    report = verify_stored(store, ref)
    if not report.ok:
        bad = next(iter(report.errors()))
        raise CheckFailed(
            f"the run does not verify: {bad.kind}: {bad.what}",
            place=bad.place,
            remedy="--unverified copies the rows that still follow one another",
        )
    return report.verdict is Verdict.VERIFIED


def copy_run(
    source: Store,
    ref: ChainRef,
    target: Store,
    *,
    unverified: bool = False,
    progress: Watch | None = None,
) -> Copied:
    """Copy the chain ``ref`` into ``target``, for the same tenant and under the same names.

    Args:
        unverified: also a chain of which a signed head says otherwise. Rows that do not follow
            one another are never taken.
        progress: called with rows done and rows in all.

    Returns:
        What both stores hold now, compared (design: "Rows").

    Raises:
        CheckFailed: the source does not verify. UsageError: it is empty, or the target holds
            another chain under its name, or cannot say whose it is; nothing was written.
        JournalBroken: a row does not follow; those before it are there.
        StoreError, WriteFailed, JournalLocked: a store refused; what is there is a valid prefix.
    """
    proven = not unverified and require_verified(source, ref)
    lines = source.lines(ref)
    try:
        total = lines.count()
        if not total:
            raise UsageError("the run has no rows", place=Place(ref.where), remedy="Copy another")
        chat_id = _chat_in(target, ref, lines)
        there = target.run_named(ref.tenant_id, ref.run_id)
        have = 0 if there is None else _shared(lines, total, target, there)
        missing = _fill(source, ref, target, chat_id, lines, (have, total), proven, progress)
    finally:
        lines.close()
    made = target.run_named(ref.tenant_id, ref.run_id)
    if made is None:
        raise CheckFailed("the copy is not there", place=Place(target.url))
    _keep_head(source, ref, target, made, total)
    outcome: Outcome = "already there" if have == total else "continued" if have else "copied"
    before, after = facts(source, ref, total), facts(target, made, None)
    return Copied(ref.run_id, outcome, total - have, missing, before, after)


def _chat_in(target: Store, ref: ChainRef, lines: Lines) -> str:
    """The chat's name in the target. A directory has only the first row to tell by.

    Raises:
        UsageError: in a directory the run would not be this tenant's.
    """
    if not isinstance(target, DirStore):
        return ref.chat_id
    first = first_of(islice(lines.walk(0, None), 1))
    ids = {} if first is None else first.ids
    owner = column_text(ids["tenant_id"]) if "tenant_id" in ids else LOCAL
    if owner != ref.tenant_id:
        raise UsageError(
            "a directory tells whose a run is by its first row, and this one does not say so",
            place=Place(ref.where),
            remedy="Copy it into a database",
        )
    return column_text(ids.get("chat_id")) or ref.run_id


def _shared(lines: Lines, total: int, target: Store, there: ChainRef) -> int:
    """How many rows the target has already, all of them the source's.

    Raises:
        UsageError: it holds something else.
    """
    held = target.lines(there)
    try:
        have = held.count()
        pairs = zip(held.walk(0, None), lines.walk(0, have), strict=False)
        same = have <= total and all(a[2] == b[2] and isinstance(a[2], bytes) for a, b in pairs)
    finally:
        held.close()
    if not same:
        raise UsageError(
            "another chain is there under this name",
            place=Place(there.where),
            remedy="Copy into another store, or move that run away; nothing was written",
        )
    return have


def _fill(
    source: Store,
    ref: ChainRef,
    target: Store,
    chat_id: str,
    lines: Lines,
    span: tuple[int, int],
    proven: bool,
    progress: Watch | None,
) -> int:
    """Append what is missing; returns how many blobs the source lacks.

    What is not proven in the source is not signed in the target: a copy proves no more than its
    original did.
    """
    have, total = span
    into = _BlobCopier(source.blobs(ref.tenant_id), target.blobs(ref.tenant_id))
    for batch in _batches(lines.walk(0, have), ref.where):
        into.take(batch)
    if have == total:
        return len(into.missing)
    chain = target.open_chain(ref.tenant_id, chat_id, run_id=ref.run_id)
    chain.anchor.signs = proven
    try:
        for batch in _batches(lines.walk(have, total), ref.where):
            into.take(batch)
            chain.append_lines(batch)
            have += len(batch)
            if progress is not None:
                progress(have, total)
    finally:
        chain.close()
    return len(into.missing)


def _batches(lines: Iterator[Line], where: str) -> Iterator[list[bytes]]:
    """The rows some at a time.

    Raises:
        JournalBroken: a line that cannot be held.
    """
    held: list[bytes] = []
    size = 0
    for number, _, line in lines:
        if isinstance(line, BadRow):
            raise JournalBroken("a line that is no row", place=Place(where, number))
        held.append(line)
        size += len(line)
        if len(held) >= _ROWS or size >= _BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


class _BlobCopier:
    """Carries the blobs that rows refer to, each once."""

    def __init__(self, source: Blobs, target: Blobs) -> None:
        self._source = source
        self._target = target
        self.missing: set[str] = set()

    def take(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.startswith(b'{"blob_refs":[],') or b"blob_refs" not in line:
                continue
            row = decode_row(line)
            refs = row.obj.get("blob_refs") if isinstance(row, Row) else None
            for digest in refs if isinstance(refs, list) else ():
                if isinstance(digest, str):
                    self._one(digest)

    def _one(self, digest: str) -> None:
        try:
            if not self._target.has(digest):
                self._target.put(self._source.get(digest, _MAX_BLOB))
        except BlobError:  # it is no digest, or the source lost it: `fsck` says so
            self.missing.add(digest)


def _keep_head(source: Store, ref: ChainRef, target: Store, made: ChainRef, total: int) -> None:
    """The source's signed head beside the copy, where it covers every row: the same note."""
    heads = source.heads(ref)
    trusted = KeyRing(state_dir()).trusted()
    resume: Resume | None = heads.read_resume()
    for seen in heads.read(trusted):
        if seen.head is None or seen.head.size != total:
            continue
        if resume is not None and resume.size == total:
            notes = [one.note for one in target.heads(made).read(trusted)]
            if notes != [seen.note] * 2:
                target.heads(made).write(seen.note, resume)
        return
