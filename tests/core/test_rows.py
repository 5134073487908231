"""The quick way to a row's step hash says what the plain way says, whatever the line is."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.canonical import digest
from playhead.core.encode import fast_bytes
from playhead.core.model import GENESIS
from playhead.core.plain import plain_row
from playhead.core.rows import BadRow, Row, compute_step_hash, decode_row, spelled_alike
from playhead.formats.journal import encode_row

CASES = Path(__file__).parent.parent / "vectors" / "cases"

TEXT = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(categories=["Cs", "Lu", "Zl", "Zs"]), max_size=5),
    st.sampled_from(
        ["", "\x7f", "\x80", "é", "日本", "😀", "\ud83d", "\ue000", '"', "\\", "\0", "\n"]
    ),
    st.sampled_from([',"schema_version":2,"seq":', '","step_hash":"', ',"tool_call":', ',"ts":']),
)
FLOATS = st.one_of(
    st.floats(allow_nan=True),
    st.sampled_from([0.0, -0.0, 1e16, 9999999999999998.0, 1e-4, 9.999e-5, 1e22, 5e-324, 1.5]),
    st.sampled_from([1e15, 123456789012345680.0, 1e-7, -1e16, 1.7976931348623157e308]),
)
INTS = st.one_of(
    st.integers(), st.sampled_from([2**53 + 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30])
)
LEAVES = st.one_of(st.none(), st.booleans(), INTS, FLOATS, TEXT)
KEYS = st.one_of(TEXT, st.sampled_from(["schema_version", "seq", "step_hash", "tool_call", "ts"]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
HASHES = st.sampled_from([GENESIS, "a" * 64, "", "\ud800", "é" * 64])
ROWS = st.fixed_dictionaries(
    {
        "blob_refs": st.one_of(st.just([]), st.just(["b" * 64]), VALUES),
        "input_hash": st.one_of(HASHES, VALUES),
        "model": st.one_of(st.none(), TEXT, VALUES),
        "prev_hash": st.one_of(HASHES, VALUES),
        "prompt": st.one_of(st.none(), TEXT, VALUES),
        "schema_version": st.one_of(st.just(2), st.sampled_from([1, 2.0, True, "2", None])),
        "seq": st.one_of(st.integers(-2, 10**6), VALUES),
        "tool_call": VALUES,
        "tool_result": VALUES,
        "ts": st.one_of(st.floats(1e-4, 1e16), FLOATS, VALUES),
    },
    optional={"effort": VALUES, "zz": VALUES},
)


def step_hash_of(row: dict[str, Any]) -> str:
    """The hash of the row as it is read back: text is made of a value in its sorted order."""
    row = json.loads(python_line(row))
    fields = {key: row[key] for key in ("model", "prompt", "tool_call", "tool_result")}
    fields |= {key: str(row[key]) for key in ("prev_hash", "input_hash")}
    return compute_step_hash(**fields, effort=row.get("effort"))


def python_line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii")


def agree(line: bytes) -> Row | BadRow | None:
    """Both ways give the same row, hash and complaint; returns the quick way's."""
    quick, plain = decode_row(line), plain_row(line)
    assert type(quick) is type(plain)
    if isinstance(quick, Row) and isinstance(plain, Row):
        assert quick.computed == plain.computed
        assert (quick.stored_prev, quick.stored_hash) == (plain.stored_prev, plain.stored_hash)
        assert bool(quick.spellings) == bool(plain.spellings)
        assert not (quick.standard and quick.spellings)
    elif isinstance(quick, BadRow) and isinstance(plain, BadRow):
        assert quick.reason == plain.reason
    return quick


@given(ROWS)
def test_quick_is_plain_for_a_row_as_python_writes_it(row: dict[str, Any]) -> None:
    line = python_line(row | {"step_hash": step_hash_of(row)})
    got = agree(line)
    assert isinstance(got, Row) and got.computed == got.stored_hash


@given(ROWS, st.sampled_from(["utf-8", "spaced", "unsorted", "twice", "crlf", "padded"]))
def test_quick_is_plain_for_every_other_spelling(row: dict[str, Any], how: str) -> None:
    row = json.loads(python_line(row | {"step_hash": step_hash_of(row)}))
    text = {
        "utf-8": lambda: json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        "spaced": lambda: json.dumps(row, sort_keys=True),
        "unsorted": lambda: json.dumps(dict(reversed(row.items())), separators=(",", ":")),
        "twice": lambda: '{"prompt":"shown",' + python_line(row).decode()[1:],
        "crlf": lambda: python_line(row).decode() + "\r",
        "padded": lambda: "\u00a0 " + python_line(row).decode(),
    }[how]()
    got = agree(text.encode("utf-8", "surrogatepass"))
    if isinstance(got, Row):  # raw lone surrogates are no UTF-8
        assert got.computed == got.stored_hash
        assert got.spellings or how in ("utf-8", "unsorted")


@given(ROWS)
def test_a_row_hashed_over_what_orjson_would_write_is_refused(row: dict[str, Any]) -> None:
    """The attack on a quick path: a hash over bytes that are not Python's."""
    fields = {key: row[key] for key in ("model", "prompt", "tool_call", "tool_result")}
    fields |= {"prev_hash": GENESIS, "input_hash": ""}
    try:
        text = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
        whole = row | fields | {"step_hash": sha256(text).hexdigest(), "blob_refs": []}
        line = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a value orjson cannot write
        return
    for variant in (line, python_line(whole)):
        got = agree(variant)
        if isinstance(got, Row) and got.computed == got.stored_hash:
            assert got.computed == step_hash_of(got.obj)


@pytest.mark.parametrize("where", ["tool_call", "tool_result", "prompt", "model"])
@pytest.mark.parametrize("seq", [0, 7])
@pytest.mark.parametrize("version", [2, 2.0, 1])
def test_text_that_imitates_the_rows_own_metadata(where: str, seq: int, version: float) -> None:
    imitation = {
        "prompt": "p", "schema_version": 2, "seq": seq, "step_hash": "f" * 64, "tool_call": None,
    }  # fmt: skip
    value: Any = imitation if where.startswith("tool") else json.dumps(imitation)
    row: dict[str, Any] = {
        "blob_refs": [],
        "input_hash": "",
        "model": None,
        "prev_hash": GENESIS,
        "prompt": None,
        "seq": 0,
        "schema_version": version,
        "tool_call": None,
        "tool_result": None,
        "ts": 1.5,
        where: value,
    }
    row["step_hash"] = step_hash_of(row)
    good = agree(python_line(row))
    assert isinstance(good, Row) and good.computed == good.stored_hash
    edited = dict(row, input_hash="x")
    bad = agree(python_line(edited))
    assert isinstance(bad, Row) and bad.computed != bad.stored_hash


@given(VALUES, VALUES, st.one_of(st.none(), TEXT), st.integers(0, 10**9))
def test_a_row_playhead_writes_is_standard_and_the_plain_way_agrees(
    call: Any, result: Any, prompt: str | None, seq: int
) -> None:
    line, step_hash = encode_row(
        seq=seq, prev_hash=GENESIS, input_hash="a" * 64, model="m", prompt=prompt,
        tool_call=call, tool_result=result, ts=1700000000.25,
    )  # fmt: skip
    got = agree(line)
    assert isinstance(got, Row) and got.computed == got.stored_hash == step_hash
    assert line == python_line(json.loads(line)), "the reference writes the same bytes again"


@given(VALUES)
def test_fast_bytes_are_step_canonical_bytes(value: Any) -> None:
    expected = json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
    assert fast_bytes(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_called_alike_are_spelled_alike(number: float) -> None:
    if spelled_alike(number):
        assert orjson.dumps(number) == repr(number).encode()
    else:
        assert not (1e-4 <= abs(number) < 1e16)


@given(st.binary(max_size=40))
def test_no_bytes_bring_either_way_down(raw: bytes) -> None:
    agree(raw)
    agree(b'{"seq":' + raw + b"}")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff{}", "not-utf8"),
        (b"\xef\xbb\xbf{}", "bom"),
        (b"\0" * 512, "nul-padding"),
        (b"[1]", "not-an-object"),
        (b"{", "invalid-json"),
        (b"[" * 20_000 + b"]" * 20_000, "too-deep"),
        (b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "too-deep"),
        (b'{"a":' + b"9" * 5000 + b"}", "number-too-long"),
    ],
)
def test_a_line_that_is_no_row_gives_a_reason(line: bytes, reason: str) -> None:
    got = agree(line)
    assert isinstance(got, BadRow) and got.reason == reason


@pytest.mark.parametrize("key", ["seq", "prev_hash", "input_hash", "step_hash", "blob_refs", "ts"])
@pytest.mark.parametrize("depth", [100, 300, 900])
def test_deep_values_where_text_is_expected(key: str, depth: int) -> None:
    row = {"blob_refs": [], "input_hash": "", "prev_hash": GENESIS, "seq": 0, "step_hash": ""}
    row[key] = "INNER"
    line = python_line(row).replace(b'"INNER"', b"[" * depth + b"]" * depth)
    assert isinstance(decode_row(line), (Row, BadRow))


def test_many_keys_with_one_of_them_twice_are_read_in_linear_time() -> None:
    keys = b",".join(b'"k%d":1' % n for n in range(200_000))
    got = decode_row(b"{" + keys + b',"k199999":1}')
    assert isinstance(got, Row) and got.spellings[0] == "duplicate key 'k199999'"


def test_c34_which_numbers_are_equal() -> None:
    one, one_point, exponent, minus, zero = (
        digest(json.loads(line))
        for line in (CASES / "C34_ha_float_int.jsonl").read_bytes().splitlines()
    )
    assert one_point == exponent
    assert len({one, one_point, minus, zero}) == 4


def test_c40_text_is_canonical_as_ascii_escapes() -> None:
    value = json.loads((CASES / "C40_nonascii_canonical.json").read_text("utf-8"))
    assert fast_bytes(value) == b'{"prompt":"Z\\u00fcrich \\ud83c\\udfd4"}'
    by_code_point = fast_bytes({"🏔": 1, "\ue000": 2})
    assert by_code_point == b'{"\\ue000":2,"\\ud83c\\udfd4":1}', "RFC 8785 sorts the other way"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_json_is_named(number: float) -> None:
    got = agree(json.dumps({"seq": 0, "tool_call": number}).encode())
    assert isinstance(got, Row) and any("not JSON" in spelling for spelling in got.spellings)
