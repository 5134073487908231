"""What a database must do to hold chains: the small interface below every SQL store.

A database keeps the exact line of each row (resolution 2); every other column is an index and is
checked against the line when it is read. Every method takes the tenant, which has no default, and
puts it first in every query. Blocking; one object may be used from several threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from playhead.core.model import GENESIS


class Tip(NamedTuple):
    """The end of a chain: ``size`` rows, the last with ``step_hash``; ``length`` bytes in all,
    counting a newline behind each row."""

    size: int = 0
    step_hash: str = GENESIS
    length: int = 0


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat as the database lists it. ``written`` is epoch seconds of the last append."""

    chat_id: str
    run_id: str
    tip: Tip
    created: float = 0.0
    written: float = 0.0


class NewRow(NamedTuple):
    """A row to insert: ``line`` is the truth, the rest is its index. ``seq`` counts from 0,
    the ``sequence_number`` column is ``seq + 1``."""

    seq: int
    event_type: str
    event_id: str | None
    step_hash: str
    line: bytes


class Database(Protocol):
    """One database that holds chains of many tenants.

    Every method raises `StoreError` when the database refuses or is gone, with a remedy, and
    never with a value of a row in its message.
    """

    url: str
    """Where it is, without any password."""

    def chats(self, tenant_id: str) -> list[ChatRecord]:
        """The tenant's chats, oldest first."""
        ...

    def chat(self, tenant_id: str, chat_id: str) -> ChatRecord | None:
        """One chat; None when it is not there or not this tenant's."""
        ...

    def rows(self, tenant_id: str, chat_id: str, start: int, stop: int) -> Iterator[list[bytes]]:
        """The lines of rows ``start <= seq < stop`` in order, some hundred at a time and no more
        than a few megabytes. A missing row ends it."""
        ...

    def find_event(self, tenant_id: str, chat_id: str, event_id: str) -> bytes | None:
        """The line of the first row whose envelope has this id."""
        ...

    def exclusive(
        self, tenant_id: str, chat_id: str, run_id: str, *, create: bool
    ) -> AbstractContextManager[ChatRecord | None]:
        """One transaction that no other writer of the chat can enter.

        Gives the chat as it is now; with ``create`` it is made when it is missing, otherwise None
        is given. Leaving without an exception commits durably; with one, nothing has happened.
        """
        ...

    def insert(
        self, tenant_id: str, chat_id: str, rows: Sequence[NewRow], tip: Tip, written: float
    ) -> None:
        """Add rows at the end and move the tip. Only inside `exclusive` of the same thread; many
        rows at once take the database's bulk way."""
        ...

    def note(self, tenant_id: str, chat_id: str) -> tuple[str, bytes] | None:
        """The signed head that is kept beside the rows, and its resume data."""
        ...

    def put_note(self, tenant_id: str, chat_id: str, note: str, resume: bytes) -> None:
        """Replace the signed head."""
        ...

    def blob(self, tenant_id: str, digest: str) -> bytes | None:
        """The blob with this SHA-256; the caller hashes it again."""
        ...

    def put_blob(self, tenant_id: str, digest: str, data: bytes) -> None:
        """Keep a blob; one that is there already stays."""
        ...

    def close(self) -> None:
        """Give every connection back. Idempotent."""
        ...
