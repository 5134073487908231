"""A turn replayed whole (contract: "ReplayRuntime", ``replay_turn``)."""

from __future__ import annotations

from dataclasses import dataclass

from playhead.core.fold import Folded
from playhead.core.model import JSON
from playhead.core.state import State
from playhead.core.wire import StateDigests
from playhead.errors import ReplayTurnNotFoundError
from playhead.replay.handle import ReplayHandle
from playhead.replay.results import turn_ids


@dataclass(frozen=True, slots=True)
class TurnReplay:
    """A turn replayed whole: the state behind it and behind each of its rows.

    ``completed`` is False for a chat of which no turn ever ended; ``sequence_number`` is the last
    row of the turn, ``first_sequence_number`` its first; ``output`` is that of ``turn.completed``.
    """

    completed: bool
    message_id: str | None
    state: State
    first_sequence_number: int
    sequence_number: int
    output: JSON
    folded: tuple[Folded, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest of the state behind each row of the turn."""
        digests = StateDigests()
        return tuple(digests.digest(one) for one in self.folded)


async def last_turn(handle: ReplayHandle, message_id: str | None) -> TurnReplay:
    """The last turn that ends in what is left of the window, or the one of ``message_id``.

    Raises:
        ReplayTurnNotFoundError: no turn of this id. What stepping raises.
    """
    found: TurnReplay | None = None
    rows: list[Folded] = []
    first = handle.current_sequence_number() + 1
    async for result in handle:
        rows.append(handle.folded)
        if result.event_type != "turn.completed":
            continue
        ids = turn_ids(result.row)
        if message_id is None or message_id in ids:
            found = TurnReplay(
                True,
                ids[0] if ids else None,
                result.next_state,
                first,
                result.sequence_number,
                result.row.payload.get("output"),
                tuple(rows),
            )
            if message_id is not None:
                return found
        first, rows = result.sequence_number + 1, []
    if message_id is not None:
        raise ReplayTurnNotFoundError(
            "no turn of this message_id in the chat",
            chat_id=handle.window.chat_id,
            tenant_id=handle.window.tenant_id,
        )
    last = handle.current_sequence_number()
    return found or TurnReplay(False, None, handle.current_state(), first, last, None, tuple(rows))
