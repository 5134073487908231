"""Opening a SQLite file beside an open one: no lock of this process is lost, no race is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import NotFound, Unreadable
from playhead.store.cachedb import CacheFile
from playhead.store.snapshotdb import SqliteSnapshots
from playhead.store.sqlite import SqliteDatabase
from playhead.store.sqlitekind import check_kind

WRITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    db.execute("BEGIN IMMEDIATE")
    print("written")
except sqlite3.OperationalError as error:
    print(error)
"""


def another_process_writes(file: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(file)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def rows(file: Path) -> SqliteDatabase:
    return SqliteDatabase(file, create=True)


def snapshots(file: Path) -> SqliteSnapshots:
    made = SqliteSnapshots(file, b"k" * 32)
    made.check()
    return made


def cache(file: Path) -> CacheFile:
    made = CacheFile(file)
    assert made.get("k", tenant_id="t") is None
    return made


@pytest.mark.parametrize("opened", [rows, snapshots, cache])
def test_a_second_one_in_the_process_loses_no_lock_of_the_first(
    tmp_path: Path, opened: Callable[[Path], Any]
) -> None:
    """Closing any descriptor of the file would let another process write into the same WAL."""
    file = tmp_path / "a.db"
    kept = [opened(file)]
    first = sqlite3.connect(file, isolation_level=None)
    first.execute("BEGIN IMMEDIATE")
    assert another_process_writes(file) == "database is locked"
    kept.append(opened(file))
    assert another_process_writes(file) == "database is locked"
    first.execute("ROLLBACK")
    assert another_process_writes(file) == "written"
    first.close()
    for one in kept:
        one.close()


def test_no_file_that_is_there_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.db"
    check_kind(file, create=True)
    assert file.stat().st_mode & 0o777 == 0o600 and file.read_bytes() == b""
    for end in ("-wal", "-shm"):
        file.with_name(file.name + end).touch()
    made: list[object] = []
    real = os.open

    def watched(path: str, flags: int, *more: int) -> int:
        fd = real(path, flags, *more)
        made.append(path)
        return fd

    monkeypatch.setattr(os, "open", watched)
    check_kind(file, create=True)
    check_kind(file, create=False)
    assert made == []


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)])
def test_what_is_no_regular_file_is_refused(
    tmp_path: Path, end: str, kind: Callable[[Path], None]
) -> None:
    file = tmp_path / "a.db"
    if end:
        file.touch()
    kind(tmp_path / f"a.db{end}")
    for create in (True, False):
        with pytest.raises(Unreadable):
            check_kind(file, create=create)


def test_a_missing_file_is_made_or_missed(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        check_kind(tmp_path / "sub" / "a.db", create=False)
    assert not (tmp_path / "sub").exists()
    check_kind(tmp_path / "sub" / "a.db", create=True)
    assert (tmp_path / "sub" / "a.db").exists()
