"""Cache keys: the pre-images, growing by messages, and what is part of a key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.cachekey import (
    NOT_ASKED,
    CacheStamp,
    ContentKey,
    derive_content_hash_key,
    value_digest,
)
from playhead.errors import ValueRefused

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
STAMP = CacheStamp(
    model="m-1",
    provider="p",
    transport="native",
    sampling={"temperature": 0.5, "seed": None},
    system_prompt=value_digest("Be brief."),
    safety_policy=value_digest("strict"),
    tools=value_digest([{"name": "find"}]),
    response_format=value_digest({"type": "text"}),
)
ASKED = [{"role": "user", "content": "Grüezi"}, {"role": "assistant", "content": "Hello"}]


def by_hand(stamp: CacheStamp, messages: list[Any]) -> str:
    """The recipe of the page, in the standard library alone."""

    def form(value: object) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")

    parts = {name.name: getattr(stamp, name.name) for name in dataclasses.fields(stamp)}
    digest = hashlib.sha256(b"playhead/ck1/stamp\n" + form(parts)).digest()
    state = hashlib.sha256(b"playhead/ck1/start\n" + digest).digest()
    for message in messages:
        said = hashlib.sha256(form(message)).digest()
        state = hashlib.sha256(b"playhead/ck1/next\n" + state + said).digest()
    return "ck1:" + state.hex()


@given(st.lists(VALUES, max_size=8))
def test_a_key_that_grew_is_the_full_key_at_every_prefix(messages: list[Any]) -> None:
    growing = ContentKey.start(STAMP)
    for count, message in enumerate(messages):
        assert growing.key == derive_content_hash_key(STAMP, messages[:count])
        assert growing.count == count
        growing = growing.add(message)
    assert growing.key == by_hand(STAMP, messages)
    assert growing == ContentKey.start(STAMP).extend(messages)


def test_a_key_is_ck1_and_a_sha256_and_its_parts_stay_as_they_are() -> None:
    one = ContentKey.start(STAMP)
    before = one.key
    two = one.add(ASKED[0])
    assert one.key == before != two.key
    assert re.fullmatch(r"ck1:[0-9a-f]{64}", two.key)
    assert two.add(ASKED[1]).key == derive_content_hash_key(STAMP, iter(ASKED))
    assert pickle.loads(pickle.dumps(two)) == two
    assert pickle.loads(pickle.dumps(STAMP)) == STAMP


@given(st.lists(VALUES, min_size=2, max_size=5), st.data())
def test_order_matters(messages: list[Any], data: st.DataObject) -> None:
    other = data.draw(st.permutations(messages))
    same = [value_digest(m) for m in messages] == [value_digest(m) for m in other]
    keys = derive_content_hash_key(STAMP, messages), derive_content_hash_key(STAMP, other)
    assert (keys[0] == keys[1]) is same


def test_one_message_of_two_is_not_two_messages() -> None:
    assert derive_content_hash_key(STAMP, ["a", "b"]) != derive_content_hash_key(
        STAMP, [["a", "b"]]
    )
    assert derive_content_hash_key(STAMP, []) != derive_content_hash_key(STAMP, [None])


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(CacheStamp)])
def test_each_of_the_eight_parts_of_the_stamp_counts(name: str) -> None:
    other: Any = {"temperature": 0.5} if name == "sampling" else "other"
    changed = dataclasses.replace(STAMP, **{name: other})
    without = dataclasses.replace(STAMP, **{name: {} if name == "sampling" else None})
    keys = {derive_content_hash_key(stamp, ASKED) for stamp in (STAMP, changed, without)}
    assert len(keys) == 3


def test_the_stamp_has_these_parts_and_no_id_time_or_tenant() -> None:
    assert [field.name for field in dataclasses.fields(CacheStamp)] == [
        "model",
        "provider",
        "transport",
        "sampling",
        "system_prompt",
        "safety_policy",
        "tools",
        "response_format",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0, 0.0, False),
        (0.0, -0.0, False),
        (1, 1.0, False),
        (1.0, 1e0, True),
        (1, True, False),
        (None, 0, False),
        ((1, 2), [1, 2], True),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, True),
        ("\u00fc", "u\u0308", False),
    ],
)
def test_which_values_are_the_same(one: object, other: object, same: bool) -> None:
    keys = [derive_content_hash_key(STAMP, [value]) for value in (one, other)]
    assert (keys[0] == keys[1]) is same
    stamped = [
        derive_content_hash_key(CacheStamp(sampling={"x": value}), []) for value in (one, other)
    ]
    assert (stamped[0] == stamped[1]) is same


def test_an_explicit_none_is_not_a_parameter_that_was_not_given() -> None:
    given_none = CacheStamp.of_request("m", {"temperature": None})
    assert given_none.sampling == {"temperature": None}
    keys = {
        derive_content_hash_key(stamp, ASKED)
        for stamp in (given_none, CacheStamp.of_request("m", {}))
    }
    assert len(keys) == 2


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), "\ud800", {1: 2}, b"x", {"a": {object()}}]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda bad: ContentKey.start(STAMP).add(bad),
        lambda bad: derive_content_hash_key(STAMP, [bad]),
        lambda bad: derive_content_hash_key(CacheStamp(sampling={"x": bad}), []),
        lambda bad: CacheStamp.of_request("m", {"tools": bad}),
        lambda bad: CacheStamp.of_request("m", {"top_p": bad}),
        value_digest,
    ],
)
def test_what_is_no_plain_json_has_no_key(use: Callable[[object], object], bad: object) -> None:
    with pytest.raises(ValueRefused):
        use(bad)


def test_a_digest_that_is_none_is_refused() -> None:
    with pytest.raises(ValueRefused):
        ContentKey.start(STAMP).add_digest(b"short")


def test_the_parts_of_a_request_go_where_they_belong() -> None:
    tools, wanted = [{"name": "find"}], {"type": "json"}
    stamp = CacheStamp.of_request(
        "m-1",
        {
            "call_id": "call-1",
            "provider": "p",
            "transport": {"kind": "byok"},
            "system": "Be brief.",
            "safety_settings": ["strict"],
            "tools": tools,
            "response_format": wanted,
            "thinking": {"budget": 10},
            "stop": None,
        },
    )
    assert stamp == CacheStamp(
        model="m-1",
        provider="p",
        transport=value_digest({"kind": "byok"}),
        sampling={"thinking": {"budget": 10}, "stop": None},
        system_prompt=value_digest("Be brief."),
        safety_policy=value_digest(["strict"]),
        tools=value_digest(tools),
        response_format=value_digest(wanted),
    )
    both = CacheStamp.of_request("m-1", {"system": "a", "instructions": "b"})
    assert both.system_prompt == value_digest({"system": "a", "instructions": "b"})


@pytest.mark.parametrize("name", sorted(NOT_ASKED))
def test_ids_times_and_tenant_are_no_part_of_a_key(name: str) -> None:
    assert CacheStamp.of_request("m", {name: "x"}) == CacheStamp.of_request("m", {name: "y"})
    assert CacheStamp.of_request("m", {name: "x"}) == CacheStamp.of_request("m", {})


def test_the_hash_seed_of_python_changes_nothing() -> None:
    program = (
        "from playhead.core.cachekey import *\n"
        "given = {k: {w: 1 for w in {'x', 'y', 'z'}} for k in {'a', 'b', 'c'}}\n"
        "s = CacheStamp.of_request('m', given)\n"
        "print(derive_content_hash_key(s, [{k: 1 for k in {'p', 'q', 'r', 's'}}]))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "4294967295")
    }
    assert len(found) == 1
    assert found.pop().startswith("ck1:")


def test_the_worked_vector_of_the_page(repo: Path) -> None:
    page = (repo / "docs/reference/replay-cache.md").read_text("utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    vector = json.loads(block[1])
    stamp, messages = CacheStamp(**vector["stamp"]), vector["messages"]
    assert stamp.digest().hex() == vector["stamp_digest"]
    growing = ContentKey.start(stamp)
    states = [growing.state.hex()]
    for message in messages:
        growing = growing.add(message)
        states.append(growing.state.hex())
    assert states == vector["m"]
    assert derive_content_hash_key(stamp, messages) == vector["key"] == by_hand(stamp, messages)
    assert stamp == CacheStamp.of_request("m-1", vector["parameters"])
