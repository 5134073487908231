"""The slot through which an evaluation package replays a chat (contract: "EvalReplayClient").

The coupling is one way: an evaluation suite takes any object with ``replay(chat_id)``; nothing
here imports one. The adapter's output is the text of the last answer, not the repr of a state.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, Protocol, TypedDict

from playhead.core.messages import Messages
from playhead.errors import BlobError, ReplayArgumentError
from playhead.replay.answers import BlobReader, LastResult, last_text
from playhead.replay.arguments import MAX_NUMBER, require_id

if TYPE_CHECKING:
    from playhead.replay.client import ReplayClient


class EvalMetadata(TypedDict):
    """Where the output comes from: proof that it is of this very record."""

    state_digest: str
    sequence_number: int
    row_hash: str


class EvalReplayOutput(TypedDict):
    """What an evaluation gets. `LastAnswer` always gives ``metadata``; other adapters need not."""

    output: str
    metadata: NotRequired[EvalMetadata]


class EvalReplayClient(Protocol):
    """Structural: whatever has this method fits an evaluation suite's slot."""

    async def replay(self, chat_id: str) -> EvalReplayOutput: ...


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """An `EvalReplayClient` over a `ReplayClient`, for the chats of one tenant.

    ``output`` is the text of the last message of the assistant that says anything; thoughts and
    calls of tools are no text, and "" is a chat without an answer. A long answer was recorded as a
    blob: it is read from ``blobs`` (``store.blobs(tenant_id)``), and never replaced by a word that
    stands for it.

    Raises:
        ReplayArgumentError: a bad tenant, or a client or blobs that are none.
    """

    client: ReplayClient
    tenant_id: str
    blobs: BlobReader | None = None

    def __post_init__(self) -> None:
        require_id("tenant_id", self.tenant_id)
        for name, value, method in (
            ("client", self.client, "from_event_log"),
            ("blobs", self.blobs, "get"),
        ):
            if not callable(getattr(value, method, None)) and (name == "client" or value):
                raise ReplayArgumentError(name, f"has no {method}()")

    async def replay(self, chat_id: str) -> EvalReplayOutput:
        """Fold the chat to its head; the cache is never asked.

        Raises:
            As `ReplayClient.from_event_log` and `ReplayHandle.seek`.
            BlobError: the answer is a blob, and it is missing, changed or not to be read.
        """
        opening = self.client.from_event_log(
            chat_id, tenant_id=self.tenant_id, projections=(Messages(), LastResult())
        )
        async with opening as handle:
            stop = handle.window.stop
            await handle.seek(MAX_NUMBER if stop is None else stop)
            messages, result = handle.view("messages"), handle.view("last_result")
            return {
                "output": await asyncio.to_thread(last_text, messages, result, self._blob),
                "metadata": {
                    "state_digest": handle.state_digest(),
                    "sequence_number": handle.current_sequence_number(),
                    "row_hash": handle.row_hash,
                },
            }

    def _blob(self, digest: str) -> bytes:
        if self.blobs is None:
            raise BlobError(
                "the answer is kept as a blob, and there is nothing to read it from",
                remedy="Give LastAnswer blobs=store.blobs(tenant_id)",
            )
        return self.blobs.get(digest)
