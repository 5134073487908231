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
        self._recover(database.chat(ref.tenant_id, ref.chat_id))

    def _recover(self, record: ChatRecord | None) -> None:
        """Verify what is there, as an opening journal does (`playhead.store.recovery`)."""
        tip = Tip() if record is None else record.tip
        if not tip.size and not any(trusted_heads(self.anchor)):
            return
        state = recover_source(DbSource(self._database, self._ref, tip), self.anchor)
        if (state.size, state.head, self.anchor.bytes) != tip or state.end < state.length:
            raise self._broken("the rows do not end as the table of chats says")
        self._advance(Standing(state.size, state.head))

    def _broken(self, what: str) -> JournalBroken:
        return JournalBroken(
            what,
            place=Place(self._ref.where),
            remedy="Restore the database from a backup; 'playhead verify' shows what is left",
        )

    @property
    def lock(self) -> threading.RLock:
        return self._lock

    def _advance(self, standing: Standing) -> None:
        self.next_seq, self.head = standing.size, standing.head
        self.durable_upto = self.next_seq

    # -- the transaction

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the chat against every other writer; inside of it, the same transaction goes on.

        Raises:
            JournalClosed: after `close`. StoreError: the database refused; nothing was written.
            JournalBroken: the chain there is not the one that was opened, or went backwards.
        """
        if os.getpid() != self._pid:
            raise JournalError(
                "this process inherited the chain by fork",
                remedy="Record in the child under a run of its own",
            )
        with self._lock:
            if self._closed:
                raise JournalClosed("the chain is closed")
            if self._pending is not None:
                yield
                return
            ref, before = self._ref, (self.next_seq, self.head)
            try:
                with self._database.exclusive(
                    ref.tenant_id, ref.chat_id, ref.run_id, create=True
                ) as record:
                    assert record is not None  # create was asked
                    self._catch_up(record)
                    before = (self.next_seq, self.head)
                    standing = Standing(*before, self.anchor.uid, self.anchor.native)
                    self._pending = pending = _Pending(standing, self.anchor.bytes)
                    yield
                self._take(pending)
            except BaseException:
                self.next_seq, self.head = before
                self.durable_upto = self.next_seq
                raise
            finally:
                self._pending = None
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
                raw = row.line + b"\n"
                self.anchor.add(raw, row.line, commitment_of(self.anchor, row.row))
                self.anchor.uid, self.anchor.native = at.uid, at.native
                self._advance(at)
        if (self.next_seq, self.head, self.anchor.bytes) != tip:
            raise self._broken("its head is not the one that was there")

    def _take(self, pending: _Pending) -> None:
        """The anchor follows what is committed now."""
        for line, row, given in pending.rows:
            commitment = given if row is None else commitment_of(self.anchor, row)
            self.anchor.add(line + b"\n", line, commitment)
        self.anchor.uid = pending.standing.uid or self.anchor.uid
        self.anchor.native = pending.standing.native
        self.durable_upto = self.next_seq

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
            if self._pending is None:
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
