"""The reducer and the projections: total, pure, and the same however one gets there."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlogs import ev, logs
from playhead.core.canonical import encode_step
from playhead.core.fold import fold, start
from playhead.core.messages import Messages
from playhead.core.model import Event
from playhead.core.persistent import Index, Vector, freeze, thaw
from playhead.core.projections import BUILT_IN, ToolCalls, Turns, Usage
from playhead.core.prompts import PromptIndex
from playhead.core.reducer import reduce
from playhead.core.state import State
from playhead.errors import UsageError, ValueRefused


def run_of(*events: Event) -> dict[str, Any]:
    return fold(events).state.to_wire()  # type: ignore[return-value]


def test_the_zero_state_is_exactly_the_five_empties() -> None:
    assert State().to_wire() == {
        "interrupts": [],
        "subagents": [],
        "exports": [],
        "userCards": [],
        "eventCount": 0,
    }


@settings(max_examples=150, deadline=None)
@given(logs())
def test_every_step_of_a_fold_is_the_fold_of_that_prefix(log: list[Event]) -> None:
    folded = start(BUILT_IN)
    kept = [folded]
    for event in log:
        folded = folded.apply(event)
        kept.append(folded)
    for size in range(len(log), -1, -1):  # later events have not touched the earlier states
        again = fold(log[:size], BUILT_IN)
        assert encode_step(kept[size].state.to_wire()) == encode_step(again.state.to_wire())
        assert kept[size].state.event_count == size
        for projection in BUILT_IN:
            assert encode_step(kept[size].view(projection.key)) == encode_step(
                again.view(projection.key)
            )


@settings(max_examples=100, deadline=None)
@given(logs())
def test_records_keep_their_order_and_are_never_removed(log: list[Event]) -> None:
    state = State()
    for event in log:
        after = reduce(state, event)
        for name in ("interrupts", "subagents", "exports", "user_cards"):
            old = [record.id for record in getattr(state, name)]
            new = [record.id for record in getattr(after, name)]
            assert new[: len(old)] == old
            assert len(set(new)) == len(new)
        state = after


@pytest.mark.parametrize("kind", ["", None, 7, ["x"]])
def test_an_event_without_a_usable_type_is_refused(kind: Any) -> None:
    state = State(event_count=4)
    with pytest.raises(ValueRefused, match="event 5 has no type"):
        reduce(state, Event(type=kind, seq=4))


def test_an_unknown_type_only_counts() -> None:
    before = fold([ev(0, "interrupt.raised", interrupt_id="i")]).state
    after = reduce(before, ev(1, "acme.thing", interrupt_id="j"))
    assert after.event_count == 2
    assert after.interrupts is before.interrupts


def test_events_that_change_no_record_share_all_of_them() -> None:
    state = fold([ev(n, "interrupt.raised", interrupt_id=f"i{n}") for n in range(100)]).state
    first = state
    for seq in range(100, 5100):
        state = reduce(state, ev(seq, "tool.called", call_id="c", arguments={}))
    assert state.interrupts is first.interrupts
    assert state.event_count == 5100


def test_an_interrupt_ends_once() -> None:
    wire = run_of(
        ev(0, "interrupt.raised", interrupt_id="i", reason="ask"),
        ev(1, "interrupt.raised", interrupt_id="i", reason="twice"),
        ev(2, "interrupt.resolved", interrupt_id="i", answer="yes"),
        ev(3, "interrupt.expired", interrupt_id="i"),
        ev(4, "interrupt.cancelled", interrupt_id="never raised"),
    )
    assert wire["interrupts"] == [
        {
            "interrupt_id": "i",
            "status": "resolved",
            "opened_at": 1,
            "closed_at": 3,
            "revision": 1,
            "value": {"reason": "ask"},
            "outcome": {"answer": "yes"},
        }
    ]


def test_a_subagent_runs_waits_and_ends() -> None:
    def status(*verbs: str) -> str:
        events = [
            Event(type=f"subagent.{verb}", seq=n, subagent_run_id="s")
            for n, verb in enumerate(verbs)
        ]
        (record,) = fold(events).state.subagents
        return record.status

    assert status("started", "suspended") == "suspended"
    assert status("started", "suspended", "resumed") == "running"
    assert status("started", "resumed", "completed", "failed", "resumed") == "completed"
    assert not list(fold([ev(0, "subagent.completed", subagent_run_id="s")]).state.subagents)


def test_the_highest_version_of_an_export_wins() -> None:
    made = [
        ev(0, "export.created", export_id="e", version=2, name="two"),
        ev(1, "export.created", export_id="e", version=1, name="one"),
        ev(2, "export.created", export_id="e", version=2, name="two again"),
    ]
    (record,) = fold(made).state.exports
    assert record.value["name"] == "two"
    (record,) = fold([*made, ev(3, "export.deleted", export_id="e")]).state.exports
    assert (record.status, record.value["name"]) == ("deleted", "two")
    later = ev(4, "export.created", export_id="e", version=3, name="three")
    (record,) = fold([*made, ev(3, "export.deleted", export_id="e"), later]).state.exports
    assert (record.status, record.value["name"], record.opened_at) == ("created", "three", 1)
    (record,) = fold([ev(0, "export.failed", export_id="f", error="full")]).state.exports
    assert record.status == "failed"


def test_a_card_is_replaced_whole_and_opens_again_when_shown() -> None:
    events = [
        ev(0, "user_card.shown", card_id="k", card_type="form", content={"a": 1, "b": 2}),
        ev(1, "user_card.updated", card_id="k", content={"a": 3}),
    ]
    (record,) = fold(events).state.user_cards
    assert thaw(record.value) == {"card_type": "form", "content": {"a": 3}}
    events += [ev(2, "user_card.dismissed", card_id="k"), ev(3, "user_card.answered", card_id="k")]
    (record,) = fold(events).state.user_cards
    assert (record.status, record.closed_at) == ("dismissed", 3)
    events += [ev(4, "user_card.updated", card_id="k", content="late")]
    assert [r.value["content"] for r in fold(events).state.user_cards] == [freeze({"a": 3})]
    events += [ev(5, "user_card.shown", card_id="k", content="new")]
    (record,) = fold(events).state.user_cards
    assert (record.status, record.closed_at, thaw(record.value)) == (
        "shown",
        None,
        {"content": "new"},
    )


def test_a_state_cannot_be_changed_through_what_it_holds() -> None:
    payload = {"interrupt_id": "i", "deep": {"list": [1, {"x": 2}]}}
    state = fold([Event(type="interrupt.raised", seq=0, payload=payload)]).state
    payload["deep"]["list"].append("later")  # type: ignore[index]
    (record,) = state.interrupts
    assert thaw(record.value) == {"deep": {"list": [1, {"x": 2}]}}
    with pytest.raises(TypeError):
        record.value["deep"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        state.event_count = 9  # type: ignore[misc]


def test_projections_have_keys_of_their_own() -> None:
    with pytest.raises(UsageError, match="'turns' is taken"):
        start([Turns(), Turns()])

    class Greedy(Turns):
        key = "interrupts"

    with pytest.raises(UsageError, match="'interrupts' is taken"):
        start([Greedy()])
    with pytest.raises(UsageError, match="no projection 'usage'"):
        fold([], [Turns()]).view("usage")


def test_the_conversation_is_the_latest_prompt_and_what_followed() -> None:
    index = PromptIndex()
    first = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    answer = {"role": "assistant", "content": "hello"}
    second = [*first, answer, {"role": "user", "content": "more"}]
    events = [Event("model.requested", 0, prompt=index.encode(0, first))]
    events.append(Event("model.responded", 1, {"result": answer}))
    index.answered(1, answer)
    events.append(Event("model.requested", 2, prompt=index.encode(2, second)))
    events.append(Event("model.responded", 3, {"result": "bye"}))
    events.append(Event("message.received", 4, {"message": {"role": "user", "content": "wait"}}))
    steps = [fold(events[:n], [Messages()]).view("messages") for n in range(6)]
    last = {"role": "assistant", "content": "bye"}
    wait = {"role": "user", "content": "wait"}
    assert steps == [
        [],
        first,
        [*first, answer],
        second,
        [*second, last],
        [*second, last, wait],
    ]


def test_a_subagent_has_a_conversation_of_its_own() -> None:
    events = [
        Event("message.received", 0, {"content": "main"}),
        Event("model.responded", 1, {"result": "theirs"}, subagent_run_id="s"),
        Event("step", 2, prompt="a plain prompt"),
    ]
    messages = Messages()
    folded = fold(events, [messages])
    assert folded.view("messages") == [{"role": "user", "content": "main"}, "a plain prompt"]
    theirs = [{"role": "assistant", "content": "theirs"}]
    assert messages.conversation(folded.of("messages"), "s") == theirs


def test_a_prompt_that_refers_to_nothing_is_a_marked_value() -> None:
    folded = fold([Event("model.requested", 3, prompt="[[1,0,4]]")], [Messages()])
    (only,) = folded.view("messages")  # type: ignore[misc]
    assert only["$playhead"] == "refused"
    assert "0 messages, a later prompt wants 4" in only["what"]


def test_tool_calls_are_pairs_and_the_end_of_a_run_leaves_unknown_ones() -> None:
    def call(seq: int, kind: str, call_id: str) -> Event:
        return Event(f"tool.{kind}", seq, {"call_id": call_id}, name="get")

    events = [
        call(0, "called", "a"),
        call(1, "called", "b"),
        call(2, "called", "c"),
        call(3, "completed", "b"),
        call(4, "failed", "a"),
        call(5, "completed", "a"),
        call(6, "completed", "orphan"),
    ]

    def seen(log: list[Event]) -> list[tuple[Any, ...]]:
        found: Any = fold(log, [ToolCalls()]).view("tool_calls")
        return [(c["call_id"], c["status"], c["opened"], c["closed"]) for c in found]

    assert seen(events[:4]) == [
        ("a", "pending", 0, None),
        ("b", "completed", 1, 3),
        ("c", "pending", 2, None),
    ]
    assert seen([*events, ev(7, "run.ended", status="completed")]) == [
        ("a", "failed", 0, 4),
        ("b", "completed", 1, 3),
        ("c", "unknown", 2, None),
        ("orphan", "completed", None, 6),
    ]
    again = [*events, ev(7, "run.ended", status="failed"), call(8, "called", "d")]
    assert seen(again)[-1] == ("d", "pending", 8, None)


def test_a_turn_without_an_id_closes_the_open_one() -> None:
    events = [
        Event("turn.started", 0, turn_id="t1"),
        ev(1, "turn.completed", outcome="failed"),
        Event("turn.started", 2),
        ev(3, "turn.completed", message_id="m"),
    ]
    found: Any = fold(events, [Turns()]).view("turns")
    assert [(t["turn_id"], t["status"], t["opened"], t["closed"]) for t in found] == [
        ("t1", "failed", 0, 1),
        ("@2", "open", 2, None),
        ("m", "completed", None, 3),
    ]


def test_usage_is_summed_and_bounded() -> None:
    events = [
        ev(0, "model.responded", usage={"input": 3, "more": {"cached": 1}, "cost": 0.5}),
        ev(1, "model.responded", usage={"input": 4, "ok": True, "more": {"cached": 2}}),
        ev(2, "tool.completed", usage={"input": 100}),
        ev(3, "model.responded", usage={f"k{n}": 1 for n in range(1000)} | {"input": 10**4000}),
    ]
    found: Any = fold(events, [Usage()]).view("usage")
    assert (found["input"], found["more.cached"], len(found)) == (7, 3, 64)


@given(st.lists(st.integers(), max_size=200), st.data())
def test_a_vector_is_a_list_that_is_never_changed(values: list[int], data: st.DataObject) -> None:
    vector: Vector[int] = Vector()
    kept = [vector]
    for value in values:
        vector = vector.append(value)
        kept.append(vector)
    assert [list(one) for one in kept] == [values[:n] for n in range(len(values) + 1)]
    if values:
        at = data.draw(st.integers(0, len(values) - 1))
        assert list(vector.replace(at, -1)) == [*values[:at], -1, *values[at + 1 :]]
        assert list(vector) == values
        assert vector[at] == values[at]
    assert list(Vector.of(values)) == values
    assert Vector.of(values) == vector
    assert [item for leaf in vector.leaves() for item in leaf] == values
    with pytest.raises(IndexError):
        vector.replace(len(values), 0)


def test_a_vector_grows_over_several_levels() -> None:
    vector: Vector[int] = Vector()
    for n in range(32**2 + 40):
        vector = vector.append(n)
        if n % 37 == 0:
            assert vector == Vector.of(range(n + 1))
    assert list(vector) == list(range(32**2 + 40))
    assert vector.replace(1000, -1)[1000] == vector.replace(1060, -1)[1060] == -1
    assert vector == Vector.of(range(32**2 + 40))
    assert (vector[0], vector[1023], vector[1024], vector[-1]) == (0, 1023, 1024, 1063)


@given(st.data())
def test_an_index_is_a_map_that_is_never_changed(data: st.DataObject) -> None:
    """Added to from any version, in any order: each version has its own keys and no other."""
    keys = st.text(max_size=2)
    versions: list[tuple[Index, list[str]]] = [(Index(), [])]
    for _ in range(data.draw(st.integers(0, 60))):
        index, model = versions[data.draw(st.integers(0, len(versions) - 1))]
        key = data.draw(keys)
        if key not in model:
            versions.append((index.add(key), [*model, key]))
    everything = {key for _, model in versions for key in model} | {"no such key"}
    for index, model in versions:
        assert len(index) == len(model)
        assert [index.key(place) for place in range(len(model))] == model
        places = {key: place for place, key in enumerate(model)}
        assert {key: index.get(key) for key in everything} == {
            key: places.get(key) for key in everything
        }
        assert all(Index.of(model).get(key) == index.get(key) for key in everything)


def test_histories_that_agree_share_and_those_that_part_do_not() -> None:
    base = Index.of(f"k{n}" for n in range(100))
    assert base.add("x")._places is base.add("x")._places is base._places
    other = base.add("y")
    assert other._places is not base._places
    assert (other.get("x"), other.get("y"), base.get("y"), base.get("x")) == (None, 100, None, None)
    assert len(Index()) == 0
    assert Index().get("x") is None


def test_freezing_stops_at_a_depth_that_no_recorded_value_has() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = {"x": [deep]}
    frozen = freeze(deep)
    assert isinstance(frozen, MappingProxyType)
    assert isinstance(thaw(frozen), dict)
