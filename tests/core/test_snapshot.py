"""A snapshot is the state itself: the same bytes, and it folds on the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlogs import SMALL, ev, logs
from playhead.core.fold import Folded, fold, start
from playhead.core.model import Event
from playhead.core.projection import projection
from playhead.core.projections import BUILT_IN, CORE, AgentState, Turns, Usage
from playhead.core.snapshot import OVERHEAD, decode, encode, worth_keeping
from playhead.core.wire import canonical_state
from playhead.errors import PlayheadError, ValueRefused

COUNTS = projection(
    "counts",
    init=dict,
    apply=lambda state, event: {**state, event.event_type: state.get(event.event_type, 0) + 1},
)
LAST = projection(
    "last",
    init=lambda: None,
    apply=lambda state, event: [event.sequence_number, dict(event.payload)],
    event_types=["state.changed", "step"],
)
ALL = (*BUILT_IN, CORE, COUNTS, LAST)


@settings(max_examples=120, deadline=None)
@given(logs(most=24), st.randoms(use_true_random=False))
def test_a_state_read_back_is_the_state_and_folds_on(log: list[Event], random: Any) -> None:
    folded = start(ALL)
    steps = [folded]
    for event in log:
        folded = folded.apply(event)
        steps.append(folded)
    wanted = [canonical_state(one) for one in steps]
    for at, one in enumerate(steps):
        data = encode(one)
        turned = list(ALL)
        random.shuffle(turned)  # the order of the projections is not part of it
        back = decode(data, turned)
        assert canonical_state(back) == wanted[at]
        assert encode(back) == data
        for event, expected in zip(log[at:], wanted[at + 1 :], strict=True):
            back = back.apply(event)
            assert canonical_state(back) == expected
        assert encode(back) == encode(steps[-1])


def test_a_state_that_is_not_frozen_json_has_no_snapshot() -> None:
    class Bare:
        key, version = "bare", 1

        def init(self) -> object:
            return ["x"]

        def apply(self, state: object, event: Event) -> object:
            return state

        def view(self, state: Any) -> Any:
            return list(state)

    class Sets(Bare):
        key = "sets"

        def init(self) -> object:
            return frozenset("x")

    class Tuples(Bare):
        key = "tuples"

        def init(self) -> object:
            return ("x", 1)

    for bad in (Bare(), Sets()):
        with pytest.raises(ValueRefused, match=f"no snapshot of the projection '{bad.key}'"):
            encode(start([bad]))
    assert canonical_state(decode(encode(start([Tuples()])), [Tuples()])) == canonical_state(
        start([Tuples()])
    )


def test_a_snapshot_of_other_projections_is_not_taken() -> None:
    data = encode(start([Turns()]))

    class Newer(Turns):
        version = 2

    for other in ([], [Usage()], [Newer()], [Turns(), Usage()]):
        with pytest.raises(ValueRefused, match="other projections"):
            decode(data, other)
    with pytest.raises(ValueRefused, match="other states"):
        changed = json.loads(data)
        changed["states"]["usage"] = []
        decode(json.dumps(changed).encode(), [Turns()])


@settings(max_examples=200, deadline=None)
@given(logs(most=12), st.data())
def test_bytes_that_are_no_snapshot_are_refused(log: list[Event], data: st.DataObject) -> None:
    whole = encode(fold(log, BUILT_IN))
    spoilt = data.draw(
        st.binary(max_size=30)
        | st.integers(0, len(whole) - 1).map(lambda n: whole[:n])
        | st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 255)).map(
            lambda p: whole[: p[0]] + bytes([whole[p[0]] ^ p[1]]) + whole[p[0] + 1 :]
        )
        | SMALL.map(lambda value: json.dumps(value).encode())
    )
    try:
        back = decode(spoilt, BUILT_IN)
    except PlayheadError:
        return
    assert isinstance(
        back, Folded
    )  # a changed letter of a value: the HMAC of the store is for that
    canonical_state(back)


@settings(max_examples=200, deadline=None)
@given(logs(most=12), SMALL, st.data())
def test_a_dump_of_another_shape_is_refused(
    log: list[Event], other: Any, data: st.DataObject
) -> None:
    found = json.loads(encode(fold(log, BUILT_IN)))
    place = data.draw(st.sampled_from(["core", *found["states"]]))
    if place == "core":
        found["core"] = other
    else:
        found["states"][place] = other
    try:
        decode(json.dumps(found).encode(), BUILT_IN)
    except PlayheadError as error:
        assert "Traceback" not in str(error)


def log_of(turns: int) -> list[Event]:
    """A conversation in which every request is told as a delta, with results of some length."""
    log: list[Event] = []
    for turn in range(turns):
        said = f'[[{(turn - 1) * 5},0,{turn}],"and then?"]' if turn else '["begin"]'
        for kind, payload in [
            ("model.requested", {"call_id": f"m{turn}", "temperature": 0.5}),
            ("model.responded", {"call_id": f"m{turn}", "result": "word " * 30}),
            ("tool.called", {"call_id": f"c{turn}", "arguments": {"n": turn}}),
            ("tool.completed", {"call_id": f"c{turn}", "result": "x" * 200}),
            ("interrupt.raised", {"interrupt_id": f"i{turn}", "reason": "r"}),
        ]:
            prompt = said if kind == "model.requested" else None
            log.append(Event(kind, len(log), payload, prompt=prompt, model="m"))
    return log


@pytest.mark.parametrize("projections", [(), BUILT_IN], ids=["core", "all"])
def test_snapshots_of_a_growing_state_never_cost_more_than_the_log(projections: Any) -> None:
    folded = start(projections)
    log_bytes = last_at = last_bytes = last_size = total = count = 0
    for number, event in enumerate(log_of(1200), 1):
        folded = folded.apply(event)
        log_bytes += len(repr(event.payload)) + len(str(event.prompt)) + 400
        since = {"rows_since": number - last_at, "log_bytes_since": log_bytes - last_bytes}
        if not worth_keeping(**since, snapshot_bytes=last_size):
            continue
        last_size = len(encode(folded))
        if worth_keeping(**since, snapshot_bytes=last_size):
            total, count = total + last_size + OVERHEAD, count + 1
            last_at, last_bytes = number, log_bytes
            assert total <= log_bytes
    assert 3 <= count <= 6000 // 256
    assert total <= log_bytes


@pytest.mark.parametrize(
    ("rows", "size", "kept"),
    [(256, 1000 - OVERHEAD, True), (255, 0, False), (256, 1001 - OVERHEAD, False)],
)
def test_a_snapshot_is_kept_at_these_bounds(rows: int, size: int, kept: bool) -> None:
    said: Mapping[str, int] = {"rows_since": rows, "log_bytes_since": 1000, "snapshot_bytes": size}
    assert worth_keeping(**said) is kept


def test_values_keep_their_kind() -> None:
    log = [
        ev(0, "interrupt.raised", interrupt_id="i", v=[1, 1.0, -0.0, 1e300, True, None, "\ud800"])
    ]
    log += [ev(1, "state.changed", key="k")]
    back = decode(encode(fold(log, [AgentState()])), [AgentState()])
    (record,) = back.state.interrupts
    assert repr(record.value["v"]) == "(1, 1.0, -0.0, 1e+300, True, None, '\\ud800')"
