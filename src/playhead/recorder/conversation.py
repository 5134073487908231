"""One program's requests to the owner of the run, checked and answered one by one."""

from __future__ import annotations

import os
from collections.abc import Callable

from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.core.values import require_plain
from playhead.errors import PlayheadError, UsageError
from playhead.recorder.wire import VERSION, Frames, decode_frame, draft_from_json
from playhead.recorder.writer import RunWriter
from playhead.store.clock import parse_us
from playhead.store.dirstore import DirStore
from playhead.store.stores import Store

Count = Callable[[int, int], None]
"""Called with programs and events to add."""
_MAX_MESSAGES = 100_000
_MAX_AGENT = 4096


def answer(conversation: Conversation, frames: Frames) -> dict[str, JSON] | None:
    """The answer to the next frame; None at the end."""
    try:
        raw = frames.read()
        return None if raw is None else conversation.answer(decode_frame(raw))
    except PlayheadError as error:
        return {"error": {"code": error.code, "what": str(error.what), "remedy": error.remedy}}
    except (ValueError, TypeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"[:200]
        return {"error": {"code": "usage", "what": what, "remedy": ""}}


class Conversation:
    """One program's requests, in order."""

    def __init__(self, writer: RunWriter, count: Count) -> None:
        self._writer = writer
        self._count = count
        self._who: dict[str, JSON] | None = None
        self.over = False

    def answer(self, frame: dict[str, JSON]) -> dict[str, JSON]:
        """Do what a frame asks.

        Raises:
            PlayheadError, ValueError: it was refused; nothing was written.
        """
        op = frame.get("op")
        if op == "hello":
            return self._hello(frame)
        if self._who is None:
            raise UsageError("the first frame is hello")
        if op == "emit":
            return self._state(self._emit(frame))
        if op == "sync":
            self._writer.sync()
        elif op == "bye":
            self.over = True
        else:
            raise UsageError(f"op {op!r:.80}", remedy="Use hello, emit, sync or bye")
        return self._state(self._writer.journal.next_seq - 1)

    def _hello(self, frame: dict[str, JSON]) -> dict[str, JSON]:
        agent, pid = frame.get("agent"), frame.get("pid")
        if frame.get("v") != VERSION:
            raise UsageError(f"protocol {frame.get('v')!r:.20}, not {VERSION}")
        if not isinstance(agent, str) or type(pid) is not int or len(agent) > _MAX_AGENT:
            raise UsageError("hello: agent (text) and pid (number) are needed")
        require_plain(agent, "/agent")
        if self._who is None:
            self._count(1, 0)
        self._who = {"agent": agent, "pid": pid}
        writer = self._writer
        return {
            "run_id": writer.run_id,
            "uid": writer.uid,
            "root": _root_of(writer.store),
            **self._state(writer.journal.next_seq - 1),
        }

    def _emit(self, frame: dict[str, JSON]) -> int:
        draft = draft_from_json(frame.get("draft"))
        messages, at = frame.get("messages"), frame.get("at")
        if messages is not None:
            if not isinstance(messages, list) or len(messages) > _MAX_MESSAGES:
                raise UsageError("messages: no list")
            require_plain(messages, "/messages")
        if at is not None and not isinstance(at, str):
            raise UsageError("at: no text")
        if at is not None and parse_us(at) < 0:
            raise UsageError("at: a time before 1970")
        seq = self._writer.emit(draft, at=at, messages=messages, normalised=True)
        if draft.type != "run.stamped":
            self._count(0, 1)
        return seq

    def _state(self, seq: int) -> dict[str, JSON]:
        writer = self._writer
        return {"seq": seq, "durable": writer.durable_upto, "head": writer.head}

    def left(self) -> None:
        """The connection ended; without a bye that is worth a row."""
        if self._who is None or self.over:
            return
        self.over = True
        stamp = {**self._who, "status": "disconnected"}
        try:
            self._writer.emit(Draft("run.stamped", {"stamp": stamp}, name=str(self._who["agent"])))
        except PlayheadError:
            return  # the run ended first, or the disk is full: the chain is whole without it


def _root_of(store: Store) -> str:
    """The directory into which a program puts blobs itself; "" where it sends all to the owner:
    what opens a database stays with the owner."""
    return os.path.abspath(store.root.path) if isinstance(store, DirStore) else ""
