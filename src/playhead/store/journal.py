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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playhead.core.model import JSON, Step
from playhead.core.rows import Row
from playhead.errors import UsageError, ValueRefused
from playhead.formats.journal import LOCK, MAX_ROW, SEALED, SEGMENT, encode_row
from playhead.store.adopt import Standing, adopt, numbered
from playhead.store.anchor import Anchor
from playhead.store.durable import DISK, Disk, FileLock, ensure_dir
from playhead.store.idindex import IdIndex
from playhead.store.journalfile import LEVELS, OpenJournal
from playhead.store.opening import require_fields, stamp_of
from playhead.store.recovery import commitment_of
from playhead.store.source import digest_of
from playhead.store.stores import Durability

__all__ = ["LEVELS", "Durability", "Journal"]

_AT_ONCE = 512
"""Finished rows that are written in one go."""

_New = tuple[bytes, str, Row | None, bytes | None]
"""A row to write: line, step hash; parsed, when its commitment is to be derived; else that one."""


class Journal(OpenJournal):
    """An open chain, for appending. Use ``Journal.open``; close it, or use ``with``.

    ``next_seq`` is the number of steps, ``head`` the last step hash, ``durable_upto`` the
    number of steps synced to disk.
    """

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
            self._write([(line, step_hash, None, commitment)])
            self._settle()
        content = (model, prompt, tool_call, tool_result, effort)
        return Step(seq, prev, input_hash, step_hash, *content, stamp, tuple(blob_refs), 2)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the journal against this process's other threads; its lock file keeps every other
        process out. What is appended inside is written row by row.

        Raises:
            JournalClosed: after ``close``.
        """
        self._check_process()
        with self.lock:
            self._check_open()
            yield

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Take finished rows as they are, byte for byte; they must follow the head.

        Raises:
            JournalBroken: a line does not verify or does not follow; nothing was written.
            WriteFailed: the disk refused; rows before it are in the chain.
        """
        with self.exclusive():
            at = Standing(self.next_seq, self.head, self.anchor.uid, self.anchor.native)
            where = str(self.folder / SEGMENT)
            taken, standing = adopt(numbered(lines, self.next_seq), at, where)
            for first in range(0, len(taken), _AT_ONCE):
                some = taken[first : first + _AT_ONCE]
                self._write([(one.line, one.step_hash, one.row, None) for one in some])
            self.anchor.uid, self.anchor.native = standing.uid, standing.native
            self._settle()

    def find(self, event_id: str) -> bytes | None:
        """The line of the first row whose envelope has this id.

        Raises:
            WriteFailed, StoreError: the index of ids cannot be kept (`playhead.store.idindex`).
        """
        with self.exclusive():
            if self._ids is None:
                self._ids = IdIndex(self.folder)
            return self._ids.find(self._file.fileno(), self._file.size, event_id)

    def _write(self, rows: Sequence[_New]) -> None:
        """The rows onto the disk, then the head onto the rows: all, or none.

        A Ctrl-C may strike between any two lines here. The steps were not acknowledged, so their
        bytes are cut off again; left there, the next step would fork the chain.
        """
        anchor = self.anchor
        anchor.make_room(len(rows))
        before, mark, added = self._file.size, anchor.mark(), False
        after = self.next_seq + len(rows)
        try:
            self._file.append(b"".join([line + b"\n" for line, _, _, _ in rows]))
            if self.durability == "step":
                self._file.sync()
            added = True
            for line, _, row, given in rows:
                commitment = given if row is None else commitment_of(anchor, row)
                anchor.add(line + b"\n", line, commitment)
            self.next_seq, self.head = after, rows[-1][1]
        except BaseException:
            self._file.take_back(before)
            if added:
                anchor.rewind(mark, digest_of(self._file.fileno(), before), before)
            raise

    def _settle(self) -> None:
        if self.durability == "step":
            self.durable_upto = self.next_seq
            self._signer.publish(self._signer.statement(self.next_seq, self.head))
        elif self._syncer is not None:
            self._syncer.wake()
