"""Canonical bytes of a folded state."""

from __future__ import annotations

from hashlib import sha256

from playhead.core.canonical import step_bytes
from playhead.core.fold import Folded


def canonical_state(folded: Folded) -> bytes:
    """Canonical bytes."""
    views = {one.key: folded.view(one.key) for one in folded.projections}
    return step_bytes({"core": folded.state.to_wire(), "projections": views})


def state_digest(folded: Folded) -> str:
    """Digest."""
    return sha256(b"playhead/state/v1\0" + canonical_state(folded)).hexdigest()
