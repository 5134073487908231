"""The second half: what somebody who can write to the files might do to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import CheckFailed, Place
from playhead.formats.journal import SEGMENT
from playhead.store.root import Root


@dataclass(frozen=True, slots=True)
class Change:
    """One byte that was changed: line from 1, byte from 0 in the file, and what stood there."""

    line: int
    byte: int
    before: str
    after: str


def copy_root(root: Root, run_id: str, target: Path) -> Root:
    """A copy of one run with its signed head and its blobs under ``target``."""
    copied = Root(target)
    shutil.copytree(root.journal_dir(run_id), copied.journal_dir(run_id))
    shutil.copytree(root.heads, copied.heads)
    if root.cas.path.is_dir():
        shutil.copytree(root.cas.path, copied.cas.path)
    return copied


def change_one_byte(root: Root, run_id: str, text: bytes, digit: bytes) -> Change:
    """Overwrite the byte that follows the first ``text`` by ``digit``.

    Raises:
        CheckFailed: ``text`` is not in the journal.
    """
    path = root.journal_dir(run_id) / SEGMENT
    data = path.read_bytes()
    found = data.find(text)
    if found < 0:
        raise CheckFailed(f"{text!r} is not there", place=Place(str(path)))
    byte = found + len(text)
    with path.open("r+b") as file:
        file.seek(byte)
        file.write(digit)
    end = byte + 8
    shown = data[found:end].split(b"}")[0]
    changed = shown[: len(text)] + digit + shown[len(text) + 1 :]
    return Change(data.count(b"\n", 0, byte) + 1, byte, shown.decode(), changed.decode())


@contextmanager
def last_row_cut(root: Root, run_id: str) -> Iterator[int]:
    """The run without its last row and without the signed head beside it, for a moment.

    Gives the number of bytes that are missing. Both are put back, whatever happens.
    """
    path = root.journal_dir(run_id) / SEGMENT
    beside = root.heads / f"{run_id}.checkpoint"
    data, head = path.read_bytes(), beside.read_bytes()
    keep = data.rstrip(b"\n").rfind(b"\n") + 1
    try:
        path.write_bytes(data[:keep])
        beside.unlink()
        yield len(data) - keep
    finally:
        path.write_bytes(data)
        beside.write_bytes(head)
        beside.chmod(0o600)
