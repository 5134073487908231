"""Rows to events the quick way: the same answer as the plain way, for every line."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.decode import event_at, row_of
from playhead.core.model import Event
from playhead.core.quickevent import event_of_line, log_row
from playhead.core.rows import BadRow

numbers = st.one_of(
    st.integers(),
    st.integers(2**53, 2**70),
    st.integers(-(2**70), -(2**53)),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([10**16, 10**18, 10**19, 2**63, 2**64, -(2**63), 1e16, 1e-5, -0.0]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, st.text(), st.just("1" * 30))
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "v": st.sampled_from([1, 1.0, True, 2, "1", None]),
        "event": st.sampled_from(
            ["tool.completed", "tool.called", "model.responded", "a.b", "", 7]
        ),
        "payload": values | st.dictionaries(st.sampled_from(["result", "name", "x"]), values),
        "name": values,
        "at": values,
        "id": values,
        "seq": values,
        "turn_id": values,
        "subagent_run_id": values,
        "causation_id": values,
        "tenant_id": values,
        "other": values,
    },
)
rows = st.fixed_dictionaries(
    {},
    optional={
        "tool_call": envelopes | values,
        "tool_result": values,
        "model": values,
        "prompt": values,
        "prev_hash": st.just("a" * 64) | values,
        "step_hash": st.just("b" * 64) | values,
        "seq": values,
        "ts": values,
        "unknown": values,
    },
)


def plain(number: int, line: bytes | BadRow) -> Event:
    return event_at(number, row_of(line))


def same(one: Event, two: Event) -> bool:
    return type(one) is type(two) and repr(one) == repr(two)


def encode(row: Any, style: int) -> bytes:
    text = json.dumps(row, ensure_ascii=style % 2 == 0, sort_keys=style % 3 == 0)
    return text.encode("utf-8", "surrogatepass")


@given(rows | values, st.integers(0, 5), st.integers(0, 3))
def test_the_quick_way_gives_what_the_plain_way_gives(row: Any, style: int, number: int) -> None:
    line = encode(row, style)
    assert same(event_of_line(number, line), plain(number, line))
    found = log_row("t", "c", number, line)
    assert (found.sequence_number, found.line, found.row_hash) == (
        number + 1,
        line,
        found.event.step_hash,
    )


@given(rows, st.integers(0, 5), st.integers(0, 2000), st.binary(max_size=3))
def test_nor_do_they_differ_on_damaged_lines(row: Any, style: int, at: int, junk: bytes) -> None:
    line = encode(row, style)
    at %= len(line) + 1
    for damaged in (line[:at], line[:at] + junk + line[at:], line[:at] + junk + line[at + 1 :]):
        assert same(event_of_line(0, damaged), plain(0, damaged))


def nested(levels: int, inside: str = "1") -> bytes:
    before = '{"prev_hash":"a","step_hash":"b","tool_call":{"v":1,"event":"a.b","payload":{"x":'
    return (before + "[" * levels + inside + "]" * levels + "}}}").encode()


@pytest.mark.parametrize("levels", [1, 60, 190, 199, 210, 400, 900, 1100, 5000, 100_000])
def test_nor_on_deep_ones(levels: int) -> None:
    assert same(event_of_line(0, nested(levels)), plain(0, nested(levels)))


@pytest.mark.parametrize(
    "number",
    ["-0", "1e400", "-1E5", "1.0", "18446744073709551616", "-9223372036854775809", "1" * 5000],
)
def test_nor_on_odd_numbers(number: str) -> None:
    assert same(event_of_line(0, nested(1, number)), plain(0, nested(1, number)))


def test_nor_on_what_is_no_line() -> None:
    for line in (b"", b" ", b"\0\0", b"\xef\xbb\xbf{}", b"\xff", b"[]", b"null", b"{} "):
        assert same(event_of_line(3, line), plain(3, line))
    bad = BadRow("too-long", "a line of 99 bytes")
    assert same(event_of_line(3, bad), plain(3, bad))
    assert log_row("t", "c", 3, bad).line == b""


def test_an_event_of_the_quick_way_is_an_event() -> None:
    event = event_of_line(0, nested(1))
    assert event == plain(0, nested(1))
    assert type(event) is Event
    assert pickle.loads(pickle.dumps(event)) == event
    assert replace(event, seq=9).seq == 9
    assert [getattr(event, field.name) for field in fields(event)]
    with pytest.raises(AttributeError):
        event.type = "x"  # type: ignore[misc]
