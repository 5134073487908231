"""Keeps pace with a growing journal and signs its head (decision 7, resolution 11).

An anchor sees every row that is appended or recovered. ``sign`` states what is *durable*: its
owner calls it only after a sync, at most once a second while rows arrive, and at close.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.core.merkle import Frontier
from playhead.core.sign import sign_note
from playhead.errors import SignatureError
from playhead.formats.head import Head, encode_head
from playhead.store.heads import HeadFiles, Resume
from playhead.store.keys import KeyRing, state_dir

if TYPE_CHECKING:
    from playhead.store.stores import Heads

_BATCH = 4096

Mark = tuple[int, Frontier | None]
"""A size and the commitment tree at it."""


class Anchor:
    """The signed head of one chain: of the journal in a directory, or with its heads elsewhere.

    ``secret`` is the run's commitment secret; without one no field commitments are kept.
    """

    def __init__(self, place: Path | Heads, ring: KeyRing | None = None) -> None:
        self.ring = ring or KeyRing(state_dir())
        self.files: Heads = HeadFiles(place, self.ring.state) if isinstance(place, Path) else place
        self.size = 0
        self.bytes = 0
        self.uid: str | None = None
        self._secret: tuple[str, bytes] | None = None
        self.native = 0
        self._sha = hashlib.sha256()
        self._tree = Frontier()
        self._fields: Frontier | None = None
        self._leaves: list[bytes] = []
        self._commitments: list[bytes] = []
        self.signed_size = -1
        self.signs = True
        """False for a chain whose rows this user cannot vouch for: no head of it is made."""
        self._publishing = threading.Lock()

    def restore(self, resume: Resume, sha: hashlib._Hash, size_bytes: int) -> None:
        """Go on from a proven resume and the running digest of the bytes before it."""
        self.size, self.bytes, self._sha = resume.size, size_bytes, sha
        self._tree = resume.tree()
        self._fields = None if resume.fields is None else Frontier(resume.size, resume.fields)
        self.uid, self.native = resume.uid, resume.native
        self.signed_size = resume.size

    def skip(self, raw: bytes) -> None:
        """Bytes that are no row (blank lines): they count in the digest only."""
        self._sha.update(raw)
        self.bytes += len(raw)

    def rehash(self, sha: hashlib._Hash, size_bytes: int) -> None:
        """Take the digest of the first ``size_bytes`` from the file itself."""
        self._sha, self.bytes = sha, size_bytes

    def secret(self) -> bytes | None:
        """The run's commitment secret, where this user has it."""
        if not self.uid:
            return None
        if self._secret is None or self._secret[0] != self.uid:
            found = self.ring.run_secret(self.uid)
            if found is None:
                return None
            self._secret = (self.uid, found)
        return self._secret[1]

    def mark(self) -> Mark:
        """Where the anchor stands, for `rewind`."""
        return self.size, self._fields

    def rewind(self, mark: Mark, sha: hashlib._Hash, size_bytes: int) -> None:
        """Forget the row that was added, wholly or in part, after ``mark`` was taken."""
        self.size, self._fields = mark
        del self._leaves[self.size - self._tree.size :]
        if self._fields is not None:
            del self._commitments[self.size - self._fields.size :]
        self.rehash(sha, size_bytes)

    def start_commitments(self) -> None:
        """Keep field commitments from now on; only for a run that has no row yet."""
        if self.size == 0:
            self._fields = Frontier()

    @property
    def commits(self) -> bool:
        """True while every row so far has its commitment."""
        return self._fields is not None

    def add(self, raw: bytes, line: bytes, commitment: bytes | None = None) -> None:
        """One row: its bytes with the newline, its line without, its commitment."""
        if len(self._leaves) >= _BATCH:
            self._drain()
        self._sha.update(raw)
        self.bytes += len(raw)
        self._leaves.append(hashlib.sha256(b"\0" + line).digest())
        if self._fields is not None:
            if commitment is None:
                self._fields = None
            else:
                self._commitments.append(hashlib.sha256(b"\0" + commitment).digest())
        self.size += 1

    def make_room(self, rows: int) -> None:
        """Promise that so many rows are added without a drain, so that `rewind` can take them
        back; no more than a batch at once."""
        if len(self._leaves) + rows > _BATCH:
            self._drain()

    def _drain(self) -> None:
        """Take the gathered leaves into the trees: into copies, so that Ctrl-C leaves no half."""
        tree = Frontier(self._tree.size, self._tree.hashes)
        tree.extend(self._leaves)
        fields = self._fields
        if fields is not None:
            fields = Frontier(fields.size, fields.hashes)
            fields.extend(self._commitments)
        self._tree, self._fields, self._leaves, self._commitments = tree, fields, [], []

    def root(self) -> bytes:
        """The RFC 6962 root over the rows so far."""
        self._drain()
        return self._tree.root()

    def statement(self, step_hash: str) -> tuple[Head, Resume]:
        """What would be signed now."""
        self._drain()
        fields = self._fields
        head = Head(
            run_id=self.files.run_id,
            size=self.size,
            root=self._tree.root(),
            step_hash=step_hash,
            length=self.bytes,
            bytes_sha256=self._sha.hexdigest(),
            fields_root=None if fields is None else fields.root(),
        )
        resume = Resume(
            self.size,
            self._tree.hashes,
            None if fields is None else fields.hashes,
            self.uid,
            self.native,
        )
        return head, resume

    def publish(self, head: Head, resume: Resume) -> None:
        """Sign a statement and keep it inside and outside the root.

        Raises:
            WriteFailed: the disk refused; the older heads stand.
        """
        key = self.ring.signing_key(create=True)
        if key is None:
            raise SignatureError("no signing key", remedy="'playhead keys new' makes one")
        with self._publishing:
            if head.size > self.signed_size:
                self.files.write(sign_note(encode_head(head), key), resume)
                self.signed_size = head.size
