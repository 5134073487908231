"""Chains in memory: the same promises as a database except that nothing outlives the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from playhead.errors import StoreError
from playhead.store.database import ChatRecord, NewRow, Tip

_ROWS = 512
_Key = tuple[str, str]


@dataclass(slots=True)
class _Chat:
    record: ChatRecord
    lines: list[bytes] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)
    note: tuple[str, bytes] | None = None


@dataclass(slots=True)
class _Staged:
    """What one transaction adds: seen inside, kept by its commit."""

    key: _Key
    chat: _Chat | None
    lines: list[bytes] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)
    note: tuple[str, bytes] | None = None


class MemoryDatabase:
    """A `playhead.store.database.Database` of this process. Each is a world of its own."""

    def __init__(self) -> None:
        self.url = "memory://"
        self._lock = threading.RLock()
        self._writing = threading.Lock()  # held during a transaction, whatever interrupts it
        self._chats: dict[_Key, _Chat] = {}
        self._blobs: dict[_Key, bytes] = {}
        self._staged: _Staged | None = None

    def _at(self, key: _Key) -> tuple[_Chat | None, _Staged | None]:
        staged = self._staged if self._writing.locked() else None
        if staged is not None and staged.key == key:
            return staged.chat, staged
        return self._chats.get(key), None

    def chats(self, tenant_id: str) -> list[ChatRecord]:
        with self._lock:
            found = [c.record for (tenant, _), c in self._chats.items() if tenant == tenant_id]
        return sorted(found, key=lambda record: (record.created, record.chat_id))

    def chat(self, tenant_id: str, chat_id: str) -> ChatRecord | None:
        with self._lock:
            found, _ = self._at((tenant_id, chat_id))
            return None if found is None else found.record

    def rows(self, tenant_id: str, chat_id: str, start: int, stop: int) -> Iterator[list[bytes]]:
        number = start
        while number < stop:
            with self._lock:
                found, staged = self._at((tenant_id, chat_id))
                size = 0 if found is None else found.record.tip.size
                lines = [] if found is None else found.lines
                old = size - (0 if staged is None else len(staged.lines))
                some = lines[number : min(stop, number + _ROWS, old)]
                if not some and staged is not None:
                    some = staged.lines[number - old : min(stop, number + _ROWS) - old]
            if not some:
                return
            number += len(some)
            yield some

    def find_event(self, tenant_id: str, chat_id: str, event_id: str) -> bytes | None:
        with self._lock:
            found, staged = self._at((tenant_id, chat_id))
            if found is None:
                return None
            old = found.record.tip.size - (0 if staged is None else len(staged.lines))
            seq = found.events.get(event_id, old)
            if seq < old:
                return found.lines[seq]
            if staged is not None and event_id in staged.events:
                return staged.lines[staged.events[event_id] - old]
            return None

    @contextmanager
    def exclusive(
        self, tenant_id: str, chat_id: str, run_id: str, *, create: bool
    ) -> Iterator[ChatRecord | None]:
        key = (tenant_id, chat_id)
        with self._lock:
            if self._writing.locked():
                raise StoreError("a transaction inside of a transaction", remedy="Finish the first")
            with self._writing:
                chat = self._chats.get(key)
                if chat is None and create:
                    now = time.time()
                    chat = _Chat(ChatRecord(chat_id, run_id, Tip(), now, now))
                elif chat is not None:  # a copy with a record of its own, over the same lists
                    chat = _Chat(chat.record, chat.lines, chat.events, chat.note)
                    del chat.lines[chat.record.tip.size :]  # of a commit that was interrupted
                self._staged = staged = _Staged(key, chat)
                yield None if chat is None else chat.record
                if chat is not None:
                    first = len(chat.lines)
                    chat.lines.extend(staged.lines)
                    for event_id, seq in staged.events.items():
                        if chat.events.get(event_id, first) >= first:
                            chat.events[event_id] = seq
                    chat.note = staged.note or chat.note
                    self._chats[key] = chat  # this is the commit: the tip moves

    def insert(
        self, tenant_id: str, chat_id: str, rows: Sequence[NewRow], tip: Tip, written: float
    ) -> None:
        with self._lock:
            chat, staged = self._at((tenant_id, chat_id))
            if chat is None or staged is None:
                raise StoreError("rows outside of a transaction", remedy="Use `exclusive`")
            for row in rows:
                if row.seq != len(chat.lines) + len(staged.lines):
                    raise StoreError(f"row {row.seq} does not follow", remedy="Read the tip again")
                if row.event_id is not None:
                    staged.events.setdefault(row.event_id, row.seq)
                staged.lines.append(row.line)
            chat.record = replace(chat.record, tip=tip, written=written)

    def note(self, tenant_id: str, chat_id: str) -> tuple[str, bytes] | None:
        with self._lock:
            found, staged = self._at((tenant_id, chat_id))
            if staged is not None and staged.note is not None:
                return staged.note
            return None if found is None else found.note

    def put_note(self, tenant_id: str, chat_id: str, note: str, resume: bytes) -> None:
        with self._lock:
            found, staged = self._at((tenant_id, chat_id))
            if staged is not None:
                staged.note = (note, resume)
            elif found is not None:
                found.note = (note, resume)

    def blob(self, tenant_id: str, digest: str) -> bytes | None:
        with self._lock:
            return self._blobs.get((tenant_id, digest))

    def put_blob(self, tenant_id: str, digest: str, data: bytes) -> None:
        with self._lock:
            self._blobs.setdefault((tenant_id, digest), data)

    def close(self) -> None:
        """Nothing to give back; what is held goes with the object."""
