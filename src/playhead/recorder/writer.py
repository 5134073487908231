"""One run being written: events go in, steps of the chain come out.

The recorder, the importers and the server of ``playhead run`` all write through this. It
normalises and redacts values, encodes prompts as deltas, commits to fields, and appends.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from playhead.core.canonical import encode_step
from playhead.core.events import Draft
from playhead.core.model import JSON
from playhead.core.prompts import PromptIndex, full_prompt
from playhead.core.redact import Policy
from playhead.errors import UsageError
from playhead.formats.journal import check_run_id
from playhead.recorder.naming import new_run_id
from playhead.recorder.prepare import Prepared, Preparer, plain_text
from playhead.recorder.recall import recall
from playhead.recorder.sink import LATE
from playhead.store.clock import Clock, now_us, parse_us
from playhead.store.drafts import begin, repeated, started, write_draft
from playhead.store.first import first_of
from playhead.store.scope import check_tenant
from playhead.store.stores import Durability, OpenChain, Store
from playhead.store.urls import Where, open_store

Prompts = Literal["delta", "full"]
_Event = tuple[Draft, dict[str, JSON], list[Prepared] | None, tuple[str, ...], str | None]


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How a run is written. ``prompts="full"`` writes the seed's plain prompt text."""

    durability: Durability = "batch"
    prompts: Prompts = "delta"
    policy: Policy | None = None
    clock: Clock = now_us
    stamp_cache_keys: bool = True


class RunWriter:
    """Appends events to one chain. Thread-safe; the journal's lock orders everything."""

    follows_fork = False

    def __init__(
        self, store: Store, journal: OpenChain, tenant_id: str, options: WriterOptions
    ) -> None:
        self.store = store
        self.journal = journal
        self._own_store = False
        self.blobs = store.blobs(tenant_id)
        self.run_id = journal.run_id
        self.uid = ""
        self._options = options
        self._prepare = Preparer(
            options.policy or Policy(), self.blobs.put, stamp_keys=options.stamp_cache_keys
        )
        self._index = PromptIndex()
        self._repeated: dict[str, int] = {}
        self._writing = False
        self._late: list[_Event] = []

    @classmethod
    def create(
        cls,
        root: Where,
        *,
        agent: str,
        run_id: str | None = None,
        tenant_id: str = "local",
        chat_id: str | None = None,
        meta: Mapping[str, JSON] | None = None,
        options: WriterOptions | None = None,
        at: str | None = None,
        fresh: bool = False,
    ) -> RunWriter:
        """Start a run, or go on with the chain that ``run_id`` (or ``chat_id``) already has.

        A chat is one chain (resolution 1): its run id is a fresh one by default. ``root`` is a
        directory, the URL of a store, or a store. ``at`` overrides the time of the first row,
        ``fresh`` refuses to go on with a chain that another writer made first (importers).

        Raises:
            InvalidId, UsageError: a bad id, or the chain belongs to another tenant or chat.
            JournalLocked, JournalBroken, WriteFailed, StoreError: see `Store.open_chain`.
        """
        options = options or WriterOptions()
        check_tenant(tenant_id)
        if run_id is None and chat_id is None:
            run_id = new_run_id(agent)
        store = open_store(root)
        journal: OpenChain | None = None
        try:
            known = store.run_named(tenant_id, check_run_id(run_id)) if run_id else None
            chat = chat_id or (known.chat_id if known is not None else run_id or "")
            level = options.durability
            journal = store.open_chain(tenant_id, chat, run_id=run_id, durability=level)
            writer = cls(store, journal, tenant_id, options)
            writer._own_store = store is not root
            with journal.exclusive():
                new = journal.next_seq == 0
                if fresh and not new:
                    what = f"the run {journal.run_id} is there"
                    raise UsageError(what, remedy="Use another run id")
                if new:
                    writer._start(agent, tenant_id, chat, meta or {}, at)
            if not new:
                writer._go_on(agent, tenant_id, chat_id)
            return writer
        except BaseException:
            if journal is not None:
                journal.close()
            if store is not root:
                store.close()
            raise

    def _start(
        self, agent: str, tenant: str, chat: str, meta: Mapping[str, JSON], at: str | None
    ) -> None:
        more = dict(meta)
        if self._options.policy is not None and self._options.policy.content:
            more["redacted"] = self._options.policy.name
        self.uid = secrets.token_hex(16)
        begin(self.journal, self.uid)
        run_id = self.run_id
        first = started(
            agent, uid=self.uid, tenant_id=tenant, chat_id=chat, run_id=run_id, more=more
        )
        self.emit(first, at=at)

    def _go_on(self, agent: str, tenant: str, chat: str | None) -> None:
        ref = self.store.run_named(tenant, self.run_id)
        lines = None if ref is None else self.store.lines(ref)
        first = None if lines is None else first_of(lines.walk(0, 1))
        owner = None if first is None else first.ids.get("tenant_id")
        if lines is None or first is None or first.type != "run.started" or owner != tenant:
            raise UsageError(
                f"the chain {self.run_id} is not one of this tenant's runs",
                remedy="Record under another run id",
            )
        if chat is not None and first.ids.get("chat_id") != chat:
            raise UsageError(f"the chain {self.run_id} holds another chat")
        self.uid = self.journal.anchor.uid or ""
        if self._options.prompts == "delta":
            recall(lines, self._index)
        lines.close()
        self.emit(Draft("run.stamped", {"stamp": {"continued_by": agent}}, name=agent))

    @property
    def head(self) -> str:
        return self.journal.head

    @property
    def durable_upto(self) -> int:
        return self.journal.durable_upto

    def sync(self) -> int:
        """Make every event so far durable; returns the number of durable steps."""
        return self.journal.sync()

    def emit(
        self,
        draft: Draft,
        *,
        at: str | None = None,
        messages: Sequence[object] | None = None,
        normalised: bool = False,
    ) -> int:
        """Append one event; returns its seq.

        ``messages`` is the whole conversation of a ``model.requested``; it is stored as a
        delta against what the chain already holds. ``normalised`` values are taken as they
        are: a `Normaliser` made them already (in a child of ``playhead run``).

        Raises:
            WriteFailed, StoreError, JournalClosed: the event is not in the chain.
            EventConflict: its id is taken by another event. The same event under its id is a
                no-op: the seq is that of the row that is there.
        """
        payload, blobs, said = self._prepare.event(draft, messages, normal=normalised)
        with self.journal.lock:
            if self._writing:  # a signal handler or finaliser, in the middle of another event
                self._late.append((draft, payload, said, blobs, at))
                return LATE
            self._writing = True
            try:
                seq = self._append(draft, payload, said, blobs, at)
                while self._late:
                    self._append(*self._late.pop(0))
                return seq
            finally:
                self._writing = False

    def _append(
        self,
        draft: Draft,
        payload: dict[str, JSON],
        said: list[Prepared] | None,
        blobs: tuple[str, ...],
        at: str | None,
    ) -> int:
        """One event, in one transaction. What was remembered for later rows goes with it."""
        try:
            with self.journal.exclusive():
                return self._place(draft, payload, said, blobs, at)
        except BaseException:
            self._index = PromptIndex()
            self._repeated.clear()
            raise

    def _place(
        self,
        draft: Draft,
        payload: dict[str, JSON],
        said: list[Prepared] | None,
        blobs: tuple[str, ...],
        at: str | None,
    ) -> int:
        seq = self.journal.next_seq
        us = self._options.clock() if at is None else parse_us(at)
        if "tools" in payload:
            payload = {**payload, "tools": self._once(seq, payload["tools"])}
        if draft.id:
            found = repeated(self.journal, _placed(draft, payload, draft.prompt))
            if found is not None:
                return found[0]
        prompt = draft.prompt
        if said is not None:
            prompt, more = self._prompt(seq, said)
            blobs += more
        step = write_draft(self.journal, _placed(draft, payload, prompt), us=us, blobs=blobs)
        if draft.type == "model.responded" and self._options.prompts == "delta":
            self._index.answered(seq, step.tool_result)
        return seq

    def _prompt(self, seq: int, said: list[Prepared]) -> tuple[str, tuple[str, ...]]:
        """The prompt text of a request, and the blobs of the messages that stand in it."""
        values = [message.value for message in said]
        if self._options.prompts == "full":
            return full_prompt(values), tuple(b for message in said for b in message.blobs)
        delta = self._index.delta(seq, values, [message.digest for message in said])
        return delta.text, tuple(blob for at in delta.new for blob in said[at].blobs)

    def _once(self, seq: int, value: JSON) -> JSON:
        """Tool schemas repeat with every request: the second time they are a reference."""
        text = encode_step(value)
        if len(text) < 256:
            return value
        earlier = self._repeated.get(text)
        if earlier is not None:
            return {"$playhead": "same", "seq": earlier, "key": "tools"}
        if len(self._repeated) < 64:
            self._repeated[text] = seq
        return value

    def close(self, status: str = "completed", error: JSON = None, *, at: str | None = None) -> str:
        """Write ``run.ended`` and close the journal; returns the head."""
        payload: dict[str, JSON] = {"status": status}
        if error is not None:
            payload["error"] = error
        try:
            self.emit(Draft("run.ended", payload), at=at)
        finally:
            self.release()
        return self.journal.head

    def release(self) -> None:
        """Close the chain as it is, without an end. Idempotent."""
        try:
            self.journal.close()
        finally:
            if self._own_store:
                self.store.close()


def _placed(draft: Draft, payload: dict[str, JSON], prompt: str | None) -> Draft:
    """``draft`` as it is written: its names are texts that a row can hold."""
    return Draft(
        draft.type,
        payload,
        plain_text(draft.name),
        plain_text(draft.model),
        prompt,
        plain_text(draft.id),
        plain_text(draft.turn_id),
        plain_text(draft.subagent_run_id),
        plain_text(draft.causation_id),
        draft.tenant_id,
        draft.chat_id,
        draft.run_id,
        draft.blobs,
    )
