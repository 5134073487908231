"""What a recording writes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from playhead.core.events import Draft
from playhead.core.model import JSON

LATE = -2
"""A sink's answer for an event that came in the middle of another one and is written after it."""


class Sink(Protocol):
    """Where a recording's events go: a journal of its own, or the one of ``playhead run``.

    ``follows_fork``: a forked child may go on writing to it.
    """

    run_id: str
    uid: str
    follows_fork: bool

    @property
    def head(self) -> str: ...
    @property
    def durable_upto(self) -> int: ...
    def emit(
        self, draft: Draft, *, at: str | None = None, messages: Sequence[object] | None = None
    ) -> int: ...
    def sync(self) -> int: ...
    def close(self, status: str = "completed", error: JSON = None) -> str: ...
