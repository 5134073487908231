"""Proof documents: one spelling, bounded, and refused in one line otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.note import MAX_NOTE
from playhead.errors import Refused, TooLarge
from playhead.formats import proof as proofs
from playhead.formats.proof import (
    ConsistencyProof,
    InclusionProof,
    decode_proof,
    encode_proof,
    proof_tail,
)

LEAF = b"\x01" * 32
GOOD = InclusionProof(
    run_id="run-1",
    sequence_number=3,
    leaf_hash=LEAF,
    path=(b"\x02" * 32, b"\x03" * 32),
    size=7,
    checkpoint="playhead/run/run-1\n\u2014 somebody\n",
    row='{"a":"\\u00e9","b":"\u00e9"}',
    tenant_id="acme \U0001f600",
    chat_id="talk",
)
GROWN = ConsistencyProof("old\n", "new\n", (LEAF,))


def spelled(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def changed(**members: object) -> bytes:
    """The good document with other members; ``None`` takes one away."""
    document: dict[str, Any] = GOOD.to_dict() | members
    return spelled({name: value for name, value in document.items() if value is not None})


@pytest.mark.parametrize("proof", [GOOD, GROWN], ids=["inclusion", "consistency"])
def test_a_document_reads_back(proof: InclusionProof | ConsistencyProof) -> None:
    data = encode_proof(proof.to_dict())
    assert data.isascii() and data.endswith(b"}\n") and data.count(b"\n") == 1
    assert data == spelled(json.loads(data))
    assert decode_proof(data) == proof


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1)


@given(words, words.filter(str.strip), st.lists(st.binary(min_size=32, max_size=32), max_size=65))
def test_any_text_reads_back(row: str, tenant: str, path: list[bytes]) -> None:
    proof = InclusionProof("r", 1, LEAF, tuple(path), 10**19 - 1, "c", row, tenant[:1000])
    if not tenant[:1000].strip():
        return
    assert decode_proof(encode_proof(proof.to_dict())) == proof


@pytest.mark.parametrize("without", ["row", "tenant_id", "chat_id"])
def test_a_member_that_may_be_left_out(without: str) -> None:
    assert getattr(decode_proof(changed(**{without: None})), without) is None


HASH = GOOD.to_dict()["leaf_hash"]
OFF: dict[str, bytes] = {
    "empty": b"",
    "newline": b"\n",
    "no newline": changed()[:-1],
    "two newlines": changed() + b"\n",
    "two documents": changed() + changed(),
    "bom": b"\xef\xbb\xbf" + changed(),
    "array": b"[" + changed()[:-1] + b"]\n",
    "spaces": json.dumps(GOOD.to_dict(), sort_keys=True).encode() + b"\n",
    "pretty": json.dumps(GOOD.to_dict(), sort_keys=True, indent=1).encode() + b"\n",
    "key order": json.dumps(GOOD.to_dict(), separators=(",", ":")).encode() + b"\n",
    "raw utf-8": changed().replace(b"\\u00e9", "\u00e9".encode()),
    "another escape": changed().replace(b"\\u00e9", b"\\u00E9"),
    "escaped letter": changed().replace(b'"talk"', b'"\\u0074alk"'),
    "escaped slash": changed().replace(b"playhead/run", b"playhead\\/run"),
    "duplicate key": changed().replace(b'"size":7', b'"size":7,"size":7'),
    "unknown member": changed(other=1),
    "version 2": changed(v=2),
    "version 1.0": changed(v=1.0),
    "version true": changed(v=True),
    "no version": changed(v=None),
    "other type": changed(type="playhead/else"),
    "no type": changed(type=None),
    "no path": changed(path=None),
    "path is text": changed(path="abc"),
    "path of numbers": changed(path=[1]),
    "path too long": changed(path=[HASH] * 66),
    "short node": changed(path=["AAAA"]),
    "node with other bits": changed(path=["A" * 42 + "B="]),
    "node in url letters": changed(path=["_" * 42 + "A="]),
    "hex leaf": changed(leaf_hash="00" * 32),
    "size 0": changed(size=0),
    "size negative": changed(size=-1),
    "size float": changed(size=7.0),
    "size text": changed(size="7"),
    "size huge": changed(size=10**19),
    "size endless": changed().replace(b'"size":7', b'"size":' + b"7" * 5000),
    "sequence number 0": changed(sequence_number=0),
    "sequence number true": changed(sequence_number=True),
    "run id with a slash": changed(run_id="../x"),
    "run id empty": changed(run_id=""),
    "run id long": changed(run_id="a" * 129),
    "run id is a number": changed(run_id=1),
    "row is an object": changed(row={"a": 1}),
    "row of two lines": changed(row="{}\n{}"),
    "row with a surrogate": changed(row="\ud800"),
    "row null": changed().replace(b'"row":', b'"row":null,"rox":'),
    "tenant blank": changed(tenant_id=" \t"),
    "tenant empty": changed(tenant_id=""),
    "tenant long": changed(tenant_id="a" * 4097),
    "checkpoint is a number": changed(checkpoint=1),
    "checkpoint long": changed(checkpoint="a" * (MAX_NOTE + 1)),
    "consistency with a row": spelled(GROWN.to_dict() | {"row": "{}"}),
    "consistency without one head": spelled(
        {k: v for k, v in GROWN.to_dict().items() if k != "old_checkpoint"}
    ),
    "deep": b'{"checkpoint":' + b"[" * 200_000 + b',"type":"playhead/inclusion","v":1}\n',
    "many members": b"{"
    + b",".join(b'"%d":0' % n for n in range(50_000))
    + b',"type":"playhead/inclusion","v":1}\n',
    "open text": b'{"checkpoint":"' + b'\\"' * 200_000 + b',"type":"playhead/inclusion","v":1}\n',
    "nul": b"\0" * 4096,
}


@pytest.mark.parametrize("name", OFF)
def test_what_is_no_document_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(Refused) as caught:
        decode_proof(OFF[name])
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


def test_what_is_too_long_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_PROOF", 100)
    with pytest.raises(TooLarge):
        decode_proof(changed())


def test_any_row_that_a_journal_holds_fits() -> None:
    from playhead.formats.journal import MAX_ROW

    worst = [encode_proof(GOOD.to_dict() | {"row": text * 1000}) for text in ('"', "\\", "\u00e9")]
    worst += [encode_proof(GOOD.to_dict() | {"row": t * 1000}) for t in ("\u0800", "\U0001f600")]
    sizes = [1000, 1000, 2000, 3000, 4000]
    rest = len(encode_proof(GOOD.to_dict() | {"row": ""}))
    for data, size in zip(worst, sizes, strict=True):
        assert (len(data) - rest) / size <= 3
    assert 3 * MAX_ROW + 6 * MAX_NOTE + 3 * 2 * 4096 < proofs.MAX_PROOF


@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode_proof(data)


@pytest.mark.parametrize("value", [{"v": {1}}, {1: 2}, {"path": float("nan")}, {}])
def test_an_object_that_is_no_document_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(Refused):
        encode_proof(value)


def test_a_proof_is_known_by_its_end() -> None:
    for data in (changed(), OFF["pretty"], OFF["spaces"], OFF["version 2"]):
        assert proof_tail(data[-proofs.TAIL :])
    row = b'{"tool_result":' + changed()[:-1] + b',"ts":1.5}\n'
    nested = b'{"a":' + changed()[:-1] + b"}\n"
    for data in (b"", b"{}\n", row, nested, OFF["other type"], changed() + b"{}\n"):
        assert not proof_tail(data[-proofs.TAIL :])
