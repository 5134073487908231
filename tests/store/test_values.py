"""Values the raw append refuses, with their place and no byte written, or takes and gives back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from journals import words
from playhead import Journal, JournalReader
from playhead.errors import (
    ValueRefused,
)
from playhead.formats.journal import MAX_ROW

LEVELS = ["step", "batch", "os"]
SEGMENT = "000000.jsonl"

HOLDER = """
import sys
from playhead import Journal
with Journal.open(sys.argv[1], durability="os") as journal:
    journal.append(input_hash="", prompt="theirs")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def sound(folder: Path) -> bool:
    report = JournalReader(folder).verify()
    return not report.errors() and report.steps == len(words(folder))


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nan": ({"tool_call": {"a": [1, math.nan]}}, "/tool_call/a/1"),
    "infinity": ({"tool_result": -math.inf}, "/tool_result"),
    "lone surrogate": ({"prompt": "\ud800"}, "/prompt"),
    "lone surrogate in a key": ({"tool_call": {"\udc00": 1}}, "/tool_call"),
    "key that is no text": ({"tool_call": {1: 2}}, "/tool_call"),
    "bytes": ({"tool_result": {"a": b"x"}}, "/tool_result/a"),
    "object": ({"tool_result": object()}, "/tool_result"),
    "set": ({"tool_result": {1}}, "/tool_result"),
    "20,000 nested arrays": ({"tool_call": nested(20_000)}, "/tool_call/0"),
    "65 nested arrays": ({"tool_call": nested(65)}, "/tool_call/0"),
    "5000 digits": ({"tool_call": 10**5000}, "no canonical form"),
    "ts nan": ({"ts": math.nan}, "/ts"),
    "ts infinite": ({"ts": math.inf}, "/ts"),
    "ts text": ({"ts": "noon"}, "/ts"),
    "reference that is no text": ({"blob_refs": [object()]}, "/blob_refs/0"),
    "input hash that is no text": ({"input_hash": None}, "/input_hash"),
    "longer than a row may be": ({"prompt": "x" * MAX_ROW}, "a row of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_value_is_named_and_leaves_no_byte(folder: Path, name: str) -> None:
    fields, says = REFUSED[name]
    with Journal.open(folder, durability="os") as journal:
        journal.append(input_hash="", prompt="before")
        size = (folder / SEGMENT).stat().st_size
        with pytest.raises(ValueRefused) as caught:
            journal.append(**{"input_hash": "", **fields})
        assert says in str(caught.value) and caught.value.remedy
        assert (folder / SEGMENT).stat().st_size == size
        journal.append(input_hash="", prompt="after")
    assert words(folder) == ["before", "after"] and sound(folder)


ACCEPTED: dict[str, Any] = {
    "big": [2**64, -(2**70), 10**4000],
    "floats": [1e16, 1e-5, -0.0, 5e-324, 1e300],
    "text": ["\x7f", "\0", "\u2028", "😀", "\ue000"],
    "deepest": nested(63),
    "tuple": (1, (2,)),
    "imitation": {"a": 1, "schema_version": 2, "seq": 0, "step_hash": "f" * 64, "tool_call": 1},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_value_is_read_back_and_verifies(folder: Path, name: str) -> None:
    with Journal.open(folder, durability="os") as journal:
        step = journal.append(input_hash="", tool_call=ACCEPTED[name])
    (read,) = JournalReader(folder).entries()
    assert read.step_hash == step.step_hash and sound(folder)
    wanted = [1, [2]] if name == "tuple" else ACCEPTED[name]
    assert repr(read.tool_call) == repr(wanted)
    Journal.open(folder).close()
