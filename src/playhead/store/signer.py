"""When the head of an open journal is signed (resolution 11).

At most once a second while rows arrive, and at close. A statement is taken before the sync
that makes its rows durable and published after it.
"""

from __future__ import annotations

import time

from playhead.errors import PlayheadError
from playhead.formats.head import Head
from playhead.store.anchor import Anchor
from playhead.store.heads import Resume

EVERY = 1.0
"""Seconds between two signatures of a busy journal."""

Statement = tuple[Head, Resume]


class Signer:
    """Decides when to sign. ``problem`` is the last failure; `final` is the one that raises."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._at = time.monotonic()
        self.problem: PlayheadError | None = None

    def _wanted(self, size: int) -> bool:
        return self._anchor.signs and size > 0 and self._anchor.signed_size != size

    def statement(self, size: int, step_hash: str) -> Statement | None:
        """What to sign now, or None when it is too early or already signed."""
        now = time.monotonic()
        if not self._wanted(size) or now - self._at < EVERY:
            return None
        self._at = now
        return self._anchor.statement(step_hash)

    def due_in(self, size: int) -> float | None:
        """Seconds until what is unsigned may be signed; None when nothing is."""
        if not self._wanted(size):
            return None
        return max(0.0, self._at + EVERY - time.monotonic())

    def publish(self, statement: Statement | None) -> None:
        """Sign what is durable now. Never fails a step that is already in the chain."""
        if statement is None:
            return
        try:
            self._anchor.publish(*statement)
            self.problem = None
        except PlayheadError as error:
            self.problem = error

    def final(self, size: int, step_hash: str) -> None:
        """Sign the last head.

        Raises:
            WriteFailed: the disk refused; the rows are safe, an older head stands.
        """
        if self._wanted(size):
            self._anchor.publish(*self._anchor.statement(step_hash))
