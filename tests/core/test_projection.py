"""Projections of one's own: what is refused, what a failing one tells, what a set is called."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from eventlogs import ev
from playhead.core.fold import ProjectionFailed, fingerprint, fold, projection, start
from playhead.core.model import Event
from playhead.core.projections import BUILT_IN, CORE, Turns, Usage
from playhead.core.state import State
from playhead.errors import PlayheadError, UsageError, ValueRefused


def count(state: int, event: Event) -> int:
    return state + 1


def test_plain_functions_make_a_projection() -> None:
    seen = projection(
        "seen",
        init=list,
        apply=lambda state, event: [*state, (event.event_type, event.sequence_number)],
        view=lambda state: [f"{kind}@{number}" for kind, number in state],
        event_types=["acme.a", "acme.b"],
    )
    folded = fold([ev(0, "acme.a"), ev(1, "acme.c"), ev(2, "acme.b")], [seen])
    assert folded.view("seen") == ["acme.a@1", "acme.b@3"]
    assert folded.of("seen") == (("acme.a", 1), ("acme.b", 3))
    assert fold([ev(0, "x.y")] * 3, [projection("n", init=int, apply=count)]).view("n") == 3


def test_a_state_that_is_changed_in_place_fails_at_once() -> None:
    def impure(state: Any, event: Event) -> Any:
        state["n"] = 1
        return state

    folded = start([projection("p", init=dict, apply=impure)])
    with pytest.raises(ProjectionFailed) as caught:
        folded.apply(ev(6, "x.y"))
    assert (caught.value.key, caught.value.sequence_number) == ("p", 7)
    assert isinstance(caught.value.cause, TypeError)
    assert folded.state.event_count == 0


def test_a_failing_projection_is_named_without_what_it_said() -> None:
    def fail(state: int, event: Event) -> int:
        raise KeyError("a secret of the payload")

    with pytest.raises(ProjectionFailed) as caught:
        fold([ev(0, "x.y")], [Turns(), projection("mine", init=int, apply=fail)])
    assert str(caught.value).startswith("event 1: the projection 'mine' raised KeyError")
    assert "secret" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.key, again.sequence_number, again.cause) == ("mine", 1, None)
    with pytest.raises(ValueRefused):  # the row is at fault, not the projection
        start([projection("mine", init=int, apply=fail)]).apply(ev(0, ""))


def test_async_projections_are_refused() -> None:
    async def later(state: int, event: Event) -> int:
        return state

    class Later(Turns):
        key = "later"

        async def apply(self, state: object, event: Event) -> object:  # type: ignore[override]
            return state

    def wrapped(state: int, event: Event) -> Any:
        return later(state, event)

    hidden = projection("x", init=int, apply=wrapped)
    for make in (
        lambda: projection("x", init=int, apply=later),  # type: ignore[arg-type]
        lambda: start([Later()]),
        lambda: fold([ev(0, "a.b")], [hidden]),
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert isinstance(caught.value, PlayheadError)


@pytest.mark.parametrize("bad", ["turns", 7, None, object()])
def test_what_is_no_projection_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="projections hold one without a usable key"):
        start([bad])


@pytest.mark.parametrize(
    "given",
    [
        {"key": ""},
        {"key": 5},
        {"version": 0},
        {"version": True},
        {"version": "1"},
        {"init": None},
        {"apply": None},
        {"view": 3},
    ],
)
def test_bad_arguments_of_the_helper(given: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"key": "x", "init": int, "apply": count}
    with pytest.raises(UsageError):
        projection(**{**whole, **given})


@pytest.mark.parametrize("key", ["core", "event_count", "user_cards"])
def test_reserved_keys_are_refused(key: str) -> None:
    with pytest.raises(UsageError, match=f"'{key}' is taken"):
        start([projection(key, init=int, apply=count)])


def test_the_core_is_a_projection_too() -> None:
    log = [ev(0, "interrupt.raised", interrupt_id="i"), ev(1, "acme.x")]
    folded = fold(log, [CORE])
    assert folded.of("core") == folded.state
    assert folded.view("core") == folded.state.to_wire()
    assert isinstance(folded.of("core"), State)
    with pytest.raises(UsageError, match="'core' is taken"):
        start([CORE, CORE])


def test_a_set_is_called_by_its_keys_and_versions() -> None:
    class Newer(Turns):
        version = 2

    assert fingerprint([Turns(), Usage()]) == fingerprint([Usage(), Turns()])
    names = {
        fingerprint(chosen)
        for chosen in ([], [Turns()], [Newer()], [Turns(), Usage()], BUILT_IN, [CORE])
    }
    assert len(names) == 6
    assert all(len(name) == 64 for name in names)


def test_sets_of_two_folds_do_not_touch_each_other() -> None:
    one, two = start([Turns()]), start([Usage()])
    one.apply(ev(0, "turn.started", turn_id="t"))
    assert [p.key for p in one.projections] == ["turns"]
    assert [p.key for p in two.projections] == ["usage"]


def test_the_built_in_ones() -> None:
    assert [one.key for one in BUILT_IN] == [
        "messages",
        "turns",
        "tool_calls",
        "usage",
        "state",
        "stamps",
        "anomalies",
    ]
