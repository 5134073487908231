"""Waiting for other connections while a SQLite file is made.

SQLite's own wait (`busy_timeout`) does not cover the change to a write-ahead log: it fails at once
while any other connection reads or makes the same new file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final

_PAUSE: Final = 0.002
"""Seconds before the first further try; each further one waits twice as long, up to 0.1 s."""


def patiently(db: sqlite3.Connection, act: Callable[[], None], seconds: float) -> None:
    """Do ``act``, again and again while another connection is in the way.

    Args:
        db: the connection that ``act`` uses; what it left open is rolled back before each try.
        act: steps that may be done more than once.
        seconds: how long to go on.

    Raises:
        sqlite3.Error: the last one, when the time is over or it was no matter of waiting.
    """
    until = time.monotonic() + seconds
    pause = _PAUSE
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if not _in_the_way(error) or time.monotonic() + pause > until:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def _in_the_way(error: sqlite3.Error) -> bool:
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
