"""The slot through which an evaluation package replays a chat (contract: "EvalReplayClient").

The coupling is one way: an evaluation suite takes any object with ``replay(chat_id)``; nothing
here imports one. The adapter's output is the text of the last answer, not the repr of a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict

from playhead.core.messages import Messages
from playhead.core.model import JSON
from playhead.replay.render import content_text

if TYPE_CHECKING:
    from playhead.replay.client import ReplayClient


class EvalMetadata(TypedDict):
    """Where the output comes from: proof that it is of this very record."""

    state_digest: str
    sequence_number: int
    row_hash: str


class EvalReplayOutput(TypedDict):
    """What an evaluation gets."""

    output: str
    metadata: EvalMetadata


class EvalReplayClient(Protocol):
    """Structural: whatever has this method fits an evaluation suite's slot."""

    async def replay(self, chat_id: str) -> EvalReplayOutput: ...


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """An `EvalReplayClient` over a `ReplayClient`, for the chats of one tenant.

    ``output`` is the text of the last message of the assistant in the chat; "" when there is none.
    """

    client: ReplayClient
    tenant_id: str

    async def replay(self, chat_id: str) -> EvalReplayOutput:
        """Fold the chat to its head.

        Raises:
            As `ReplayClient.from_event_log` and `ReplayHandle.step`.
        """
        opening = self.client.from_event_log(
            chat_id, tenant_id=self.tenant_id, projections=(Messages(),)
        )
        async with opening as handle:
            if handle.window.stop is not None:
                await handle.seek(handle.window.stop)
            else:
                async for _ in handle:
                    pass
            return {
                "output": _last_answer(handle.view("messages")),
                "metadata": {
                    "state_digest": handle.state_digest(),
                    "sequence_number": handle.current_sequence_number(),
                    "row_hash": handle.row_hash,
                },
            }


def _last_answer(messages: JSON) -> str:
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "assistant":
            text = content_text(message.get("content"))
            if text:
                return text
    return ""
