"""What a gate over a fold says, and what counts as a fault of the fold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from playhead.errors import PlayheadError, ReplayDivergenceError

BY_STATE: Final = "the states differ"
BY_FAULT: Final = "a projection raised in one walk and not in another"
BY_LENGTH: Final = "one walk came to its end before another"
BY_JUMP: Final = "a jump gives another state than the steps"


@dataclass(frozen=True, slots=True)
class StrictVerdict:
    """What a gate saw.

    ``steps`` were taken by every handle; ``first_divergence_at`` is the index of a step, from 0,
    at which states differ first, None when they never do; ``sequence_number`` is its row and
    ``digests`` the digests there, one for each handle ("" for one that could not go on).
    ``reason`` says in words what differed; empty when nothing did.
    """

    deterministic: bool
    steps: int
    first_divergence_at: int | None = None
    sequence_number: int | None = None
    digests: tuple[str, ...] = ()
    reason: str = ""


def all_equal(values: Iterable[object]) -> bool:
    """True when there are no two different values."""
    return len(set(values)) <= 1


def require_projection_fault(error: PlayheadError) -> None:
    """Raise ``error`` again unless it is the fault of a projection, which a gate looks for; all
    else is the record's own."""
    if isinstance(error, ReplayDivergenceError) and error.kind != "projection":
        raise error
