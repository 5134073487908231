"""The ways a chain can break, told apart by name (docs/reference/verdicts.md)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from playhead.core.model import JSON
from playhead.core.rows import Row


def event_id(run_uid: str, seq: int) -> str:
    """The id of a native row for which the caller gave none: bound to its run and place.

    A row moved in from another run therefore carries an id that does not belong here
    (docs/reference/formats/envelope.md, "id").
    """
    return sha256(f"{run_uid}:{seq}".encode()).hexdigest()[:16]


def envelope_of(obj: dict[str, JSON]) -> dict[str, JSON] | None:
    """The native envelope of a row, or None for a row playhead did not write."""
    call = obj.get("tool_call")
    if isinstance(call, dict) and call.get("v") == 1 and isinstance(call.get("event"), str):
        return call
    return None


@dataclass(frozen=True, slots=True)
class Here:
    """Where a walk stands when a row does not follow.

    ``earlier`` is what a row of the same ``seq`` stored as ``prev_hash`` and ``step_hash``;
    ``previous_good`` says that the row before hashes to what it stores.
    """

    expected: int
    head: str
    steps: int
    native: bool
    run_uid: str | None
    previous_good: bool
    earlier: tuple[str, str] | None


def break_name(here: Here, row: Row, seq: int, *, linked: bool, good: bool) -> tuple[str, str]:
    """Kind and sentence. ``linked``: prev_hash fits; ``good``: the row hashes to its own hash."""
    prev = row.stored_prev[:16]
    if linked:
        return "seq-mismatch", f"seq {seq} where {here.expected} follows; seq is not hashed"
    if seq < here.expected and here.earlier is not None:
        if here.earlier[1] == row.stored_hash:
            return "duplicate-row", f"step {seq} is here a second time"
        if here.earlier[0] == row.stored_prev:
            return (
                "two-writers",
                f"two writers forked the chain at seq {seq}: both rows follow {prev}...",
            )
    if here.steps == 0:
        return "cut-head", f"the first row is step {seq} and follows {prev}...; rows are gone"
    if seq > here.expected:
        count = seq - here.expected
        return "missing-rows", f"{count} row(s) before step {seq} are gone ({prev}... unknown)"
    if seq == here.expected and good and _is_foreign(here, row, seq):
        return "splice", f"step {seq} follows {prev}..., a row of another run"
    if seq == here.expected and not here.previous_good:
        return "prev-hash-mismatch", f"it follows {prev}..., not the hash the row before stores"
    if seq == here.expected and good:
        return (
            "chain-break",
            f"it follows {prev}..., not {here.head[:16]}...: the rows before were replaced, "
            "or this one comes from elsewhere",
        )
    return "prev-hash-mismatch", f"it follows {prev}..., expected {here.head[:16]}..."


def _is_foreign(here: Here, row: Row, seq: int) -> bool:
    """True when the row carries proof that it was recorded in another run."""
    envelope = envelope_of(row.obj)
    if here.native and envelope is None:
        return True
    if envelope is None or here.run_uid is None:
        return False
    if envelope.get("event") in ("run.started", "run.forked"):
        return True
    given = envelope.get("id")
    derived = isinstance(given, str) and len(given) == 16
    return derived and given != event_id(here.run_uid, seq)
