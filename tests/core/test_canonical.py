"""The three profiles on the values where they differ."""

from __future__ import annotations

import json

import pytest

from playhead.core.canonical import canonical, digest
from playhead.errors import ValueRefused


def test_case_c34_which_numbers_are_equal() -> None:
    texts = ["1", "1.0", "1e0", "-0.0", "0"]
    found = [canonical({"a": json.loads(text)}) for text in texts]
    assert found == [b'{"a":1}', b'{"a":1.0}', b'{"a":1.0}', b'{"a":-0.0}', b'{"a":0}']


def test_case_c40_escapes_and_key_order() -> None:
    assert canonical({"prompt": "Zürich 🏔"}) == b'{"prompt":"Z\\u00fcrich \\ud83c\\udfd4"}'
    assert canonical({"prompt": "Zürich 🏔"}, "stepfork") == '{"prompt":"Zürich 🏔"}'.encode()
    keys = {"\ue000": 1, "🏔": 2}
    assert list(json.loads(canonical(keys))) == ["\ue000", "🏔"]  # code points
    assert list(json.loads(canonical(keys, "jcs"))) == ["🏔", "\ue000"]  # UTF-16 units


def test_floats_are_written_as_each_profile_says() -> None:
    value = [1e16, 1e-07, 1e22, 5e-324, 100000.0, 0.1]
    assert canonical(value) == b"[1e+16,1e-07,1e+22,5e-324,100000.0,0.1]"
    assert canonical(value, "jcs") == b"[10000000000000000,1e-7,1e+22,5e-324,100000,0.1]"


@pytest.mark.parametrize(
    ("value", "profile"),
    [
        (float("nan"), "stepfork"),
        (float("inf"), "jcs"),
        ("\ud83d", "stepfork"),
        ({1: 2}, "stepfork"),
        ((1, 2), "stepfork"),
        (2**60, "jcs"),
        (object(), "step"),
        ({1: 1, "a": 2}, "step"),
    ],
)
def test_what_has_no_form_is_refused(value: object, profile: str) -> None:
    with pytest.raises(ValueRefused):
        canonical(value, profile)  # type: ignore[arg-type]


def test_the_step_profile_takes_what_the_reference_writes() -> None:
    assert canonical(float("nan")) == b"NaN"
    assert canonical("\x7f\ud83d") == b'"\\u007f\\ud83d"' or canonical("\ud83d") == b'"\\ud83d"'
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
