"""The event log over a chain: rows read in order, folded, and appended one by one.

`BlockingLog` is the log; `playhead.store.asynclog.EventLog` is the same without blocking. Both
serve every store (design: "Rows"). Reading does not verify: `verify` and the opening of a
replay do.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from playhead.core.events import Draft
from playhead.core.fold import Projection, start
from playhead.core.logrow import LogRow
from playhead.core.model import Step
from playhead.core.quickevent import log_row
from playhead.errors import (
    HeadConflict,
    JournalBroken,
    NotFound,
    PlayheadError,
    StoreError,
    UsageError,
    ValueRefused,
    WriteFailed,
)
from playhead.formats.journal import encode_row
from playhead.store.clock import Clock, now_us
from playhead.store.drafts import begin, repeated, started, write_draft
from playhead.store.rawevent import checked
from playhead.store.scope import check_scope, check_tenant
from playhead.store.stores import OpenChain, Store

OPEN_CHAINS = 64
"""Chains that a log holds open for appending; the one used longest ago is closed first."""
AGENT = "event-log"
"""The label of a chain that the log itself began."""


class LogHead(NamedTuple):
    """The end of a chat: ``size`` rows, the last with ``row_hash``."""

    size: int
    row_hash: str


class BlockingLog:
    """The event log of a store. Thread-safe; close it, so that the heads are signed.

    Args:
        store: where the chains lie. It stays open unless ``own_store`` is set.
        clock: the time of appended rows, microseconds since the epoch.
    """

    def __init__(self, store: Store, *, own_store: bool = False, clock: Clock = now_us) -> None:
        self.store = store
        self._own_store = own_store
        self._clock = clock
        self._lock = threading.RLock()
        self._chains: OrderedDict[tuple[str, str], OpenChain] = OrderedDict()

    # -- reading

    def iterate(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> Iterator[LogRow]:
        """The rows after ``from_sequence_number`` up to and with ``up_to_sequence_number``.

        The arguments are checked and the head is frozen at the call. A line that is no row is
        an event of type ``unreadable``; a row playhead did not write is one of type ``step``.

        Raises:
            UsageError: a blank tenant or chat, a bound that is no number from 0.
            NotFound: the chat is not there, or it is another tenant's.
        """
        check_scope(tenant_id, chat_id)
        first = _bound("from_sequence_number", from_sequence_number)
        last = up_to_sequence_number
        if last is not None:
            last = _bound("up_to_sequence_number", last)
        lines = self.store.lines(self.store.find(tenant_id, chat_id))

        def rows() -> Iterator[LogRow]:
            try:
                for number, (_, _, line) in enumerate(lines.walk(first, last), first):
                    yield log_row(tenant_id, chat_id, number, line)
            finally:
                lines.close()

        return rows()

    def fold(
        self,
        projection: Projection,
        *,
        chat_id: str,
        tenant_id: str,
        up_to_sequence_number: int | None = None,
    ) -> object:
        """The state of ``projection`` after the rows up to ``up_to_sequence_number`` (all).

        It goes through `playhead.core.fold`, as a replay does.

        Raises:
            UsageError, NotFound: as `iterate`. ValueRefused: a row without a usable type.
        """
        rows = self.iterate(
            chat_id=chat_id, tenant_id=tenant_id, up_to_sequence_number=up_to_sequence_number
        )
        folded = start((projection,))
        for row in rows:
            folded = folded.apply(row.event)
        return folded.of(projection.key)

    def head(self, chat_id: str, tenant_id: str) -> LogHead | None:
        """Size and last row hash of a chat; None when it is not there or has no row.

        Raises:
            UsageError: a blank tenant or chat.
        """
        check_scope(tenant_id, chat_id)
        try:
            tip = self.store.tip(self.store.find(tenant_id, chat_id))
        except NotFound:
            return None
        return LogHead(tip.size, tip.step_hash) if tip.size else None

    def list_chats(self, tenant_id: str) -> list[str]:
        """The tenant's chats, oldest first."""
        check_tenant(tenant_id)
        found = [ref.chat_id for ref in self.store.list_chats(tenant_id)]
        return list(dict.fromkeys(found))

    # -- appending

    def append(
        self,
        event: Draft,
        *,
        chat_id: str,
        tenant_id: str,
        expected_head: str | LogHead | None = None,
    ) -> LogRow:
        """Append one event as it is: checked, never normalised (resolution 10).

        The first row of a new chat is ``run.started``, as the recorder writes it, unless
        ``event`` is one; ``event_count`` counts it. An event whose ``id`` is there with the same
        content is a no-op that returns the row it made; the id comes before ``expected_head``,
        so that a writer may repeat an append whose answer was lost.

        Args:
            expected_head: the row hash (or the `LogHead`) that the chat must end with;
                64 zeros for a chat without rows.

        Raises:
            UsageError: a blank tenant or chat, or the draft names another one.
            ValueRefused: a bad type, key or value, with its JSON pointer.
            EventConflict: the id is taken by another event.
            HeadConflict: the chat does not end with ``expected_head``.
            JournalLocked: another process writes this journal.
            JournalBroken, WriteFailed, StoreError: as `OpenChain`. Nothing was written in any
                of these cases.
        """
        check_scope(tenant_id, chat_id)
        draft = checked(event, tenant_id, chat_id)
        with self._lock:
            chain = self._open(tenant_id, chat_id)
            try:
                with chain.exclusive():
                    return self._append(chain, draft, tenant_id, chat_id, expected_head)
            except (JournalBroken, StoreError, WriteFailed):  # what is there now is seen anew
                self._chains.pop((tenant_id, chat_id), None)
                with suppress(PlayheadError):
                    chain.close()
                raise

    def _append(
        self,
        chain: OpenChain,
        draft: Draft,
        tenant_id: str,
        chat_id: str,
        expected_head: str | LogHead | None,
    ) -> LogRow:
        opens = draft.type == "run.started"
        if opens:
            run_id = draft.run_id or chain.run_id
            draft = replace(draft, tenant_id=tenant_id, chat_id=chat_id, run_id=run_id)
        found = repeated(chain, draft)
        if found is not None:
            return log_row(tenant_id, chat_id, *found)
        if expected_head is not None:
            _expect(chain, expected_head)
        if opens and chain.next_seq:
            raise ValueRefused(
                f"/type: run.started opens a chain, and this one has {chain.next_seq} rows",
                remedy="Append run.stamped",
            )
        if not chain.next_seq:
            uid = str(draft.payload["uid"]) if opens else secrets.token_hex(16)
            begin(chain, uid)
            if not opens:
                where = {"tenant_id": tenant_id, "chat_id": chat_id, "run_id": chain.run_id}
                first = started(AGENT, uid=uid, more={}, **where)
                write_draft(chain, first, us=self._clock())
        step = write_draft(chain, draft, us=self._clock())
        return log_row(tenant_id, chat_id, step.seq, _line_of(step))

    def _open(self, tenant_id: str, chat_id: str) -> OpenChain:
        key = (tenant_id, chat_id)
        chain = self._chains.get(key)
        if chain is None:
            while len(self._chains) >= OPEN_CHAINS:
                self._chains.popitem(last=False)[1].close()
            chain = self._chains[key] = self.store.open_chain(tenant_id, chat_id)
        self._chains.move_to_end(key)
        return chain

    def close(self) -> None:
        """Sign the heads and close every chain that is open. Idempotent.

        Raises:
            PlayheadError: a head could not be kept; every chain is closed all the same.
        """
        problem: PlayheadError | None = None
        with self._lock:
            while self._chains:
                try:
                    self._chains.popitem(last=False)[1].close()
                except PlayheadError as error:
                    problem = problem or error
            if self._own_store:
                self.store.close()
        if problem is not None:
            raise problem


def _bound(field: str, value: int) -> int:
    if type(value) is not int or value < 0:
        raise UsageError(f"{field} is no number from 0", remedy="Sequence numbers start at 1")
    return value


def _expect(chain: OpenChain, expected: str | LogHead) -> None:
    """Raises: HeadConflict: the chain does not end with ``expected``."""
    same = (
        expected == chain.head
        if isinstance(expected, str)
        else (expected == (chain.next_seq, chain.head))
    )
    if not same:
        wanted = expected if isinstance(expected, str) else expected.row_hash
        what = f"the chat has {chain.next_seq} rows and ends with {chain.head[:16]}..."
        raise HeadConflict(what, expected=str(wanted), actual=chain.head)


def _line_of(step: Step) -> bytes:
    """The line that a chain wrote for ``step``: one encoder makes both."""
    line, _ = encode_row(
        seq=step.seq,
        prev_hash=step.prev_hash,
        input_hash=step.input_hash,
        model=step.model,
        prompt=step.prompt,
        tool_call=step.tool_call,
        tool_result=step.tool_result,
        ts=step.ts or 0.0,
        blob_refs=[str(ref) for ref in step.blob_refs],
    )
    return line
