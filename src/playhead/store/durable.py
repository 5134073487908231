"""The one place that syncs, locks or renames.

Promises, each in the order of the system calls that keep it:

* ``write_atomic``: open temp, write, fsync temp, rename over the name, fsync the directory.
  After it returns, a crash leaves the new content; before, the old one. Never a mix.
* ``AppendFile.append``: one write per row. A write that fails or falls short is cut back, so
  that the file holds whole rows only; if even the cut fails the file is poisoned.
* ``AppendFile.sync``: fdatasync. After a *failed* sync the kernel may have dropped the pages,
  so the file is poisoned: what is on disk is known again only after reopening.
* ``FileLock``: flock on a file of its own; it is dropped by the kernel when the owner dies.

Not covered: disks that acknowledge a sync before they keep it, and network file systems
whose flock is local.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from playhead.errors import JournalLocked, NotFound, Place, TooLarge, Unreadable, WriteFailed

NOFOLLOW: Final = os.O_NOFOLLOW | os.O_CLOEXEC


class Disk:
    """The system calls that can fail, as methods, so that tests can make each of them fail."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data)

    def datasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)


DISK: Final = Disk()


def ensure_dir(path: Path, mode: int = 0o700) -> None:
    """Make ``path`` and its parents, owner-only.

    Raises:
        Unreadable: something that is not a directory is in the way, or no permission.
        WriteFailed: the disk has no room for it.
    """
    try:
        missing = [path]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for folder in reversed(missing):  # makedirs would leave the parents to the umask
            folder.mkdir(mode=mode, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Unreadable(
            "not a directory", place=Place(str(path)), remedy="Move it away, or use another --root"
        ) from None
    except PermissionError as error:
        raise Unreadable(
            reason(error), place=Place(str(path)), remedy="Check its owner and permissions"
        ) from None
    except OSError as error:
        raise WriteFailed(
            f"cannot make the directory: {reason(error)}", place=Place(str(path))
        ) from error


def remedy_for(error: OSError) -> str | None:
    """What helps against a refusal of the disk; None for the usual words."""
    if error.errno == errno.EROFS:
        return "The file system is read-only: name another place (--root, PLAYHEAD_STATE)"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM):
        return "Name a place that is there and yours (--root, PLAYHEAD_STATE)"
    return None


def disk_refused(error: OSError, path: Path) -> WriteFailed:
    """The error for a write that the system refused."""
    return WriteFailed(reason(error), place=Place(str(path)), remedy=remedy_for(error))


def reason(error: OSError) -> str:
    """The system's words without the path, which the place already names."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file without following a link at its last part.

    Raises:
        NotFound: it is not there.
        Unreadable: a link, directory or device, or no permission.
    """
    place = Place(str(path))
    try:
        fd = os.open(path, flags | NOFOLLOW | os.O_NONBLOCK, mode)
    except FileNotFoundError:
        raise NotFound("no such file", place=place) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unreadable(
                "a symbolic link", place=place, remedy="Name the file that it points to"
            ) from None
        if error.errno in (errno.ENOSPC, errno.EROFS, errno.EDQUOT):
            raise WriteFailed(reason(error), place=place) from error
        raise Unreadable(
            reason(error), place=place, remedy="Check its kind, owner and permissions"
        ) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Unreadable("not a regular file", place=place, remedy="Name a regular file")
    return fd


def read_bounded(path: Path, limit: int) -> bytes:
    """The whole content of a regular file of at most ``limit`` bytes.

    Raises:
        NotFound, Unreadable: as `open_regular`.
        TooLarge: it holds more than ``limit`` bytes.
    """
    fd = open_regular(path)
    with open(fd, "rb") as handle:
        data = handle.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"over {limit} bytes", place=Place(str(path)), remedy="Check what it is")
    return data


def write_all(fd: int, data: bytes, disk: Disk = DISK) -> None:
    """Write every byte; a short write goes on where it stopped."""
    done = disk.write(fd, data)
    while done < len(data):
        step = disk.write(fd, memoryview(data)[done:])
        if step == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        done += step


def write_atomic(
    path: Path, data: bytes | Iterable[bytes], mode: int = 0o600, disk: Disk = DISK
) -> None:
    """Replace ``path`` by ``data`` (whole, or in chunks), whole or not at all.

    Raises:
        WriteFailed: the disk refused; the old content stands and no temp file stays.
    """
    temp = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW, mode)
        try:
            for chunk in (data,) if isinstance(data, bytes) else data:
                write_all(fd, chunk, disk)
            disk.sync(fd)
        finally:
            os.close(fd)
        disk.replace(str(temp), str(path))
        sync_dir(path.parent, disk)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        if isinstance(error, OSError):
            raise disk_refused(error, path) from error
        raise


def create_exclusive(path: Path, data: bytes, mode: int = 0o600, disk: Disk = DISK) -> bool:
    """Create ``path`` with ``data``; False when another process was first. Never half-written."""
    temp = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        write_atomic(temp, data, mode, disk)
        try:
            os.link(temp, path)
        except FileExistsError:
            return False
        sync_dir(path.parent, disk)
        return True
    except OSError as error:
        raise disk_refused(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temp)


def sync_dir(path: Path, disk: Disk = DISK) -> None:
    """Make a rename or a creation in ``path`` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)


class FileLock:
    """An inter-process writer lock that names its owner.

    The lock file stays behind, empty of meaning, when the owner dies: flock is what counts,
    the pid inside is only for the message.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raw = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            pid = int(raw) if raw.isdecimal() else None
            raise JournalLocked(
                f"process {pid if pid else '?'} is writing to this run",
                pid=pid,
                place=Place(str(path.parent)),
                remedy="Wait for it to end, or record under another run id",
            ) from None
        self._pid = os.getpid()
        with contextlib.suppress(OSError):  # a full disk takes no pid; the lock holds all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{self._pid}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back. A forked child only lets go of its copy of the descriptor.

        The owner unlocks in so many words: closing alone would leave the run locked while a
        child that was forked meanwhile lives on.
        """
        if self._fd >= 0:
            if os.getpid() == self._pid:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1
