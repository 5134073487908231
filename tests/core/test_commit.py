"""Salted field commitments: what one disclosed field proves, and what it hides."""

from __future__ import annotations

import hmac
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core import commit, merkle
from playhead.core.commit import disclose, step_commitment, verify_disclosure
from playhead.core.model import GENESIS, JSON, Step
from playhead.errors import NotFound, ValueRefused

SECRET = bytes(range(32))
ENVELOPE: dict[str, JSON] = {
    "v": 1,
    "event": "tool.called",
    "seq": 3,
    "at": "2026-01-01T00:00:00.000000Z",
    "name": "sh",
    "id": "e1",
    "turn_id": "t1",
    "payload": {"cmd": "ls", "a/b~c": None, "": [1], "n\0ul": 12},
}
STEP = Step(3, GENESIS, "", "", None, "p", ENVELOPE, {"ok": True})
FOREIGN = Step(3, GENESIS, "", "", "m", None, {"any": 1}, None)
NATIVE_POINTERS = [
    "/event",
    "/ids",
    "/model",
    "/name",
    "/payload/",
    "/payload/a~1b~0c",
    "/payload/cmd",
    "/payload/n\0ul",
    "/prompt",
    "/tool_result",
]
KEYS = st.text(max_size=5)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


def test_the_fields_of_a_native_row() -> None:
    fields = dict(commit.fields_of(STEP, ENVELOPE))
    assert sorted(fields) == NATIVE_POINTERS
    assert fields["/event"] == {k: ENVELOPE[k] for k in ("v", "event", "seq", "at")}
    assert fields["/ids"] == {"id": "e1", "turn_id": "t1"}
    assert fields["/payload/a~1b~0c"] is None


def test_the_fields_of_a_foreign_row() -> None:
    assert dict(commit.fields_of(FOREIGN, None)) == {
        "/model": "m",
        "/prompt": None,
        "/tool_call": {"any": 1},
        "/tool_result": None,
        "/effort": None,
    }


def test_whatever_else_is_hashed_is_committed_too() -> None:
    odd = {**ENVELOPE, "later": 1, "payload": "no object"}
    fields = dict(commit.fields_of(replace(STEP, effort="high"), odd))
    assert fields["/ids"] == {"id": "e1", "turn_id": "t1", "later": 1}
    assert (fields["/payload"], fields["/effort"]) == ("no object", "high")


def test_the_commitment_word_by_word() -> None:
    leaves = []
    for pointer, value in ((b"/effort", b"null"), (b"/model", b'"m"'), (b"/prompt", b"null"),
                           (b"/tool_call", b'{"any":1}'), (b"/tool_result", b"null")):  # fmt: skip
        message = b"playhead/field/v1\0" + (3).to_bytes(8, "big") + pointer
        salt = hmac.new(SECRET, message, "sha256").digest()
        inner = sha256(b"\x00playhead/field\0" + pointer + b"\0" + salt + value).digest()
        leaves.append(merkle.leaf_hash(inner))
    assert step_commitment(SECRET, FOREIGN, None) == merkle.root(leaves)


@pytest.mark.parametrize("pointer", NATIVE_POINTERS)
def test_each_field_can_be_shown_alone(pointer: str) -> None:
    shown = disclose(SECRET, STEP, ENVELOPE, pointer)
    assert shown.value == dict(commit.fields_of(STEP, ENVELOPE))[pointer]
    assert verify_disclosure(shown, step_commitment(SECRET, STEP, ENVELOPE))


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="/payload/none") as caught:
        disclose(SECRET, STEP, ENVELOPE, "/payload/none")
    assert "/payload/cmd" in caught.value.remedy


def test_any_change_is_found() -> None:
    root = step_commitment(SECRET, STEP, ENVELOPE)
    shown = disclose(SECRET, STEP, ENVELOPE, "/payload/cmd")
    assert not verify_disclosure(shown, step_commitment(SECRET, replace(STEP, seq=4), ENVELOPE))
    assert not verify_disclosure(shown, step_commitment(bytes(32), STEP, ENVELOPE))
    changed = [
        replace(shown, value="rm"),
        replace(shown, value=["ls"]),
        replace(shown, value=object()),
        replace(shown, pointer="/payload/cm"),
        replace(shown, pointer="/tool_result"),
        replace(shown, salt=shown.salt[:-1]),
        replace(shown, salt=commit.salt(SECRET, 4, "/payload/cmd")),
        replace(shown, index=shown.index + 1),
        replace(shown, size=shown.index + 1),
        replace(shown, size=0),
        replace(shown, proof=shown.proof[1:]),
    ]
    assert [verify_disclosure(each, root) for each in changed] == [False] * len(changed)


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.data())
def test_any_payload(payload: dict[str, JSON], data: st.DataObject) -> None:
    envelope = {**ENVELOPE, "payload": payload}
    root = step_commitment(SECRET, STEP, envelope)
    names = [name for name, _ in commit.fields_of(STEP, envelope)]
    shown = disclose(SECRET, STEP, envelope, data.draw(st.sampled_from(names)))
    assert verify_disclosure(shown, root)
    other = data.draw(VALUES.filter(lambda v: repr(v) != repr(shown.value)))
    assert not verify_disclosure(replace(shown, value=other), root)


def test_equal_values_cannot_be_linked() -> None:
    digests = {
        commit.field_digest(pointer, commit.salt(secret, seq, pointer), "same")
        for secret in (SECRET, bytes(32))
        for seq in range(5)
        for pointer in ("/model", "/prompt")
    }
    assert len(digests) == 20


def test_a_nul_in_a_key_cannot_move_the_end_of_the_pointer() -> None:
    seq = next(n for n in range(5000) if commit.salt(SECRET, n, "/payload/a")[0] == 0)
    salt = commit.salt(SECRET, seq, "/payload/a")
    true = commit.field_digest("/payload/a", salt, 123)
    assert true != commit.field_digest("/payload/a\0", salt[1:] + b"1", 23)


def test_a_lone_surrogate_in_a_key_is_committed() -> None:
    envelope: dict[str, JSON] = {**ENVELOPE, "payload": {"\udc00": 1}}
    shown = disclose(SECRET, STEP, envelope, "/payload/\udc00")
    assert verify_disclosure(shown, step_commitment(SECRET, STEP, envelope))


def test_a_value_without_json_form_is_refused() -> None:
    with pytest.raises(ValueRefused, match="no canonical form"):
        step_commitment(SECRET, replace(STEP, tool_result={1, 2}), ENVELOPE)
