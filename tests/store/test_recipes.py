"""Originals: any bytes in, the same bytes out, what repeats stored once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.errors import BlobError
from playhead.store import recipes as sources
from playhead.store.cas import Cas
from playhead.store.recipes import MIN_TOKEN, blobs_of, keep, restore

IMAGE = bytes(random.Random(7).choices(b"ABCDEFGHabcdefgh0123456789+/", k=300_000))


def stored(cas: Cas) -> int:
    return sum(len(cas.get(digest)) for digest in cas)


@given(
    st.lists(
        st.binary(max_size=300) | st.integers(1, 3).map(lambda n: b"QUJD" * 600 * n), max_size=8
    ),
    st.integers(1, 5000),
)
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_come_back(tmp_path: Path, parts: list[bytes], chunk: int) -> None:
    data = b"".join(parts)
    cas = Cas(tmp_path / "cas")
    recipe = keep(cas, [data[i : i + chunk] for i in range(0, len(data), chunk)])
    assert b"".join(restore(cas, recipe)) == data
    assert recipe == keep(cas, data)


def test_an_image_that_stands_three_times_is_stored_once(tmp_path: Path) -> None:
    """C56, with the image bare and within a data URL."""
    rows = [{"n": 1, "data": IMAGE.decode()}, {"url": "data:image/png;base64," + IMAGE.decode()}]
    data = "".join(json.dumps(row) + "\n" for row in [*rows, {"n": 3, **rows[0]}]).encode()
    cas = Cas(tmp_path)
    recipe = keep(cas, data)
    assert b"".join(restore(cas, recipe)) == data
    assert stored(cas) < len(IMAGE) * 1.02
    assert cas.has(blobs_of(cas, recipe)[-1])


def test_long_runs_are_cut_alike_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_TOKEN", 50_000)
    monkeypatch.setattr(sources, "_BLOCK", 7001)
    cas = Cas(tmp_path)
    data = b'"' + IMAGE + b'", "x": "' + IMAGE + b'"'
    recipe = keep(cas, data)
    assert b"".join(restore(cas, recipe)) == data
    assert stored(cas) < len(IMAGE) * 1.02


def test_short_runs_stay_with_the_rest(tmp_path: Path) -> None:
    cas = Cas(tmp_path)
    keep(cas, b'"' + b"A" * (MIN_TOKEN - 1) + b'"')
    assert len(list(cas)) == 2


def test_blocks_of_the_rest_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LITERAL", 1000)
    monkeypatch.setattr(sources, "_BLOCK", 300)
    cas = Cas(tmp_path)
    data = b"a b " * 2000
    recipe = keep(cas, data)
    assert b"".join(restore(cas, recipe)) == data
    assert max(len(cas.get(d)) for d in blobs_of(cas, recipe)[1:]) <= 1300


def test_a_damaged_or_missing_blob_is_refused(tmp_path: Path) -> None:
    cas = Cas(tmp_path)
    recipe = keep(cas, b"some text that is kept")
    literal = blobs_of(cas, recipe)[1]
    (tmp_path / literal[:2] / literal).write_bytes(b"some text that is Kept")
    with pytest.raises(BlobError, match="does not hash"):
        list(restore(Cas(tmp_path), recipe))


@pytest.mark.parametrize(
    "recipe",
    [
        b"[" * 5000,
        b"[]",
        b'{"v":1,"kind":"source"}',
        b'{"v":1,"kind":"source","parts":[null],"literals":[]}',
        b'{"v":1,"kind":"source","parts":[9],"literals":[]}',
        b'{"v":1,"kind":"source","parts":[{"blob":"../../x"}],"literals":[]}',
        b'{"v":1,"kind":"source","parts":[],"literals":[],"size":4,"sha256":"0"}',
    ],
)
def test_a_recipe_is_not_trusted(tmp_path: Path, recipe: bytes) -> None:
    cas = Cas(tmp_path)
    with pytest.raises(BlobError):
        list(restore(cas, cas.put(recipe)))
