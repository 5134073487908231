"""What an import hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from playhead.core.model import JSON, Finding


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one session. ``ok`` is False when nothing of it could be understood;
    ``already`` is True when this import found the run that an earlier one made."""

    run_id: str
    file: str
    format: str
    session_id: str | None
    status: str
    counts: Mapping[str, JSON]
    findings: Sequence[Finding]
    head: str
    steps: int
    ok: bool = True
    already: bool = False

    def to_dict(self) -> dict[str, object]:
        return {
            "run_id": self.run_id,
            "file": self.file,
            "format": self.format,
            "session_id": self.session_id,
            "status": self.status,
            "counts": dict(self.counts),
            "findings": [finding.to_dict() for finding in self.findings],
            "head": self.head,
            "steps": self.steps,
            "ok": self.ok,
            "already": self.already,
        }
