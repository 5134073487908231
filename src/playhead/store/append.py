"""The file that rows are appended to (its promises: `playhead.store.durable`)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from playhead.errors import Place, WriteFailed
from playhead.store.durable import DISK, Disk, disk_refused, open_regular, reason, sync_dir


class AppendFile:
    """A file that only grows by whole rows. Not thread-safe: its owner holds a lock."""

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path = path
        self._disk = disk
        fresh = not path.exists()
        self._fd = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.size = os.fstat(self._fd).st_size
        self.poisoned: str | None = None
        if fresh:
            try:
                sync_dir(path.parent, disk)
            except OSError as error:
                self.close()
                raise disk_refused(error, path) from error

    def append(self, data: bytes) -> None:
        """Write ``data`` at the end in one call, or leave the file as it was.

        Raises:
            WriteFailed: nothing was added. If the rest could not be cut off, every later
                append is refused too.
        """
        if self.poisoned:
            raise WriteFailed(self.poisoned, place=Place(str(self.path)))
        try:
            if self._disk.write(self._fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._cut_back()
            raise disk_refused(error, self.path) from error
        self.size += len(data)

    def take_back(self, size: int) -> None:
        """Cut a row off again that was written but could not be acknowledged."""
        self.size = size
        self._cut_back()

    def _cut_back(self) -> None:
        try:
            self._disk.truncate(self._fd, self.size)
        except OSError as error:
            self.poisoned = f"a partial row could not be cut off: {reason(error)}; reopen the run"

    def sync(self) -> None:
        """Make everything written so far durable (fdatasync).

        Raises:
            WriteFailed: it failed; the file takes no more rows until it is opened again.
        """
        if self.poisoned:
            raise WriteFailed(self.poisoned, place=Place(str(self.path)))
        try:
            self._disk.datasync(self._fd)
        except OSError as error:
            self.poisoned = f"sync failed: {reason(error)}; reopen the run"
            raise WriteFailed(self.poisoned, place=Place(str(self.path))) from error

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
