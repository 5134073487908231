"""Random logs of events, with any values in them, for the tests of the fold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from playhead.core.events import TYPES
from playhead.core.model import Event

IDS = st.sampled_from(["a", "b", "c"])
TEXT = st.text(st.characters(), max_size=4) | st.just("\ud800")
SMALL = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
SEGMENTS = st.sampled_from(['["hi"]', "plain", "[[0,0,1]]", '[[0,0,1],"more"]', "[[9,0,5]]", "[["])
MESSAGE = st.fixed_dictionaries({"role": st.just("user"), "content": SMALL})
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "interrupt_id": IDS | SMALL,
        "subagent_run_id": IDS | SMALL,
        "export_id": IDS | SMALL,
        "card_id": IDS | SMALL,
        "call_id": IDS | SMALL,
        "turn_id": IDS | SMALL,
        "message_id": IDS | SMALL,
        "version": st.integers(-1, 4) | SMALL,
        "content": SMALL,
        "message": SMALL | MESSAGE,
        "usage": st.dictionaries(st.text(max_size=3), SMALL, max_size=3) | SMALL,
        "result": SMALL | MESSAGE,
        "outcome": SMALL,
        "stamp": SMALL,
        "versions": SMALL,
        "temperature": SMALL,
        "key": IDS | SMALL,
    },
)
KINDS = st.sampled_from([*TYPES, "step", "acme.thing", "interrupt.", "interrupt.raised.again"])


@st.composite
def logs(draw: st.DrawFn, most: int = 30) -> list[Event]:
    """A log of any events with any values in them."""
    part = st.tuples(KINDS, PAYLOADS, st.none() | IDS, SEGMENTS | SMALL)
    parts = draw(st.lists(part, max_size=most))
    return [
        Event(type=kind, seq=seq, payload=payload, subagent_run_id=who, prompt=prompt)
        for seq, (kind, payload, who, prompt) in enumerate(parts)
    ]


def ev(seq: int, kind: str, **payload: Any) -> Event:
    return Event(type=kind, seq=seq, payload=payload)
