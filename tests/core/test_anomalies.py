"""What did not fit the state is named, once, by the reducer; the state says nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from eventlogs import ev, logs
from playhead.core.anomalies import MAX_ANOMALIES, MAX_ID, Anomalies
from playhead.core.fold import fold, start
from playhead.core.model import Event
from playhead.core.reducer import KINDS, advance, reduce
from playhead.core.state import State
from playhead.errors import UsageError

INT, SUB, EXP, CARD = "interrupt_id", "subagent_run_id", "export_id", "card_id"
CASES: list[tuple[str, list[tuple[str, dict[str, Any]]], list[tuple[int, str, str | None]]]] = [
    ("orphan interrupt", [("interrupt.resolved", {INT: "x"})], [(1, "orphan", "x")]),
    ("orphan subagent", [("subagent.resumed", {SUB: "x"})], [(1, "orphan", "x")]),
    ("orphan export", [("export.deleted", {EXP: "x"})], [(1, "orphan", "x")]),
    ("orphan card", [("user_card.updated", {CARD: "x"})], [(1, "orphan", "x")]),
    (
        "double close of an interrupt",
        [(f"interrupt.{v}", {INT: "x"}) for v in ("raised", "resolved", "expired")],
        [(3, "double_close", "x")],
    ),
    (
        "double close of a subagent",
        [(f"subagent.{v}", {SUB: "x"}) for v in ("started", "failed", "completed")],
        [(3, "double_close", "x")],
    ),
    (
        "double close of an export",
        [(f"export.{v}", {EXP: "x"}) for v in ("created", "deleted", "failed", "deleted")],
        [(3, "double_close", "x"), (4, "double_close", "x")],
    ),
    (
        "double close of a card",
        [(f"user_card.{v}", {CARD: "x"}) for v in ("shown", "answered", "answered")],
        [(3, "double_close", "x")],
    ),
    (
        "an answer to a dismissed card",
        [(f"user_card.{v}", {CARD: "x"}) for v in ("shown", "dismissed", "answered", "dismissed")],
        [(3, "double_close", "x"), (4, "double_close", "x")],
    ),
    (
        "an update of a dismissed card",
        [(f"user_card.{v}", {CARD: "x"}) for v in ("shown", "dismissed", "updated")],
        [(3, "update_of_dismissed", "x")],
    ),
    (
        "reopening an interrupt",
        [(f"interrupt.{v}", {INT: "x"}) for v in ("raised", "cancelled", "raised")],
        [(3, "reopening", "x")],
    ),
    (
        "reopening a subagent, three ways",
        [
            (f"subagent.{v}", {SUB: "x"})
            for v in ("started", "completed", "started", "resumed", "suspended")
        ],
        [(3, "reopening", "x"), (4, "reopening", "x"), (5, "reopening", "x")],
    ),
    (
        "a dismissed card that is shown again",
        [(f"user_card.{v}", {CARD: "x"}) for v in ("shown", "dismissed", "shown", "updated")],
        [(3, "reopening", "x")],
    ),
    (
        "a duplicate open of a live id",
        [("interrupt.raised", {INT: "x"})] * 2 + [("subagent.started", {SUB: "x"})] * 2,
        [(2, "duplicate_open", "x"), (4, "duplicate_open", "x")],
    ),
    (
        "an export version that is not higher",
        [("export.created", {EXP: "x", "version": v}) for v in (2, 2, 1, 3)]
        + [("export.deleted", {EXP: "x", "version": 1})],
        [(n, "version_not_higher", "x") for n in (2, 3, 5)],
    ),
    (
        "suspended twice, resumed twice",
        [
            (f"subagent.{v}", {SUB: "x"})
            for v in ("started", "resumed", "suspended", "suspended", "resumed")
        ],
        [(2, "out_of_order", "x"), (4, "out_of_order", "x")],
    ),
    (
        "no id",
        [("interrupt.raised", {}), ("export.created", {EXP: 7}), ("user_card.shown", {CARD: ""})],
        [(1, "no_id", None), (2, "no_id", None), (3, "no_id", None)],
    ),
    (
        "nothing odd",
        [
            ("interrupt.unknown", {INT: "x"}),
            ("acme.thing", {}),
            *[(f"user_card.{v}", {CARD: "x"}) for v in ("shown", "shown", "answered", "dismissed")],
        ],
        [],
    ),
]


@pytest.mark.parametrize(("what", "events", "expected"), CASES, ids=[c[0] for c in CASES])
def test_every_kind_is_named_at_its_event(
    what: str,
    events: list[tuple[str, dict[str, Any]]],
    expected: list[tuple[int, str, str | None]],
) -> None:
    log = [ev(n, kind, **payload) for n, (kind, payload) in enumerate(events)]
    view: Any = fold(log, [Anomalies()]).view("anomalies")
    assert [(a["sequence_number"], a["kind"], a["id"]) for a in view["items"]] == expected
    assert [a["event_type"] for a in view["items"]] == [events[n - 1][0] for n, _, _ in expected]
    assert sum(view["counts"].values()) == len(expected)
    assert view["dropped"] == 0


def test_every_kind_has_a_case() -> None:
    assert {kind for _, _, found in CASES for _, kind, _ in found} == set(KINDS)


@settings(max_examples=150, deadline=None)
@given(logs())
def test_what_changed_nothing_is_named_and_what_is_named_changed_nothing(log: list[Event]) -> None:
    """Only a card that is shown again both changes the state and is named."""
    state = State()
    for event in log:
        after, said = advance(state, event)
        assert reduce(state, event) == after
        same = after[:4] == state[:4]
        if said is not None:
            assert said in KINDS
            assert same or (said == "reopening" and event.type == "user_card.shown")
        state = after


def test_the_first_ones_are_kept_and_the_rest_counted() -> None:
    log = [ev(n, "interrupt.resolved", interrupt_id="x" * 1000) for n in range(MAX_ANOMALIES + 9)]
    folded = fold(log, [Anomalies()])
    view: Any = folded.view("anomalies")
    assert (len(view["items"]), view["dropped"]) == (MAX_ANOMALIES, 9)
    assert view["counts"] == {"orphan": MAX_ANOMALIES + 9}
    assert view["items"][0]["id"] == "x" * MAX_ID
    view["items"].clear()
    assert len(folded.view("anomalies")["items"]) == MAX_ANOMALIES  # type: ignore[index, call-overload]


def test_it_follows_the_core_and_nothing_else() -> None:
    with pytest.raises(UsageError, match="follow the core state"):
        Anomalies().apply(Anomalies().init(), ev(0, "interrupt.raised"))
    folded = start([Anomalies()])
    assert folded.apply(ev(0, "acme.x")).states is folded.states
