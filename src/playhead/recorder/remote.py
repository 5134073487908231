"""A recording whose journal another process owns: ``playhead.record`` under ``playhead run``.

Events go to the owner over its private Unix socket, one at a time; `emit` returns when the
owner has written the row. Values are normalised here, before anybody can change them, and
large ones go to the blob store of the owner's root. A forked child connects on its own.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence

from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.core.redact import Policy
from playhead.errors import (
    EventConflict,
    JournalClosed,
    JournalError,
    PlayheadError,
    TooLarge,
    UsageError,
    ValueRefused,
    WriteFailed,
)
from playhead.recorder.prepare import Preparer
from playhead.recorder.wire import VERSION, Frames, decode_frame, draft_to_json, encode_frame
from playhead.store.root import Root

_ANSWERS: Mapping[str, type[PlayheadError]] = {
    kind.code: kind
    for kind in (EventConflict, JournalClosed, TooLarge, UsageError, ValueRefused, WriteFailed)
}
_GONE = "Keep 'playhead run' alive as long as the program, or record with on_error='warn'"


class RemoteSink:
    """A `Sink` at the end of a socket. Thread-safe: one request at a time."""

    follows_fork = True

    def __init__(self, socket_path: str, agent: str, *, stamp_cache_keys: bool = True) -> None:
        self.run_id = ""
        self.uid = ""
        self._path = socket_path
        self._agent = agent
        self._head = ""
        self._durable = 0
        self._closed = False
        self._lock = threading.Lock()
        self._link: socket.socket | None = None
        self._frames: Frames | None = None
        self._prepare = Preparer(Policy(), None, stamp_keys=stamp_cache_keys)
        os.register_at_fork(after_in_child=_leaver(self))

    @classmethod
    def connect(cls, socket_path: str, agent: str, *, stamp_cache_keys: bool = True) -> RemoteSink:
        """Join the run that ``playhead run`` records at ``socket_path`` as ``agent``.

        Raises:
            JournalClosed: nobody listens there any more.
        """
        sink = cls(socket_path, agent, stamp_cache_keys=stamp_cache_keys)
        with sink._lock:
            sink._connect()
        return sink

    @property
    def head(self) -> str:
        """The last step hash that the owner told."""
        return self._head

    @property
    def durable_upto(self) -> int:
        """How many steps the owner is known to have synced."""
        return self._durable

    def emit(
        self, draft: Draft, *, at: str | None = None, messages: Sequence[object] | None = None
    ) -> int:
        """Send one event; returns its seq in the run's chain.

        Raises:
            JournalClosed: the owner is gone. JournalError: it did not take the event.
        """
        with self._lock:
            if self._closed:
                raise JournalClosed("the recording is closed")
            if self._link is None:
                self._connect()
            return self._emit(draft, at, messages)

    def sync(self) -> int:
        """Make every event so far durable; returns the number of durable steps."""
        with self._lock:
            if not self._closed and self._link is None:
                self._connect()
            if not self._closed:
                self._ask({"op": "sync"})
            return self._durable

    def close(self, status: str = "completed", error: JSON = None) -> str:
        """Say how this process ended and leave; the run goes on. Returns the head."""
        with self._lock:
            if self._closed:
                return self._head
            stamp: dict[str, JSON] = {"status": status}
            if error is not None:
                stamp["error"] = error
            try:
                if self._link is None:
                    self._connect()
                self._stamp(stamp)
                self._ask({"op": "bye"})
            finally:
                self._closed = True
                self._drop()
            return self._head

    def after_fork(self) -> None:
        """The inherited connection is the parent's: leave it and make a new one when needed."""
        self._lock = threading.Lock()
        self._drop()

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = self._frames = None

    def _connect(self) -> None:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self._path)
        except OSError as error:
            link.close()
            raise _gone(error) from error
        self._link, self._frames = link, Frames(link)
        answer = self._ask({"op": "hello", "v": VERSION, "agent": self._agent, "pid": os.getpid()})
        self.run_id, self.uid = str(answer.get("run_id")), str(answer.get("uid"))
        root = answer.get("root")  # none where the owner keeps blobs in a database
        self._prepare.put = Root(root).cas.put if isinstance(root, str) and root else None
        self._stamp({"argv0": (sys.argv or [""])[0]})

    def _stamp(self, more: dict[str, JSON]) -> None:
        stamp: dict[str, JSON] = {"agent": self._agent, "pid": os.getpid(), **more}
        self._emit(Draft("run.stamped", {"stamp": stamp}, name=self._agent), None, None)

    def _emit(self, draft: Draft, at: str | None, messages: Sequence[object] | None) -> int:
        payload, blobs, said = self._prepare.event(draft, messages)
        frame: dict[str, JSON] = {"op": "emit"}
        if said is not None:
            frame["messages"] = [message.value for message in said]
            blobs += tuple(blob for message in said for blob in message.blobs)
        if at is not None:
            frame["at"] = at
        frame["draft"] = draft_to_json(draft, payload, tuple(dict.fromkeys((*draft.blobs, *blobs))))
        return _number(self._ask(frame).get("seq"))

    def _ask(self, frame: Mapping[str, JSON]) -> dict[str, JSON]:
        """One request and its answer.

        Raises:
            JournalClosed: the connection broke. JournalError and others: as the owner says.
        """
        data = encode_frame(frame)
        link, frames = self._link, self._frames
        if link is None or frames is None:
            raise _gone(None)
        try:
            link.sendall(data)
            raw = frames.read()
        except OSError as error:
            self._drop()
            raise _gone(error) from error
        except BaseException:  # an interrupt between question and answer: they would not pair
            self._drop()
            raise
        if raw is None:
            self._drop()
            raise _gone(None)
        answer = decode_frame(raw)
        if isinstance(problem := answer.get("error"), dict):
            kind = _ANSWERS.get(str(problem.get("code")), JournalError)
            raise kind(str(problem.get("what")), remedy=str(problem.get("remedy") or ""))
        self._head = str(answer.get("head") or self._head)
        self._durable = _number(answer.get("durable"))
        return answer


def _leaver(sink: RemoteSink) -> Callable[[], None]:
    """What a forked child does first; a hook stays for ever, so it holds no sink alive."""
    found = weakref.ref(sink)

    def leave() -> None:
        kept = found()
        if kept is not None:
            kept.after_fork()

    return leave


def _number(value: JSON) -> int:
    return value if isinstance(value, int) else 0


def _gone(error: OSError | None) -> JournalClosed:
    why = "" if error is None else f": {os.strerror(error.errno).lower()}" if error.errno else ""
    return JournalClosed(f"the recorder of 'playhead run' is gone{why}", remedy=_GONE)
