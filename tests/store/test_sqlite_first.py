"""Many connections make the same new file at the same time: each gets it whole, none is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.store.cachedb import _open as open_cache
from playhead.store.snapshotdb import _open as open_snapshots
from playhead.store.sqlitefile import connect
from playhead.store.sqlitewait import patiently

Opener = Callable[[Path], sqlite3.Connection]

OPENERS: dict[str, Opener] = {
    "store": lambda path: connect(path, create=True),
    "snapshots": open_snapshots,
    "cache": open_cache,
}


@pytest.mark.parametrize("kind", OPENERS)
def test_threads_that_make_one_file_all_get_it(kind: str, tmp_path: Path) -> None:
    for number in range(25):
        path = tmp_path / f"{number}.db"
        start = threading.Barrier(6)
        modes: list[str] = []

        def go(
            path: Path = path, start: threading.Barrier = start, modes: list[str] = modes
        ) -> None:
            start.wait()
            link = OPENERS[kind](path)
            modes.append(link.execute("PRAGMA journal_mode").fetchone()[0])
            link.close()

        threads = [threading.Thread(target=go) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert modes == ["wal"] * 6


_OPENS = """
import sys
from pathlib import Path
from playhead.store.sqlitefile import connect
for number in range(40):
    connect(Path(sys.argv[1]) / f"{number}.db", create=True).close()
"""


def test_processes_that_make_one_store_all_get_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OPENS, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    assert [one.communicate()[1] for one in running] == [b""] * 3


def test_waiting_ends_and_says_what_was_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    link = sqlite3.connect(path, isolation_level=None, timeout=0)
    tries = 0

    def act() -> None:
        nonlocal tries
        tries += 1
        link.execute("BEGIN IMMEDIATE")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        patiently(link, act, 0.05)
    assert tries > 2
    holder.execute("ROLLBACK")
    patiently(link, act, 0.05)
    assert link.in_transaction
    link.close()
    holder.close()


def test_what_is_no_matter_of_waiting_is_raised_at_once(tmp_path: Path) -> None:
    link = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    tries = 0

    def act() -> None:
        nonlocal tries
        tries += 1
        link.execute("BEGIN")
        link.execute("SELECT 1 FROM missing")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        patiently(link, act, 5)
    assert tries == 1
    assert not link.in_transaction
    link.close()
