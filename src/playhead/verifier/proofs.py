"""Checking a proof offline: the document, a public key, and nothing else.

What is checked, in the order of docs/reference/formats/proof.md:

(1) the document has its one form (else it is refused);
(2) the checkpoint is a signed head; a trusted key signed it, and no trusted key's signature
    is wrong;
(3) run id and size of the document are those of the checkpoint;
(4) the path leads from the leaf hash, at its number, to the signed root;
(5) the row is that leaf; it hashes to its own step hash and carries its own number; the first
    row follows nothing, the last one's step hash is the signed head.

``failed`` when one of these does not hold, ``verified`` when all do and a trusted key signed,
else ``unproven``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from playhead.core.breaks import envelope_of
from playhead.core.merkle import leaf_hash, verify_consistency, verify_inclusion
from playhead.core.model import GENESIS, JSON, Finding, Report
from playhead.core.oddities import oddities
from playhead.core.rows import BadRow, Row, decode_row, shown, to_seq
from playhead.core.sign import PublicKey
from playhead.errors import Place
from playhead.formats.head import Head
from playhead.formats.proof import (
    MAX_PROOF,
    TAIL,
    ConsistencyProof,
    InclusionProof,
    decode_proof,
    encode_proof,
    proof_tail,
)
from playhead.store.durable import open_regular, read_bounded
from playhead.verifier.signed import AGAIN, Case


def check_proof(
    document: bytes | Mapping[str, JSON],
    *,
    keys: Sequence[PublicKey],
    row: bytes | None = None,
    strict: bool = False,
    name: str = "proof",
) -> Report:
    """Check a proof of one row, or of one head after another (`check_consistency`).

    Args:
        document: the bytes of the document, or the object itself.
        keys: public keys that are trusted to sign heads of this run.
        row: the row that you hold, to be compared (for a proof that shows only a leaf hash);
            a newline at its end is left out.
        strict: tolerated oddities of the row are errors.
        name: what the report calls the document.

    Returns:
        A report; ``steps`` is the number of rows that the document speaks of.

    Raises:
        Refused, TooLarge: not a proof document.
    """
    proof = decode_proof(document if isinstance(document, bytes) else encode_proof(document))
    if isinstance(proof, ConsistencyProof):
        return _consistency(proof, keys, name)
    given = None if row is None else row.removesuffix(b"\n")
    return _inclusion(proof, keys, given, strict, name)


def check_consistency(
    document: bytes | Mapping[str, JSON], *, keys: Sequence[PublicKey], name: str = "proof"
) -> Report:
    """Check that the chain of the newer checkpoint begins with the chain of the older one.

    The same as `check_proof`, which tells the two documents apart by their type.
    """
    return check_proof(document, keys=keys, name=name)


def proof_in(path: Path) -> bytes | None:
    """The bytes of a file that means to be a proof; None for another file.

    Raises:
        NotFound, Unreadable, TooLarge: as `read_bounded`.
    """
    fd = open_regular(path)
    with open(fd, "rb", buffering=0):
        tail = os.pread(fd, TAIL, max(0, os.fstat(fd).st_size - TAIL))
    return read_bounded(path, MAX_PROOF) if proof_tail(tail) else None


def _inclusion(
    proof: InclusionProof, keys: Sequence[PublicKey], given: bytes | None, strict: bool, name: str
) -> Report:
    case = Case(name, keys)
    head = case.signed(proof.checkpoint, "the checkpoint")
    shown_row = None if proof.row is None else proof.row.encode("utf-8")
    rows = list(dict.fromkeys(row for row in (shown_row, given) if row is not None))
    if head is not None:
        case.findings += _place_of(proof, head, case.place)
        for row in rows:
            if leaf_hash(row) != proof.leaf_hash:
                what = "the row is not the one whose leaf hash the proof holds"
                case.findings.append(Finding("proof-leaf", "error", what, case.place, AGAIN))
            else:
                case.findings += _row_itself(row, proof, head, strict, case.place)
    return case.report(
        head, 1, _proven(proof, case.signers, bool(rows)), _unproven(proof, rows[:1])
    )


def _place_of(proof: InclusionProof, head: Head, place: Place) -> Iterator[Finding]:
    """Whether the leaf has its place under the root."""
    for word, said, signed in (("run", proof.run_id, head.run_id), ("size", proof.size, head.size)):
        if said != signed:
            what = f"the {word} of the document is {said!r:.80}, the checkpoint says {signed!r:.80}"
            yield Finding("proof-claim", "error", what, place, AGAIN)
    index = proof.sequence_number - 1
    if not verify_inclusion(proof.leaf_hash, index, head.size, proof.path, head.root):
        yield Finding(
            "proof-path",
            "error",
            f"row {proof.sequence_number} of {head.size} under this root is another one, or the "
            "path was changed",
            place,
            AGAIN,
        )


def _row_itself(
    line: bytes, proof: InclusionProof, head: Head, strict: bool, place: Place
) -> Iterator[Finding]:
    """What a row says of itself: its hash, its number, its neighbours at both ends."""
    index = proof.sequence_number - 1
    here = Place(place.file, step=index)
    row = decode_row(line)
    if not isinstance(row, Row):
        what = row.what if isinstance(row, BadRow) else "the row is blank"
        yield Finding("corrupt-row", "error", what, here, AGAIN)
        return
    if row.computed != row.stored_hash:
        what = f"its fields hash to {row.computed[:16]}..., it stores {row.stored_hash[:16]}..."
        yield Finding("step-hash-mismatch", "error", what, here, AGAIN)
    if to_seq(row.obj.get("seq", -1)) != index:
        what = f"seq is {shown(row.obj.get('seq'))}, its number in the tree is {index}"
        yield Finding("seq-mismatch", "error", what, here, AGAIN)
    if index == 0 and row.stored_prev != GENESIS:
        what = f"the first row follows {row.stored_prev[:16]}...; rows are gone"
        yield Finding("prev-hash-mismatch", "error", what, here, AGAIN)
    if index == head.size - 1 and row.stored_hash != head.step_hash:
        what = "the step hash of the last row is not the signed head"
        yield Finding("head-mismatch", "error", what, here, AGAIN)
    call = envelope_of(row.obj)
    if call is not None and call.get("seq") != row.obj.get("seq"):
        what = f"the hashed envelope says seq {shown(call.get('seq'))}"
        yield Finding("envelope-seq-mismatch", "error", what, here, AGAIN)
    for word, said in (("tenant_id", proof.tenant_id), ("chat_id", proof.chat_id)):
        if said is not None and call is not None and call.get(word, said) != said:
            what = f"the {word} of the document is not the one in the row"
            yield Finding("proof-claim", "error", what, here, AGAIN)
    for kind, what, remedy in oddities(row):
        yield Finding(kind, "error" if strict else "warning", what, here, remedy)


def _proven(proof: InclusionProof, signers: Sequence[str], shown_row: bool) -> Iterator[str]:
    what = "this line, byte for byte" if shown_row else "a line with this leaf hash"
    yield (
        f"row {proof.sequence_number} of the {proof.size} of run {proof.run_id} is {what} "
        f"(signed by {', '.join(dict.fromkeys(signers))})"
    )
    if shown_row:
        yield "its step hash is that of its own fields, its seq is its number"
        if proof.sequence_number == proof.size:
            yield "it is the last row of that head, and its step hash is the signed one"


def _unproven(proof: InclusionProof, rows: Sequence[bytes]) -> Iterator[str]:
    if not rows:
        yield "what the row says: the proof holds its leaf hash alone"
    row = decode_row(rows[0]) if rows else None
    call = envelope_of(row.obj) if isinstance(row, Row) else None
    for word, said in (("tenant", proof.tenant_id), ("chat", proof.chat_id)):
        if said is not None and f"{word}_id" not in (call or {}):
            yield f"that the {word} is {said!r:.80}: the first row says it, not this one"
    yield f"what came after the {proof.size} rows of this head"


def _consistency(proof: ConsistencyProof, keys: Sequence[PublicKey], name: str) -> Report:
    case = Case(name, keys)
    old = case.signed(proof.old_checkpoint, "the older checkpoint")
    new = case.signed(proof.new_checkpoint, "the newer checkpoint")
    if old is None or new is None:
        return case.report(new, 0, (), ())
    fault = compare(old, new, proof.path)
    if fault is not None:
        kind, what = fault
        case.findings.append(Finding(kind, "error", what, case.place, AGAIN))
    proven = (
        f"the first {old.size} of the {new.size} rows of run {new.run_id} are those that were "
        f"signed before (by {', '.join(dict.fromkeys(case.signers))})"
    )
    return case.report(new, new.size, [proven], [f"what came after the {new.size} rows"])


def compare(old: Head, new: Head, path: Sequence[bytes]) -> tuple[str, str] | None:
    """Why ``new`` is not shown to grow out of ``old``, as kind and sentence; None when it is."""
    if old.run_id != new.run_id:
        return "proof-claim", f"two runs: {old.run_id!r:.80} and {new.run_id!r:.80}"
    if new.size < old.size:
        return "rollback", f"the newer head covers {new.size} rows, the older one {old.size}"
    if new.size == old.size and (new.root, new.step_hash) != (old.root, old.step_hash):
        return "chain-rewritten", f"two heads of {new.size} rows differ: both were signed"
    if not verify_consistency(old.size, new.size, old.root, new.root, path):
        return (
            "proof-path",
            f"the {new.size} rows do not begin with the {old.size} that were signed before, or "
            "the path was changed",
        )
    return None
