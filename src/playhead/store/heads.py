"""Signed heads: one beside the journal under the root, one in the user's state directory.

The copy inside the root travels with it. The copy outside is the one that someone who can
write to the root cannot reach: with it a cut tail, a rollback and a rewritten chain are seen
(decision 7). Beside each inner head lies a ``.resume`` file with what a later opening needs
to go on (the tree's frontier); it is believed only when it gives the signed root.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from playhead.core.merkle import Frontier
from playhead.core.sign import PublicKey, verify_note
from playhead.errors import NotFound, PlayheadError, SignatureError
from playhead.formats.head import Head, decode_head
from playhead.store.durable import DISK, Disk, ensure_dir, read_bounded, write_atomic

MAX_NOTE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Resume:
    """What continues a chain at ``size`` rows: tree frontiers and the run's uid."""

    size: int
    frontier: tuple[bytes, ...]
    fields: tuple[bytes, ...] | None
    uid: str | None
    native: int = 0

    def tree(self) -> Frontier:
        return Frontier(self.size, self.frontier)


@dataclass(frozen=True, slots=True)
class SeenHead:
    """A head file as found: ``head`` is None when it does not verify, ``problem`` says why."""

    where: str
    path: Path
    head: Head | None
    key: str | None = None
    problem: str | None = None
    note: str = field(default="", repr=False)


def placed(folder: Path) -> tuple[Path, Path]:
    """The root of a journal's folder, and the folder, named by the root's real path.

    A link below the root is not followed: whoever can write to the root must not be able to
    choose the name of the head outside.
    """
    for given in (os.path.abspath(folder), os.path.realpath(folder)):
        path = Path(given)
        if path.parent.name == "journal" and path.parent.parent.name == "runtime":
            base = Path(os.path.realpath(path.parent.parent.parent))
            return base, base / "runtime" / "journal" / path.name
    return path, path


class HeadFiles:
    """Where the heads of one journal directory lie, inside and outside the root."""

    def __init__(self, folder: Path, state: Path, disk: Disk = DISK) -> None:
        base, folder = placed(folder)
        self.run_id = folder.name
        self.inside = base / "heads" / f"{folder.name}.checkpoint"
        self.resume = self.inside.with_suffix(".resume")
        name = sha256(os.fsencode(str(folder))).hexdigest()[:40]
        self.outside = state / "heads" / f"{name}.checkpoint"
        self._disk = disk

    def write(self, note: str, resume: Resume) -> None:
        """Keep a signed note in both places, the inner one first.

        A crash between the two leaves an older outside head, which a longer journal satisfies.

        Raises:
            WriteFailed: the disk refused.
        """
        try:
            ensure_dir(self.inside.parent)
            write_atomic(self.resume, encode_resume(resume), disk=self._disk)
            write_atomic(self.inside, note.encode("utf-8"), disk=self._disk)
        finally:  # a full disk under the root does not cost the head outside it
            ensure_dir(self.outside.parent)
            write_atomic(self.outside, note.encode("utf-8"), disk=self._disk)

    def read(self, trusted: list[PublicKey]) -> list[SeenHead]:
        """The heads that are there, checked against the trusted keys; inner one first."""
        found = []
        for where, path in (("inside", self.inside), ("outside", self.outside)):
            try:
                raw = read_bounded(path, MAX_NOTE).decode("utf-8", "strict")
            except NotFound:
                continue
            except (PlayheadError, UnicodeDecodeError) as error:
                found.append(SeenHead(where, path, None, problem=f"unreadable: {error}"))
                continue
            found.append(read_note(raw, trusted, where, path, self.run_id))
        return found

    def read_resume(self) -> Resume | None:
        """The resume file, unproven; None when it is missing or not one."""
        try:
            return decode_resume(read_bounded(self.resume, MAX_NOTE))
        except (NotFound, PlayheadError):
            return None


def read_note(
    raw: str, trusted: list[PublicKey], where: str, path: Path, run_id: str | None
) -> SeenHead:
    """Check one note; ``run_id`` None accepts a head of any run."""
    try:
        note, keys = verify_note(raw, trusted)
        head = decode_head(note.text)
    except SignatureError as error:
        return SeenHead(where, path, None, problem=error.what, note=raw)
    if run_id is not None and head.run_id != run_id:
        return SeenHead(where, path, None, problem=f"it is a head of {head.run_id!r:.80}", note=raw)
    return SeenHead(where, path, head, key=keys[0].name, note=raw)


def encode_resume(resume: Resume) -> bytes:
    """The bytes of a resume file."""

    def texts(hashes: tuple[bytes, ...] | None) -> list[str] | None:
        return None if hashes is None else [base64.b64encode(h).decode() for h in hashes]

    value = {
        "v": 1,
        "size": resume.size,
        "frontier": texts(resume.frontier),
        "fields": texts(resume.fields),
        "uid": resume.uid,
        "native": resume.native,
    }
    return json.dumps(value, sort_keys=True).encode() + b"\n"


def decode_resume(raw: bytes) -> Resume | None:
    """What a resume file says, unproven; None for what is none."""
    try:
        value = json.loads(raw)
        fields = value["fields"]
        uid = value["uid"]
        return Resume(
            size=int(value["size"]),
            frontier=tuple(base64.b64decode(h, validate=True) for h in value["frontier"]),
            fields=None
            if fields is None
            else tuple(base64.b64decode(h, validate=True) for h in fields),
            uid=uid if isinstance(uid, str) else None,
            native=int(value.get("native", 0)),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
