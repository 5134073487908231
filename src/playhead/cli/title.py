"""The command line as other users of the machine see it: without the password of a URL.

A password belongs into a password file or PGPASSWORD. One that was typed into a URL all the same
is shown by every process list for as long as the process lives; it is overwritten at once.
"""

from __future__ import annotations

import os
import re

_PASSWORD = re.compile(rb"(?<=://)[^\s/?#@:\0]*:([^\s\0]*)@|[?&](?:ssl)?pass(?:word|wd)=([^&#\0]*)")


def hide_passwords() -> None:
    """Overwrite passwords in the arguments that the system shows of this process, where the
    system lets a process do that (Linux)."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
    except (OSError, ValueError, IndexError):
        return
    try:
        shown = os.pread(memory, end - begin, begin)
        for match in _PASSWORD.finditer(shown):
            for group in (1, 2):
                at = match.start(group)
                if at >= 0:
                    os.pwrite(memory, b"x" * (match.end(group) - at), begin + at)
    except OSError:
        return
    finally:
        os.close(memory)
