"""What an open journal is made of beside its appends: opening, syncing, closing.

The promises stand in `playhead.store.journal`, whose `Journal` this is one half of.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from playhead.core.model import GENESIS
from playhead.errors import JournalClosed, JournalError
from playhead.formats.journal import SEGMENT
from playhead.store.anchor import Anchor
from playhead.store.append import AppendFile
from playhead.store.durable import Disk, FileLock
from playhead.store.idindex import IdIndex
from playhead.store.opening import recovered
from playhead.store.recovery import Recovered
from playhead.store.signer import Signer
from playhead.store.stores import Durability
from playhead.store.syncer import Syncer
from playhead.store.torn import cut_torn_tail

LEVELS: tuple[Durability, ...] = ("step", "batch", "os")


class OpenJournal:
    """A journal whose chain was revalidated and whose lock is held, until `close`."""

    def __init__(
        self, folder: Path, anchor: Anchor, lock: FileLock, durability: Durability, disk: Disk
    ) -> None:
        self.folder = folder
        self.anchor = anchor
        self.durability = durability
        self.run_id = folder.name
        self.lock = threading.RLock()
        self.torn: Path | None = None
        self._ids: IdIndex | None = None
        self._signer = Signer(anchor)
        self._file_lock = lock
        self._pid = os.getpid()
        self._closed = False
        path = folder / SEGMENT
        state = recovered(folder, anchor)
        self._file = AppendFile(path, disk)
        self.next_seq = 0
        self.head = GENESIS
        if state is not None:
            self.next_seq, self.head = state.size, state.head
            try:
                self._repair(path, state, disk)
            except BaseException:
                self._file.close()
                raise
        self.durable_upto = self.next_seq
        self._syncer = Syncer(self._background) if durability == "batch" else None

    def _repair(self, path: Path, state: Recovered, disk: Disk) -> None:
        """Cut a torn tail off; end a last row that has no newline."""
        if state.end < state.length:
            self.torn = cut_torn_tail(path, state.end, disk)
            self._file.size = state.end
        if state.needs_newline:
            self._file.append(b"\n")
            self.anchor.skip(b"\n")

    def _check_open(self) -> None:
        if self._closed:
            raise JournalClosed("the journal is closed")

    def _check_process(self) -> None:
        """Asked before the lock, which a forked child may have inherited locked for ever."""
        if os.getpid() != self._pid:
            raise JournalError(
                "this process inherited the journal by fork",
                remedy="Record in the child under a run of its own",
            )

    def sync(self) -> int:
        """Make every step so far durable; returns ``durable_upto``.

        Raises:
            WriteFailed: the disk refused; the journal takes no more steps until reopened.
        """
        self._check_process()
        with self.lock:
            self._check_open()
            if self.durable_upto < self.next_seq:
                self._file.sync()
                self.durable_upto = self.next_seq
            self._signer.publish(self._signer.statement(self.next_seq, self.head))
            return self.durable_upto

    def _background(self) -> float | None:
        """One round of the syncer; returns in how many seconds the next is due of itself."""
        with self.lock:
            if self._closed or self._file.poisoned:
                return None
            target = self.next_seq
            statement = self._signer.statement(self.next_seq, self.head)
        self._file.sync()
        with self.lock:
            self.durable_upto = max(self.durable_upto, target)
        self._signer.publish(statement)
        return self._signer.due_in(target)

    def close(self) -> None:
        """Sync, sign the head inside and outside the root, release the lock. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self.lock:
            if self._closed:
                return
            self._closed = True
        if self._syncer is not None:
            self._syncer.stop()
        try:
            if not self._file.poisoned:
                self._file.sync()
                self.durable_upto = self.next_seq
                self._signer.final(self.next_seq, self.head)
        finally:
            if self._ids is not None:
                self._ids.close()
            self._file.close()
            self._file_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
