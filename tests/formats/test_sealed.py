"""The grammar of sealed journals: every line comes back, nothing hostile gets far."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.model import GENESIS
from playhead.errors import Refused, TooLarge
from playhead.formats import sealed
from playhead.formats.packed import RAW, Before, Packer, unpack_row
from playhead.formats.sealed import (
    FOOTER,
    Content,
    Frame,
    Index,
    contents_of,
    decode_content,
    decode_index,
    encode_index,
    index_size,
)
from sealing import UID, Chain, conversation, journal, lines

DIGEST = "0" * 64


def plain_of(contents: list[Content]) -> bytes:
    return b"".join(decode_content(item.data, item.plain) for item in contents)


def in_blocks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(lines(), st.booleans(), st.integers(1, 5000))
def test_any_lines_come_back_byte_for_byte(found: list[bytes], closed: bool, size: int) -> None:
    plain = b"\n".join(found) + (b"\n" if closed and found else b"")
    contents = list(contents_of(in_blocks(plain, size)))
    assert plain_of(contents) == plain
    assert sum(item.plain for item in contents) == len(plain)
    assert sum(item.rows for item in contents) == sum(1 for x in plain.split(b"\n") if x.strip())


def test_a_native_row_keeps_only_what_is_its_own() -> None:
    packer = Packer()
    packed = [packer.pack(line) for line in conversation(2)]
    requested = orjson.loads(packed[6][0])
    assert set(requested) == {"model", "call", "prompt"}
    assert set(requested["call"]) == {"event", "at", "payload", "turn_id", "causation_id"}
    assert requested["call"]["causation_id"] == 1
    assert requested["prompt"] == [[4, 0, 1], [3, 0, 1], 0]
    assert [orjson.loads(text)["role"] for text in packed[6][1]] == ["user"]
    assert packer.before.uid == UID


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"schema_version":2', b'"schema_version":1'),
        (b'"seq":0,"step_hash"', b'"seq":0.0,"step_hash"'),
        (b'"blob_refs":[]', b'"blob_refs": []'),
        (b'"model":null', b'"model":null,"more":1'),
        (b'"ts":1.5', b'"ts":15e-1'),
        (b"abab", b"abac"),
    ],
)
def test_a_row_that_would_not_come_back_stays_raw(old: bytes, new: bytes) -> None:
    line = Chain().row(tool_result="x" * 200)
    assert Packer().pack(line)[0] != RAW
    changed = line.replace(old, new, 1)
    assert changed != line
    assert Packer().pack(changed) == (RAW, [changed])


def test_a_row_behind_a_raw_one_is_packed_as_if_it_were_not_raw() -> None:
    chain = Chain()
    first, second = chain.row(tool_result="a"), chain.row(tool_result="b" * 100)
    packer = Packer()
    assert packer.pack(first + b" ")[0] == RAW
    assert set(orjson.loads(packer.pack(second)[0])) == {"input_hash", "tool_result", "ts"}


def test_every_frame_is_read_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "FRAME", 9_000)
    plain = journal(20)
    contents = list(contents_of(in_blocks(plain, 1000)))
    assert len(contents) > 5
    at = row = 0
    for item in contents:
        found = decode_content(item.data, item.plain)
        assert found == plain[at : at + item.plain]
        rows = found.splitlines()
        assert len(rows) == item.rows
        assert orjson.loads(rows[0])["seq"] == row
        assert orjson.loads(rows[-1])["step_hash"] == item.head
        at, row = at + item.plain, row + item.rows
    assert at == len(plain)


def test_a_line_longer_than_a_frame_is_cut_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "FRAME", 5_000)
    chain = Chain()
    found = [chain.row(tool_result=text) for text in ("a", "b" * 30_000, "c")]
    plain = b"\n".join(found)
    contents = list(contents_of(in_blocks(plain, 700)))
    assert max(len(item.data) for item in contents) < 6_000
    assert sum(item.rows for item in contents) == 3
    assert plain_of(contents) == plain


def test_a_frame_of_blank_lines_ends_in_time() -> None:
    plain = b"\n" * (sealed.MAX_LINES + 5)
    contents = list(contents_of([plain]))
    assert [item.plain for item in contents] == [sealed.MAX_LINES, 5]
    assert plain_of(contents) == plain


HEADER = {"lines": 1, "meta": 2, "open": False, "seq": 0, "head": GENESIS, "at": 0, "uid": None}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"[]\n",
        b"{}\n",
        b"no newline",
        orjson.dumps({**HEADER, "lines": -1}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "lines": True}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "lines": 1 << 40}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "meta": 1 << 40}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "head": "short"}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "at": None}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "uid": 5}) + b"\n0\nx\n",
        orjson.dumps({**HEADER, "lines": 2}) + b"\n0\nx\n",
        orjson.dumps(HEADER) + b"\n1\nx\n",
        orjson.dumps({**HEADER, "meta": 3}) + b"\n{}\n",
        orjson.dumps({**HEADER, "meta": 10**5}) + b"\n" + b"[" * 10**5 + b"\n",
    ],
)
def test_a_hostile_frame_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode_content(data, 100)


@pytest.mark.parametrize(
    "packed",
    [
        {"ts": 1.0, "input_hash": 5, "prompt": [[1, 2]]},
        {"ts": "x", "input_hash": "a"},
        {"ts": 1.0, "seq": -1},
        {"ts": 1.0, "seq": 1 << 53},
        {"ts": 1.0, "prev_hash": 3},
        {"ts": 1.0, "tool_result": 1},
        {"ts": 1.0, "blob_refs": 3},
        {"call": 3},
        {"call": {"event": "x"}},
        {"call": {"event": "x", "at": "now", "payload": {}}},
        {"call": {"event": "x", "at": 1 << 62, "payload": {}}},
        {"call": {"event": "x", "at": -(1 << 62), "payload": {}}},
    ],
)
def test_a_hostile_packed_row_is_refused(packed: dict[str, object]) -> None:
    with pytest.raises(Refused):
        unpack_row(packed, lambda: b"", Before())


def test_a_frame_that_holds_more_than_it_declares_is_stopped() -> None:
    (item,) = contents_of([journal(5)])
    with pytest.raises(TooLarge):
        decode_content(item.data, item.plain - 1000)


def an_index() -> tuple[Index, int]:
    one = Frame(0, 10, 20, 0, 30, 0, 2, DIGEST, GENESIS)
    two = Frame(10, 11, 21, 30, 31, 2, 3, DIGEST, GENESIS)
    return Index((one, two), 61, 5, DIGEST), 21


def test_an_index_comes_back() -> None:
    index, offset = an_index()
    raw = encode_index(index)
    assert index_size(raw[-FOOTER:]) == len(raw)
    assert decode_index(raw, offset) == index


def test_any_changed_byte_of_the_index_is_seen() -> None:
    index, offset = an_index()
    file = bytes(offset) + encode_index(index)
    for at in range(offset, len(file)):
        bad = bytearray(file)
        bad[at] ^= 1
        with pytest.raises(Refused):
            size = index_size(bytes(bad[-FOOTER:]))
            decode_index(bytes(bad[-size:]), len(bad) - size)


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 9},
        {"offset": 11},
        {"plain_offset": 29},
        {"first_row": 1},
        {"length": -1},
        {"length": 10**9},
        {"content": 10**9},
        {"plain": 10**9},
        {"rows": None},
        {"sha256": "a"},
        {"head": 1},
    ],
)
def test_an_index_that_does_not_add_up_is_refused(change: dict[str, object]) -> None:
    index, offset = an_index()
    first, second = index.frames
    changed = {name: getattr(second, name) for name in Frame.__dataclass_fields__} | change
    raw = encode_index(Index((first, Frame(**changed)), 61, 5, DIGEST))
    with pytest.raises(Refused):
        decode_index(raw, offset)


def test_an_index_of_another_file_or_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    index, offset = an_index()
    with pytest.raises(Refused, match="not the file"):
        decode_index(encode_index(index), offset + 1)
    monkeypatch.setattr(sealed, "VERSION", 2)
    later = encode_index(index)
    monkeypatch.undo()
    with pytest.raises(Refused, match="version 2"):
        decode_index(later, offset)


def test_an_index_beyond_its_limit_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "MAX_INDEX", 100)
    with pytest.raises(TooLarge):
        encode_index(an_index()[0])
