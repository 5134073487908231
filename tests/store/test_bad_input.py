"""Whatever lies where a journal should be: a finding or one line of refusal, nothing written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from journals import words
from playhead import Journal, JournalReader, Root, Verdict
from playhead.errors import (
    JournalBroken,
    NotFound,
    PlayheadError,
    Unreadable,
    UsageError,
)
from procs import NOBODY, in_fork

LEVELS = ["step", "batch", "os"]
SEGMENT = "000000.jsonl"

HOLDER = """
import sys
from playhead import Journal
with Journal.open(sys.argv[1], durability="os") as journal:
    journal.append(input_hash="", prompt="theirs")
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that a user without rights can enter (pytest's own cannot be entered)."""
    place = Path(tempfile.mkdtemp(prefix="playhead-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def sound(folder: Path) -> bool:
    report = JournalReader(folder).verify()
    return not report.errors() and report.steps == len(words(folder))


def test_a_directory_where_the_journal_should_be(folder: Path) -> None:
    (folder / SEGMENT).mkdir(parents=True)
    with pytest.raises(Unreadable):
        Journal.open(folder)
    with pytest.raises(Unreadable):
        JournalReader(folder).verify()
    with pytest.raises(PlayheadError):
        playhead.verify(folder)


@pytest.mark.parametrize("to", ["missing", "there"])
def test_a_symbolic_link_where_the_journal_should_be(folder: Path, tmp_path: Path, to: str) -> None:
    target = tmp_path / "target.jsonl"
    if to == "there":
        target.write_bytes(b"keep me\n")
    folder.mkdir(parents=True)
    (folder / SEGMENT).symlink_to(target)
    for attempt in (Journal.open, playhead.verify, lambda f: JournalReader(f).verify()):
        with pytest.raises(Unreadable):
            attempt(folder)
    assert target.exists() is (to == "there")
    if to == "there":
        assert target.read_bytes() == b"keep me\n"


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_something_else_where_the_lock_should_be(folder: Path, tmp_path: Path, kind: str) -> None:
    folder.mkdir(parents=True)
    lock = folder / ".lock"
    {
        "directory": lock.mkdir,
        "link": lambda: lock.symlink_to(tmp_path / "elsewhere"),
        "fifo": lambda: os.mkfifo(lock),
    }[kind]()
    with pytest.raises(Unreadable):
        Journal.open(folder)
    assert not (tmp_path / "elsewhere").exists() and not (folder / SEGMENT).exists()


def test_a_file_where_the_directory_should_be(root: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("not a directory")
    with pytest.raises(Unreadable):
        Journal.open(folder)
    assert folder.read_text() == "not a directory"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give its rights away")
@pytest.mark.parametrize("what", ["file", "folder", "root"])
def test_what_may_not_be_read_is_one_line(open_place: Path, what: str) -> None:
    folder = open_place / "root" / "runtime" / "journal" / "run-1"
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="")
    for path in (open_place / "root", folder.parent.parent, folder.parent, folder):
        path.chmod(0o755)
    {"file": folder / SEGMENT, "folder": folder, "root": open_place / "root"}[what].chmod(0o700)

    def attempt(action: Any) -> str:
        os.environ["PLAYHEAD_STATE"] = str(open_place / "no-state")
        action()
        return "no error"

    home = Root(open_place / "root")
    for action in (
        lambda: playhead.verify(folder),
        lambda: playhead.verify("run-1", root=home),
        lambda: JournalReader(folder).verify(),
        lambda: Journal.open(folder),
    ):
        said = in_fork(lambda action=action: attempt(action), uid=NOBODY)
        name = said.split(":")[0]
        assert name in ("Unreadable", "NotFound"), said
        assert "\n" not in said


@pytest.mark.parametrize(
    "word", ["a" * 300, "a\0b", "..", "/nowhere/at/all", "", "a/../b", "\ud800"]
)
def test_a_name_that_is_nothing_is_not_found(root: Path, word: str) -> None:
    with pytest.raises((NotFound, UsageError)):
        playhead.verify(word)
    assert not root.exists()


HOSTILE: dict[str, bytes] = {
    "zeros": b"\0" * 4096,
    "invalid utf-8": b'{"a":"\xff\xfe"}\n',
    "raw lone surrogate": b'{"a":"\xed\xa0\x80"}\n',
    "escaped lone surrogate": b'{"seq":0,"prompt":"\\ud800"}\n',
    "20,000 arrays": b"[" * 20_000 + b"]" * 20_000 + b"\n",
    "20,000 objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"\n",
    "300 arrays as prev_hash": b'{"prev_hash":' + b"[" * 300 + b"]" * 300 + b"}\n",
    "900 arrays as seq": b'{"seq":' + b"[" * 900 + b"]" * 900 + b"}\n",
    "5000 digits": b'{"seq":' + b"9" * 5000 + b"}\n",
    "infinite seq": b'{"seq":1e999}\n',
    "not a number": b'{"seq":NaN}\n',
    "numbers for text": b'{"seq":0,"prev_hash":1,"step_hash":2,"input_hash":3}\n',
    "wrong envelope": b'{"seq":0,"tool_call":{"v":1,"event":"run.started","payload":7}}\n',
    "carriage returns": b"\r\r\n\r" * 100,
    "empty": b"",
}


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_findings_or_a_refusal(folder: Path, name: str, behind: bool) -> None:
    if behind:
        with Journal.open(folder, durability="os") as journal:
            journal.append(input_hash="", prompt="a")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / SEGMENT).open("ab") as file:
        file.write(HOSTILE[name])
    report = playhead.verify(folder)
    assert name in ("carriage returns", "empty") or report.errors()
    try:
        with Journal.open(folder, durability="os") as journal:
            journal.append(input_hash="", prompt="next")
    except JournalBroken as refusal:
        assert "\n" not in str(refusal) and refusal.place.line
        assert (folder / SEGMENT).read_bytes().endswith(HOSTILE[name])
    else:
        assert sound(folder) and words(folder) == (["a"] if behind else []) + ["next"]
        assert journal.torn is None or journal.torn.read_bytes() == HOSTILE[name]


@pytest.mark.parametrize("apart", [b"\r", b"\r\n", b"\r\r\n", b"\n\r", b"\n\n", b"\n \n"])
def test_rows_apart_by_something_else_are_signed_as_they_lie(folder: Path, apart: bytes) -> None:
    folder.mkdir(parents=True)
    other = folder.with_name("source")
    with Journal.open(other, durability="os") as journal:
        for word in "abc":
            journal.append(input_hash="", prompt=word)
    (folder / SEGMENT).write_bytes((other / SEGMENT).read_bytes().replace(b"\n", apart))
    for word in "de":
        with Journal.open(folder, durability="os") as journal:
            journal.append(input_hash="", prompt=word)
    report = playhead.verify(folder)
    assert (report.verdict, words(folder)) == (Verdict.VERIFIED, list("abcde"))


PEAK = """
import resource, sys
import playhead
from playhead import Journal
from playhead.errors import PlayheadError
playhead.verify(sys.argv[2])
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = playhead.verify(sys.argv[1])
try:
    Journal.open(sys.argv[1]).close()
    said = "opened"
except PlayheadError as error:
    said = str(error)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((peak - base) // 1024, ",".join(f.kind for f in report.errors()), said.count("\\n"), said)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["alone", "behind", "before"])
def test_a_line_of_300_mb_takes_bounded_memory(folder: Path, where: str) -> None:
    small = folder.with_name("small")
    with Journal.open(small, durability="os") as journal:
        journal.append(input_hash="")
    row = (small / SEGMENT).read_bytes()
    folder.mkdir()
    with (folder / SEGMENT).open("wb") as file:
        file.write(row if where == "behind" else b"")
        file.write(b'{"prompt":"')
        for _ in range(300):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n')
        file.write(row if where == "before" else b"")
    size = (folder / SEGMENT).stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(folder), str(small)],
        capture_output=True,
        text=True,
        check=True,
    )
    megabytes, kinds, line_ends, said = done.stdout.rstrip("\n").split(" ", 3)
    assert int(megabytes) < 160
    assert "row-over-limit" in kinds.split(",")
    assert line_ends == "0" and "row-over-limit" in said and not done.stderr
    assert (folder / SEGMENT).stat().st_size == size, "refused, and nothing was written"
