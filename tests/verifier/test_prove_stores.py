"""A proof of a row is the same in every store, and leaves another tenant's chain alone."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import playhead
from playhead.core.model import Verdict
from playhead.errors import CheckFailed, NotFound
from playhead.formats.proof import encode_proof
from playhead.store.database import Database
from playhead.store.dbstore import DbStore
from playhead.store.heads import HeadFiles
from playhead.store.keys import KeyRing
from playhead.store.lines import open_lines
from playhead.store.memory import MemoryDatabase
from playhead.store.stores import ChainRef, Heads, Lines, Store
from playhead.verifier.proofs import check_proof
from playhead.verifier.prove import proof_for


class Folders:
    """What `proof_for` asks of a store, over a journal directory."""

    def __init__(self, folder: Path, ring: KeyRing) -> None:
        self._folder, self._ring = folder, ring

    def lines(self, ref: ChainRef) -> Lines:
        return open_lines(self._folder)

    def heads(self, ref: ChainRef) -> Heads:
        return HeadFiles(self._folder, self._ring.state)


@pytest.fixture
def ring(state: Path) -> KeyRing:
    return KeyRing(state)


@pytest.fixture
def folder(root: Path) -> Path:
    with playhead.record("helper", root=root, run_id="run-1", tenant_id="acme") as run:
        for number in range(5):
            run.state("n", number)
    return root / "runtime" / "journal" / "run-1"


def test_a_row_of_a_journal_directory(folder: Path, ring: KeyRing) -> None:
    ref = ChainRef("acme", "run-1", "run-1", str(folder))
    store = cast(Store, Folders(folder, ring))
    lines = (folder / "000000.jsonl").read_bytes().splitlines()
    for number, line in enumerate(lines, 1):
        document = proof_for(store, ref, number, ring=ring)
        assert document["row"] == line.decode()
        assert (document["tenant_id"], document["chat_id"]) == ("acme", "run-1")
        assert check_proof(document, keys=ring.trusted()).verdict is Verdict.VERIFIED
    with pytest.raises(NotFound, match=f"the chain has {len(lines)}"):
        proof_for(store, ref, len(lines) + 1, ring=ring)
    with pytest.raises(CheckFailed, match="proof-claim"):
        proof_for(store, ChainRef("other", "run-1", "run-1", ""), 1, ring=ring)


def test_a_damaged_line_gives_no_proof(folder: Path, ring: KeyRing) -> None:
    file = folder / "000000.jsonl"
    file.write_bytes(file.read_bytes()[:-40] + b"\n")
    store = cast(Store, Folders(folder, ring))
    with pytest.raises(CheckFailed):
        proof_for(store, ChainRef("acme", "run-1", "run-1", str(folder)), 2, ring=ring)


def test_a_row_of_a_database_is_proven_by_the_same_document(folder: Path, ring: KeyRing) -> None:
    lines = (folder / "000000.jsonl").read_bytes().splitlines()
    store = DbStore(cast(Database, MemoryDatabase()), ring)
    opened = store.open_chain("acme", "run-1", run_id="run-1")
    opened.append_lines(lines)
    opened.sync()
    opened.close()
    ref = store.find("acme", "run-1")
    from_folder = proof_for(
        cast(Store, Folders(folder, ring)),
        ChainRef("acme", "run-1", "run-1", str(folder)),
        3,
        ring=ring,
    )
    document = proof_for(store, ref, 3, ring=ring)
    for member in ("row", "leaf_hash", "path", "size", "run_id"):
        assert document[member] == from_folder[member]
    assert check_proof(encode_proof(document), keys=ring.trusted()).verdict is Verdict.VERIFIED
    with pytest.raises(NotFound):
        store.find("other", "run-1")
