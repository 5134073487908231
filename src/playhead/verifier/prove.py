"""Making proofs from a chain and its signed heads, in one pass and flat memory.

The documents are those of docs/reference/formats/proof.md; `playhead.verifier.proofs` checks
them. Nothing is proven that does not hold: a chain that is not the signed one gives no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from playhead.core.merkle import leaf_hash
from playhead.core.model import JSON, Report
from playhead.core.paths import stream_consistency, stream_inclusion
from playhead.core.rows import BadRow
from playhead.core.sign import PublicKey
from playhead.errors import CheckFailed, NotFound, Place, SignatureError, UsageError
from playhead.formats.head import Head
from playhead.formats.proof import ConsistencyProof, InclusionProof, encode_proof
from playhead.store.keys import KeyRing
from playhead.store.stores import ChainRef, Line, Store
from playhead.verifier.proofs import check_proof, compare
from playhead.verifier.signed import read_signed

_VERIFY = "'playhead verify' names every fault of the run"


def generate_proof(
    lines: Iterable[bytes],
    notes: Iterable[str],
    sequence_number: int,
    *,
    keys: Sequence[PublicKey],
    run_id: str | None = None,
    tenant_id: str | None = None,
    chat_id: str | None = None,
    row: bool = True,
) -> dict[str, JSON]:
    """Prove one row of a chain against the newest signed head that covers it.

    Args:
        lines: every row from the first on, without newlines; read once, no further than needed.
        notes: signed checkpoints of the chain; those that no trusted key signed, or that are of
            another run than ``run_id``, are passed over.
        sequence_number: which row, from 1.
        keys: public keys that are trusted to sign heads of this run.
        tenant_id, chat_id: whose chain it is; written down as claims.
        row: False shows the leaf hash only, and nothing of what the row says.

    Returns:
        The document; `playhead.formats.proof.encode_proof` gives its bytes.

    Raises:
        UsageError: no number of a row. NotFound: the chain has no such row.
        CheckFailed: no signed head covers the row, or the chain is not the signed one.
    """
    if type(sequence_number) is not int or sequence_number < 1:
        raise UsageError(
            f"{sequence_number!r:.40} is no sequence number", remedy="Rows count from 1"
        )
    note, head = _newest(notes, keys, run_id)
    if sequence_number > head.size:
        raise _not_covered(lines, sequence_number, head)
    index = sequence_number - 1
    kept: list[bytes] = []
    try:
        leaf, path = stream_inclusion(_leaves(lines, index, kept), index, head.size)
    except UsageError as error:
        raise _cut(error, head) from None
    proof = InclusionProof(
        run_id=head.run_id,
        sequence_number=sequence_number,
        leaf_hash=leaf,
        path=tuple(path),
        size=head.size,
        checkpoint=note,
        row=_text(kept[0], index) if row else None,
        tenant_id=tenant_id,
        chat_id=chat_id,
    )
    document = proof.to_dict()
    _holds(check_proof(encode_proof(document), keys=keys, row=kept[0], name=head.run_id))
    return document


def generate_consistency(
    lines: Iterable[bytes], old_note: str, new_note: str, *, keys: Sequence[PublicKey]
) -> dict[str, JSON]:
    """Prove that the chain of ``new_note`` begins with the chain of ``old_note``.

    Args:
        lines: every row from the first on, without newlines; read once.
        old_note, new_note: signed checkpoints of one run.
        keys: public keys that are trusted to sign heads of this run.

    Raises:
        SignatureError: a note is no signed head of a trusted key.
        CheckFailed: the newer head did not grow out of the older one (a rollback, a rewrite), or
            the rows are not the signed ones.
    """
    old, new = _trusted(old_note, keys), _trusted(new_note, keys)
    path: list[bytes] = []
    if old.size <= new.size:
        try:
            path = stream_consistency(map(leaf_hash, lines), old.size, new.size)
        except UsageError as error:
            raise _cut(error, new) from None
    fault = compare(old, new, path)
    if fault is not None:
        raise CheckFailed(f"{fault[0]}: {fault[1]}", remedy=_VERIFY)
    document = ConsistencyProof(old_note, new_note, tuple(path)).to_dict()
    encode_proof(document)
    return document


def proof_for(
    store: Store,
    ref: ChainRef,
    sequence_number: int,
    *,
    ring: KeyRing,
    keys: Sequence[PublicKey] = (),
    row: bool = True,
) -> dict[str, JSON]:
    """`generate_proof` for a chain of a store.

    Args:
        ring: the user's own and trusted keys; ``keys`` are trusted besides.

    Raises:
        UsageError, NotFound, CheckFailed: see `generate_proof`.
        StoreError, Unreadable: what lies below does not answer.
    """
    trusted = [*ring.trusted(), *keys]
    # The heads first: rows that are added in between only follow what they cover.
    notes = [seen.note for seen in store.heads(ref).read(trusted) if seen.head is not None]
    lines = store.lines(ref)
    try:
        return generate_proof(
            _rows(lines.walk(0, None), ref.where),
            notes,
            sequence_number,
            keys=trusted,
            run_id=ref.run_id,
            tenant_id=ref.tenant_id,
            chat_id=ref.chat_id,
            row=row,
        )
    finally:
        lines.close()


def growth_for(
    store: Store, ref: ChainRef, old_note: str, *, ring: KeyRing, keys: Sequence[PublicKey] = ()
) -> dict[str, JSON]:
    """`generate_consistency` from ``old_note`` to the newest signed head of a chain of a store.

    Raises:
        SignatureError, CheckFailed: see `generate_consistency`; the note is of another run.
        StoreError, Unreadable: what lies below does not answer.
    """
    trusted = [*ring.trusted(), *keys]
    old = _trusted(old_note, trusted)
    if old.run_id != ref.run_id:
        raise CheckFailed(
            f"the old head is one of run {old.run_id}, not of {ref.run_id}",
            remedy="Give a signed head of this run",
        )
    notes = [seen.note for seen in store.heads(ref).read(trusted) if seen.head is not None]
    new_note, _ = _newest(notes, trusted, ref.run_id)
    lines = store.lines(ref)
    try:
        rows = _rows(lines.walk(0, None), ref.where)
        return generate_consistency(rows, old_note, new_note, keys=trusted)
    finally:
        lines.close()


def _rows(lines: Iterator[Line], where: str) -> Iterator[bytes]:
    for number, _, line in lines:
        if isinstance(line, BadRow):
            raise CheckFailed(line.what, place=Place(where, line=number), remedy=_VERIFY)
        yield line


def _newest(
    notes: Iterable[str], keys: Sequence[PublicKey], run_id: str | None
) -> tuple[str, Head]:
    """The note that covers most rows among those that a trusted key signed for this run."""
    usable: list[tuple[str, Head]] = []
    for note in notes:
        try:
            head = _trusted(note, keys)
        except SignatureError:
            continue  # without a usable head nothing is proven, and the caller is told so
        if run_id is None or head.run_id == run_id:
            usable.append((note, head))
    if not usable:
        raise CheckFailed(
            "no signed head of a trusted key covers any row of this run",
            remedy="End the run so that its head is signed, or trust the signer's key with "
            "'playhead keys trust'",
        )
    return max(usable, key=lambda pair: pair[1].size)


def _trusted(note: str, keys: Sequence[PublicKey]) -> Head:
    signed = read_signed(note, keys)
    if not signed.signers:
        raise SignatureError(
            "no trusted key signed this note",
            remedy="Get the signer's public key from the signer and trust it with --key",
        )
    return signed.head


def _leaves(lines: Iterable[bytes], index: int, kept: list[bytes]) -> Iterator[bytes]:
    """The leaf hashes of ``lines``; row ``index`` is kept."""
    for number, line in enumerate(lines):
        if number == index:
            kept.append(line)
        yield leaf_hash(line)


def _text(line: bytes, index: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        what = "the row is not UTF-8: it is no row that could be proven"
        raise CheckFailed(what, place=Place(step=index), remedy=_VERIFY) from None


def _not_covered(lines: Iterable[bytes], wanted: int, head: Head) -> CheckFailed | NotFound:
    there = 0
    for there, _ in enumerate(lines, 1):
        if there == wanted:
            return CheckFailed(
                f"row {wanted} is not covered yet: the last signed head ends at row {head.size}",
                remedy="A head is signed at most a second after a step and at the end of a run: "
                "end or sync the run, then ask again",
            )
    return NotFound(
        f"there is no row {wanted}: the chain has {there}", remedy="Name a row that is there"
    )


def _cut(error: UsageError, head: Head) -> UsageError | CheckFailed:
    if type(error) is not UsageError:
        return error  # of the store below
    what = f"{error.what}, the signed head covers {head.size} rows: the end is missing"
    return CheckFailed(what, remedy=_VERIFY)


def _holds(report: Report) -> None:
    for found in report.errors():
        raise CheckFailed(f"{found.kind}: {found.what}", place=found.place, remedy=_VERIFY)
