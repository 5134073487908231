"""Sealed journals on disk: same bytes back, small, crash-safe, and no damage passes."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.core.model import GENESIS
from playhead.errors import (
    CheckFailed,
    JournalBroken,
    JournalError,
    JournalLocked,
    NotFound,
    PlayheadError,
    Refused,
    TooLarge,
    Unreadable,
    WriteFailed,
)
from playhead.formats.journal import LOCK, SEALED, SEGMENT
from playhead.formats.sealed import MAX_FRAME, Frame, Index, encode_index
from playhead.store.durable import Disk, FileLock
from playhead.store.journal import Journal
from playhead.store.reader import journal_blocks, journal_lines
from playhead.store.seal import seal_folder, unseal_folder, unseal_run
from playhead.store.sealed import frame_index, read_frame, unsealed_blocks
from sealing import Chain, conversation, journal, lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of an ended run of five turns."""
    return made(tmp_path / "run", journal(5))


def made(folder: Path, plain: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / SEGMENT).write_bytes(plain)
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {LOCK}


def blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        yield from unsealed_blocks(handle.fileno(), str(path))


def test_200_turns_take_less_than_120_kb(tmp_path: Path) -> None:
    plain = journal(200)
    folder = made(tmp_path / "run", plain)
    report = seal_folder(folder)
    assert report.plain_bytes == len(plain) > 600_000
    assert report.rows == 802
    assert report.sealed_bytes == (folder / SEALED).stat().st_size <= 120 * 1000
    unseal_folder(folder)
    assert (folder / SEGMENT).read_bytes() == plain


def test_a_sealed_run_is_read_as_it_lies_and_unsealed_byte_for_byte(folder: Path) -> None:
    plain = (folder / SEGMENT).read_bytes()
    before = list(journal_lines(folder))
    report = seal_folder(folder)
    assert not report.already
    assert names(folder) == {SEALED}
    assert os.stat(folder / SEALED).st_mode & 0o777 == 0o600
    assert list(journal_lines(folder)) == before
    assert unseal_run(folder) == len(plain)
    assert names(folder) == {SEGMENT}
    assert (folder / SEGMENT).read_bytes() == plain
    assert unseal_run(folder) == len(plain), "a plain run is left as it is"


def test_sealing_again_says_so_and_changes_nothing(folder: Path) -> None:
    first = seal_folder(folder)
    raw = (folder / SEALED).read_bytes()
    again = seal_folder(folder)
    assert again.already
    assert (again.plain_bytes, again.sealed_bytes, again.rows) == (
        first.plain_bytes,
        first.sealed_bytes,
        first.rows,
    )
    assert (folder / SEALED).read_bytes() == raw


def test_opening_for_appending_unseals_first(folder: Path) -> None:
    plain = (folder / SEGMENT).read_bytes()
    seal_folder(folder)
    with Journal.open(folder) as found:
        found.append(input_hash="ab" * 32)
    assert not (folder / SEALED).exists()
    assert (folder / SEGMENT).read_bytes().startswith(plain)
    assert (folder / SEGMENT).read_bytes().count(b"\n") == plain.count(b"\n") + 1


def test_a_run_that_has_not_ended_is_sealed_only_by_force(tmp_path: Path) -> None:
    rows = [*conversation(1, ended=False)]
    folder = made(tmp_path / "run", b"\n".join(rows))
    with pytest.raises(JournalError, match=r"run\.ended"):
        seal_folder(folder)
    assert names(folder) == {SEGMENT}
    assert seal_folder(folder, force=True).rows == len(rows)
    unseal_folder(folder)
    assert (folder / SEGMENT).read_bytes() == b"\n".join(rows)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("damage", ["changed", "torn", "gone"])
def test_a_journal_that_does_not_verify_is_not_sealed(
    folder: Path, damage: str, force: bool
) -> None:
    rows = (folder / SEGMENT).read_bytes().splitlines()
    if damage == "changed":
        rows[3] = rows[3].replace(b"turn_id", b"turn_ie", 1)
    elif damage == "torn":
        rows.append(b'{"torn')
    else:
        del rows[4]
    (folder / SEGMENT).write_bytes(b"\n".join(rows))
    with pytest.raises(JournalBroken) as caught:
        seal_folder(folder, force=force)
    assert caught.value.place.line == {"changed": 4, "torn": 23, "gone": 5}[damage]
    assert caught.value.remedy
    assert names(folder) == {SEGMENT}


def test_an_empty_folder_stays_empty(tmp_path: Path) -> None:
    for act in (seal_folder, unseal_run, unseal_folder):
        with pytest.raises(NotFound):
            act(tmp_path)
        with pytest.raises(NotFound):
            act(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_written_to_is_not_touched(folder: Path) -> None:
    lock = FileLock(folder / LOCK)
    try:
        with pytest.raises(JournalLocked) as caught:
            seal_folder(folder)
        assert caught.value.pid == os.getpid()
        with pytest.raises(JournalLocked):
            unseal_run(folder)
    finally:
        lock.release()
    seal_folder(folder)


def test_links_and_directories_are_refused(tmp_path: Path) -> None:
    real = made(tmp_path / "real", journal(1))
    linked, odd = tmp_path / "linked", tmp_path / "odd"
    linked.mkdir()
    (linked / SEGMENT).symlink_to(real / SEGMENT)
    (odd / SEALED).mkdir(parents=True)
    for folder in (linked, odd):
        with pytest.raises(Unreadable):
            seal_folder(folder)
    assert names(real) == {SEGMENT}


def test_a_row_of_many_megabytes_is_sealed_in_pieces(tmp_path: Path) -> None:
    chain = Chain()
    plain = b"".join(chain.row(tool_result=t) + b"\n" for t in ("a", "b" * 20_000_000, "c"))
    folder = made(tmp_path / "run", plain)
    assert seal_folder(folder, force=True).rows == 3
    index = frame_index(folder)
    assert len(index.frames) > 2
    assert max(frame.plain for frame in index.frames) <= MAX_FRAME
    assert max(len(block) for block in journal_blocks(folder)) <= 1 << 20
    assert b"".join(journal_blocks(folder)) == plain


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines(), st.booleans())
def test_whatever_was_sealed_is_unsealed(tmp_path: Path, found: list[bytes], closed: bool) -> None:
    plain = b"\n".join(found) + (b"\n" if closed and found else b"")
    folder = tmp_path / sha256(plain).hexdigest()
    folder.mkdir(exist_ok=True)
    (folder / SEGMENT).write_bytes(plain)
    try:
        seal_folder(folder, force=True)
        assert b"".join(journal_blocks(folder)) == plain
        unseal_run(folder)
    except JournalBroken:
        pass
    assert names(folder) == {SEGMENT}
    assert (folder / SEGMENT).read_bytes() == plain


class Failing(Disk):
    """Fails the ``number``-th call of one kind, from 0."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind, self.left = kind, number

    def _count(self, kind: str) -> None:
        if kind == self.kind:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._count("write")
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._count("sync")
        super().sync(fd)

    def replace(self, source: str, target: str) -> None:
        self._count("replace")
        super().replace(source, target)


FAILURES = [("write", 0), ("write", 1), ("sync", 0), ("sync", 1), ("sync", 2), ("replace", 0)]


@pytest.mark.parametrize(("kind", "number"), FAILURES)
def test_a_disk_that_fails_loses_nothing(folder: Path, kind: str, number: int) -> None:
    plain = (folder / SEGMENT).read_bytes()
    with pytest.raises(WriteFailed):
        seal_folder(folder, Failing(kind, number))
    assert b"".join(journal_blocks(folder)) == plain
    seal_folder(folder)
    assert names(folder) == {SEALED}
    if (kind, number) != ("write", 1):  # a small journal is unsealed in one write
        with pytest.raises(WriteFailed):
            unseal_run(folder, Failing(kind, number))
        assert b"".join(journal_blocks(folder)) == plain
    unseal_run(folder)
    assert names(folder) == {SEGMENT}
    assert (folder / SEGMENT).read_bytes() == plain


@pytest.mark.parametrize("act", [seal_folder, unseal_run])
def test_after_a_crash_between_the_two_forms_the_plain_one_wins(folder: Path, act: object) -> None:
    plain = (folder / SEGMENT).read_bytes()
    seal_folder(folder)
    (folder / SEGMENT).write_bytes(plain)
    (folder / f".{SEALED}.1.ab.tmp").write_bytes(b"half")
    assert b"".join(journal_blocks(folder)) == plain
    assert callable(act)
    act(folder)
    assert names(folder) == ({SEALED} if act is seal_folder else {SEGMENT})
    assert b"".join(journal_blocks(folder)) == plain


def test_a_stale_sealed_form_goes_when_the_plain_one_has_grown(folder: Path) -> None:
    plain = (folder / SEGMENT).read_bytes()
    seal_folder(folder)
    (folder / SEGMENT).write_bytes(plain + b"\n")
    assert unseal_run(folder) == len(plain) + 1
    assert names(folder) == {SEGMENT}


@pytest.mark.parametrize("act", [seal_folder, unseal_run])
def test_two_forms_that_differ_are_both_kept(folder: Path, act: object) -> None:
    seal_folder(folder)
    (folder / SEGMENT).write_bytes(journal(2))
    assert callable(act)
    with pytest.raises(JournalBroken, match="differ"):
        act(folder)
    assert names(folder) == {SEALED, SEGMENT}


def test_a_sealed_file_that_does_not_read_back_does_not_replace_the_plain_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = (folder / SEGMENT).read_bytes()
    monkeypatch.setattr("playhead.store.seal.sealed_bytes", lambda _: iter([plain[:-1]]))
    with pytest.raises(JournalError, match="read back"):
        seal_folder(folder)
    assert names(folder) == {SEGMENT}


def test_no_flipped_byte_passes(folder: Path) -> None:
    plain = (folder / SEGMENT).read_bytes()
    seal_folder(folder)
    path = folder / SEALED
    raw = path.read_bytes()
    noticed = 0
    for at in {*range(40), *range(40, len(raw), 23), *range(len(raw) - 60, len(raw))}:
        bad = bytearray(raw)
        bad[at] ^= 1 << (at % 8)
        path.write_bytes(bad)
        try:
            found = b"".join(blocks(path))
        except (Refused, CheckFailed) as error:
            assert error.place.file == str(path)
            assert error.remedy
            noticed += 1
        else:
            assert found == plain
    assert noticed > 150


def test_every_cut_and_every_addition_is_refused(folder: Path) -> None:
    seal_folder(folder)
    path = folder / SEALED
    raw = path.read_bytes()
    cuts = [raw[:at] for at in {0, 1, 43, 44, 45, *range(0, len(raw), 97), len(raw) - 1}]
    for bad in [*cuts, raw[1:], raw + b"\n", b"x" + raw, raw + raw]:
        path.write_bytes(bad)
        with pytest.raises(Refused):
            b"".join(blocks(path))
    with pytest.raises(Refused):
        unseal_run(folder)
    assert names(folder) == {SEALED}


def forged(path: Path, raw: bytes, content: int, plain: int, digest: str | None = None) -> Path:
    """A sealed file of one frame that claims these sizes."""
    said = digest or sha256(b"").hexdigest()
    frame = Frame(0, len(raw), content, 0, plain, 0, 1, said, GENESIS)
    path.write_bytes(raw + encode_index(Index((frame,), plain, 1, said)))
    return path


def compressed(data: bytes, *, sized: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=sized).compress(data)


BOMB = b'{"raw":1}\n' + bytes(50_000_000)


@pytest.mark.parametrize(
    ("raw", "content", "error"),
    [
        (compressed(BOMB), 100, TooLarge),
        (compressed(BOMB), len(BOMB), TooLarge),
        (compressed(BOMB[:1000], sized=False), 1000, TooLarge),
        (compressed(BOMB[:1000])[:-3], 1000, Refused),
        (compressed(BOMB[:1000]) + b"x", 1000, Refused),
        (compressed(BOMB[:500]) + compressed(BOMB[:500]), 500, Refused),
        (struct.pack("<II", 0x184D2A50, 8) + b"x" * 8, 8, Refused),
        (struct.pack("<II", 0x184D2A50, 8) + b"x" * 8, 0, Refused),
        (b"", 0, Refused),
        (b"not zstd", 8, Refused),
        (compressed(b'{"raw":1}\nx'), 11, CheckFailed),
    ],
)
def test_a_hostile_frame_is_refused(
    tmp_path: Path, raw: bytes, content: int, error: type[PlayheadError]
) -> None:
    path = forged(tmp_path / SEALED, raw, content, 1)
    with pytest.raises(error) as caught:
        b"".join(blocks(path))
    assert caught.value.place.file == str(path)


def test_frames_that_are_whole_but_not_the_journal_are_noticed(tmp_path: Path) -> None:
    data = b'{"raw":1}\nx'
    raw = compressed(data)
    one = sha256(b"x").hexdigest()
    path = tmp_path / SEALED
    frame = Frame(0, len(raw), len(data), 0, 1, 0, 1, one, GENESIS)
    path.write_bytes(raw + encode_index(Index((frame,), 1, 1, sha256(b"y").hexdigest())))
    with pytest.raises(CheckFailed, match="together"):
        b"".join(blocks(path))


def test_any_frame_is_read_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = (folder / SEGMENT).read_bytes()
    monkeypatch.setattr("playhead.formats.sealed.FRAME", 4_000)
    seal_folder(folder)
    index = frame_index(folder)
    assert len(index.frames) > 3
    assert index.sha256 == sha256(plain).hexdigest()
    with (folder / SEALED).open("rb") as handle:
        for frame in reversed(index.frames):
            found = read_frame(handle.fileno(), "x", frame)
            assert found == plain[frame.plain_offset : frame.plain_offset + frame.plain]
            assert orjson.loads(found.splitlines()[0])["seq"] == frame.first_row
