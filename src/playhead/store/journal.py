"""The journal: append, recovery, lock, durability (docs/reference/formats/journal.md).

Life of an append, under the journal's own lock:

1. the row is encoded once and hashed onto the head;
2. one write puts row and newline at the end. At this point the step survives the death of
   the process; a write that failed or fell short is cut off again and was never there;
3. level ``step``: fdatasync. At this point it survives the loss of power too. ``batch``: a
   background thread syncs within 20 ms; ``os``: whenever the system likes;
4. only then do ``seq`` and head advance and the step is returned (acknowledged).

``durable_upto`` says how many steps are known to survive a power cut. One writer at a time:
the lock names its owner's pid; a forked child may not append with the parent's journal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

from playhead.core.model import GENESIS, JSON, Step
from playhead.errors import (
    JournalClosed,
    JournalError,
    UsageError,
    ValueRefused,
)
from playhead.formats.journal import LOCK, MAX_ROW, SEALED, SEGMENT, encode_row
from playhead.store.anchor import Anchor
from playhead.store.append import AppendFile
from playhead.store.durable import DISK, Disk, FileLock, ensure_dir
from playhead.store.opening import recovered, require_fields, stamp_of
from playhead.store.recovery import Recovered
from playhead.store.signer import Signer
from playhead.store.source import digest_of
from playhead.store.syncer import Syncer
from playhead.store.torn import cut_torn_tail

Durability = Literal["step", "batch", "os"]
LEVELS: tuple[Durability, ...] = ("step", "batch", "os")


class Journal:
    """An open chain, for appending. Use ``Journal.open``; close it, or use ``with``.

    ``next_seq`` is the number of steps, ``head`` the last step hash, ``durable_upto`` the
    number of steps synced to disk.
    """

    def __init__(
        self, folder: Path, anchor: Anchor, lock: FileLock, durability: Durability, disk: Disk
    ) -> None:
        self.folder = folder
        self.anchor = anchor
        self.durability = durability
        self.lock = threading.RLock()
        self.torn: Path | None = None
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

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        durability: Durability = "batch",
        anchor: Anchor | None = None,
        disk: Disk = DISK,
    ) -> Journal:
        """Open ``folder`` for appending, making it when it is not there.

        The chain is revalidated from genesis, or from the last signed head when the bytes
        before it hash to what was signed. A torn tail moves into a ``.torn`` file.

        Raises:
            JournalLocked: another writer owns it (its pid is in the error).
            JournalBroken: a row before the tail does not verify, or signed rows are missing.
            UsageError: an unknown durability level.
        """
        if durability not in LEVELS:
            raise UsageError(f"durability {durability!r}", remedy="Use step, batch or os")
        path = Path(folder)
        ensure_dir(path)
        lock = FileLock(path / LOCK)
        try:
            if (path / SEALED).exists() and not (path / SEGMENT).exists():
                from playhead.store.seal import unseal_folder

                unseal_folder(path, disk)
            return cls(path, anchor or Anchor(path), lock, durability, disk)
        except BaseException:
            lock.release()
            raise

    def append(
        self,
        *,
        input_hash: str,
        model: str | None = None,
        prompt: str | None = None,
        tool_call: JSON = None,
        tool_result: JSON = None,
        effort: str | None = None,
        blob_refs: Sequence[str] = (),
        ts: float | None = None,
        commitment: bytes | None = None,
    ) -> Step:
        """Append one step and return it, acknowledged at the journal's durability level.

        Values must be plain JSON without NaN, odd keys or lone surrogates; ``ts`` defaults
        to now (epoch seconds). ``commitment`` is the recorder's field commitment.

        Raises:
            ValueRefused: a value JSON cannot say; nothing was written.
            WriteFailed: the disk refused; the step is not in the chain.
            JournalClosed: after ``close``.
        """
        texts = {"model": model, "prompt": prompt, "effort": effort}
        values = {"tool_call": tool_call, "tool_result": tool_result}
        require_fields(input_hash, texts, values, blob_refs)
        return self.append_normal(
            input_hash=input_hash,
            model=model,
            prompt=prompt,
            tool_call=tool_call,
            tool_result=tool_result,
            effort=effort,
            blob_refs=blob_refs,
            ts=ts,
            commitment=commitment,
        )

    def append_normal(
        self,
        *,
        input_hash: str,
        model: str | None,
        prompt: str | None,
        tool_call: JSON,
        tool_result: JSON,
        effort: str | None = None,
        blob_refs: Sequence[str] = (),
        ts: float | None = None,
        commitment: bytes | None = None,
    ) -> Step:
        """`append` for values that `Normaliser` made: they are not checked a second time.

        Raises:
            WriteFailed, JournalClosed: as `append`.
        """
        stamp = stamp_of(ts)
        self._check_process()
        with self.lock:
            self._check_open()
            seq, prev = self.next_seq, self.head
            line, step_hash = encode_row(
                seq=seq,
                prev_hash=prev,
                input_hash=input_hash,
                model=model,
                prompt=prompt,
                tool_call=tool_call,
                tool_result=tool_result,
                ts=stamp,
                effort=effort,
                blob_refs=blob_refs,
            )
            if len(line) > MAX_ROW:
                raise ValueRefused(f"a row of {len(line)} bytes; readers take {MAX_ROW}")
            self._write(line, step_hash, commitment)
            self._settle()
        content = (model, prompt, tool_call, tool_result, effort)
        return Step(seq, prev, input_hash, step_hash, *content, stamp, tuple(blob_refs), 2)

    def _write(self, line: bytes, step_hash: str, commitment: bytes | None) -> None:
        """The row onto the disk, then the head onto the row: both, or neither.

        A Ctrl-C may strike between any two lines here. The step was not acknowledged, so its
        bytes are cut off again; left there, the next step would fork the chain.
        """
        raw = line + b"\n"
        after = self.next_seq + 1
        before, mark, added = self._file.size, self.anchor.mark(), False
        try:
            self._file.append(raw)
            if self.durability == "step":
                self._file.sync()
            added = True
            self.anchor.add(raw, line, commitment)
            self.next_seq, self.head = after, step_hash
        except BaseException:
            self._file.take_back(before)
            if added:
                self.anchor.rewind(mark, digest_of(self._file.fileno(), before), before)
            raise

    def _settle(self) -> None:
        if self.durability == "step":
            self.durable_upto = self.next_seq
            self._signer.publish(self._signer.statement(self.next_seq, self.head))
        elif self._syncer is not None:
            self._syncer.wake()

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
            self._file.close()
            self._file_lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
