"""One writer at a time, one valid chain: processes, forks, threads and tasks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import playhead
from journals import words
from playhead import Journal, JournalError, JournalReader, Verdict
from playhead.errors import (
    JournalClosed,
    JournalLocked,
    UsageError,
)
from procs import in_fork

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


def sound(folder: Path) -> bool:
    report = JournalReader(folder).verify()
    return not report.errors() and report.steps == len(words(folder))


@pytest.mark.parametrize("level", LEVELS)
def test_append_close_and_go_on(folder: Path, level: Any) -> None:
    with Journal.open(folder, durability=level) as journal:
        first = journal.append(input_hash="", prompt="a")
        second = journal.append(input_hash="", prompt="b")
        assert (journal.next_seq, journal.head, second.prev_hash) == (
            2,
            second.step_hash,
            first.step_hash,
        )
        assert journal.sync() == journal.durable_upto == 2
    with Journal.open(folder, durability=level) as journal:
        assert (journal.next_seq, journal.head, journal.durable_upto) == (2, second.step_hash, 2)
        journal.append(input_hash="", prompt="c")
    assert words(folder) == ["a", "b", "c"]
    assert playhead.verify(folder).verdict is Verdict.VERIFIED
    assert (folder / SEGMENT).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_level_step_is_durable_when_append_returns(folder: Path) -> None:
    with Journal.open(folder, durability="step") as journal:
        for count in range(1, 4):
            journal.append(input_hash="")
            assert journal.durable_upto == count


def test_an_unknown_level_writes_nothing(folder: Path) -> None:
    with pytest.raises(UsageError):
        Journal.open(folder, durability="always")  # type: ignore[arg-type]
    assert not folder.exists()


def test_append_and_sync_after_close_are_refused_and_closing_twice_is_not(folder: Path) -> None:
    journal = Journal.open(folder)
    journal.append(input_hash="", prompt="a")
    journal.close()
    journal.close()
    for late in (lambda: journal.append(input_hash=""), journal.sync):
        with pytest.raises(JournalClosed):
            late()
    assert words(folder) == ["a"]


def test_a_second_process_is_refused_with_the_owners_pid(folder: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout and holder.stdin
        assert holder.stdout.readline() == "ready\n"
        before = (folder / SEGMENT).read_bytes()
        with pytest.raises(JournalLocked) as caught:
            Journal.open(folder)
        assert caught.value.pid == holder.pid and str(holder.pid) in str(caught.value)
        assert (folder / SEGMENT).read_bytes() == before
        assert not JournalReader(folder).verify().errors(), "reading needs no lock"
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.wait() == 0
    with Journal.open(folder) as journal:
        journal.append(input_hash="", prompt="ours")
    assert words(folder) == ["theirs", "ours"] and sound(folder)


def test_the_same_process_is_refused_too(folder: Path) -> None:
    with Journal.open(folder), pytest.raises(JournalLocked) as caught:
        Journal.open(folder)
    assert caught.value.pid == os.getpid()


@pytest.mark.parametrize("level", LEVELS)
def test_a_forked_child_may_not_append_and_breaks_nothing(folder: Path, level: Any) -> None:
    with Journal.open(folder, durability=level) as journal:
        journal.append(input_hash="", prompt="parent")

        def child() -> str:
            for refused in (lambda: journal.append(input_hash="", prompt="child"), journal.sync):
                try:
                    refused()
                except JournalError as error:
                    assert "by fork" in str(error)
                else:
                    return "the child appended"
            journal.close()
            return "refused"

        with journal.lock:  # the lock is held while the child is born: it must not wait for it
            assert in_fork(child) == "refused"
        with pytest.raises(JournalLocked):
            Journal.open(folder)
        journal.append(input_hash="", prompt="still")
    assert words(folder) == ["parent", "still"] and sound(folder)


def test_a_child_that_lives_on_does_not_keep_the_run_locked(folder: Path) -> None:
    journal = Journal.open(folder, durability="os")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # an idle worker of a pool, born while the journal was open
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        journal.close()
        Journal.open(folder, durability="os").close()
    finally:
        os.close(read)
        os.close(write)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("level", LEVELS)
def test_sixteen_threads_make_one_chain(folder: Path, level: Any) -> None:
    each = 4 if level == "step" else 40
    with Journal.open(folder, durability=level) as journal:
        start = threading.Barrier(16)

        def work(thread: int) -> list[int]:
            start.wait()
            return [journal.append(input_hash="", prompt=f"{thread}-{n}").seq for n in range(each)]

        with ThreadPoolExecutor(16) as pool:
            seqs = list(pool.map(work, range(16)))
    assert sorted(seq for mine in seqs for seq in mine) == list(range(16 * each))
    found = words(folder)
    for thread, mine in enumerate(seqs):
        assert [found[seq] for seq in mine] == [f"{thread}-{n}" for n in range(each)]
    assert sound(folder) and playhead.verify(folder).verdict is Verdict.VERIFIED


async def test_two_hundred_tasks_make_one_chain(folder: Path) -> None:
    with Journal.open(folder) as journal:

        async def task(number: int) -> None:
            for part in range(3):
                await asyncio.sleep(0)
                if number % 2:
                    await asyncio.to_thread(
                        journal.append, input_hash="", prompt=f"{number}-{part}"
                    )
                else:
                    journal.append(input_hash="", prompt=f"{number}-{part}")

        await asyncio.gather(*(task(number) for number in range(200)))
    assert sorted(words(folder)) == sorted(f"{n}-{p}" for n in range(200) for p in range(3))
    assert playhead.verify(folder).verdict is Verdict.VERIFIED


def test_a_journal_that_falls_idle_gets_its_head_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst of steps and then a slow tool: the head does not wait for the close."""
    from playhead.store import signer

    monkeypatch.setattr(signer, "EVERY", 0.05)
    with Journal.open(tmp_path / "run") as journal:
        for _ in range(3):
            journal.append(input_hash="")
        deadline = time.monotonic() + 60
        while journal.anchor.signed_size != 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert journal.anchor.signed_size == 3


def test_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with Journal.open(tmp_path / "a" / "runtime" / "journal" / "run") as journal:
            journal.append(input_hash="")
    finally:
        os.umask(old)
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {oct(path.stat().st_mode & 0o077) for path in made} == {"0o0"}
