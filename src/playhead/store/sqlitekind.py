"""Whether a file may be given to SQLite, found out without opening it.

A process that closes any descriptor of a file loses every POSIX lock that it holds on it, those
of its other SQLite connections too (sqlite.org, "How To Corrupt An SQLite Database File", 2.2).
So nothing here, and nothing else in playhead, opens a database file or one beside it that exists:
two stores over one file in one process are an everyday thing.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from playhead.errors import NotFound, Place, Unreadable
from playhead.store.durable import NOFOLLOW, disk_refused, ensure_dir, reason

_BESIDE: Final = ("-wal", "-shm", "-journal")


def check_kind(path: Path, *, create: bool) -> None:
    """``path`` and what SQLite keeps beside it are regular files, links to none of them.

    A missing file is made, owner-only and with its directory, when ``create`` is set. That it is
    a database of the right program is for SQLite to find.

    Raises:
        NotFound: it is missing and ``create`` is off.
        Unreadable: a link, directory or device, or no permission. WriteFailed: the disk is full.
    """
    if create:
        ensure_dir(path.parent)
        _make(path)
    if not _regular(path):
        raise NotFound("no such file", place=Place(str(path)))
    if not os.access(path, os.R_OK | os.W_OK):
        raise Unreadable(
            "permission denied", place=Place(str(path)), remedy="Check its owner and permissions"
        )
    for end in _BESIDE:
        _regular(path.with_name(path.name + end))  # it may come and go with other processes


def _make(path: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | NOFOLLOW
    try:
        os.close(os.open(path, flags, 0o600))  # it is new, so nobody has a lock on it
    except FileExistsError:
        return
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EROFS, errno.EDQUOT):
            raise disk_refused(error, path) from error
        raise Unreadable(
            reason(error), place=Place(str(path)), remedy="Check its kind, owner and permissions"
        ) from None


def _regular(path: Path) -> bool:
    """False when it is not there.

    Raises:
        Unreadable: it is anything but a regular file.
    """
    place = Place(str(path))
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unreadable(
            reason(error), place=place, remedy="Check its kind, owner and permissions"
        ) from None
    if stat.S_ISLNK(mode):
        raise Unreadable("a symbolic link", place=place, remedy="Name the file that it points to")
    if not stat.S_ISREG(mode):
        raise Unreadable("not a regular file", place=place, remedy="Name a regular file")
    return True
