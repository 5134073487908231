"""``playhead run``: a program under record, as one run that its owner begins and ends.

The owner holds the journal, so that a program that is killed leaves a run with an end: the
status says how, and the head is signed. In this release the run holds what the program
records through the library; several processes may do so at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.errors import NotFound, Unreadable, UsageError
from playhead.recorder.server import EventServer
from playhead.recorder.writer import RunWriter, WriterOptions
from playhead.store.dirstore import DirStore
from playhead.store.stores import Durability, Store
from playhead.store.urls import Where

SOCKET = "PLAYHEAD_SOCKET"
"""Tells a program where its recorder listens; set for the program only."""
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """How it went. ``exit_code`` is the program's, or 128 + the signal that ended it."""

    exit_code: int
    run_id: str
    steps: int
    head: str
    events_from_program: int
    status: str


def launch(
    root: Where,
    argv: Sequence[str],
    *,
    agent: str | None = None,
    run_id: str | None = None,
    tenant_id: str = "local",
    durability: Durability = "batch",
) -> LaunchResult:
    """Run ``argv`` with this process's own stdin, stdout and stderr, and record it.

    Ctrl-C reaches the program once, and so does a SIGTERM or SIGHUP; the run then ends as
    ``interrupted`` unless the program still ended well by itself.

    Args:
        agent: who runs (default: the program's file name).
        run_id: the chain to write; one that exists is continued.

    Raises:
        UsageError: no command. NotFound: there is no such program; nothing was written.
        Unreadable: it cannot be executed. JournalError: see `RunWriter.create`.
    """
    program = _program(argv)
    label = agent or os.path.basename(argv[0])
    writer = RunWriter.create(
        root,
        agent=label,
        run_id=run_id,
        tenant_id=tenant_id,
        meta={"launched": {"program": os.path.basename(program), "arguments": len(argv) - 1}},
        options=WriterOptions(durability=durability),
    )
    try:
        with EventServer(writer) as server:
            told = {SOCKET: server.path, **_root_for(root, writer.store)}
            code, stopped = _run(program, argv, told)
        status = _status(code, stopped)
        ended: dict[str, JSON] = {"status": status, "exit_code": _exit_code(code)}
        if code < 0:
            ended["signal"] = _signal_name(-code)
        writer.emit(Draft("run.ended", ended))
    except Unreadable as error:
        refused: dict[str, JSON] = {"status": "failed", "error": {"message": error.what}}
        writer.emit(Draft("run.ended", refused))
        raise
    finally:
        writer.release()
    return LaunchResult(
        exit_code=_exit_code(code),
        run_id=writer.run_id,
        steps=writer.journal.next_seq,
        head=writer.head,
        events_from_program=server.events,
        status=status,
    )


def _root_for(root: Where, store: Store) -> dict[str, str]:
    """Where the program's other recordings go: to the same place, told so that it holds in
    another directory. A URL with a password is handed on as it was given."""
    if isinstance(store, DirStore):
        return {"PLAYHEAD_ROOT": os.path.abspath(store.root.path)}
    if store.url.startswith("sqlite:"):
        return {"PLAYHEAD_ROOT": store.url}
    return {"PLAYHEAD_ROOT": root} if isinstance(root, str) else {}


def _program(argv: Sequence[str]) -> str:
    """The file that ``argv`` names, found as a shell would."""
    if not argv or not argv[0]:
        raise UsageError("no program is named", remedy="playhead run -- python agent.py")
    found = shutil.which(argv[0])
    if found is not None:
        return found
    if os.path.dirname(argv[0]) and os.path.exists(argv[0]):
        raise Unreadable(
            f"{argv[0]!r:.200} cannot be executed", remedy=f"Run: chmod +x {argv[0]:.200}"
        )
    raise NotFound(f"no program {argv[0]!r:.200}", remedy="Check its name and the PATH")


def _run(program: str, argv: Sequence[str], more: Mapping[str, str]) -> tuple[int, bool]:
    """The return code of the program, and whether somebody asked it to stop."""
    seen: list[int] = []
    with _relayed(seen) as relay:
        try:
            child = subprocess.Popen(list(argv), executable=program, env={**os.environ, **more})
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise Unreadable(
                f"{argv[0]!r:.200} cannot be executed: {reason}",
                remedy="A script needs a first line such as #!/usr/bin/env python3",
            ) from error
        relay.child = child
        relay.catch_up()
        return child.wait(), bool(seen)


class _Relay:
    """Hands signals on to the program, unless the terminal gave it the same one."""

    def __init__(self, seen: list[int]) -> None:
        self._seen = seen
        self._early: list[int] = []
        self.child: subprocess.Popen[bytes] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._seen.append(number)
        if number == signal.SIGINT and _at_terminal():
            return  # the terminal signals its whole foreground group
        if self.child is None:
            self._early.append(number)
        else:
            self.child.send_signal(number)

    def catch_up(self) -> None:
        """What came before there was a program to hand it to."""
        while self._early and self.child is not None:
            self.child.send_signal(self._early.pop(0))


@contextmanager
def _relayed(seen: list[int]) -> Iterator[_Relay]:
    """Signal handlers in place; only the main thread has them. An ignored one stays so."""
    relay = _Relay(seen)
    if threading.current_thread() is not threading.main_thread():
        yield relay
        return
    old = {number: signal.getsignal(number) for number in _STOPS}
    taken = [number for number, handler in old.items() if handler is not signal.SIG_IGN]
    try:
        for number in taken:
            signal.signal(number, relay)
        yield relay
    finally:
        for number in taken:
            signal.signal(number, old[number] or signal.SIG_DFL)


def _at_terminal() -> bool:
    """True when this process is in the foreground group of its terminal."""
    try:
        fd = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


def _status(code: int, stopped: bool) -> str:
    if code == 0:
        return "completed"
    ended_by = -code if code < 0 else code - 128
    return "interrupted" if stopped or ended_by in (signal.SIGINT, signal.SIGTERM) else "failed"


def _exit_code(code: int) -> int:
    return code if code >= 0 else 128 - code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
