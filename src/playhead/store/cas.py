"""Content-addressed blobs, laid out as the reference package does (docs/reference/formats/cas.md).

``<root>/cas/<first 2 hex>/<sha256>`` holds the bytes, ``<sha256>.meta.json`` beside it their
size, kind and time. A blob that is there but torn is repaired by the next ``put``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from playhead.core.blobs import blob_checked
from playhead.errors import BlobError, NotFound, Place
from playhead.store.durable import DISK, Disk, ensure_dir, read_bounded, write_atomic

MAX_BLOB = 1 << 30
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class Cas:
    """The blobs under one root. Safe for several processes: a blob is renamed into place."""

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path = path
        self._disk = disk
        self._known: set[str] = set()

    def _file(self, digest: str) -> Path:
        if not _DIGEST.match(digest):
            raise BlobError(f"{digest[:80]!r} is not a SHA-256 digest")
        return self.path / digest[:2] / digest

    def put(self, data: bytes, content_type: str = "application/octet-stream") -> str:
        """Keep ``data`` once; returns its SHA-256 hex.

        Raises:
            WriteFailed: the disk refused.
        """
        digest = sha256(data).hexdigest()
        if digest in self._known:
            return digest
        file = self._file(digest)
        if not self._whole(file, data):
            ensure_dir(file.parent)
            meta = {
                "digest": digest,
                "size_bytes": len(data),
                "created_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "content_type": content_type,
                "metadata": {},
            }
            write_atomic(file, data, disk=self._disk)
            text = json.dumps(meta, indent=2) + "\n"
            write_atomic(file.with_name(digest + ".meta.json"), text.encode(), disk=self._disk)
        if len(self._known) < 100_000:
            self._known.add(digest)
        return digest

    def _whole(self, file: Path, data: bytes) -> bool:
        try:
            return file.lstat().st_size == len(data) and read_bounded(file, len(data)) == data
        except (OSError, NotFound):
            return False

    def get(self, digest: str, limit: int = MAX_BLOB) -> bytes:
        """The bytes behind ``digest``, re-hashed.

        Raises:
            BlobError: missing, or not what its name says.
            TooLarge, Unreadable: over ``limit`` bytes; a link, a directory, no permission.
        """
        file = self._file(digest)
        try:
            return blob_checked(digest, read_bounded(file, limit))
        except NotFound:
            raise BlobError(
                f"blob {digest[:16]}... is missing",
                place=Place(str(file)),
                remedy="Restore cas/ from a backup; the chain itself still verifies",
            ) from None

    def has(self, digest: str) -> bool:
        return self._file(digest).is_file()

    def __iter__(self) -> Iterator[str]:
        """Every digest that has a file, in order."""
        if not self.path.is_dir():
            return
        for shard in sorted(self.path.iterdir()):
            if shard.is_dir() and not shard.is_symlink():
                yield from (name for name in sorted(os.listdir(shard)) if _DIGEST.match(name))
