"""The values everything else speaks in: step, event, finding, verdict.

Nothing here knows a file format; ``formats/`` turns these into bytes and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Literal

from playhead.errors import NOWHERE, Place

# JSON as Python holds it. mypy cannot type it recursively without a cost at every use,
# so values are `object` and the code that looks inside narrows them.
JSON = object

GENESIS = "0" * 64
"""``prev_hash`` of the first step (seed: "Step-hash encoding")."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the chain, decoded. ``seq`` counts from 0; ``ts`` is epoch seconds."""

    seq: int
    prev_hash: str
    input_hash: str
    step_hash: str
    model: JSON = None
    prompt: JSON = None
    tool_call: JSON = None
    tool_result: JSON = None
    effort: JSON = None
    ts: float | None = None
    blob_refs: tuple[JSON, ...] = ()
    schema_version: JSON = 1


_EMPTY: Mapping[str, JSON] = MappingProxyType({})


def _nothing() -> Mapping[str, JSON]:
    return _EMPTY


@dataclass(frozen=True, slots=True)
class Event:
    """What happened at a step: the envelope, decoded (docs/reference/formats/envelope.md).

    ``type`` is ``noun.verb_past`` or ``step`` for a row playhead did not write. ``at`` is
    RFC 3339 UTC with microseconds. ``payload`` holds the result too, when there is one.
    """

    type: str
    seq: int
    payload: Mapping[str, JSON] = field(default_factory=_nothing)
    name: str | None = None
    at: str | None = None
    id: str | None = None
    turn_id: str | None = None
    subagent_run_id: str | None = None
    causation_id: str | None = None
    ids: Mapping[str, JSON] = field(default_factory=_nothing)
    model: JSON = None
    prompt: JSON = None
    step_hash: str = ""

    @property
    def event_type(self) -> str:
        """``type``, as a row of the event log names it."""
        return self.type

    @property
    def sequence_number(self) -> int:
        """The row's number in the event log: ``seq + 1``."""
        return self.seq + 1


Severity = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a check saw, with place and remedy. ``kind`` is stable."""

    kind: str
    severity: Severity
    what: str
    place: Place = NOWHERE
    remedy: str = ""

    def __str__(self) -> str:
        where = str(self.place)
        text = f"{self.severity}: {self.kind}: " + (f"{where}: " if where else "") + self.what
        return f"{text}. {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "severity": self.severity,
            "what": self.what,
            "where": self.place.to_dict(),
            "remedy": self.remedy,
        }


class Verdict(Enum):
    """Three-valued on purpose: a chain without an outside head proves less than it seems."""

    VERIFIED = "verified"
    UNPROVEN = "unproven"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification saw.

    ``proven`` and ``unproven`` are sentences in the reader's words; ``covered`` is the number
    of leading steps that a trusted head covers. ``suppressed`` counts findings beyond the cap.
    """

    target: str
    verdict: Verdict
    head: str
    steps: int
    findings: Sequence[Finding] = ()
    proven: Sequence[str] = ()
    unproven: Sequence[str] = ()
    covered: int = 0
    suppressed: int = 0
    root: str | None = None
    extra: Mapping[str, JSON] = field(default_factory=_nothing)

    @property
    def ok(self) -> bool:
        return self.verdict is not Verdict.FAILED

    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "error"]

    def to_dict(self) -> dict[str, object]:
        return {
            "target": self.target,
            "verdict": self.verdict.value,
            "head": self.head,
            "steps": self.steps,
            "covered": self.covered,
            "root": self.root,
            "findings": [f.to_dict() for f in self.findings],
            "suppressed": self.suppressed,
            "proven": list(self.proven),
            "unproven": list(self.unproven),
            **self.extra,
        }
