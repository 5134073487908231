"""``playhead.verify``: any journal, one report.

What is checked, in this order:

(0) the target is a regular file or a run under the root; nothing is followed or executed; a
    proof document is checked as `playhead.verifier.proofs` says, and no more;
(1) every line: JSON, no tolerated oddity (a warning; an error under strict);
(2) the chain: seq, prev_hash, step_hash recomputed, the envelope's own seq;
(3) the signed heads inside and outside the root, and the head the caller gives: same size,
    same step hash, same Merkle root over the raw rows;
(4) the verdict: ``failed`` when an error was found; ``verified`` when a trusted head covers
    every step; else ``unproven``, and the report says what is not proven.

Not checked here: the content of blobs and the field commitments ('playhead fsck' does).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from playhead.core.model import Report, Verdict
from playhead.core.sign import PublicKey
from playhead.errors import NotFound, Refused, UsageError
from playhead.formats.journal import SEALED, SEGMENT
from playhead.store.durable import open_regular
from playhead.store.heads import HeadFiles, SeenHead
from playhead.store.keys import KeyRing, state_dir
from playhead.store.reader import (
    Batch,
    journal_blocks,
    segment_path,
)
from playhead.store.root import Root
from playhead.verifier.heads import (
    Coverage,
    check_bytes,
    check_expected,
    check_heads,
    no_head,
    require_head,
)
from playhead.verifier.missing import missing_run
from playhead.verifier.pieces import Confirmed, journal_pieces, pieces
from playhead.verifier.proofs import check_proof, proof_in
from playhead.verifier.walk import Gathered, gather

Watch = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


def verify(
    target: str | os.PathLike[str],
    *,
    root: Root | None = None,
    head: str | None = None,
    keys: Sequence[PublicKey] = (),
    strict: bool = False,
    progress: Watch | None = None,
    ring: KeyRing | None = None,
) -> Report:
    """Verify a run (id, prefix, ``@last``), a journal directory, a journal file or a proof.

    Args:
        head: the head you expect, as 64 hex characters.
        keys: public keys trusted for signed heads besides the user's own.
        strict: tolerated oddities are errors.
        progress: called now and then with bytes done and bytes in all.

    Raises:
        NotFound, Refused, UsageError: nothing there, not readable, not a head.
    """
    require_head(head)
    ring = ring or KeyRing(state_dir())
    home = root or Root()
    try:
        folder, file = _locate(os.fspath(target), home)
    except NotFound:
        gone = missing_run(home, os.fspath(target), ring)
        if gone is None:
            raise
        return gone
    if folder is None:
        proof = proof_in(file)
        if proof is not None:
            return _proof(os.fspath(target), proof, [*ring.trusted(), *keys], head, strict)
        _refuse_other(file)
    lines: Iterable[Batch | Confirmed] = _file_lines(file)
    seen_heads: list[SeenHead] = []
    if folder is not None:
        seen_heads = HeadFiles(folder, ring.state).read([*ring.trusted(), *keys])
    total = os.lstat(file).st_size if os.path.lexists(file) else 0
    sizes = [found.head.size for found in seen_heads if found.head]
    if folder is not None:
        lines = journal_pieces(folder, leaves=bool(sizes))
    seen = gather(
        lines,
        file=str(file),
        sizes=sizes,
        expected_head=head,
        strict=strict,
        progress=None if progress is None else lambda done: progress(min(done, total), total),
    )
    again = None if folder is None else partial(journal_blocks, folder)
    name = os.fspath(target)
    if folder is not None and name == "@last":
        name = folder.name
    return judge(name, str(file), seen, seen_heads, head, again)


def _proof(
    name: str, data: bytes, keys: Sequence[PublicKey], head: str | None, strict: bool
) -> Report:
    if head is not None:
        raise UsageError(
            "a proof brings its own head", remedy="Leave out --head, or give the run itself"
        )
    return check_proof(data, keys=keys, strict=strict, name=name)


def _locate(word: str, root: Root) -> tuple[Path | None, Path]:
    """The journal folder (None for a lone file) and the file to read."""
    path = Path(word)
    if os.path.isfile(path) or os.path.islink(path):
        if path.name in (SEGMENT, SEALED) and not os.path.islink(path):
            return path.parent, path
        return None, path
    folder = root.find(word)
    return folder, segment_path(folder)


def _file_lines(path: Path) -> Iterable[Batch | Confirmed]:
    fd = open_regular(path)
    with open(fd, "rb", buffering=0):
        yield from pieces(fd, leaves=False)


def _refuse_other(path: Path) -> None:
    """Refuse a file that is certainly no journal, before anything is walked."""
    fd = open_regular(path)
    with open(fd, "rb", buffering=0):
        start = os.pread(fd, 512, 0)
    kind = _kind(start) or ("text without any JSON object" if _no_object(start) else None)
    if kind:
        raise Refused(
            f"{path}: {kind}, not a journal",
            remedy="Give a run, a journal directory or a .jsonl file",
        )


def _no_object(start: bytes) -> bool:
    return bool(start.strip()) and b"{" not in start and len(start) > 64


def _kind(start: bytes) -> str | None:
    """What a file is that is certainly no journal."""
    if start[257:262] == b"ustar":
        return "a tar archive"
    for magic, name in (
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"SQLite format 3\0", "a database"),
    ):
        if start.startswith(magic):
            return name
    return None


def judge(
    target: str,
    file: str,
    seen: Gathered,
    heads: Sequence[SeenHead],
    expected: str | None,
    blocks: Callable[[], Iterable[bytes]] | None = None,
) -> Report:
    """The verdict over what a walk gathered and the heads that were found.

    ``blocks`` gives the journal's bytes again, where there are heads that sign them.
    """
    coverage = Coverage()
    for finding in check_heads(seen, heads, file, coverage):
        seen.add(finding)
    if blocks is not None:
        for finding in check_bytes(seen, heads, blocks, file):
            seen.add(finding)
    if expected is not None:
        for finding in check_expected(seen, expected, file, coverage):
            seen.add(finding)
    if not heads and expected is None:
        seen.add(no_head(file))
    failed = seen.errors > 0
    whole = coverage.steps == seen.steps and bool(coverage.sources)
    verdict = Verdict.FAILED if failed else Verdict.VERIFIED if whole else Verdict.UNPROVEN
    return Report(
        target=target,
        verdict=verdict,
        head=seen.head,
        steps=seen.steps,
        findings=tuple(seen.findings),
        proven=tuple(_proven(seen, coverage)) if not failed else (),
        unproven=tuple(_unproven(seen, coverage)) if not failed else (),
        covered=coverage.steps,
        suppressed=seen.suppressed,
        root=seen.root.hex(),
    )


def _proven(seen: Gathered, coverage: Coverage) -> Iterable[str]:
    if not seen.steps:
        return
    yield "order and content: input_hash, model, prompt, tool_call, tool_result, effort"
    if seen.native:
        yield f"seq, time and ids of {seen.native} native step(s), inside the hashed envelope"
    if coverage.raw:
        where = " and ".join(s for s in dict.fromkeys(coverage.sources) if s != "given")
        yield (
            f"every byte of the first {coverage.steps} row(s), against the signed head "
            f"{where} the root (key {', '.join(coverage.keys)})"
        )
    if "given" in coverage.sources:
        yield f"the head is the given one after {coverage.steps} step(s)"
    if coverage.fields:
        yield "field commitments are signed with it ('playhead fsck' re-derives them)"


def _unproven(seen: Gathered, coverage: Coverage) -> Iterable[str]:
    if not seen.steps:
        yield "nothing is in it"
        return
    left = seen.steps - coverage.steps
    if not coverage.sources:
        yield "that the end is the end: no head outside the chain was compared"
    elif left:
        yield f"the last {left} row(s): they are after the last signed head"
    if not coverage.raw:
        yield "the rows' own ts, seq, blob_refs and schema_version: outside the step hash"
    if coverage.sources and "outside" not in coverage.sources and "given" not in coverage.sources:
        yield "that this is the newest state: no head outside the root was found (rollback)"
    if not coverage.fields:
        yield "no commitments: a redacted copy could not prove its withheld fields"
