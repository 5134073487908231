"""Signed heads as a proof carries them, and the report on one proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from playhead.core.model import Finding, Report, Verdict
from playhead.core.note import parse_note
from playhead.core.sign import PublicKey, verify_note
from playhead.errors import Place, SignatureError
from playhead.formats.head import Head, decode_head

AGAIN = "Ask for the proof again, and for the run itself"


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint as read: its head, and the trusted keys that signed it (maybe none)."""

    head: Head
    signers: tuple[str, ...]


def read_signed(note: str, keys: Iterable[PublicKey]) -> Signed:
    """A signed head. A note that only unknown keys signed is read, and has no signers.

    Raises:
        SignatureError: no signed head, or a trusted key's signature is wrong.
    """
    trusted = list(keys)
    signed = parse_note(note)
    head = decode_head(signed.text)
    known = {(key.name, key.key_hash) for key in trusted}
    if not any((line.name, line.key_hash) in known for line in signed.signatures):
        return Signed(head, ())
    _, signers = verify_note(note, trusted)
    return Signed(head, tuple(key.name for key in signers))


class Case:
    """What was seen so far of one document. ``signers`` are the names of trusted keys."""

    def __init__(self, name: str, keys: Sequence[PublicKey]) -> None:
        self.place = Place(name)
        self.keys = keys
        self.findings: list[Finding] = []
        self.signers: list[str] = []
        self.unsigned = False

    def signed(self, note: str, which: str) -> Head | None:
        """The head in a note; None, and a finding, when it is none."""
        try:
            found = read_signed(note, self.keys)
        except SignatureError as error:
            self.findings.append(
                Finding("proof-checkpoint", "error", f"{which}: {error.what}", self.place, AGAIN)
            )
            return None
        self.signers += found.signers
        if not found.signers:
            self.unsigned = True
            self.findings.append(
                Finding(
                    "head-not-usable",
                    "warning",
                    f"{which}: no trusted key signed it, anybody can have made it",
                    self.place,
                    "Get the signer's public key from the signer and name it with --key",
                )
            )
        return found.head

    def report(
        self, head: Head | None, steps: int, proven: Iterable[str], unproven: Iterable[str]
    ) -> Report:
        """The verdict over what was seen; the sentences are drawn only where they hold."""
        failed = any(found.severity == "error" for found in self.findings)
        good = not failed and not self.unsigned
        verdict = Verdict.FAILED if failed else Verdict.VERIFIED if good else Verdict.UNPROVEN
        who = ["everything else: no trusted key signed the checkpoint"] if self.unsigned else []
        return Report(
            target=self.place.file or "",
            verdict=verdict,
            head="" if head is None else head.step_hash,
            steps=steps,
            findings=tuple(self.findings),
            proven=tuple(proven) if good else (),
            unproven=() if failed else (*who, *unproven),
            covered=steps if good else 0,
            root=None if head is None else head.root.hex(),
        )
