"""Canonical bytes of a state: the same every way, on every interpreter, or refused."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings

from eventlogs import ev, logs
from playhead.core.canonical import step_bytes
from playhead.core.fold import Folded, fold, start
from playhead.core.model import Event
from playhead.core.projection import projection
from playhead.core.projections import BUILT_IN, CORE, ToolCalls
from playhead.core.state import State
from playhead.core.wire import StateDigests, canonical_state, state_digest
from playhead.errors import ValueRefused


def plainly(folded: Folded) -> bytes:
    """The definition, without any sharing."""
    views = {one.key: folded.view(one.key) for one in folded.projections}
    return step_bytes({"core": folded.state.to_wire(), "projections": views})


def digest_by_hand(data: bytes) -> str:
    """The rule of docs/reference/state.md, from the canonical bytes alone."""

    def short(part: Any) -> str:
        if not isinstance(part, list):
            return hashlib.sha256(step_bytes(part)).hexdigest()
        pieces = [part[at : at + 32] for at in range(0, len(part), 32)]
        said = b"".join(hashlib.sha256(step_bytes(piece)).digest() for piece in pieces)
        return hashlib.sha256(b"playhead/state-list/v1\0" + said).hexdigest()

    found = json.loads(data)
    core = {k: v if k == "eventCount" else short(v) for k, v in found["core"].items()}
    views = {k: short(v) for k, v in found["projections"].items()}
    said = b"playhead/state/v1\0" + step_bytes({"core": core, "projections": views})
    return hashlib.sha256(said).hexdigest()


@settings(max_examples=150, deadline=None)
@given(logs())
def test_bytes_and_digest_are_those_of_the_definition(log: list[Event]) -> None:
    walk, folded = StateDigests(), start((*BUILT_IN, CORE))
    kept = [folded]
    for event in log:
        folded = folded.apply(event)
        kept.append(folded)
        assert walk.digest(folded) == digest_by_hand(plainly(folded))
    for folded in (*kept, *reversed(kept)):  # any order: it remembers one state, never a wrong one
        assert plainly(folded) == canonical_state(folded)
        assert walk.digest(folded) == state_digest(folded) == digest_by_hand(plainly(folded))


def test_a_long_list_is_hashed_by_its_pieces() -> None:
    made: list[str] = []

    class Counting(ToolCalls):
        def listed(self, state: object) -> Any:
            items, wire, token = super().listed(state)

            def counted(one: Any) -> Any:
                made.append(one.id)
                return wire(one)

            return items, counted, token

    log = [ev(n, "tool.called", call_id=f"c{n}") for n in range(2000)]
    walk, folded = StateDigests(), fold(log, [Counting()])
    walk.digest(folded)
    assert len(made) == 2000
    made.clear()
    grown = folded.apply(ev(2000, "tool.completed", call_id="c5"))
    assert walk.digest(grown) == digest_by_hand(plainly(grown))
    assert len(made) == 32  # of the one piece that changed
    ended = grown.apply(ev(2001, "run.ended", status="completed"))
    assert walk.digest(ended) == digest_by_hand(plainly(ended))  # every pending call became unknown
    assert b'"unknown"' in plainly(ended)


def test_the_zero_state_has_these_bytes() -> None:
    assert canonical_state(start()) == (
        b'{"core":{"eventCount":0,"exports":[],"interrupts":[],"subagents":[],"userCards":[]},'
        b'"projections":{}}'
    )
    assert state_digest(start()) == digest_by_hand(canonical_state(start()))


def deep() -> object:
    value: object = 1
    for _ in range(300):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: {"x": {1, 2}}, "a set"),
        (lambda: {1: "x"}, "int, not text"),
        (lambda: {"x": object()}, "a object"),
        (lambda: b"x", "a bytes"),
        (State, "a State"),
        (deep, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_by_name_and_not_by_value(
    make: Callable[[], Any], word: str
) -> None:
    shown = projection("mine", init=dict, apply=lambda s, e: s, view=lambda s: make())
    with pytest.raises(
        ValueRefused, match=f"projection 'mine' shows no plain JSON value: .*{word}"
    ):
        canonical_state(start([shown]))


def test_a_projection_that_changes_its_state_in_place_is_seen() -> None:
    class Impure:
        key, version = "impure", 1

        def init(self) -> object:
            return {"n": 0}

        def apply(self, state: Any, event: Event) -> object:
            state["n"] += 1
            return state

        def view(self, state: Any) -> Any:
            return dict(state)

    walk, folded = StateDigests(), start([Impure()])
    before = walk.digest(folded)
    folded.apply(ev(0, "acme.x"))
    assert walk.digest(folded) != before


SCRIPT = """
import sys
from playhead.core.fold import fold
from playhead.core.model import Event
from playhead.core.projections import BUILT_IN
from playhead.core.snapshot import encode
from playhead.core.wire import canonical_state, state_digest

log, n = [], 0
for turn in range(40):
    for kind, payload in [
        ("run.stamped", {"stamp": {f"k{turn % 7}": turn, "z": {"b": 1, "a": turn}}}),
        ("turn.started", {"turn_id": f"t{turn}"}),
        ("model.requested", {"call_id": f"m{turn}", "seed": turn % 3, "top_p": 0.1}),
        ("model.responded", {"call_id": f"m{turn}", "result": "ok", "usage": {"b": 1, "a": 2}}),
        ("interrupt.raised", {"interrupt_id": f"i{turn % 9}", "y": 1, "x": {"q": [1], "p": 2}}),
        ("interrupt.resolved", {"interrupt_id": f"i{turn % 5}"}),
        ("user_card.shown", {"card_id": f"c{turn % 4}", "content": "\\u00e9"}),
        ("state.changed", {"key": f"s{turn % 11}"}),
        ("tool.called", {"call_id": f"{turn}"}),
    ]:
        log.append(Event(kind, n, payload, prompt='["hi"]', model="m"))
        n += 1
folded = fold(log, BUILT_IN)
sys.stdout.write(state_digest(folded) + canonical_state(folded).decode() + encode(folded).decode())
"""


def test_three_hash_seeds_give_the_same_bytes() -> None:
    outputs = set()
    for seed in ("0", "1", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, capture_output=True, check=True, timeout=60
        )
        outputs.add(done.stdout)
    (output,) = outputs
    assert len(output) > 5000


def test_nothing_that_is_handed_out_can_change_a_state() -> None:
    payload: dict[str, Any] = {"interrupt_id": "i", "deep": {"list": [1, {"x": [2]}]}}
    answer: dict[str, Any] = {"role": "assistant", "content": [{"text": "hi"}]}
    log = [
        Event("interrupt.raised", 0, payload),
        Event("model.requested", 1, {"call_id": "m", "stop": ["x"]}, prompt=["a"], model="m"),
        Event("model.responded", 2, {"result": answer, "usage": {"in": 1}}),
        Event("message.received", 3, {"message": {"role": "user", "content": ["c"]}}),
        Event("run.stamped", 4, {"stamp": {"a": {"b": [1]}}}),
        Event("user_card.answered", 5, {"card_id": "none"}),
        Event("interrupt.resolved", 6, {"interrupt_id": "i", "value": {"v": [1]}}),
    ]
    folded = fold(log, (*BUILT_IN, CORE))
    before = canonical_state(folded)
    payload["deep"]["list"].append("later")
    answer["content"][0]["text"] = "changed"
    for event in log[1:]:
        event.payload.clear()  # type: ignore[attr-defined]
    for key in [one.key for one in folded.projections]:
        spoil(folded.view(key))
    spoil(folded.state.to_wire())
    assert canonical_state(folded) == before
    (record,) = folded.state.interrupts
    assert frozen_all_through(record.value)
    assert frozen_all_through(record.outcome)
    for change in (
        lambda: setattr(record, "status", "x"),
        lambda: setattr(folded.state, "event_count", 9),
        lambda: setattr(folded, "state", State()),
        lambda: setattr(folded.state, "new", 1),
    ):
        with pytest.raises(AttributeError):
            change()
    for change in (
        lambda: record.value.update(x=1),  # type: ignore[attr-defined]
        lambda: record.value.__setitem__("deep", 1),  # type: ignore[index]
        lambda: record.value["deep"].__setitem__("list", 1),  # type: ignore[index]
        lambda: record.value["deep"]["list"].append(1),  # type: ignore[index]
        lambda: record.value["deep"]["list"][1].pop("x"),  # type: ignore[index]
        lambda: folded.of("usage").clear(),  # type: ignore[attr-defined]
    ):
        with pytest.raises(AttributeError):
            change()
    assert canonical_state(folded) == before


def frozen_all_through(value: object) -> bool:
    if isinstance(value, MappingProxyType):
        return all(map(frozen_all_through, value.values()))
    if isinstance(value, tuple):
        return all(map(frozen_all_through, value))
    return not isinstance(value, (dict, list, set))


def spoil(value: Any) -> None:
    """Change everything that can be changed, all the way down."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")


def test_sums_of_parts_that_are_gone_are_dropped() -> None:
    """A list that is changed for ever costs bounded memory, and its digest stays the plain one."""
    from hashlib import sha256

    from playhead.core.persistent import Vector
    from playhead.core.sums import Sums

    def leaf(values: tuple[int, ...]) -> bytes:
        return sha256(repr(values).encode()).digest()

    known: Sums = {}
    items: Vector[int] = Vector.of(range(3000))
    for number in range(3000):
        items = items.replace(number * 7 % 3000, -number)
        if number % 10 == 0:
            items = items.append(number)
        assert items.summed(leaf, known) == b"".join(map(leaf, items.leaves()))
        assert len(known) <= 1024 + len(items) // 8
    assert Vector[int]().summed(leaf, known) == b""
