"""Times as the chain writes them: microseconds since the epoch and RFC 3339 UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Microseconds since the epoch."""


def now_us() -> int:
    """The system clock in microseconds."""
    return time.time_ns() // 1000


def format_us(us: int) -> str:
    """RFC 3339 UTC with microseconds."""
    seconds, micro = divmod(us, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{micro:06d}Z"


def parse_us(at: str) -> int:
    """Microseconds of an RFC 3339 time.

    Raises:
        ValueError: it is none, or has no zone.
    """
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        raise ValueError(f"{at!r} has no zone")
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
