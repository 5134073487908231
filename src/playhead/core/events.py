"""The event taxonomy and the one codec between an event and a step (decision 2).

An event is written *inside* a step: its envelope is the step's ``tool_call``, the model and
the prompt of a model event are lifted into the step's own fields, a result goes to
``tool_result``. So every byte that matters is under the step hash.
(docs/reference/formats/envelope.md)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from playhead.core.model import JSON, Event, Step

VERSION = 1

TYPES: Mapping[str, tuple[str, ...]] = {
    "run.started": ("uid",),
    "run.ended": ("status",),
    "run.forked": ("parent_run_id", "parent_step", "parent_step_hash"),
    "run.stamped": ("stamp",),
    "turn.started": (),
    "turn.completed": (),
    "model.requested": ("call_id",),
    "model.responded": ("call_id",),
    "model.failed": ("call_id",),
    "tool.called": ("call_id", "arguments"),
    "tool.completed": ("call_id",),
    "tool.failed": ("call_id", "error"),
    "interrupt.raised": ("interrupt_id",),
    "interrupt.resolved": ("interrupt_id",),
    "interrupt.cancelled": ("interrupt_id",),
    "interrupt.expired": ("interrupt_id",),
    "subagent.started": (),
    "subagent.suspended": (),
    "subagent.resumed": (),
    "subagent.completed": (),
    "subagent.failed": (),
    "subagent.cancelled": (),
    "export.created": ("export_id",),
    "export.failed": ("export_id",),
    "export.deleted": ("export_id",),
    "user_card.shown": ("card_id",),
    "user_card.updated": ("card_id",),
    "user_card.answered": ("card_id",),
    "user_card.dismissed": ("card_id",),
    "state.changed": (),
    "error.raised": (),
    "context.compacted": (),
    "provider_state.mutated": (),
    "provider_state.capability": (),
    "message.received": (),
    "source.imported": (),
}
"""Every type of the contract and the payload keys it must have; vendors add ``vendor.name``."""

RESULTS = frozenset(("tool.completed", "model.responded"))
"""Types whose ``payload.result`` stands in the step's ``tool_result``."""

_IDS = ("turn_id", "subagent_run_id", "causation_id")
_FIRST = ("tenant_id", "chat_id", "run_id")
_KNOWN = frozenset(("v", "event", "name", "seq", "at", "id", "payload", *_IDS))


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has a place in the chain. ``prompt`` is the encoded segment text."""

    type: str
    payload: Mapping[str, JSON]
    name: str | None = None
    model: str | None = None
    prompt: str | None = None
    id: str | None = None
    turn_id: str | None = None
    subagent_run_id: str | None = None
    causation_id: str | None = None
    tenant_id: str | None = None
    chat_id: str | None = None
    run_id: str | None = None
    blobs: tuple[str, ...] = ()


def encode_event(draft: Draft, *, seq: int, at: str, event_id: str) -> dict[str, JSON]:
    """The four step fields ``model, prompt, tool_call, tool_result`` of an event."""
    payload = dict(draft.payload)
    result = payload.pop("result", None) if draft.type in RESULTS else None
    envelope: dict[str, JSON] = {
        "v": VERSION,
        "event": draft.type,
        "seq": seq,
        "at": at,
        "id": draft.id or event_id,
        "payload": payload,
    }
    if draft.name is not None:
        envelope["name"] = draft.name
    for key in (*_IDS, *_FIRST):
        value = getattr(draft, key)
        if value is not None:
            envelope[key] = value
    return {
        "model": draft.model,
        "prompt": draft.prompt,
        "tool_call": envelope,
        "tool_result": result,
    }


def decode_event(step: Step) -> Event:
    """The event of a step; type ``step`` for a row that playhead did not write. Never raises."""
    call = step.tool_call
    if not isinstance(call, dict) or call.get("v") != VERSION or not _is_text(call.get("event")):
        return _foreign(step)
    payload = call.get("payload")
    kind = str(call["event"])
    body: dict[str, JSON] = dict(payload) if isinstance(payload, dict) else {}
    if kind in RESULTS:
        body["result"] = step.tool_result
    if kind.startswith("tool."):
        body.setdefault("name", call.get("name"))
    return Event(
        type=kind,
        seq=step.seq,
        payload=body,
        name=_text(call.get("name")),
        at=_text(call.get("at")),
        id=_text(call.get("id")),
        turn_id=_text(call.get("turn_id")),
        subagent_run_id=_text(call.get("subagent_run_id")),
        causation_id=_text(call.get("causation_id")),
        ids=envelope_ids(call),
        model=step.model,
        prompt=step.prompt,
        step_hash=step.step_hash,
    )


def envelope_ids(call: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """What an envelope holds beside the members that every event has."""
    return {} if _KNOWN.issuperset(call) else {k: v for k, v in call.items() if k not in _KNOWN}


def _foreign(step: Step) -> Event:
    call = step.tool_call
    name = _text(call.get("name")) if isinstance(call, dict) else None
    return Event(
        type="step",
        seq=step.seq,
        payload={"tool_call": call, "tool_result": step.tool_result},
        name=name,
        model=step.model,
        prompt=step.prompt,
        step_hash=step.step_hash,
    )


def _is_text(value: JSON) -> bool:
    return isinstance(value, str)


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None
