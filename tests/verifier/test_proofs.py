"""Proofs of a row and of a head that grew: made, checked, and every way in which they fail.

Each verdict is asked of both checkers: the one in the house, and examples/check_proof.py, which
shares no code with it.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import playhead
from playhead.core import merkle
from playhead.core.model import GENESIS, Verdict
from playhead.core.rows import compute_step_hash
from playhead.core.sign import PublicKey, sign_note
from playhead.errors import CheckFailed, NotFound, Refused, SignatureError, UsageError
from playhead.formats.head import encode_head
from playhead.formats.proof import encode_proof
from playhead.verifier.proofs import check_consistency, check_proof
from playhead.verifier.prove import generate_consistency, generate_proof
from proving import KEY, OTHER, TRUSTED, by_hand, chain, head_of, signed

REPO = Path(__file__).parent.parent.parent
VECTORS = REPO / "tests" / "vectors" / "proof"
HAND = by_hand(REPO)
VKEY = KEY.public().to_vkey()
LINES = chain(7)
NOTE = signed(LINES)

Document = dict[str, Any]


def prove(number: int, *, lines: list[bytes] = LINES, **more: Any) -> Document:
    return generate_proof(lines, [signed(lines)], number, keys=TRUSTED, **more)


def both(data: bytes, *, keys: list[PublicKey] = TRUSTED, row: bytes | None = None) -> str:
    """The verdict that both checkers give; "refused" where it is no document."""
    try:
        ours = check_proof(data, keys=keys, row=row).verdict.value
    except Refused:
        ours = "refused"
    theirs, sentence = HAND.check(data, keys[0].to_vkey() if keys else None, row)
    assert (ours, ours) == (theirs, ours), f"ours {ours}, by hand {theirs}: {sentence}"
    return ours


def kinds(document: Document, **more: Any) -> list[str]:
    report = check_proof(document, keys=TRUSTED, **more)
    both(encode_proof(document), row=more.get("row"))
    return [finding.kind for finding in report.errors()]


@pytest.mark.parametrize("size", range(1, 20))
def test_every_row_of_a_chain_is_proven(size: int) -> None:
    lines = chain(size)
    for number in range(1, size + 1):
        document = prove(number, lines=lines, tenant_id="acme", chat_id="talk")
        assert document["row"] == lines[number - 1].decode()
        assert both(encode_proof(document)) == "verified"
        hidden = prove(number, lines=lines, row=False)
        assert "row" not in hidden
        assert both(encode_proof(hidden)) == "verified"
        assert both(encode_proof(hidden), row=lines[number - 1] + b"\n") == "verified"


def test_the_report_says_what_is_proven_and_what_is_not() -> None:
    report = check_proof(prove(7, tenant_id="acme", chat_id="talk"), keys=TRUSTED, name="p.json")
    assert (report.target, report.steps, report.covered) == ("p.json", 1, 1)
    assert report.head == head_of(LINES).step_hash
    assert report.root == head_of(LINES).root.hex()
    assert "row 7 of the 7 of run run-1" in report.proven[0]
    assert any("last row of that head" in text for text in report.proven)
    assert any("tenant is 'acme'" in text for text in report.unproven)
    first = check_proof(prove(1, tenant_id="acme", chat_id="talk"), keys=TRUSTED)
    assert not any("acme" in text or "talk" in text for text in first.unproven)
    hidden = check_proof(prove(1, row=False), keys=TRUSTED)
    assert any("its leaf hash alone" in text for text in hidden.unproven)


def test_without_a_trusted_key_nothing_is_proven() -> None:
    for keys in ([], [OTHER.public()]):
        report = check_proof(prove(3), keys=keys)
        assert report.verdict is Verdict.UNPROVEN
        assert (report.proven, report.covered) == ((), 0)
        assert [finding.kind for finding in report.findings] == ["head-not-usable"]
        assert both(encode_proof(prove(3)), keys=keys) == "unproven"


def test_a_key_of_the_same_name_is_another_key() -> None:
    same_name = replace(OTHER, name=KEY.name).public()
    assert both(encode_proof(prove(3)), keys=[same_name]) == "unproven"


def resigned(document: Document, **head: Any) -> Document:
    """The document with another checkpoint that the key signed."""
    return document | {"checkpoint": sign_note(encode_head(replace(head_of(LINES), **head)), KEY)}


def rehashed(line: bytes, **members: Any) -> bytes:
    """A row with other members that hashes to its own step hash."""
    row = json.loads(line) | members
    row["step_hash"] = compute_step_hash(
        **{k: row[k] for k in ("prev_hash", "input_hash", "model", "prompt", "tool_call")}
    )
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode()


def forged(line: bytes, number: int = 3) -> Document:
    """A proof of a chain in which the signer put ``line`` at ``number``."""
    lines = [*LINES]
    lines[number - 1] = line
    leaves = merkle.leaf_hashes(lines)
    members = {
        "row": line.decode(),
        "leaf_hash": b64encode(merkle.leaf_hash(line)).decode(),
        "path": [b64encode(n).decode() for n in merkle.inclusion_proof(leaves, number - 1)],
    }
    return resigned(prove(number) | members, root=merkle.root(leaves))


THIRD = json.loads(LINES[2])
CASES: dict[str, tuple[Document, list[str]]] = {
    "row moved to another number": (
        prove(3) | {"sequence_number": 4},
        ["proof-path", "seq-mismatch"],
    ),
    "number beyond the size": (
        prove(3) | {"sequence_number": 8},
        ["proof-path", "seq-mismatch"],
    ),
    "leaf moved to another number": (prove(3, row=False) | {"sequence_number": 4}, ["proof-path"]),
    "another row": (prove(3) | {"row": LINES[3].decode()}, ["proof-leaf"]),
    "row edited": (prove(3) | {"row": LINES[2].decode().replace("w2", "w9")}, ["proof-leaf"]),
    "another leaf": (prove(3) | {"leaf_hash": prove(4)["leaf_hash"]}, ["proof-path", "proof-leaf"]),
    "path cut": (prove(3) | {"path": prove(3)["path"][:-1]}, ["proof-path"]),
    "path longer": (prove(3) | {"path": [*prove(3)["path"]] * 2}, ["proof-path"]),
    "path turned": (prove(3) | {"path": prove(3)["path"][::-1]}, ["proof-path"]),
    "no path": (prove(3) | {"path": []}, ["proof-path"]),
    "other run": (prove(3) | {"run_id": "run-2"}, ["proof-claim"]),
    "other size": (prove(3) | {"size": 8}, ["proof-claim"]),
    "tree cut behind the row": (
        prove(3) | {"size": 6, "checkpoint": signed(LINES[:6])},
        ["proof-path"],
    ),
    "size signed anew": (resigned(prove(3) | {"size": 14}, size=14), ["proof-path"]),
    "checkpoint of another chain": (
        prove(3) | {"checkpoint": signed(chain(7, word="x"))},
        ["proof-path"],
    ),
    "checkpoint edited": (
        prove(3) | {"checkpoint": NOTE.replace("head ", "head 0")},
        ["proof-checkpoint"],
    ),
    "no checkpoint": (prove(3) | {"checkpoint": ""}, ["proof-checkpoint"]),
    "signed text that is no head": (
        prove(3) | {"checkpoint": sign_note("a\n1\n" + prove(3)["leaf_hash"] + "\n", KEY)},
        ["proof-checkpoint"],
    ),
    "another head than the last row": (resigned(prove(7), step_hash="0" * 64), ["head-mismatch"]),
    "tenant not that of the row": (prove(1) | {"tenant_id": "other"}, ["proof-claim"]),
    "chat not that of the row": (prove(1) | {"chat_id": "other"}, ["proof-claim"]),
    "row does not hash": (
        forged(LINES[2].replace(b"w2", b"w9")),
        ["step-hash-mismatch"],
    ),
    "row of another number": (forged(LINES[3]), ["seq-mismatch"]),
    "envelope of another number": (
        forged(rehashed(LINES[2], tool_call=THIRD["tool_call"] | {"seq": 3})),
        ["envelope-seq-mismatch"],
    ),
    "first row follows another": (
        forged(rehashed(LINES[0], prev_hash="1" * 64), 1),
        ["prev-hash-mismatch"],
    ),
    "row is no json": (forged(b"{"), ["corrupt-row"]),
    "row is a list": (forged(b"[1]"), ["corrupt-row"]),
    "row is blank": (forged(b" "), ["corrupt-row"]),
    "row is empty object": (forged(b"{}"), ["step-hash-mismatch", "seq-mismatch"]),
    "row is deep": (forged(b"[" * 5000 + b"]" * 5000), ["corrupt-row"]),
    "row holds a long number": (forged(b'{"a":' + b"9" * 5000 + b"}"), ["corrupt-row"]),
    "seq is no number": (
        forged(LINES[2].replace(b'_version":2,"seq":2', b'_version":2,"seq":"x"')),
        ["seq-mismatch", "envelope-seq-mismatch"],
    ),
    "seq is infinite": (
        forged(LINES[2].replace(b'_version":2,"seq":2', b'_version":2,"seq":1e999')),
        ["seq-mismatch", "envelope-seq-mismatch"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_hold_has_its_kind(name: str) -> None:
    document, expected = CASES[name]
    assert kinds(document) == expected
    report = check_proof(document, keys=TRUSTED)
    assert (report.verdict, report.proven, report.covered) == (Verdict.FAILED, (), 0)
    assert all(f.remedy and len(str(f).splitlines()) == 1 for f in report.findings)


def test_a_row_that_is_given_is_compared() -> None:
    assert kinds(prove(3, row=False), row=LINES[2]) == []
    assert kinds(prove(3), row=LINES[2] + b"\n") == []
    for other in (LINES[3], b"", b"\xff", LINES[2] + b" "):
        assert kinds(prove(3, row=False), row=other) == ["proof-leaf"]
        assert kinds(prove(3), row=other) == ["proof-leaf"]


def test_oddities_are_warnings_and_errors_under_strict() -> None:
    odd = LINES[2].replace(b'"seq":2,"step_hash"', b'"seq": 2,"step_hash"')
    document = forged(odd)
    report = check_proof(document, keys=TRUSTED)
    assert report.verdict is Verdict.VERIFIED
    assert [(f.kind, f.severity) for f in report.findings] == [("spelling", "warning")]
    assert check_proof(document, keys=TRUSTED, strict=True).verdict is Verdict.FAILED


def test_rows_of_other_programs_are_proven_too() -> None:
    lines = chain(5, native=False)
    assert both(encode_proof(prove(2, lines=lines, tenant_id="t"))) == "verified"


# Making them.


def test_a_row_after_the_last_signed_head_is_not_covered_yet() -> None:
    with pytest.raises(CheckFailed, match=r"row 6 is not covered yet.* ends at row 5"):
        generate_proof(LINES, [signed(LINES[:5])], 6, keys=TRUSTED)


def test_a_row_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="no row 8: the chain has 7"):
        generate_proof(LINES, [NOTE], 8, keys=TRUSTED)
    wrong: list[Any] = [0, -1, True, "1", 1.0]
    for number in wrong:
        with pytest.raises(UsageError):
            generate_proof(LINES, [NOTE], number, keys=TRUSTED)


def test_the_newest_head_of_this_run_that_a_trusted_key_signed_is_taken() -> None:
    notes = [
        signed(LINES[:3]),
        signed(LINES[:5]),
        signed(LINES[:6], key=OTHER),
        signed(LINES, run_id="run-2"),
        "no note",
        NOTE.replace("head ", "head 0"),
    ]
    document = generate_proof(LINES, notes, 2, keys=TRUSTED, run_id="run-1")
    assert document["size"] == 5
    assert both(encode_proof(document)) == "verified"
    for none_usable in ([], notes[2:3], notes[3:]):
        with pytest.raises(CheckFailed, match="no signed head of a trusted key"):
            generate_proof(LINES, none_usable, 2, keys=TRUSTED, run_id="run-1")


def test_a_chain_that_is_not_the_signed_one_gives_no_proof() -> None:
    edited = [*LINES]
    edited[4] = edited[4].replace(b"w4", b"w9")
    for number in (1, 5):
        with pytest.raises(CheckFailed, match="proof-path"):
            generate_proof(edited, [NOTE], number, keys=TRUSTED)
    with pytest.raises(CheckFailed, match="end at 5, the signed head covers 7"):
        generate_proof(LINES[:5], [NOTE], 2, keys=TRUSTED)
    with pytest.raises(CheckFailed, match="not UTF-8"):
        generate_proof([b"\xff", *LINES[1:]], [NOTE], 1, keys=TRUSTED)
    with pytest.raises(CheckFailed, match="proof-claim"):
        prove(1, tenant_id="somebody else")


def test_a_fault_of_the_store_is_told_as_it_is() -> None:
    def gone() -> Any:
        yield LINES[0]
        raise NotFound("the store went away")

    with pytest.raises(NotFound, match="went away"):
        generate_proof(gone(), [NOTE], 2, keys=TRUSTED)


# Heads that grow.


@pytest.mark.parametrize("size", range(12))
def test_every_head_grows_into_every_later_one(size: int) -> None:
    lines = chain(11)
    for first in range(size):
        document = generate_consistency(
            lines, signed(lines[:first]), signed(lines[:size]), keys=TRUSTED
        )
        assert both(encode_proof(document)) == "verified"
        for at in range(len(document["path"])):  # type: ignore[arg-type]
            path: Any = document["path"]
            cut = document | {"path": path[:at] + path[at + 1 :]}
            assert both(encode_proof(cut)) == "failed"


def grown(old: str, new: str, path: list[str] | None = None) -> Document:
    good = generate_consistency(LINES, signed(LINES[:5]), NOTE, keys=TRUSTED)
    more = {} if path is None else {"path": path}
    return good | {"old_checkpoint": old, "new_checkpoint": new} | more


REWRITTEN = [*LINES[:3], *chain(7, word="x")[3:]]
GROWN: dict[str, tuple[Document, list[str]]] = {
    "rolled back": (grown(NOTE, signed(LINES[:5])), ["rollback"]),
    "rewritten": (grown(signed(LINES[:5]), signed(REWRITTEN)), ["proof-path"]),
    "rewritten to the same size": (grown(signed(REWRITTEN), NOTE, []), ["chain-rewritten"]),
    "same rows, another head": (
        grown(resigned({}, step_hash="0" * 64)["checkpoint"], NOTE, []),
        ["chain-rewritten"],
    ),
    "two runs": (grown(signed(LINES[:5], run_id="run-2"), NOTE), ["proof-claim"]),
    "a path where none belongs": (grown(NOTE, NOTE), ["proof-path"]),
    "no path": (grown(signed(LINES[:5]), NOTE, []), ["proof-path"]),
    "old one edited": (grown(NOTE.replace("7", "5", 1), NOTE), ["proof-checkpoint"]),
    "neither is one": (grown("x", "y"), ["proof-checkpoint", "proof-checkpoint"]),
}


@pytest.mark.parametrize("name", GROWN)
def test_a_head_that_did_not_grow_out_of_the_other(name: str) -> None:
    document, expected = GROWN[name]
    report = check_consistency(document, keys=TRUSTED)
    assert [finding.kind for finding in report.errors()] == expected
    assert both(encode_proof(document)) == "failed"


def test_both_heads_must_be_signed_by_a_trusted_key() -> None:
    document = grown(signed(LINES[:5], key=OTHER), NOTE)
    assert both(encode_proof(document)) == "unproven"
    assert both(encode_proof(document), keys=[]) == "unproven"
    report = check_proof(document, keys=[*TRUSTED, OTHER.public()])
    assert (report.verdict, report.steps) == (Verdict.VERIFIED, 7)


def test_no_proof_is_made_of_a_rollback_or_a_rewrite() -> None:
    with pytest.raises(CheckFailed, match="rollback: the newer head covers 5 rows"):
        generate_consistency(LINES, NOTE, signed(LINES[:5]), keys=TRUSTED)
    with pytest.raises(CheckFailed, match="proof-path"):
        generate_consistency(REWRITTEN, signed(LINES[:5]), signed(REWRITTEN), keys=TRUSTED)
    with pytest.raises(CheckFailed, match="the end is missing"):
        generate_consistency(LINES[:6], signed(LINES[:5]), NOTE, keys=TRUSTED)
    with pytest.raises(CheckFailed, match="two runs"):
        generate_consistency(LINES, signed(LINES[:5], run_id="run-2"), NOTE, keys=TRUSTED)
    with pytest.raises(SignatureError, match="no trusted key"):
        generate_consistency(LINES, signed(LINES[:5], key=OTHER), NOTE, keys=TRUSTED)


# The two checkers.

SMALL = chain(3)
BYTES = [
    encode_proof(generate_proof(SMALL, [signed(SMALL)], 3, keys=TRUSTED, tenant_id="acme")),
    encode_proof(generate_proof(SMALL, [signed(SMALL)], 1, keys=TRUSTED, row=False)),
    encode_proof(generate_consistency(SMALL, signed(SMALL[:2]), signed(SMALL), keys=TRUSTED)),
]


@pytest.mark.parametrize("data", BYTES, ids=["row", "leaf", "grown"])
def test_every_changed_byte_is_seen_by_both(data: bytes) -> None:
    assert both(data) == "verified"
    claim = b'"tenant_id":"acme"'
    at = data.find(claim)
    claims = set(range(at, at + len(claim))) if claim in data else set()
    accepted = []
    for at in range(len(data)):
        for byte in {data[at] ^ 1, data[at] ^ 0x20, ord("A"), ord("0"), ord('"'), 0xFF}:
            if byte != data[at]:
                mutated = data[:at] + bytes([byte]) + data[at + 1 :]
                if both(mutated) == "verified":
                    accepted.append(at)
        for mutated in (data[:at], data[:at] + data[at + 1 :], data[:at] + b"1" + data[at:]):
            if both(mutated) == "verified":
                accepted.append(at)
    # Whose chain it is, is a claim that this row does not prove, and the report says so.
    assert set(accepted) <= claims
    assert bool(accepted) == bool(claims)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(BYTES), st.data())
def test_both_agree_without_a_key_too(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    put = draw.draw(st.binary(max_size=3))
    both(data[:at] + put + data[at + draw.draw(st.integers(0, 3)) :], keys=[])


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 40), st.data())
def test_both_agree_on_any_number_size_and_path(size: int, draw: st.DataObject) -> None:
    lines = chain(size)
    document = prove(draw.draw(st.integers(1, size)), lines=lines, row=False)
    path: list[Any] = [*document["path"]]
    if path and draw.draw(st.booleans()):
        path.pop(draw.draw(st.integers(0, len(path) - 1)))
    number = draw.draw(st.integers(1, size + 1))
    both(encode_proof(document | {"path": path, "sequence_number": number}))


def test_the_checker_by_hand_shares_no_code() -> None:
    tree = ast.parse((REPO / "examples" / "check_proof.py").read_text("utf-8"))
    used = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert used - set(sys.stdlib_module_names) == {"cryptography"}
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not called & {"__import__", "exec", "eval"}


# Kept documents.

EXPECT: dict[str, Any] = json.loads((VECTORS / "EXPECT.json").read_text("utf-8"))


def test_every_kept_document_has_an_expectation() -> None:
    files = {path.name for path in VECTORS.glob("*.json")} - {"EXPECT.json"}
    assert files == set(EXPECT["files"])
    assert {want["verdict"] for want in EXPECT["files"].values()} == {
        "verified", "unproven", "failed", "refused"
    }  # fmt: skip


@pytest.mark.parametrize("name", EXPECT["files"])
def test_a_kept_document_has_its_verdict(name: str) -> None:
    want = EXPECT["files"][name]
    data = (VECTORS / name).read_bytes()
    assert EXPECT["key"] == VKEY
    assert both(data) == want["verdict"]
    if want["verdict"] != "refused":
        report = check_proof(data, keys=TRUSTED)
        assert sorted({f.kind for f in report.findings}) == want["kinds"]


def test_the_kept_documents_are_made_again_byte_for_byte() -> None:
    made = {
        "row.json": prove(3, tenant_id="acme", chat_id="talk"),
        "leaf.json": prove(3, row=False),
        "first.json": prove(1, tenant_id="acme", chat_id="talk"),
        "last.json": prove(7),
        "grown.json": generate_consistency(LINES, signed(LINES[:5]), NOTE, keys=TRUSTED),
    }
    for name, document in made.items():
        assert (VECTORS / name).read_bytes() == encode_proof(document)


# In the place of a run: `playhead.verify`.


def test_verify_knows_a_proof(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_bytes(encode_proof(prove(3)))
    assert playhead.verify(file).verdict is Verdict.UNPROVEN
    report = playhead.verify(file, keys=TRUSTED)
    assert (report.verdict, report.target) == (Verdict.VERIFIED, os.fspath(file))
    with pytest.raises(UsageError, match="brings its own head"):
        playhead.verify(file, keys=TRUSTED, head="0" * 64)
    file.write_text(json.dumps(prove(3), indent=1, sort_keys=True))
    with pytest.raises(Refused, match="not a proof"):
        playhead.verify(file, keys=TRUSTED)


def test_a_journal_whose_last_row_holds_a_proof_is_a_journal(tmp_path: Path) -> None:
    from playhead.formats.journal import encode_row

    line, _ = encode_row(
        seq=0,
        prev_hash=GENESIS,
        input_hash="",
        model=None,
        prompt=None,
        tool_call=None,
        tool_result=prove(3),
        ts=1.5,
    )
    file = tmp_path / "lone.jsonl"
    file.write_bytes(line + b"\n")
    report = playhead.verify(file)
    assert (report.steps, report.errors()) == (1, [])
    assert report.head == json.loads(line)["step_hash"]
