"""The chain walker tells the ways a chain can break apart by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.core.chain import ChainWalker, event_id
from playhead.core.model import GENESIS, Finding
from playhead.core.rows import BadRow, compute_step_hash
from playhead.formats.journal import encode_row

CASES = Path(__file__).parent.parent / "vectors" / "cases"
HASHED = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result")


def walk(lines: list[bytes], *, strict: bool = False) -> list[Finding]:
    found: list[Finding] = []
    walker = ChainWalker(found.append, file="j", strict=strict)
    offset = 0
    for number, line in enumerate(lines, 1):
        walker.feed(number, line, offset)
        offset += len(line) + 1
    walker.finish()
    assert walker.clean is (not any(f.severity == "error" for f in found))
    return found


def kinds(lines: list[bytes]) -> list[str]:
    return [finding.kind for finding in walk(lines)]


def chain(words: str, prev: str = GENESIS, start: int = 0) -> list[bytes]:
    """A foreign chain, one row a letter."""
    lines = []
    for seq, word in enumerate(words, start):
        line, prev = encode_row(
            seq=seq, prev_hash=prev, input_hash="", model="m", prompt=word,
            tool_call=None, tool_result=None, ts=float(seq + 1),
        )  # fmt: skip
        lines.append(line)
    return lines


def native(uid: str, count: int = 6) -> list[bytes]:
    """A chain of native rows, as the recorder writes their envelopes."""
    lines, prev = [], GENESIS
    for seq in range(count):
        envelope: dict[str, Any] = {
            "v": 1,
            "event": "state.changed" if seq else "run.started",
            "seq": seq,
            "id": event_id(uid, seq),
            "payload": {"n": seq} if seq else {"uid": uid},
        }
        line, prev = encode_row(
            seq=seq, prev_hash=prev, input_hash="", model=None, prompt=None,
            tool_call=envelope, tool_result=None, ts=1.5,
        )  # fmt: skip
        lines.append(line)
    return lines


def edit(line: bytes, *, rehash: bool = False, **fields: Any) -> bytes:
    row = json.loads(line) | fields
    if rehash:
        row["step_hash"] = compute_step_hash(**{key: row[key] for key in HASHED})
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode()


def test_good_chains_have_no_finding() -> None:
    assert walk(chain("abcdef")) == walk(native("u")) == walk([]) == []


ABC = chain("abcdef")
NATIVE = native("one")
OTHER = native("two")

BREAKS: dict[str, tuple[list[bytes], list[str]]] = {
    "the same row twice": ([*ABC[:3], ABC[2], *ABC[3:]], ["duplicate-row"]),
    "two writers at the tail": ([*ABC[:3], *chain("X", json.loads(ABC[1])["step_hash"], 2)],
                                ["two-writers"]),
    "the head cut off": (ABC[2:], ["cut-head"]),
    "one row taken out": ([*ABC[:2], *ABC[3:]], ["missing-rows"]),
    "a native row of another run": ([*NATIVE[:3], OTHER[3], *NATIVE[4:]],
                                    ["splice", "chain-break"]),
    "a foreign row among native ones": ([*NATIVE[:3], ABC[3], *NATIVE[4:]],
                                        ["splice", "chain-break"]),
    "the end of another foreign chain": ([*ABC[:3], *chain("uvwxyz")[3:]], ["chain-break"]),
    "a hashed field edited": ([*ABC[:2], edit(ABC[2], prompt="!"), *ABC[3:]],
                              ["step-hash-mismatch"]),
    "a row edited and hashed again": ([*ABC[:2], edit(ABC[2], rehash=True, prompt="!"), *ABC[3:]],
                                      ["chain-break"]),
    "prev_hash replaced": ([*ABC[:2], edit(ABC[2], prev_hash="f" * 64), *ABC[3:]],
                           ["prev-hash-mismatch", "step-hash-mismatch"]),
    "step_hash replaced": ([*ABC[:2], edit(ABC[2], step_hash="f" * 64), *ABC[3:]],
                           ["step-hash-mismatch", "prev-hash-mismatch"]),
    "seq edited": ([*ABC[:2], edit(ABC[2], seq=7), *ABC[3:]], ["seq-mismatch", "seq-mismatch"]),
    "seq of a native row edited": ([*NATIVE[:2], edit(NATIVE[2], seq=7)],
                                   ["seq-mismatch", "envelope-seq-mismatch"]),
    "envelope seq off": ([*NATIVE[:5], edit(NATIVE[5], rehash=True,
                                            tool_call={"v": 1, "event": "x", "seq": 9})],
                         ["envelope-seq-mismatch"]),
    "garbage inside": ([*ABC[:2], b'{"half', *ABC[2:]], ["corrupt-row"]),
    "half a row at the end": ([*ABC, ABC[0][:50]], ["torn-tail"]),
    "zeros at the end": ([*ABC, b"\0" * 512], ["torn-tail"]),
    "no step_hash": ([*ABC[:5], b'{"seq":5}'],
                     ["prev-hash-mismatch", "step-hash-mismatch", "no-step-hash"]),
    "too deep": ([*ABC, b"[" * 20_000], ["row-over-limit"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_each_break_has_its_name_and_its_place(name: str) -> None:
    lines, expected = BREAKS[name]
    found = walk(lines)
    assert [f.kind for f in found] == expected
    for finding in found:
        assert finding.severity == "error"
        assert finding.place.line is not None and finding.place.byte is not None and finding.remedy
        first = b"\n".join(lines[: finding.place.line - 1])
        assert finding.place.byte == len(first) + bool(first), "the byte offset of the line"


def test_the_rows_that_are_gone_are_counted() -> None:
    (finding,) = walk([*ABC[:2], *ABC[5:]])
    assert "3 row(s) before step 5" in finding.what


def test_one_bad_row_gives_no_cascade() -> None:
    lines = chain("a" * 50)
    lines[10] = edit(lines[10], prompt="!")
    assert kinds(lines) == ["step-hash-mismatch"]


def test_a_line_that_was_too_long_to_hold_is_a_finding() -> None:
    found: list[Finding] = []
    walker = ChainWalker(found.append)
    walker.feed_bad(1, 0, BadRow("too-long", "a line of 300000000 bytes"))
    assert [f.kind for f in found] == ["row-over-limit"]


def test_a_long_damaged_end_is_no_torn_tail() -> None:
    assert set(kinds([*ABC, *[b"?"] * 16])) == {"torn-tail"}
    assert "corrupt-row" in kinds([*ABC, *[b"?"] * 17])


def case(name: str) -> list[bytes]:
    return (CASES / name).read_bytes().splitlines()


def test_c36_a_poisoned_tail_is_named_by_its_line() -> None:
    found = [f for f in walk(case("C36_poisoned_tail.jsonl")) if f.severity == "error"]
    assert [(f.kind, f.place.line, f.place.step) for f in found] == [("step-hash-mismatch", 3, 2)]


def test_c38_two_writers_are_not_a_deletion() -> None:
    found = [f for f in walk(case("C38_dup_seq_two_writers.jsonl")) if f.severity == "error"]
    assert [(f.kind, f.place.line) for f in found] == [("two-writers", 3)]
    assert "two writers forked the chain at seq 1" in found[0].what


def test_c39_seq_is_verified_although_the_hash_does_not_cover_it() -> None:
    found = [f for f in walk(case("C39_seq_ts_not_hashed.jsonl")) if f.severity == "error"]
    assert [(f.kind, f.place.line) for f in found] == [("seq-mismatch", 2), ("seq-mismatch", 3)]
    assert "seq is not hashed" in found[0].what


@pytest.mark.parametrize("field", HASHED)
def test_any_edit_of_a_hashed_field_is_found(field: str) -> None:
    for row in range(6):
        lines = list(ABC)
        lines[row] = edit(lines[row], **{field: "edited"})
        assert "step-hash-mismatch" in kinds(lines)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"seq": "2"}, "seq-type"),
        ({"seq": 2.0}, "seq-type"),
        ({"hidden": 1}, "unknown-key"),
        ({"blob_refs": ["../x"]}, "blob-ref"),
        ({"blob_refs": None}, "blob-ref"),
        ({"effort": None}, "spelling"),
    ],
)
def test_what_hides_something_is_a_warning_and_an_error_under_strict(
    change: dict[str, Any], kind: str
) -> None:
    lines = [*ABC[:2], edit(ABC[2], **change), *ABC[3:]]
    assert [(f.kind, f.severity) for f in walk(lines)] == [(kind, "warning")]
    assert [(f.kind, f.severity) for f in walk(lines, strict=True)] == [(kind, "error")]


@pytest.mark.parametrize("seq", [None, "six", [], {}, "9" * 5000])
def test_a_seq_that_is_no_number_is_a_finding(seq: Any) -> None:
    lines = [*ABC[:2], edit(ABC[2], seq=seq), *ABC[3:]]
    assert "seq-not-a-number" in kinds(lines)


def test_every_flipped_byte_of_every_row_changes_what_the_walker_sees() -> None:
    """Outside the hashed fields only a signed head sees it; see tests/verifier/test_heads.py."""
    lines = native("u", 3)
    for row, line in enumerate(lines):
        hashed = json.loads(line)
        for at in range(len(line)):
            flipped = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
            edited = [*lines[:row], flipped, *lines[row + 1 :]]
            try:
                now = json.loads(flipped)
            except ValueError:
                assert kinds(edited)
                continue
            if any(now.get(key) != hashed[key] for key in (*HASHED, "seq", "step_hash")):
                assert kinds(edited), (row, at)
