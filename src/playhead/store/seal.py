"""Sealing: an ended journal as zstd frames, and back (decision 17, resolution 9).

Normative page: docs/reference/formats/sealed.md. Both directions keep one promise: at every
moment at least one whole form of the journal is on disk. The new form is written atomically,
read back and compared with the old one, and only then is the old one removed. A crash between
leaves both; readers take the plain one, and the next seal or unseal removes the sealed one
after it has seen that the plain one holds all of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from playhead.core.chain import ChainWalker, envelope_of
from playhead.core.model import Finding
from playhead.core.rows import BadRow
from playhead.errors import JournalBroken, JournalError, Place, PlayheadError, WriteFailed
from playhead.formats.journal import LOCK, SEALED, SEGMENT
from playhead.formats.sealed import Frame, Index, contents_of, encode_index
from playhead.store.durable import (
    DISK,
    Disk,
    FileLock,
    open_regular,
    reason,
    sync_dir,
    write_atomic,
)
from playhead.store.reader import blocks_of, journal_lines, open_segment
from playhead.store.sealed import frame_index, sealed_bytes, unsealed_blocks

__all__ = [
    "SealReport",
    "frame_index",
    "seal_folder",
    "unseal_folder",
    "unseal_run",
    "unsealed_blocks",
]

_SMALL = 32 * 1024 * 1024
_BEST, _QUICK = 19, 9


@dataclass(frozen=True, slots=True)
class SealReport:
    """Bytes before and after, rows; ``already`` when the run was sealed before the call."""

    plain_bytes: int
    sealed_bytes: int
    rows: int
    already: bool = False


def seal_folder(folder: Path, disk: Disk = DISK, *, force: bool = False) -> SealReport:
    """Seal the journal in ``folder``. A run that is sealed already is reported as such.

    ``force`` seals a run that has no ``run.ended`` too (runs of other recorders have none).

    Raises:
        NotFound: no journal. JournalLocked: it is being written to.
        JournalBroken: it does not verify by itself. JournalError: the run has not ended.
        WriteFailed: the disk refused; the plain journal stands.
    """
    with _locked(folder):
        sealed, plain = folder / SEALED, folder / SEGMENT
        if not plain.exists():
            index = frame_index(folder)
            return SealReport(index.plain, sealed.stat().st_size, index.rows, already=True)
        _check_ended(folder, force)
        _tidy(folder, disk)
        fd = open_regular(plain)
        with open(fd, "rb", buffering=0):
            write_atomic(sealed, _sealed_chunks(fd), disk=disk)
            if not _same(sealed_bytes(sealed), blocks_of(fd)):
                _remove(sealed, disk)
                raise JournalError(
                    "the sealed journal did not read back as the plain one",
                    place=Place(str(plain)),
                    remedy="The plain journal stands. See that nothing writes to it, and try again",
                )
        index = frame_index(folder)
        _remove(plain, disk)
        return SealReport(index.plain, sealed.stat().st_size, index.rows)


def unseal_run(folder: Path, disk: Disk = DISK) -> int:
    """`unseal_folder` under the writer lock: what a command calls."""
    with _locked(folder):
        return unseal_folder(folder, disk)


def unseal_folder(folder: Path, disk: Disk = DISK) -> int:
    """Give the plain journal back, byte for byte; returns its size. The caller holds the lock.

    A journal that is plain already is left as it is.

    Raises:
        NotFound: no journal. Refused, CheckFailed: the sealed one is damaged; it stays.
        WriteFailed: the disk refused; the sealed journal stands.
    """
    sealed, plain = folder / SEALED, folder / SEGMENT
    _require(folder)
    if not os.path.lexists(plain):
        try:
            write_atomic(plain, sealed_bytes(sealed), disk=disk)
        except PlayheadError:
            _sweep(folder)
            raise
    _tidy(folder, disk)
    return plain.stat().st_size


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    _require(folder)  # no lock file in a folder that holds no journal
    lock = FileLock(folder / LOCK)
    try:
        _sweep(folder)
        yield
    finally:
        lock.release()


def _require(folder: Path) -> None:
    os.close(open_segment(folder)[0])


def _sweep(folder: Path) -> None:
    """Remove half-written files: whoever holds the lock knows that nobody writes them."""
    for left in folder.glob(f".{SEGMENT}*.tmp"):
        left.unlink(missing_ok=True)


def _check_ended(folder: Path, force: bool) -> None:
    findings: list[Finding] = []
    name = str(folder / SEGMENT)
    walker = ChainWalker(findings.append, file=name)
    last = None
    for line_no, offset, line in journal_lines(folder):
        if isinstance(line, BadRow):
            walker.feed_bad(line_no, offset, line)
        else:
            last = walker.feed(line_no, line, offset) or last
        _refuse_broken(findings)
    walker.finish()
    _refuse_broken(findings)
    envelope = None if last is None else envelope_of(last.obj)
    if not force and (envelope is None or envelope.get("event") != "run.ended"):
        raise JournalError(
            "the run has not ended: its last event is not run.ended",
            place=Place(name),
            remedy="End it first, or seal it with --force when nothing will be added",
        )


def _refuse_broken(findings: list[Finding]) -> None:
    for found in findings:
        if found.severity == "error":
            raise JournalBroken(
                f"{found.kind}: {found.what}", place=found.place, remedy=found.remedy
            )
    findings.clear()


def _tidy(folder: Path, disk: Disk) -> None:
    """Where both forms lie, remove the sealed one if the plain one holds all of it."""
    sealed, plain = folder / SEALED, folder / SEGMENT
    if not os.path.lexists(sealed):
        return
    fd = open_regular(plain)
    with open(fd, "rb", buffering=0):
        if not _same(sealed_bytes(sealed), blocks_of(fd), prefix=True):
            raise JournalBroken(
                "the plain and the sealed journal differ",
                place=Place(str(folder)),
                remedy="Verify both, keep the one that its signed head proves, and move the other",
            )
    _remove(sealed, disk)


def _same(first: Iterator[bytes], second: Iterator[bytes], *, prefix: bool = False) -> bool:
    """True when both streams hold the same bytes, or ``first`` begins ``second``."""
    left = right = b""
    while True:
        left = left or next(first, b"")
        right = right or next(second, b"")
        size = min(len(left), len(right))
        if not size:
            return not left and (prefix or not right)
        if left[:size] != right[:size]:
            return False
        left, right = left[size:], right[size:]


def _remove(path: Path, disk: Disk) -> None:
    try:
        path.unlink()
        sync_dir(path.parent, disk)
    except OSError as error:
        raise WriteFailed(
            f"cannot be removed: {reason(error)}",
            place=Place(str(path)),
            remedy="Both forms hold the same rows; seal or unseal again",
        ) from error


def _sealed_chunks(fd: int) -> Iterator[bytes]:
    """The sealed file of the plain journal in ``fd``, frame by frame."""
    import zstandard

    level = _BEST if os.fstat(fd).st_size <= _SMALL else _QUICK
    compressor = zstandard.ZstdCompressor(level=level)
    frames: list[Frame] = []
    offset = plain = rows = 0
    sha = sha256()

    def hashed() -> Iterator[bytes]:
        for block in blocks_of(fd):
            sha.update(block)
            yield block

    for item in contents_of(hashed()):
        raw = compressor.compress(item.data)
        frames.append(
            Frame(
                offset=offset,
                length=len(raw),
                content=len(item.data),
                plain_offset=plain,
                plain=item.plain,
                first_row=rows,
                rows=item.rows,
                sha256=item.sha256,
                head=item.head,
            )
        )
        offset, plain, rows = offset + len(raw), plain + item.plain, rows + item.rows
        yield raw
    yield encode_index(Index(tuple(frames), plain, rows, sha.hexdigest()))
