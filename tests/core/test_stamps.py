"""Under what a run and its calls stood, and which part of it became another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlogs import SMALL, ev
from playhead.core.fold import fold
from playhead.core.model import Event
from playhead.core.persistent import thaw
from playhead.core.stamps import (
    ABSENT,
    MAX_CHANGES,
    MAX_MODELS,
    MAX_PARTS,
    StampDiff,
    Stamps,
    call_stamp,
    compare_stamps,
)

STAMPS = st.dictionaries(st.text(max_size=3), SMALL, max_size=4)


def view_of(*events: Event) -> Any:
    return fold(events, [Stamps()]).view("stamps")


def test_the_first_row_stamps_the_run_and_later_stamps_change_parts_of_it() -> None:
    view = view_of(
        ev(0, "run.started", uid="u", agent="a", versions={"python": "3.11", "sdk": "1"}),
        ev(1, "run.stamped", stamp={"versions": {"python": "3.12"}, "model": "m"}),
        ev(2, "run.stamped", stamp="no stamp"),
        ev(3, "run.stamped", stamp={"model": "m"}),
    )
    assert view["stamp"] == {"agent": "a", "versions": {"python": "3.12"}, "model": "m"}
    assert view["sequence_number"] == 4
    assert view["changes"] == [
        {"sequence_number": 2, "path": "/model", "a": thaw(ABSENT), "b": "m"},
        {"sequence_number": 2, "path": "/versions/python", "a": "3.11", "b": "3.12"},
        {"sequence_number": 2, "path": "/versions/sdk", "a": "1", "b": thaw(ABSENT)},
    ]
    assert view["dropped_changes"] == 0


def test_calls_are_told_by_the_stamp_they_were_asked_under() -> None:
    def ask(seq: int, model: str, **payload: Any) -> Event:
        return Event("model.requested", seq, {"call_id": f"c{seq}", **payload}, model=model)

    asked = [
        ask(0, "m", provider="p", transport="http", temperature=0, tools=[1]),
        ask(1, "m", provider="p", transport="http", temperature=0.0),
        ask(2, "m", provider="p", transport="http", temperature=0, messages=["x"]),
        ask(3, "other"),
    ]
    models = view_of(*asked)["models"]
    assert [(m["first"], m["last"], m["calls"]) for m in models] == [
        (1, 3, 2),
        (2, 2, 1),
        (4, 4, 1),
    ]
    stamp = {"model": "m", "provider": "p", "transport": "http", "temperature": 0}
    assert models[0]["stamp"] == stamp
    first, other = call_stamp(asked[0]), call_stamp(asked[3])
    assert first is not None and other is not None
    assert [diff.path for diff in compare_stamps(first, other)] == [
        "/model",
        "/provider",
        "/temperature",
        "/transport",
    ]
    assert call_stamp(ev(0, "model.responded")) is None


def test_differences_are_by_canonical_bytes_and_paths_are_pointers() -> None:
    a = {"a/b": {"~": 1}, "n": 1, "t": True, "list": [1, {"x": 1}], "null": None}
    b = {"a/b": {"~": 2}, "n": 1.0, "t": 1, "list": [1, {"x": 2}]}
    found = compare_stamps(a, b)
    assert [(d.path, thaw(d.a), thaw(d.b)) for d in found] == [
        ("/a~1b/~0", 1, 2),
        ("/list", [1, {"x": 1}], [1, {"x": 2}]),
        ("/n", 1, 1.0),
        ("/null", None, {"$playhead": "absent"}),
        ("/t", True, 1),
    ]
    assert found[3].to_dict() == {"path": "/null", "a": None, "b": {"$playhead": "absent"}}
    with pytest.raises(AttributeError):
        found[0].path = "/x"  # type: ignore[misc]


@given(STAMPS, STAMPS)
def test_comparing_is_a_mirror_and_equal_stamps_have_no_difference(a: Any, b: Any) -> None:
    assert compare_stamps(a, a) == ()
    turned = [StampDiff(path, y, x) for path, x, y in compare_stamps(a, b)]
    assert [repr(d) for d in compare_stamps(b, a)] == [repr(d) for d in turned]


def test_a_hostile_run_cannot_make_it_grow() -> None:
    log = [ev(0, "run.stamped", stamp={f"p{n}": 0 for n in range(MAX_PARTS + 5)})]
    log += [ev(n, "run.stamped", stamp={"p0": n, f"new{n}": 0}) for n in range(1, MAX_CHANGES + 9)]
    log += [
        Event("model.requested", n, {"seed": n}, model="m")
        for n in range(len(log), len(log) + MAX_MODELS + 3)
    ]
    view = view_of(*log)
    assert len(view["stamp"]) == MAX_PARTS
    assert (len(view["changes"]), view["dropped_changes"]) == (MAX_CHANGES, 8)
    assert (len(view["models"]), view["unkept_calls"]) == (MAX_MODELS, 3)
