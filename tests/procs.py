"""Work in a child process: forked, killed, or without the rights of the one who tests."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

NOBODY = 65534


def in_fork(work: Callable[[], str], *, uid: int | None = None) -> str:
    """What ``work`` returns in a forked child (as ``uid``), or the name and text of its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            os.close(read)
            if uid is not None:
                os.setgid(uid)
                os.setuid(uid)
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
            if not type(error).__module__.startswith("playhead"):
                text = "Traceback " + "".join(traceback.format_exception(error))
                code = 1
        with open(write, "wb", closefd=True) as pipe:
            pipe.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
        os._exit(code)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(pid, 0)
    return text


def kill(pid: int) -> None:
    """SIGKILL, as a power cut of one process."""
    os.kill(pid, signal.SIGKILL)
