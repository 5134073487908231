"""The background sync of level ``batch``: every step is on disk within about 20 ms.

One daemon thread per open journal, asleep while nothing is written. A failed sync poisons the
file, so the next append of the owner raises; the thread itself ends.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from playhead.errors import JournalError

WINDOW = 0.015
"""Seconds that rows gather before one sync takes them all."""


class Syncer:
    """Calls ``work`` soon after each ``wake``, and again after the seconds that it returns."""

    def __init__(self, work: Callable[[], float | None]) -> None:
        self._work = work
        self._dirty = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There are rows to sync. The thread starts with the first of them."""
        if not self._dirty.is_set():
            self._dirty.set()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="playhead-sync", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no thread can be had, as at the interpreter's exit
                    self._dirty.clear()
                    with contextlib.suppress(JournalError):  # the file is poisoned by it
                        self._work()
                    return
                self._thread = thread

    def _run(self) -> None:
        pause: float | None = None
        while not self._stop.is_set():
            if self._dirty.wait(pause) and self._stop.wait(WINDOW):
                return
            self._dirty.clear()
            try:
                pause = self._work()
            except JournalError:
                return

    def stop(self) -> None:
        """End the thread; rows not yet synced are left to the caller."""
        self._stop.set()
        self._dirty.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
