"""A chain in a database, open for appending (the `OpenChain` of every database).

Life of an append: inside one transaction that no other writer of the chat can enter the tip is
read again, rows that others added are walked and taken in, the row is hashed onto the head and
inserted, the transaction is committed. Only then do ``next_seq``, head and anchor advance here.
A committed row survives the loss of power, so ``durable_upto`` is ``next_seq``.

What this object knows is never more than what was committed: after a failure in the middle, or
a Ctrl-C just behind the commit, the next append reads the tip again and catches up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from playhead.core.chain import envelope_of
from playhead.core.model import GENESIS, JSON, Step
from playhead.core.rows import Row, decode_row
from playhead.errors import JournalBroken, JournalClosed, JournalError, Place, ValueRefused
from playhead.formats.journal import MAX_ROW, encode_row
from playhead.store.adopt import Standing, adopt, new_row, numbered
from playhead.store.anchor import Anchor
from playhead.store.database import ChatRecord, Database, NewRow, Tip
from playhead.store.dblines import DbLines, DbSource
from playhead.store.opening import stamp_of
from playhead.store.recovery import commitment_of, recover_source, trusted_heads
from playhead.store.scope import column_text
from playhead.store.signer import Signer
from playhead.store.stores import ChainRef


@dataclass(slots=True)
class _Pending:
    """What the open transaction added, for the anchor to take in after the commit."""

    standing: Standing
    length: int
    rows: list[tuple[bytes, Row | None, bytes | None]] = field(default_factory=list)


class DbChain:
    """An open chain of one chat. Thread-safe; close it.

    Raises:
        JournalBroken: what is there does not verify, or signed rows are missing.
    """

    def __init__(self, database: Database, ref: ChainRef, anchor: Anchor) -> None:
        self.run_id = ref.run_id
        self.anchor = anchor
        self.next_seq = 0
        self.head = GENESIS
        self.durable_upto = 0
        self._database = database
        self._ref = ref
        self._lock = threading.RLock()
        self._signer = Signer(anchor)
        self._pid = os.getpid()
        self._closed = False
        self._pending: _Pending | None = None
        self._writing = threading.Lock()  # held during a transaction, whatever interrupts it
        self._committed = (0, GENESIS)
        self._unsure = False
        self._recover()

    def _recover(self) -> None:
        """Verify what is there, as an opening journal does (`playhead.store.recovery`)."""
        record = self._database.chat(self._ref.tenant_id, self._ref.chat_id)
        tip = Tip() if record is None else record.tip
        if not tip.size and not any(trusted_heads(self.anchor)):
            return
        source = DbSource(self._database, self._ref, tip)
        state = recover_source(source, self.anchor)
        if (state.size, state.head, source.read) != tip or state.end < state.length:
            raise self._broken("the rows do not end as the table of chats says")
        self._advance(Standing(state.size, state.head))

    def _broken(self, what: str) -> JournalBroken:
        remedy = "Restore the database from a backup; 'playhead verify' shows what is left"
        return JournalBroken(what, place=Place(self._ref.where), remedy=remedy)

    @property
    def lock(self) -> threading.RLock:
        return self._lock

    def _advance(self, standing: Standing) -> None:
        self._committed = (standing.size, standing.head)
        self._show_committed()

    def _show_committed(self) -> None:
        self.next_seq, self.head = self._committed
        self.durable_upto = self.next_seq

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """While the anchor moves. Half a move cannot be taken back: after an interrupt the next
        transaction starts from what is there, verified anew."""
        self._unsure = True
        yield
        self._unsure = False

    def _sure(self) -> None:
        if self._unsure:
            self.anchor = Anchor(self.anchor.files, self.anchor.ring)
            self._signer = Signer(self.anchor)
            self._committed = (0, GENESIS)
            self._recover()
            self._unsure = False

    # -- the transaction

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the chat against every other writer; inside of it, the same transaction goes on.

        Raises:
            JournalClosed: after `close`. StoreError: the database refused; nothing was written.
            JournalBroken: the chain there is not the one that was opened, or went backwards.
        """
        if os.getpid() != self._pid:
            remedy = "Record in the child under a run of its own"
            raise JournalError("this process inherited the chain by fork", remedy=remedy)
        with self._lock:
            if self._closed:
                raise JournalClosed("the chain is closed")
            if self._writing.locked():  # the lock is held: it is this thread's own transaction
                yield
                return
            ref = self._ref
            with self._writing:
                self._sure()
                self._show_committed()
                try:
                    with self._database.exclusive(
                        ref.tenant_id, ref.chat_id, ref.run_id, create=True
                    ) as record:
                        assert record is not None  # create was asked
                        self._catch_up(record)
                        anchor = self.anchor
                        standing = Standing(self.next_seq, self.head, anchor.uid, anchor.native)
                        self._pending = pending = _Pending(standing, anchor.bytes)
                        yield
                    self._take(pending)
                except BaseException:
                    self._show_committed()
                    raise
            self._signer.publish(self._signer.statement(self.next_seq, self.head))

    def _catch_up(self, record: ChatRecord) -> None:
        """Take in what other writers committed since this one looked."""
        tip = record.tip
        if record.run_id != self.run_id:
            raise self._broken("the chat holds another run than the one that was opened")
        if tip.size < self.next_seq:
            raise self._broken(f"it went back to {tip.size} rows, {self.next_seq} were there")
        if tip.size > self.next_seq:
            lines = DbLines(self._database, self._ref, tip.size).walk(self.next_seq, None)
            at = Standing(self.next_seq, self.head, self.anchor.uid, self.anchor.native)
            for number, offset, line in lines:  # one by one: what is behind may be long
                taken, at = adopt([(number, offset, line)], at, self._ref.where)
                row = taken[0]
                with self._moving():
                    raw = row.line + b"\n"
                    self.anchor.add(raw, row.line, commitment_of(self.anchor, row.row))
                    self.anchor.uid, self.anchor.native = at.uid, at.native
                    self._advance(at)
        if (self.next_seq, self.head, self.anchor.bytes) != tip:
            raise self._broken("its head is not the one that was there")

    def _take(self, pending: _Pending) -> None:
        """The anchor follows what is committed now."""
        with self._moving():
            for line, row, given in pending.rows:
                commitment = given if row is None else commitment_of(self.anchor, row)
                self.anchor.add(line + b"\n", line, commitment)
            self.anchor.uid = pending.standing.uid or self.anchor.uid
            self.anchor.native = pending.standing.native
            self._advance(pending.standing)

    def _insert(self, rows: Sequence[NewRow], standing: Standing) -> None:
        pending = self._pending
        assert pending is not None
        length = pending.length + sum(len(row.line) + 1 for row in rows)
        tip = Tip(standing.size, standing.head, length)
        ref = self._ref
        self._database.insert(ref.tenant_id, ref.chat_id, rows, tip, time.time())
        pending.standing, pending.length = standing, length
        self.next_seq, self.head = standing.size, standing.head

    # -- appending

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
        """Append one step and return it, committed (inside `exclusive`: with its end).

        Raises:
            ValueRefused, StoreError, JournalClosed, JournalBroken: nothing was written.
        """
        stamp = stamp_of(ts)
        with self.exclusive():
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
            pending = self._pending
            assert pending is not None
            envelope = envelope_of({"tool_call": tool_call})
            kind = "step" if envelope is None else column_text(envelope["event"]) or "step"
            event_id = None if envelope is None else column_text(envelope.get("id"))
            native = pending.standing.native + (envelope is not None)
            standing = Standing(seq + 1, step_hash, pending.standing.uid, native)
            self._insert([NewRow(seq, kind, event_id, step_hash, line)], standing)
            pending.rows.append((line, None, commitment))
        content = (model, prompt, tool_call, tool_result, effort)
        return Step(seq, prev, input_hash, step_hash, *content, stamp, tuple(blob_refs), 2)

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Take finished rows as they are, byte for byte; they must follow the head.

        Raises:
            JournalBroken: a line does not verify or does not follow; nothing was written.
        """
        with self.exclusive():
            pending = self._pending
            assert pending is not None
            rows = numbered(lines, self.next_seq)
            taken, standing = adopt(rows, pending.standing, self._ref.where)
            first = self.next_seq
            new = [new_row(seq, one.row, one.line) for seq, one in enumerate(taken, first)]
            self._insert(new, standing)
            pending.rows += [(one.line, one.row, None) for one in taken]

    def find(self, event_id: str) -> bytes | None:
        """The line of the first row whose envelope has this id. The table's index finds it, the
        line itself has the last word.

        Raises:
            JournalBroken: the index names a row of another id.
        """
        key = column_text(event_id)
        if key is None:
            return None
        line = self._database.find_event(self._ref.tenant_id, self._ref.chat_id, key)
        if line is None:
            return None
        row = decode_row(line)
        envelope = envelope_of(row.obj) if isinstance(row, Row) else None
        if envelope is None or envelope.get("id") != event_id:
            raise self._broken("the index of event ids does not fit the rows")
        return line

    def sync(self) -> int:
        """Sign the head when it is due; every row is durable already."""
        with self._lock:
            if self._closed:
                raise JournalClosed("the chain is closed")
            if not self._writing.locked():
                self._signer.publish(self._signer.statement(self.next_seq, self.head))
            return self.durable_upto

    def close(self) -> None:
        """Sign the head. Idempotent.

        Raises:
            WriteFailed, StoreError: the head could not be kept; the rows are safe.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._signer.final(self.next_seq, self.head)
