"""Framing on 0x0A, and what is found on a broken line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.formats import lines, loose
from playhead.formats.lines import RecordReader, split
from playhead.formats.transcript import Notes


def records(data: bytes, chunk: int = 7) -> tuple[list[tuple[object, int, int]], list[str], bool]:
    notes = Notes()
    reader = RecordReader("f", [data[i : i + chunk] for i in range(0, len(data), chunk)], notes)
    found = [(r.value, r.line, r.byte) for r in reader]
    return found, [f.kind for f in notes.findings()], reader.torn


@given(st.binary(max_size=200), st.integers(1, 50))
@settings(deadline=None)
def test_lines_are_the_bytes_between_newlines(data: bytes, chunk: int) -> None:
    found = list(split([data[i : i + chunk] for i in range(0, len(data), chunk)]))
    parts = data.split(b"\n")
    last = [parts[-1]] if parts[-1] else []
    assert [line.raw for line in found] == parts[:-1] + last
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert all(data[line.offset : line.offset + line.size] == line.raw for line in found)


def test_a_long_line_is_never_held_and_the_next_one_is_read() -> None:
    found = list(split([b"a" * 60, b"b" * 60 + b"\nnext\n"], limit=100))
    assert [(line.raw, line.size) for line in found] == [(b"", 120), (b"next", 4)]


def test_a_long_line_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 20)
    found, kinds, torn = records(b'{"a":"%s"}\n{"b":1}\n' % (b"x" * 50))
    assert found == [({"b": 1}, 2, 59)]
    assert kinds == ["line-too-long"] and not torn


def test_bom_crlf_blank_lines_and_no_last_newline() -> None:
    found, kinds, torn = records(b'\xef\xbb\xbf{"a":1}\r\n\r\n \n{"b":2}')
    assert found == [({"a": 1}, 1, 3), ({"b": 2}, 4, 16)]
    assert kinds == [] and not torn


def test_u2028_and_nel_do_not_end_a_line() -> None:
    found, kinds, _ = records('{"a":"x\u2028y\u0085z"}\n'.encode())
    assert found == [({"a": "x\u2028y\u0085z"}, 1, 0)] and kinds == []


def test_the_second_record_of_a_glued_line_is_recovered_with_its_offset() -> None:
    line = b'{"type":"x","inner":{"role":"user"},"cut{"type":"y","in":{"a":1}}\n'
    found, kinds, torn = records(line)
    assert found == [({"type": "y", "in": {"a": 1}}, 1, line.index(b'{"type":"y"'))]
    assert kinds == ["glued-line", "bad-line"] and not torn


def test_whole_records_on_one_line_are_all_taken_and_the_cut_one_is_a_torn_tail() -> None:
    found, kinds, torn = records('{"ä":1}{"b":2} {"c":'.encode())
    assert found == [({"ä": 1}, 1, 0), ({"b": 2}, 1, 8)]
    assert kinds == ["glued-line", "torn-tail"] and torn


def test_an_object_inside_a_broken_row_is_not_taken_for_a_record() -> None:
    found, kinds, _ = records(b'{"a":{"b":1},"c\n')
    assert found == [] and kinds == ["bad-line"]


def test_nul_padding_is_a_finding_and_the_row_behind_it_is_read() -> None:
    found, kinds, _ = records(b'\0\0\0\0\n\0\0{"a":1}\n')
    assert found == [({"a": 1}, 2, 7)]
    assert kinds == ["nul-padding", "nul-padding"]


def test_odd_values_are_kept_and_named() -> None:
    digits = b"9" * 5000
    found, kinds, _ = records(b'{"n":NaN}\n{"i":%s}\n{"u":"\xff"}\n{"t":"NaN"}\n' % digits)
    values = [value for value, _, _ in found]
    assert str(values[0]) == "{'n': nan}"
    assert values[1:] == [{"i": digits.decode()}, {"u": "\udcff"}, {"t": "NaN"}]
    assert kinds == ["not-finite", "big-integer", "invalid-utf8"]


def test_nesting_is_bounded() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    found, kinds, torn = records(b'{"a":%s}\n{"b":1}\n' % deep, 1 << 16)
    assert [value for value, _, _ in found] == [{"b": 1}]
    assert kinds == ["too-deep"] and not torn


def test_a_hostile_line_of_openings_is_given_up_on() -> None:
    pieces = loose.rescue(b'x{"' * 100_000)
    assert [(p.start, p.end, p.value) for p in pieces] == [(0, 300_000, None)]


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    records(data)
    assert sum(p.end - p.start for p in loose.rescue(data) if p.value is None) <= len(data)
