"""A table of failing calls: what was acknowledged is there, what was refused is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from journals import check, words
from playhead import Journal, JournalReader
from playhead.errors import WriteFailed
from playhead.store.anchor import Anchor
from playhead.store.durable import Disk
from playhead.store.heads import HeadFiles
from playhead.store.keys import KeyRing

SEGMENT = "000000.jsonl"
LEVELS = ["step", "batch", "os"]

pytestmark = pytest.mark.crash


class FailingDisk(Disk):
    """A disk whose calls fail while ``armed``; ``share`` bytes of a write reach it all the same."""

    def __init__(self, share: float = 0, *, error: int = errno.EIO, calls: str = "write") -> None:
        self.share = share
        self.error = error
        self.calls = calls.split()
        self.armed = False

    def _fail(self, call: str) -> None:
        if self.armed and call in self.calls:
            raise OSError(self.error, os.strerror(self.error))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if not self.armed or "write" not in self.calls:
            return super().write(fd, data)
        whole = self.share == 1
        done = super().write(fd, data[: len(data) if whole else int(self.share)])
        if self.error == 0:
            return done
        self._fail("write")
        return done

    def truncate(self, fd: int, size: int) -> None:
        self._fail("truncate")
        super().truncate(fd, size)

    def datasync(self, fd: int) -> None:
        self._fail("datasync")
        super().datasync(fd)

    def sync(self, fd: int) -> None:
        self._fail("sync")
        super().sync(fd)


# share of the row that reaches the disk, the error told (0: a short write, told by its length)
WRITES = {
    "lost": (0, errno.EIO),
    "full disk": (0, errno.ENOSPC),
    "quota": (0, errno.EDQUOT),
    "short": (7, 0),
    "nothing written, no error": (0, 0),
    "short, then full": (100, errno.ENOSPC),
    "done, but reported failed": (1, errno.EIO),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_fails_was_never_there(folder: Path, name: str, level: Any) -> None:
    share, error = WRITES[name]
    disk = FailingDisk(share, error=error)
    with Journal.open(folder, durability=level, disk=disk) as journal:
        journal.append(input_hash="", prompt="a")
        head, size = journal.head, (folder / SEGMENT).stat().st_size
        disk.armed = True
        for _ in range(2):
            with pytest.raises(WriteFailed) as caught:
                journal.append(input_hash="", prompt="refused")
            assert caught.value.place.file and caught.value.remedy
        assert (journal.next_seq, journal.head) == (1, head)
        assert (folder / SEGMENT).stat().st_size == size
        disk.armed = False
        step = journal.append(input_hash="", prompt="b")
        assert (step.seq, step.prev_hash) == (1, head)
    check(folder, ["a", "b"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", WRITES)
def test_a_failed_write_that_cannot_be_cut_off_closes_the_file(
    folder: Path, name: str, level: Any
) -> None:
    share, error = WRITES[name]
    disk = FailingDisk(share, error=error, calls="write truncate")
    disk.error = error or errno.EIO
    if error == 0:
        disk.write = lambda fd, data: os.write(fd, data[: int(share)])  # type: ignore[method-assign]
    with Journal.open(folder, durability=level) as journal:
        journal.append(input_hash="", prompt="a")
    with Journal.open(folder, durability=level, disk=disk) as journal:
        disk.armed = True
        with pytest.raises(WriteFailed):
            journal.append(input_hash="", prompt="refused")
        disk.armed = False
        with pytest.raises(WriteFailed) as caught:
            journal.append(input_hash="", prompt="refused")
        assert "reopen" in str(caught.value)
    # a row that lies there whole was refused, and its owner was told to open the run again
    check(folder, ["a"], perhaps="refused" if share == 1 else None)


def test_a_row_cut_at_every_byte_by_the_disk(folder: Path) -> None:
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="", prompt="a")
        length = (folder / SEGMENT).stat().st_size
    disk = FailingDisk()
    with Journal.open(folder, durability="os", disk=disk) as journal:
        for count in range(length + 1):
            disk.armed, disk.share, disk.error = True, count + 0.5, errno.ENOSPC
            with pytest.raises(WriteFailed):
                journal.append(input_hash="", prompt="b")
            assert (folder / SEGMENT).stat().st_size == length
        disk.armed = False
        journal.append(input_hash="", prompt="b")
    check(folder, ["a", "b"])


@pytest.mark.parametrize("calls", ["datasync", "datasync truncate"])
def test_level_step_a_failed_sync_acknowledges_nothing(folder: Path, calls: str) -> None:
    disk = FailingDisk(calls=calls)
    with Journal.open(folder, durability="step", disk=disk) as journal:
        journal.append(input_hash="", prompt="a")
        disk.armed = True
        with pytest.raises(WriteFailed):
            journal.append(input_hash="", prompt="refused")
        disk.armed = False
        with pytest.raises(WriteFailed) as caught:
            journal.append(input_hash="", prompt="refused too")
        assert "reopen the run" in str(caught.value) and journal.durable_upto == 1
    check(folder, ["a"], perhaps="refused" if "truncate" in calls else None)


def test_level_batch_a_failed_sync_is_told_by_sync_and_by_the_next_append(folder: Path) -> None:
    disk = FailingDisk(calls="datasync")
    with Journal.open(folder, durability="batch", disk=disk) as journal:
        journal.append(input_hash="", prompt="a")
        journal.sync()
        disk.armed = True
        journal.append(input_hash="", prompt="b")
        with pytest.raises(WriteFailed):
            journal.sync()
        with pytest.raises(WriteFailed):
            journal.append(input_hash="", prompt="refused")
        assert journal.durable_upto == 1
        disk.armed = False
    check(folder, ["a", "b"])


def test_level_os_a_failed_sync_at_close_is_raised_and_the_run_unlocked(folder: Path) -> None:
    disk = FailingDisk(calls="datasync")
    journal = Journal.open(folder, durability="os", disk=disk)
    journal.append(input_hash="", prompt="a")
    disk.armed = True
    with pytest.raises(WriteFailed):
        journal.close()
    check(folder, ["a"])


@pytest.mark.parametrize("calls", ["write", "sync", "truncate"])
def test_a_repair_that_fails_leaves_the_run_as_it_was(folder: Path, calls: str) -> None:
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="", prompt="a")
    whole = (folder / SEGMENT).read_bytes()
    with (folder / SEGMENT).open("ab") as file:
        file.write(b'{"torn')
    disk = FailingDisk(calls=calls)
    disk.armed = True
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(WriteFailed):
        Journal.open(folder, durability="os", disk=disk)
    assert len(os.listdir("/proc/self/fd")) == before, "no descriptor is left open"
    assert (folder / SEGMENT).read_bytes().startswith(whole)
    assert not list(folder.glob(".*.tmp"))
    with Journal.open(folder, durability="os") as journal:
        assert journal.torn and journal.torn.read_bytes() == b'{"torn'
    check(folder, ["a"])


def test_a_directory_that_cannot_be_synced_refuses_the_opening(folder: Path) -> None:
    disk = FailingDisk(calls="sync")
    disk.armed = True
    with pytest.raises(WriteFailed):
        Journal.open(folder, disk=disk)
    check(folder, [])


@pytest.mark.parametrize("signed", [True, False])
def test_a_file_cut_at_every_byte_of_its_last_row(
    folder: Path, tmp_path: Path, signed: bool
) -> None:
    """What a power cut leaves of rows that no head covers yet."""

    def elsewhere() -> Anchor:
        anchor = Anchor(folder, KeyRing(tmp_path / "other"))
        anchor.files = HeadFiles(tmp_path / "elsewhere", tmp_path / "other")
        return anchor

    first = None if signed else elsewhere()
    with Journal.open(folder, durability="os", anchor=first) as journal:
        journal.append(input_hash="", prompt="a")
    start = (folder / SEGMENT).stat().st_size
    with Journal.open(folder, durability="os", anchor=elsewhere()) as journal:
        journal.append(input_hash="", prompt="b")
    raw = (folder / SEGMENT).read_bytes()
    files = HeadFiles(folder, KeyRing().state)
    heads = [files.inside, files.outside]
    kept = {path: path.read_bytes() for path in heads if path.exists()}
    assert len(kept) == (2 if signed else 0)
    for end in range(start, len(raw) + 1):
        (folder / SEGMENT).write_bytes(raw[:end])
        for path in heads:
            path.unlink(missing_ok=True)
        for path, content in kept.items():
            path.write_bytes(content)
        for torn in folder.glob("*.torn"):
            torn.unlink()
        with Journal.open(folder, durability="os") as journal:
            whole = end >= len(raw) - 1  # only the newline is missing: the row is all there
            assert journal.next_seq == (2 if whole else 1)
            if start < end < len(raw) - 1:
                assert journal.torn and journal.torn.read_bytes() == raw[start:end]
            else:
                assert journal.torn is None
            journal.append(input_hash="", prompt="c")
        assert words(folder) == (["a", "b", "c"] if whole else ["a", "c"])
        assert not JournalReader(folder).verify().errors()
