"""`playhead verify` over a proof: its verdict, its status, and what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Cli
from playhead.formats.proof import encode_proof
from playhead.verifier.prove import generate_proof
from proving import KEY, TRUSTED, chain, signed

VKEY = KEY.public().to_vkey()


@pytest.fixture
def proof(here: Path) -> Path:
    lines = chain(4)
    path = here / "row.json"
    path.write_bytes(encode_proof(generate_proof(lines, [signed(lines)], 2, keys=TRUSTED)))
    return path


def test_a_proof_is_verified_with_the_key(cli: Cli, proof: Path) -> None:
    done = cli("verify", proof.name, "--key", VKEY, "--strict")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("verified  row.json  1 step\n")
    assert "row 2 of the 4 of run run-1" in done.out


def test_without_the_key_it_is_unproven(cli: Cli, proof: Path, root: Path, state: Path) -> None:
    assert cli("verify", proof.name).status == 0
    done = cli("verify", proof.name, "--strict")
    assert done.status == 3
    assert "head-not-usable" in done.out
    assert not root.exists()
    assert not state.exists()


def test_a_changed_proof_failed(cli: Cli, proof: Path) -> None:
    proof.write_bytes(proof.read_bytes().replace(b"w1", b"w9"))
    done = cli("verify", proof.name, "--key", VKEY, "--json")
    assert done.status == 1
    (report,) = json.loads(done.out)["reports"]
    assert (report["verdict"], report["proven"]) == ("failed", [])
    assert [finding["kind"] for finding in report["findings"]] == ["proof-leaf"]


def test_a_proof_in_another_spelling_is_refused(cli: Cli, proof: Path) -> None:
    proof.write_text(json.dumps(json.loads(proof.read_bytes()), sort_keys=True, indent=1))
    done = cli("verify", proof.name, "--key", VKEY)
    assert (done.status, done.out) == (4, "")
    assert "not a proof" in done.err


def test_a_head_is_not_asked_of_a_proof(cli: Cli, proof: Path) -> None:
    done = cli("verify", proof.name, "--head", "0" * 64)
    assert done.status == 2
    assert "brings its own head" in done.err
