"""Proofs of a run as bytes for a file or a pipe: one row, or that a head grew.

The documents are those of docs/reference/formats/proof.md; ``playhead verify FILE`` checks them.
"""

from __future__ import annotations

import os
from pathlib import Path

from playhead.core.note import MAX_NOTE
from playhead.errors import NotFound, Place, SignatureError, TooLarge, UsageError
from playhead.formats.proof import encode_proof
from playhead.store.durable import open_regular, write_atomic
from playhead.store.keys import KeyRing, state_dir
from playhead.store.stores import ChainRef, Store
from playhead.verifier.prove import growth_for, proof_for


def prove_row(store: Store, ref: ChainRef, number: int) -> bytes:
    """That row ``number`` (from 1) stands in the chain that the newest signed head covers.

    Raises:
        UsageError, NotFound: no such row. CheckFailed: no signed head covers it yet.
    """
    return encode_proof(proof_for(store, ref, number, ring=KeyRing(state_dir())))


def prove_growth(store: Store, ref: ChainRef, note: Path) -> bytes:
    """That the chain of the signed head in the file ``note`` is the beginning of this one.

    Raises:
        NotFound, Unreadable, TooLarge: no such file. SignatureError: no trusted key signed it.
        CheckFailed: the chain did not grow out of it.
    """
    return encode_proof(growth_for(store, ref, _read_note(note), ring=KeyRing(state_dir())))


def _read_note(path: Path) -> str:
    with open(open_regular(path), "rb") as handle:
        data = handle.read(MAX_NOTE + 1)
    if len(data) > MAX_NOTE:
        raise TooLarge("no signed head: over its bound", place=Place(str(path)))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise SignatureError("no signed head: not UTF-8", place=Place(str(path))) from None


def write_proof(path: Path, data: bytes, *, force: bool) -> None:
    """Write a proof into ``path``, owner-only, whole or not at all.

    Raises:
        UsageError: a directory, or it is there and ``force`` is off. NotFound: no such directory.
        WriteFailed: the disk refused.
    """
    place = Place(str(path))
    if not path.parent.is_dir():
        raise NotFound("no such directory", place=Place(str(path.parent)), remedy="Make it first")
    if path.is_dir():
        raise UsageError("a directory", place=place, remedy="Name a file")
    if os.path.lexists(path) and not force:
        raise UsageError("it is there already", place=place, remedy="Use --force to replace it")
    write_atomic(path, data)
