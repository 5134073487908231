"""What every store offers to the verbs: chains by tenant and chat, whatever lies below.

A directory of journals, a SQLite file, a PostgreSQL server and memory are all a `Store`;
`playhead.store.urls.open_store` makes one from a URL or a path. Every store keeps the exact row
line, so head and root of a chain are the same in each (decision 14).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from playhead.core.model import JSON, Step
from playhead.core.rows import BadRow
from playhead.core.sign import PublicKey
from playhead.store.anchor import Anchor
from playhead.store.database import Tip
from playhead.store.heads import Resume, SeenHead

Durability = Literal["step", "batch", "os"]
"""When a row of a journal is on disk (docs/reference/durability.md)."""

Line = tuple[int, int, "bytes | BadRow"]
"""Line number from 1, byte offset (-1 where there is none), the line or why it cannot be held."""


class Lines(Protocol):
    """The rows of one chain as they are at opening, numbered from 0. Rows added later are not
    seen; a line that cannot be held is a `BadRow`. ``blocks`` gives their bytes with all that
    stands between them, as a signed head covers them."""

    def count(self) -> int: ...
    def has(self, number: int) -> bool: ...
    def get(self, number: int) -> Line: ...
    def walk(self, start: int, stop: int | None) -> Iterator[Line]: ...
    def blocks(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class Heads(Protocol):
    """The signed heads of one chain: beside the rows and in the user's state directory."""

    run_id: str

    def read(self, trusted: list[PublicKey]) -> list[SeenHead]: ...
    def write(self, note: str, resume: Resume) -> None: ...
    def read_resume(self) -> Resume | None: ...


class Blobs(Protocol):
    """The blobs of one tenant, by SHA-256."""

    def put(self, data: bytes, content_type: str = ...) -> str: ...
    def get(self, digest: str, limit: int = ...) -> bytes: ...
    def has(self, digest: str) -> bool: ...


class OpenChain(Protocol):
    """A chain open for appending; `Journal` is one. ``next_seq`` is the number of rows, ``head``
    the last step hash. Thread-safe under ``lock``; everything but `append_line` is durable as
    the store promises."""

    run_id: str
    next_seq: int
    head: str
    durable_upto: int
    anchor: Anchor

    @property
    def lock(self) -> threading.RLock: ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the chat against every other writer. Inside, ``next_seq`` and ``head`` are current
        (rows that others added were taken in and checked); what is appended inside is committed
        on leaving, all or nothing in a database, row by row in a journal."""
        ...

    def append_normal(
        self,
        *,
        input_hash: str,
        model: str | None,
        prompt: str | None,
        tool_call: JSON,
        tool_result: JSON,
        effort: str | None = None,
        blob_refs: Sequence[str] = (),
        ts: float | None = None,
        commitment: bytes | None = None,
    ) -> Step: ...

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Take finished rows as they are, byte for byte; they must follow the head.

        Raises:
            JournalBroken: a line does not verify or does not follow; nothing was written.
        """
        ...

    def find(self, event_id: str) -> bytes | None:
        """The line of the row whose envelope has this id."""
        ...

    def sync(self) -> int: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ChainRef:
    """One chain of one tenant. ``where`` names it in messages (a file or a URL)."""

    tenant_id: str
    chat_id: str
    run_id: str
    where: str


class Store(Protocol):
    """Chains of tenants. ``tenant_id`` never has a default; another tenant's chat is not there.

    Raises, in every method: `UsageError` for a blank tenant or chat; `StoreError`, `Unreadable`
    when what lies below does not answer.
    """

    url: str

    def list_chats(self, tenant_id: str) -> list[ChainRef]:
        """The tenant's chains, oldest first."""
        ...

    def find(self, tenant_id: str, chat_id: str) -> ChainRef:
        """The chain of a chat.

        Raises:
            NotFound: there is none, or it is another tenant's (the message is the same).
        """
        ...

    def find_run(self, tenant_id: str, word: str) -> ChainRef:
        """What RUN means on a command line: a run id, a unique prefix, ``@last`` (a path too, in
        a directory).

        Raises:
            NotFound, UsageError: nothing of this tenant fits, several do.
        """
        ...

    def run_named(self, tenant_id: str, run_id: str) -> ChainRef | None:
        """The chain with exactly this run id; None when it is not there or another tenant's."""
        ...

    def tip(self, ref: ChainRef) -> Tip:
        """Size and last step hash now."""
        ...

    def lines(self, ref: ChainRef) -> Lines:
        """The rows, frozen at this moment."""
        ...

    def folder(self, ref: ChainRef) -> Path | None:
        """The journal's directory where it is one; None in a database."""
        ...

    def heads(self, ref: ChainRef) -> Heads: ...

    def blobs(self, tenant_id: str) -> Blobs: ...

    def open_chain(
        self,
        tenant_id: str,
        chat_id: str,
        *,
        run_id: str | None = None,
        create: bool = True,
        durability: Durability = "batch",
    ) -> OpenChain:
        """Open a chain for appending, made when it is missing and ``create`` is set.

        ``durability`` is for journals; a row of a database is durable when it is acknowledged.

        Raises:
            NotFound: it is missing. JournalLocked, JournalBroken: see `Journal.open`.
        """
        ...

    def close(self) -> None: ...
