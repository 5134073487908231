"""An event into a row of an open chain: the one place where a row of playhead's own is made.

The recorder and the event log both write through this (docs/reference/formats/envelope.md).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from playhead.core.canonical import step_bytes
from playhead.core.chain import event_id
from playhead.core.commit import step_commitment
from playhead.core.decode import to_step
from playhead.core.events import Draft, decode_event, encode_event
from playhead.core.model import JSON, Event, Step
from playhead.core.rows import Row, decode_row, to_seq
from playhead.errors import EventConflict
from playhead.formats.journal import input_hash_of
from playhead.store.clock import format_us
from playhead.store.stores import OpenChain


def started(
    agent: str, *, uid: str, tenant_id: str, chat_id: str, run_id: str, more: Mapping[str, JSON]
) -> Draft:
    """The event that opens a chain: whose it is, and what wrote it."""
    from playhead import __version__

    versions: dict[str, JSON] = {
        "playhead": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    return Draft(
        "run.started",
        {"uid": uid, "agent": agent, "versions": versions, **more},
        name=agent,
        tenant_id=tenant_id,
        chat_id=chat_id,
        run_id=run_id,
    )


def begin(chain: OpenChain, uid: str) -> None:
    """Make an empty chain the run ``uid``: it gets its secret and keeps field commitments.

    Call it before the first row, inside ``chain.exclusive()``.
    """
    chain.anchor.uid = uid
    chain.anchor.ring.run_secret(uid, create=True)
    chain.anchor.start_commitments()


def write_draft(chain: OpenChain, draft: Draft, *, us: int, blobs: Sequence[str] = ()) -> Step:
    """Append ``draft`` at the time ``us`` (microseconds since the epoch).

    Call it inside ``chain.exclusive()``: the envelope names the row's own ``seq``. Its id, where
    the draft has none, and its field commitment come from the run's uid and secret, which the
    chain's anchor knows.

    Raises:
        ValueRefused, WriteFailed, StoreError, JournalClosed: the event is not in the chain.
    """
    seq, anchor = chain.next_seq, chain.anchor
    own_id = event_id(anchor.uid or "", seq)
    step = _step(encode_event(draft, seq=seq, at=format_us(us), event_id=own_id), seq)
    envelope = step.tool_call
    assert isinstance(envelope, dict)
    secret = anchor.secret() if anchor.commits else None
    return chain.append_normal(
        input_hash=input_hash_of(draft.prompt, envelope["payload"]),
        model=draft.model,
        prompt=draft.prompt,
        tool_call=envelope,
        tool_result=step.tool_result,
        blob_refs=tuple(dict.fromkeys((*blobs, *draft.blobs))),
        ts=us / 1_000_000,
        commitment=None if secret is None else step_commitment(secret, step, envelope),
    )


def _step(fields: Mapping[str, JSON], seq: int) -> Step:
    return Step(
        seq=seq,
        prev_hash="",
        input_hash="",
        step_hash="",
        model=fields["model"],
        prompt=fields["prompt"],
        tool_call=fields["tool_call"],
        tool_result=fields["tool_result"],
    )


def repeated(chain: OpenChain, draft: Draft) -> tuple[int, bytes] | None:
    """``seq`` and line of the row that the chain holds under the id of ``draft``.

    None when the draft has no id, or the id is new. What has to be the same is type, name,
    model, prompt, payload and ids; time and place do not count. Call it inside
    ``chain.exclusive()``.

    Raises:
        EventConflict: another event has the id.
    """
    line = chain.find(draft.id) if draft.id else None
    if line is None:
        return None
    given = decode_event(_step(encode_event(draft, seq=0, at="", event_id=""), 0))
    row = decode_row(line)
    if not isinstance(row, Row) or _content(decode_event(to_step(row.obj))) != _content(given):
        raise EventConflict(f"the event id {draft.id!r:.80} is taken by another event")
    return to_seq(row.obj.get("seq")) or 0, line


def _content(event: Event) -> bytes:
    """Everything of an event that its caller gave, as canonical bytes."""
    return step_bytes(
        {
            "type": event.type,
            "name": event.name,
            "model": event.model,
            "prompt": event.prompt,
            "payload": dict(event.payload),
            "turn_id": event.turn_id,
            "subagent_run_id": event.subagent_run_id,
            "causation_id": event.causation_id,
            "ids": dict(event.ids),
        }
    )
