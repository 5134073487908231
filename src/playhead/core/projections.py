"""The projections that come with playhead.

Each is a pure fold beside the core state (design: "Projections"). Their states are immutable
and share structure, so a state from any earlier step costs nothing to keep. None of them
raises for what an event holds: a value of the wrong type is passed over.
"""

from __future__ import annotations

from playhead.core.anomalies import Anomalies
from playhead.core.entries import Entries, Entry, ToolCalls, Turns, pending
from playhead.core.messages import Messages
from playhead.core.model import JSON, Event
from playhead.core.projection import CORE_KEY, Projection, projection
from playhead.core.reducer import REDUCER_VERSION, reduce
from playhead.core.stamps import Stamps
from playhead.core.state import State, load_state
from playhead.core.tallies import AgentState, Held, Usage, state_key

__all__ = [
    "BUILT_IN",
    "CORE",
    "AgentState",
    "Anomalies",
    "Core",
    "Entries",
    "Entry",
    "Held",
    "Messages",
    "Stamps",
    "ToolCalls",
    "Turns",
    "Usage",
    "pending",
    "projection",
    "state_key",
]


class Core:
    """The core state as a projection, for a caller who folds by projection alone.

    Every fold has the core state anyhow, so that this one gives the same a second time.
    """

    key = CORE_KEY
    version = REDUCER_VERSION
    is_core = True

    def init(self) -> State:
        return State()

    def apply(self, state: object, event: Event) -> State:
        assert isinstance(state, State)
        return reduce(state, event)

    def view(self, state: object) -> JSON:
        assert isinstance(state, State)
        return state.to_wire()

    def dump(self, state: object) -> JSON:
        assert isinstance(state, State)
        return state.dump()

    def load(self, dumped: JSON) -> State:
        return load_state(dumped)


CORE = Core()
BUILT_IN: tuple[Projection, ...] = (
    Messages(),
    Turns(),
    ToolCalls(),
    Usage(),
    AgentState(),
    Stamps(),
    Anomalies(),
)
