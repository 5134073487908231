"""A file system without space: journal, heads and blobs refuse whole, and take it later."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from journals import check, words
from playhead import Journal, Verdict
from playhead.errors import PlayheadError, WriteFailed
from playhead.store.cas import Cas
from playhead.store.heads import HeadFiles
from playhead.store.keys import KeyRing

SEGMENT = "000000.jsonl"
LEVELS = ["step", "batch", "os"]

pytestmark = pytest.mark.crash


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    """A file that takes all the space that is left."""
    file = place / "filler"
    with file.open("wb", buffering=0) as handle:
        for size in (65536, 4096, 1):
            try:
                while handle.write(b"\1" * size) == size:
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
    return file


@pytest.mark.parametrize("level", LEVELS)
def test_a_full_disk_refuses_a_step_and_takes_it_later(small_disk: Path, level: Any) -> None:
    folder = small_disk / "root" / "runtime" / "journal" / "run-1"
    expected = []
    with Journal.open(folder, durability=level) as journal:
        with pytest.raises(WriteFailed) as caught:
            while True:
                journal.append(input_hash="", prompt="x" * 3000)
                expected.append("x" * 3000)
        assert "no space" in str(caught.value)
        assert words(folder) == expected
        with pytest.raises(WriteFailed):
            journal.append(input_hash="", prompt="x" * 30_000)
        journal.append(input_hash="", prompt="y")
        expected.append("y")
        # the head is signed at close, and needs more than the few bytes that are left
        subprocess.run(["mount", "-o", "remount,size=512k", str(small_disk)], check=True)
    check(folder, expected)


def test_a_head_that_finds_no_space_leaves_the_older_one(small_disk: Path) -> None:
    folder = small_disk / "root" / "runtime" / "journal" / "run-1"
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="", prompt="a")
    inner = HeadFiles(folder, KeyRing().state).inside
    older = inner.read_bytes()
    journal = Journal.open(folder, durability="os")
    journal.append(input_hash="", prompt="b")
    filler = fill(small_disk)
    with pytest.raises(WriteFailed):
        journal.close()
    assert inner.read_bytes() == older and sorted(os.listdir(inner.parent)) == sorted(
        [inner.name, inner.with_suffix(".resume").name]
    )
    assert playhead.verify(folder).verdict is Verdict.VERIFIED, "the head outside had room"
    filler.unlink()
    check(folder, ["a", "b"])


def test_a_run_opens_and_is_read_on_a_full_disk(small_disk: Path) -> None:
    folder = small_disk / "root" / "runtime" / "journal" / "run-1"
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="", prompt="a")
    (folder / ".lock").unlink()
    fill(small_disk)
    assert words(folder) == ["a"]
    try:
        Journal.open(folder, durability="os").close()
    except PlayheadError as error:
        assert "no space" in str(error)


def test_a_blob_that_finds_no_space_is_not_half_there(small_disk: Path) -> None:
    cas = Cas(small_disk / "cas")
    kept = cas.put(b"kept")
    filler = fill(small_disk)
    data = b"z" * 50_000
    with pytest.raises(WriteFailed):
        cas.put(data)
    assert list(cas) == [kept] and cas.get(kept) == b"kept"
    assert not list((small_disk / "cas").rglob("*.tmp"))
    filler.unlink()
    assert cas.get(cas.put(data)) == data
