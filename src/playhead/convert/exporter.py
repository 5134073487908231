"""``export``: a run's journal, or the transcript it was imported from, as files.

Nothing is written but what the user names, owner-only (resolution 8), whole or not at all;
each file is read back and its digest compared with what was read from the root. A name that
comes out of a recording becomes a path only below the directory the user names, part by part.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from playhead.convert.originals import Original, originals_of
from playhead.errors import CheckFailed, NotFound, Place, Refused, UsageError
from playhead.store.durable import ensure_dir, open_regular, write_atomic
from playhead.store.reader import blocks_of, journal_blocks
from playhead.store.recipes import restore
from playhead.store.stores import Blobs, ChainRef, Store
from playhead.verifier.target import verify_chain

ENDINGS: Final = (".jsonl",)
"""The endings that say what is written."""
_SEPARATORS: Final = frozenset("\\:\0")
"""Characters that end a name part on some system."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it lies on disk now; ``size`` in bytes."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, in order."""

    run_id: str
    files: tuple[Written, ...]

    def to_dict(self) -> dict[str, object]:
        rows = [{"path": str(f.path), "size": f.size, "sha256": f.sha256} for f in self.files]
        return {"run_id": self.run_id, "files": rows}


def require_sound(store: Store, ref: ChainRef) -> None:
    """Refuse a chain that does not verify: nothing is written of it unasked.

    Raises:
        CheckFailed: it does not, with the place of the first fault.
    """
    report = verify_chain(store, ref)
    if report.ok:
        return
    bad = next(iter(report.errors()), None)
    raise CheckFailed(
        "the run does not verify" + (f": {bad.kind}: {bad.what}" if bad else ""),
        place=bad.place if bad else Place(ref.where),
        remedy="--force writes it as it is",
    )


def export_jsonl(
    store: Store, ref: ChainRef, out: Path, *, original: bool = False, force: bool = False
) -> ExportReport:
    """Write the chain ``ref`` to ``out`` (``.jsonl``): the same bytes, the same head.

    With ``original`` the transcript that the run was imported from, byte for byte: to ``out``
    when it was one file, below the directory ``out`` when it had several or ``out`` is one.

    Raises:
        UsageError: an ending that is not known, several files for one name, a file is there
            and ``force`` is off. NotFound: no original, no such directory.
        Refused: ``out`` lies in the run itself; a kept name that could leave ``out``.
        BlobError: a kept original is damaged. CheckFailed: the copy is not what was read.
        WriteFailed: the disk refused; what was there stands.
    """
    folder = store.folder(ref)
    if not original:
        if out.is_dir():
            raise UsageError("a directory", place=Place(str(out)), remedy="Name a file")
        if out.suffix not in ENDINGS:
            raise UsageError(
                f"the ending {out.suffix!r:.40} says no format",
                place=Place(str(out)),
                remedy=f"Known endings: {', '.join(ENDINGS)}",
            )
        _free(out, folder, force)
        return ExportReport(ref.run_id, (_copy(_rows(store, ref), out),))
    files = _originals(store, ref)
    if len(files) == 1 and not out.is_dir():
        targets = [out]
    elif os.path.lexists(out) and not out.is_dir():
        raise UsageError(
            f"the original has {len(files)} files",
            place=Place(str(out)),
            remedy="Name a directory for them",
        )
    else:
        targets = [_below(out, file) for file in files]
    for target in targets:
        _free(target, folder, force, made=target is not out)
    blobs = store.blobs(ref.tenant_id)
    return ExportReport(
        ref.run_id,
        tuple(
            _copy_original(blobs, file, target) for file, target in zip(files, targets, strict=True)
        ),
    )


def export_stream(store: Store, ref: ChainRef, *, original: bool = False) -> Iterator[bytes]:
    """The same bytes for a pipe. Nothing is written.

    Raises:
        UsageError: the original has several files. Else as `export_jsonl`.
    """
    if not original:
        yield from _rows(store, ref)
        return
    files = _originals(store, ref)
    if len(files) > 1:
        raise UsageError(f"the original has {len(files)} files", remedy="Name a directory with -o")
    yield from restore(store.blobs(ref.tenant_id), files[0].recipe)


def _rows(store: Store, ref: ChainRef) -> Iterator[bytes]:
    """The bytes of the journal; of a chain in a database those that its journal would have."""
    folder = store.folder(ref)
    if folder is not None:
        yield from journal_blocks(folder)
        return
    lines = store.lines(ref)
    try:
        yield from lines.blocks()
    finally:
        lines.close()


def _originals(store: Store, ref: ChainRef) -> list[Original]:
    lines = store.lines(ref)
    try:
        return originals_of(lines.walk(0, None), ref.where)
    finally:
        lines.close()


def _copy_original(blobs: Blobs, file: Original, target: Path) -> Written:
    if target.parent.name and not target.parent.exists():
        ensure_dir(target.parent)
    written = _copy(restore(blobs, file.recipe), target)
    if written.sha256 != file.sha256:
        raise CheckFailed(
            "the kept original is not the file that was imported", place=Place(str(target))
        )
    return written


def _copy(pieces: Iterable[bytes], target: Path) -> Written:
    """Write the pieces and read them back."""
    sent = sha256()

    def passing() -> Iterator[bytes]:
        for piece in pieces:
            sent.update(piece)
            yield piece

    write_atomic(target, passing())
    kept = sha256()
    size = 0
    with open(open_regular(target), "rb", buffering=0) as handle:
        for block in blocks_of(handle.fileno()):
            kept.update(block)
            size += len(block)
    if kept.digest() != sent.digest():
        raise CheckFailed(
            "the file does not hold what was written",
            place=Place(str(target)),
            remedy="Check the disk, and export again",
        )
    return Written(target, size, kept.hexdigest())


def _free(target: Path, folder: Path | None, force: bool, made: bool = False) -> None:
    """``target`` may be written: not in the run, its directory is there, and it is new."""
    place = Place(str(target))
    parent = Path(os.path.realpath(target.parent))
    if folder is not None and parent.is_relative_to(os.path.realpath(folder)):
        raise Refused("inside the run itself", place=place, remedy="Name another place")
    if not made and not target.parent.is_dir():
        raise NotFound("no such directory", place=Place(str(target.parent)), remedy="Make it first")
    if target.is_dir():
        raise UsageError("a directory", place=place, remedy="Name a file")
    if os.path.lexists(target) and not force:
        raise UsageError("it is there already", place=place, remedy="Use --force to replace it")


def _below(out: Path, file: Original) -> Path:
    """The place of a kept file under ``out``.

    Raises:
        Refused: its recorded name could lead elsewhere.
    """
    parts = file.name.split("/")
    target = out
    for part in parts:
        if part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > 255:
            raise _hostile(file)
        if _SEPARATORS & set(part) or not part.isprintable():
            raise _hostile(file)
        if target.is_symlink() and target is not out:
            raise Refused("a symbolic link", place=Place(str(target)), remedy="Use an empty place")
        target = target / part
    return target


def _hostile(file: Original) -> Refused:
    return Refused(
        f"the recorded name {file.name!r:.80} could lead elsewhere",
        remedy="If it is the only file, name the file to write instead of a directory",
    )
