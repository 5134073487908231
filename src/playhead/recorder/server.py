"""The owner's end of ``playhead run``: programs send events, one journal takes them.

Promises:

* the socket lies in a fresh directory that only its owner can enter (0700);
* whatever a program sends, the answer is ``{"seq","durable","head"}`` or ``{"error"}``; a
  frame that is refused leaves the chain and the connection as they were;
* an event is acknowledged when its row is written, at the journal's durability level;
* a program that leaves without a word is on record as ``disconnected``.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from types import TracebackType

from playhead.errors import Place, Unreadable
from playhead.recorder.conversation import Conversation, answer
from playhead.recorder.wire import Frames, encode_frame
from playhead.recorder.writer import RunWriter
from playhead.store.durable import reason

MAX_CONNECTIONS = 1000
_MAX_PATH = 90
"""Bytes of a directory's path: the system keeps about 100 for the address of a socket."""
_GRACE = 1.0
"""Seconds that a connection gets at the end to take its last answer."""


class EventServer:
    """Serves one `RunWriter` at ``path`` until it is closed. Use it with ``with``."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._folder, self._listener = _listen()
        self.path = self._listener.getsockname()
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._events = 0
        self._programs = 0
        self._closed = False
        self._accepting = threading.Thread(target=self._accept, name="playhead-run", daemon=True)
        self._accepting.start()

    @property
    def events(self) -> int:
        """Events that programs recorded so far, without those that say who came and went."""
        return self._events

    @property
    def programs(self) -> int:
        """Connections that introduced themselves so far."""
        return self._programs

    def close(self) -> None:
        """Answer what was asked, then let nobody in any more. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            left = dict(self._open)
        self._wake_accept()
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            for link in left:
                _shutdown(link, how)
            for thread in left.values():
                thread.join(_GRACE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wake_accept(self) -> None:
        """A blocked accept ends when somebody knocks; closing the socket does not end it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            if knock.connect_ex(self.path):
                _shutdown(self._listener, socket.SHUT_RDWR)
        self._accepting.join(_GRACE)
        self._listener.close()

    def __enter__(self) -> EventServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closed or len(self._open) >= MAX_CONNECTIONS:
                    link.close()
                    if self._closed:
                        return
                    continue
                thread = threading.Thread(target=self._serve, args=(link,), daemon=True)
                self._open[link] = thread
                thread.start()

    def _serve(self, link: socket.socket) -> None:
        conversation = Conversation(self._writer, self._count)
        frames = Frames(link)
        try:
            while not conversation.over:
                said = answer(conversation, frames)
                if said is None:
                    break
                link.sendall(encode_frame(said))
        except OSError:
            pass  # the program is gone; `left` says so
        finally:
            conversation.left()
            link.close()
            with self._lock:
                self._open.pop(link, None)

    def _count(self, programs: int, events: int) -> None:
        with self._lock:
            self._programs += programs
            self._events += events


def _listen() -> tuple[str, socket.socket]:
    """A directory of mode 0700 and a socket in it.

    Raises:
        Unreadable: there is no place for temporary files.
    """
    folder = ""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        folder = tempfile.mkdtemp(prefix="playhead-")
        if len(os.fsencode(folder)) > _MAX_PATH:
            os.rmdir(folder)
            folder = tempfile.mkdtemp(prefix="playhead-", dir="/tmp")
        listener.bind(os.path.join(folder, "s"))
        listener.listen(128)
    except OSError as error:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise Unreadable(
            f"no socket for the program: {reason(error)}",
            place=Place(folder or tempfile.gettempdir()),
            remedy="Set TMPDIR to a directory that you can write to",
        ) from error
    return folder, listener


def _shutdown(link: socket.socket, how: int) -> None:
    try:
        link.shutdown(how)
    except OSError:
        return  # it is shut already
