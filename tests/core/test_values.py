"""Every Python value has a form that JSON holds, and most come back as they were."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.restore import restore
from playhead.core.values import BLOB_AT, Normaliser, join_text, require_plain
from playhead.errors import BlobError, ValueRefused

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(), max_size=6) | st.integers() | st.none(), inner)
    ),
    max_leaves=20,
)


class Store:
    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        from hashlib import sha256

        name = sha256(data).hexdigest()
        self.blobs[name] = data
        return name

    def get(self, digest: str) -> bytes:
        return self.blobs[digest]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, (list, tuple)):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(VALUES)
def test_any_value_becomes_plain_json_and_comes_back(value: Any) -> None:
    store = Store()
    normal = Normaliser(store.put).value(value)
    require_plain(normal)
    json.dumps(normal, allow_nan=False).encode("utf-8")
    assert same(value, restore(json.loads(json.dumps(normal)), store.get))


@given(st.recursive(st.just(1), lambda inner: st.lists(inner, max_size=2), max_leaves=3))
def test_normalising_twice_changes_nothing_in_plain_values(value: Any) -> None:
    once = Normaliser().value(value)
    assert Normaliser().value(once) == once


def test_a_real_mapping_with_the_mark_is_not_taken_for_one() -> None:
    value = {"$playhead": "blob", "sha256": "0" * 64}
    normal = Normaliser().value(value)
    assert restore(normal, Store().get) == value


def test_large_text_goes_to_a_blob_once() -> None:
    store, text = Store(), "ä" * BLOB_AT
    normal = Normaliser(store.put)
    first, second = normal.value(text), normal.value([text])
    assert len(store.blobs) == 1
    assert normal.blobs == list(store.blobs)
    assert restore(first, store.get) == text
    assert restore(second, store.get) == [text]


def test_depth_is_bounded_and_kept() -> None:
    value: Any = "end"
    for _ in range(600):
        value = [value]
    normal = Normaliser().value(value)
    require_plain(normal)
    back: Any = restore(normal, Store().get)
    for _ in range(600):
        (back,) = back
    assert back == "end"


def test_case_c06b_a_pair_split_over_two_chunks_is_one_character() -> None:
    assert join_text(["\ud83c", "\udf78"]) == "\U0001f378"
    assert join_text(["a\udf78", "b"]) == "a\udf78b"


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": [1, float("nan")]}, "/a/1"),
        ({"a": {"b": "\ud800"}}, "/a/b"),
        ({1: 2}, "/"),
        ({"a": b"x"}, "/a"),
        ([float("inf")], "/0"),
    ],
)
def test_the_raw_append_names_what_it_refuses(value: Any, pointer: str) -> None:
    with pytest.raises(ValueRefused, match=f"^{pointer}: "):
        require_plain(value)


def test_a_blob_is_checked() -> None:
    from playhead.core.blobs import blob_checked

    with pytest.raises(BlobError):
        blob_checked("0" * 64, b"other")


@given(
    st.recursive(
        SCALARS,
        lambda i: st.dictionaries(
            st.sampled_from(["$playhead", "value", "items", "json", "base64", "sha256", "hex"]),
            i | st.lists(i),
        ),
        max_leaves=8,
    )
)
def test_hostile_marks_never_crash_a_reader(value: Any) -> None:
    def get(digest: str) -> bytes:
        return b"\xff"

    restore(value, get)
    restore({"$playhead": "map", "items": [[value, value]]}, get)
    for kind in ("float", "int", "text", "bytes", "set", "map", "deep", "object", "blob"):
        restore({"$playhead": kind, "value": value, "items": value, "json": value}, get)


@given(VALUES)
def test_a_value_made_small_after_redaction_comes_back_too(value: Any) -> None:
    from playhead.core.blobs import externalise, in_one_blob

    store, blobs = Store(), []  # type: ignore[var-annotated]
    wide = [value, "ä" * BLOB_AT, b"\x01" * BLOB_AT]
    small = externalise(Normaliser().value(wide), store.put, blobs)
    assert len(json.dumps(small)) < BLOB_AT + len(json.dumps(Normaliser().value(value)))
    assert same(wide, restore(small, store.get))
    assert same(wide, restore(in_one_blob(small, store.put, blobs), store.get))
    assert set(blobs) == set(store.blobs)
