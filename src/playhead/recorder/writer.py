"""One run being written: events go in, steps of the chain come out.

The recorder, the importers and the server of ``playhead run`` all write through this. It
normalises and redacts values, encodes prompts as deltas, commits to fields, and appends.
"""

from __future__ import annotations

import platform
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from playhead.core.canonical import encode_step
from playhead.core.chain import event_id
from playhead.core.commit import step_commitment
from playhead.core.events import Draft, encode_event
from playhead.core.model import JSON, Step
from playhead.core.prompts import PromptIndex, full_prompt
from playhead.core.redact import Policy
from playhead.errors import UsageError
from playhead.formats.journal import check_run_id, input_hash_of
from playhead.recorder.naming import new_run_id
from playhead.recorder.prepare import Prepared, Preparer, plain_text
from playhead.recorder.recall import recall
from playhead.recorder.sink import LATE
from playhead.store.anchor import Anchor
from playhead.store.clock import Clock, format_us, now_us, parse_us
from playhead.store.first import first_event
from playhead.store.journal import Durability, Journal
from playhead.store.root import Root

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
        self, root: Root, journal: Journal, uid: str, secret: bytes, options: WriterOptions
    ) -> None:
        self.root = root
        self.journal = journal
        self.run_id = journal.folder.name
        self.uid = uid
        self._secret = secret
        self._options = options
        self._prepare = Preparer(
            options.policy or Policy(), root.cas.put, stamp_keys=options.stamp_cache_keys
        )
        self._index = PromptIndex()
        self._repeated: dict[str, int] = {}
        self._writing = False
        self._late: list[_Event] = []

    @classmethod
    def create(
        cls,
        root: Root,
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

        A chat is one chain (resolution 1): its directory is the run id, which defaults to a
        fresh one. ``at`` overrides the time of the first row, ``fresh`` refuses to go on with
        a chain that another writer made first (importers).

        Raises:
            InvalidId, UsageError: a bad id, or the chain belongs to another tenant or chat.
            JournalLocked, JournalBroken, WriteFailed: see `Journal.open`.
        """
        options = options or WriterOptions()
        if not tenant_id.strip():
            raise UsageError("tenant_id is blank", remedy="Name the tenant the run belongs to")
        name = check_run_id(run_id or chat_id or new_run_id(agent))
        folder = root.journal_dir(name)
        anchor = Anchor(folder)
        journal = Journal.open(folder, durability=options.durability, anchor=anchor)
        try:
            new = journal.next_seq == 0
            if fresh and not new:
                raise UsageError(f"the run {name} is there", remedy="Use another run id")
            uid = secrets.token_hex(16) if new else (anchor.uid or "")
            secret = anchor.ring.run_secret(uid, create=True) if uid else None
            writer = cls(root, journal, uid, secret or b"", options)
            if new:
                anchor.start_commitments()
                writer._start(agent, tenant_id, chat_id or name, meta or {}, at)
            else:
                writer._go_on(agent, tenant_id, chat_id)
            return writer
        except BaseException:
            journal.close()
            raise

    def _start(
        self, agent: str, tenant: str, chat: str, meta: Mapping[str, JSON], at: str | None
    ) -> None:
        from playhead import __version__

        payload: dict[str, JSON] = {
            "uid": self.uid,
            "agent": agent,
            "versions": {
                "playhead": __version__,
                "python": platform.python_version(),
                "system": f"{platform.system()} {platform.machine()}",
            },
            **meta,
        }
        if self._options.policy is not None and self._options.policy.content:
            payload["redacted"] = self._options.policy.name
        self.journal.anchor.uid = self.uid
        self.emit(
            Draft(
                "run.started",
                payload,
                name=agent,
                tenant_id=tenant,
                chat_id=chat,
                run_id=self.run_id,
            ),
            at=at,
        )

    def _go_on(self, agent: str, tenant: str, chat: str | None) -> None:
        first = first_event(self.journal.folder)
        owner = None if first is None else first.ids.get("tenant_id")
        if first is None or first.type != "run.started" or owner != tenant:
            raise UsageError(
                f"the chain {self.run_id} is not one of this tenant's runs",
                remedy="Record under another run id",
            )
        if chat is not None and first.ids.get("chat_id") != chat:
            raise UsageError(f"the chain {self.run_id} holds another chat")
        if self._options.prompts == "delta":
            recall(self.journal.folder, self._index)
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
            WriteFailed, JournalClosed: the event is not in the chain.
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
        seq = self.journal.next_seq
        us = self._options.clock() if at is None else parse_us(at)
        prompt = draft.prompt
        if said is not None:
            prompt, more = self._prompt(seq, said)
            blobs += more
        if "tools" in payload:
            payload = {**payload, "tools": self._once(seq, payload["tools"])}
        placed = Draft(
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
        )
        fields = encode_event(placed, seq=seq, at=format_us(us), event_id=event_id(self.uid, seq))
        envelope = fields["tool_call"]
        assert isinstance(envelope, dict)
        step = Step(
            seq=seq,
            prev_hash="",
            input_hash="",
            step_hash="",
            model=fields["model"],
            prompt=fields["prompt"],
            tool_call=envelope,
            tool_result=fields["tool_result"],
        )
        commitment = (
            step_commitment(self._secret, step, envelope)
            if self.journal.anchor.commits and self._secret
            else None
        )
        self.journal.append_normal(
            input_hash=input_hash_of(prompt, envelope["payload"]),
            model=placed.model,
            prompt=prompt,
            tool_call=envelope,
            tool_result=fields["tool_result"],
            blob_refs=tuple(dict.fromkeys((*blobs, *draft.blobs))),
            ts=us / 1_000_000,
            commitment=commitment,
        )
        if draft.type == "model.responded" and self._options.prompts == "delta":
            self._index.answered(seq, fields["tool_result"])
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
            self.journal.close()
        return self.journal.head
