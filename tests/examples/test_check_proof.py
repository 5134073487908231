"""The checker of proofs as a script: its status, its one line, and what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from playhead.formats.proof import encode_proof
from playhead.verifier.prove import generate_proof
from proving import KEY, OTHER, TRUSTED, chain, signed

LINES = chain(4)
VKEY = KEY.public().to_vkey()


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    path = tmp_path / "row.json"
    document = generate_proof(LINES, [signed(LINES)], 2, keys=TRUSTED, row=False)
    path.write_bytes(encode_proof(document))
    return path


def check(repo: Path, *words: object, bare: bool = False) -> tuple[int, str]:
    """Run it; ``bare`` without any package that is installed."""
    flags = ["-I", "-S"] if bare else ["-I"]
    done = subprocess.run(
        [sys.executable, *flags, str(repo / "examples" / "check_proof.py"), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    return done.returncode, said


def test_each_verdict_has_its_status(repo: Path, proof: Path, tmp_path: Path) -> None:
    right, wrong, key = tmp_path / "right", tmp_path / "wrong", tmp_path / "key.vkey"
    right.write_bytes(LINES[1] + b"\n")
    wrong.write_bytes(LINES[2] + b"\n")
    key.write_text(VKEY + "\n")
    good = "row 2 of the 4 of run run-1\n"
    assert check(repo, proof, "--key", VKEY) == (0, "verified: " + good)
    assert check(repo, proof, "--row", right, "--key", key) == (0, "verified: " + good)
    assert check(repo, proof, "--key", OTHER.public().to_vkey()) == (3, "unproven: " + good)
    assert check(repo, proof, bare=True) == (3, "unproven: " + good)
    assert check(repo, proof, "--row", wrong) == (1, "failed: the row is not the leaf\n")
    assert check(repo, right)[0] == 4
    assert check(repo, proof, "--key", VKEY.replace("one", "two"))[0] == 4


def test_what_cannot_be_read_is_said_in_one_line(repo: Path, tmp_path: Path, proof: Path) -> None:
    for words in ([tmp_path / "none"], [tmp_path], [proof, "--key", "none"], ["a\udcff"]):
        code, said = check(repo, *words)
        assert (code, len(said.splitlines())) == (2, 1)
    code, said = check(repo)
    assert code == 1 and "check_proof.py PROOF" in said


def test_it_is_read_in_one_sitting(repo: Path) -> None:
    assert len((repo / "examples" / "check_proof.py").read_text().splitlines()) < 300
