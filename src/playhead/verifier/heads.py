"""Comparing a walked chain with the heads that were signed before.

A chain alone cannot see that its tail was cut or that it was rewritten as a whole. What each
difference means (docs/reference/verdicts.md):

* cut-tail: the chain is shorter than a signed head of it;
* rollback: journal *and* inner head are an older state, the head outside is newer;
* chain-rewritten: it verifies by itself, and is not the chain that was signed;
* raw-bytes-changed: the step hashes hold, but a row's bytes outside them differ;
* head-mismatch: the head that the caller expects is not the head of this chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from playhead.core.merkle import Frontier
from playhead.core.model import GENESIS, Finding
from playhead.errors import Place, UsageError
from playhead.formats.head import Head
from playhead.store.heads import SeenHead
from playhead.verifier.walk import Gathered, note

_HEX = re.compile(r"[0-9a-f]{64}\Z")
_COPY = "Restore the journal from a copy that verifies"


def require_head(head: str | None) -> None:
    """Check a head that the caller gives.

    Raises:
        UsageError: it is not 64 lower hex digits.
    """
    if head is not None and not _HEX.match(head):
        raise UsageError("the given head is not 64 lower hex characters")


@dataclass(slots=True)
class Coverage:
    """How many leading steps trusted heads cover, and where those heads were found."""

    steps: int = 0
    sources: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    raw: bool = False
    fields: bool = False


def check_heads(
    seen: Gathered, heads: Sequence[SeenHead], file: str, coverage: Coverage
) -> Iterator[Finding]:
    """Findings from signed heads; ``coverage`` is filled with what they prove."""
    matched_inside = False
    broken = seen.errors > 0
    told: list[Head] = []
    for found in heads:
        place = Place(str(found.path))
        if found.head is None:
            yield Finding(
                "head-not-usable",
                "warning",
                f"the signed head {found.where} the root proves nothing: {found.problem}",
                place,
                "Trust its key with 'playhead keys trust', or name it with --key",
            )
            continue
        head = found.head
        if head in told:  # the copy outside the root says the same as the one inside
            continue
        if head.size > seen.steps:
            told.append(head)
            yield _shorter(seen, found, rolled_back=matched_inside and not broken, file=file)
            continue
        root, step_hash = seen.at[head.size] if head.size else (Frontier().root(), GENESIS)
        if step_hash == head.step_hash and root == head.root:
            matched_inside = matched_inside or found.where == "inside"
            _cover(coverage, found)
        elif step_hash == head.step_hash and not broken:
            told.append(head)
            yield Finding(
                "raw-bytes-changed",
                "error",
                f"the step hashes hold up to step {head.size - 1}, but the rows are not the "
                "signed bytes: ts, seq, blob_refs or a spelling was changed",
                Place(file),
                _COPY,
            )
        else:
            told.append(head)
            yield _other_chain(found, file, broken=broken)


def _cover(coverage: Coverage, found: SeenHead) -> None:
    assert found.head is not None
    coverage.steps = max(coverage.steps, found.head.size)
    coverage.sources += (found.where,)
    if found.key and found.key not in coverage.keys:
        coverage.keys += (found.key,)
    coverage.raw = True
    coverage.fields = coverage.fields or found.head.fields_root is not None


def _shorter(seen: Gathered, found: SeenHead, *, rolled_back: bool, file: str) -> Finding:
    assert found.head is not None
    gone = found.head.size - seen.steps
    if rolled_back and found.where == "outside":
        return Finding(
            "rollback",
            "error",
            f"journal and inner head are an older state: {seen.steps} steps, the head kept "
            f"outside the root covers {found.head.size}",
            Place(file),
            _COPY,
        )
    return Finding(
        "cut-tail",
        "error",
        f"{gone} row(s) are missing at the end: {seen.steps} steps are here, the signed head "
        f"{found.where} the root covers {found.head.size}",
        Place(file, step=max(seen.steps - 1, 0)),
        _COPY,
    )


def _other_chain(found: SeenHead, file: str, *, broken: bool) -> Finding:
    assert found.head is not None
    size = found.head.size
    if broken:
        return Finding(
            "head-mismatch",
            "error",
            f"the first {size} row(s) are not the ones that the head {found.where} the root signs",
            Place(file, step=size - 1),
            "The findings above name the line",
        )
    return Finding(
        "chain-rewritten",
        "error",
        f"the chain verifies by itself but is not the one that was signed ({found.where} the "
        f"root, at {size} steps): it was rewritten as a whole",
        Place(file),
        _COPY,
    )


def check_bytes(
    seen: Gathered, heads: Sequence[SeenHead], blocks: Callable[[], Iterable[bytes]], file: str
) -> Iterator[Finding]:
    """No root covers what stands between and behind the rows: the signed bytes do.

    ``blocks`` gives the journal's bytes again.
    """
    if seen.errors:
        return
    for head in dict.fromkeys(found.head for found in heads if found.head is not None):
        digest, length = _digest(blocks(), head.length)
        if digest != head.bytes_sha256:
            what = "the rows are the signed ones, the bytes between them are not"
        elif head.size == seen.steps and length > head.length:
            what = f"{length - head.length} bytes that are no row follow the last signed one"
        else:
            continue
        yield Finding("raw-bytes-changed", "error", what, Place(file), _COPY)
        return


def _digest(blocks: Iterable[bytes], left: int) -> tuple[str, int]:
    """SHA-256 of the first ``left`` bytes, and how many there are in all."""
    sha, length = sha256(), 0
    for block in blocks:
        length += len(block)
        if left > 0:
            sha.update(block[:left])
            left -= len(block)
    return sha.hexdigest(), length


def check_expected(
    seen: Gathered, expected: str, file: str, coverage: Coverage
) -> Iterator[Finding]:
    """Findings from a head that the caller supplies (seed: "head mismatch")."""
    if expected == seen.head:
        coverage.steps = max(coverage.steps, seen.steps)
        coverage.sources += ("given",)
        return
    if seen.expected_at is not None:
        after = seen.steps - seen.expected_at
        what = f"the given head is that of step {seen.expected_at - 1}; {after} row(s) follow it"
        remedy = "Give the newest head, if the run was meant to grow"
    else:
        what = (
            f"the given head {expected[:16]}... is not the head of this chain "
            f"({seen.head[:16]}..., {seen.steps} steps) nor of any step: the tail was cut or "
            "the chain rewritten"
        )
        remedy = _COPY
    yield Finding("head-mismatch", "error", what, Place(file), remedy)


def no_head(file: str) -> Finding:
    """What a chain without any head outside it cannot show."""
    return note(
        "no-head",
        "no signed head of this run is here: a cut tail or a rewritten chain would not be seen",
        "A run gets its head a second after its first step and at close: this one was stopped "
        "before, or its heads were lost. Give --head if you kept one",
        file,
    )
