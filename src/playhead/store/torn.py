"""Cutting a torn tail off a journal (decision 6).

The fragment is made durable in a file of its own before the journal is shortened, so a crash
between the two leaves it in both places and the next opening cuts again.
"""

from __future__ import annotations

import os
from pathlib import Path

from playhead.errors import Place, WriteFailed
from playhead.store.durable import DISK, Disk, open_regular, reason, write_atomic
from playhead.store.reader import blocks_of


def cut_torn_tail(path: Path, end: int, disk: Disk = DISK) -> Path:
    """Move the bytes from ``end`` on into ``<name>.<end>.torn`` and cut them off.

    Raises:
        WriteFailed: the disk refused; the journal is as it was.
    """
    fd = open_regular(path, os.O_RDWR)
    with open(fd, "rb", buffering=0):
        torn = path.with_name(f"{path.name}.{end}.torn")
        count = 1
        while torn.exists():
            torn = path.with_name(f"{path.name}.{end}-{count}.torn")
            count += 1
        write_atomic(torn, blocks_of(fd, end), disk=disk)
        try:
            disk.truncate(fd, end)
            disk.sync(fd)
        except OSError as error:
            raise WriteFailed(reason(error), place=Place(str(path))) from error
    return torn
