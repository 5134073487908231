"""The one chain walker: recovery, verify, receipts and fork all feed it lines.

It does no I/O and keeps O(1) memory. What a walk establishes, in order, for each line:

(1) the line is a JSON object with the fields a step needs;
(2) ``seq`` follows the row before;
(3) ``prev_hash`` is the step hash that the row before *stores*;
(4) the step hash recomputed from the row's own fields is the one it stores;
(5) a native row's envelope names the same ``seq`` (resolution 1).

One bad row gives its own findings and no cascade of hash faults, because the walk goes on
from the stored hash, as the reference reader does. What is left to the caller: comparing the
head with one kept outside (without that, a cut tail or a rewritten chain cannot be seen).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from playhead.core.breaks import Here, break_name, envelope_of, event_id
from playhead.core.model import GENESIS, JSON, Finding, Severity
from playhead.core.oddities import oddities
from playhead.core.quick import confirm
from playhead.core.recent import Recent
from playhead.core.rows import OVER_LIMIT, BadRow, Row, decode_row, missing_keys, shown, to_seq
from playhead.errors import Place

__all__ = ["CAP", "ChainWalker", "envelope_of", "event_id"]

CAP = 1000
"""Findings that are made; further ones are only counted, where the caller counts."""

_TORN_LINES = 16
"""Malformed lines at the end that may be a torn tail; more are damage of another kind."""

MOVE_ASIDE = "Keep the file for inspection and take the run from a copy that verifies"


class ChainWalker:
    """Feed it every line in order; ask it for the head and what it saw.

    ``on_finding`` receives each finding as it is made; with ``count`` the first `CAP` only, and
    ``count`` the severity of each further one. ``steps`` counts JSON objects, ``head``
    is the last stored hash, ``clean`` is True while no error was seen.
    """

    def __init__(
        self,
        on_finding: Callable[[Finding], None],
        *,
        file: str | None = None,
        strict: bool = False,
        count: Callable[[Severity], None] | None = None,
    ) -> None:
        self._emit = on_finding
        self._count = count
        self._said = 0
        self._file = file
        self._strict = strict
        self.expected_seq = 0
        self.head = GENESIS
        self.steps = 0
        self.blank = 0
        self.errors = 0
        self.native = 0
        self.run_uid: str | None = None
        self._tail: list[tuple[int, int, BadRow]] = []
        self._recent = Recent()
        self._previous_self_consistent = True

    @property
    def clean(self) -> bool:
        return self.errors == 0

    @property
    def malformed_tail(self) -> int:
        """The byte offset of the first line of a tail of malformed lines, or -1."""
        return self._tail[0][1] if self._tail else -1

    def feed(self, line_no: int, line: bytes, offset: int = -1) -> Row | None:
        """Take one line (without its newline). Returns the row, or None when it is none."""
        row = decode_row(line)
        if row.__class__ is not Row:
            if isinstance(row, BadRow):
                self.feed_bad(line_no, offset, row)
            else:
                self.blank += 1
            return None
        assert isinstance(row, Row)
        if self._tail:
            self._flush_tail(interior=True)
        obj = row.obj
        seq = obj.get("seq", -1)
        good = row.computed == row.stored_hash
        if not (good and row.stored_prev == self.head and seq == self.expected_seq):
            self._faults(line_no, offset, row, seq)
        elif not row.standard:
            self._tolerated(line_no, offset, row, seq)
        call = obj.get("tool_call")
        if call.__class__ is dict and call.get("v") == 1:
            self._envelope(line_no, offset, obj, call)
        number = seq if type(seq) is int else (to_seq(seq) if to_seq(seq) is not None else -1)
        self.expected_seq = number + 1  # type: ignore[operator]
        self.head = row.stored_hash
        self.steps += 1
        self._recent.add(number, row.stored_prev, row.stored_hash)  # type: ignore[arg-type]
        self._previous_self_consistent = good
        return row

    def feed_sure(self, lines: Sequence[bytes]) -> list[str]:
        """Take the leading lines in which `feed` would find nothing; returns their step hashes."""
        hashes: list[str] = []
        if not self._tail:
            native = confirm(lines, self.head, self.expected_seq, hashes)
            self.take(hashes, native)
        return hashes

    def follows(self, seq: int, prev: str) -> bool:
        """True when rows confirmed from ``seq`` behind ``prev`` on go on with this chain."""
        return seq == self.expected_seq and prev == self.head and not self._tail

    def take(self, hashes: Sequence[str], native: int) -> None:
        """Take rows that `confirm` confirmed and that follow, by their step hashes."""
        if hashes:
            self._recent.add_linked(self.expected_seq, self.head, hashes)
            self.expected_seq += len(hashes)
            self.steps += len(hashes)
            self.head = hashes[-1]
            self.native += native
            self._previous_self_consistent = True

    def feed_bad(self, line_no: int, offset: int, bad: BadRow) -> None:
        """A line that is no row, or could not even be held (too long)."""
        if bad.reason in OVER_LIMIT:
            self._flush_tail(interior=True)
            self._say(
                "row-over-limit",
                f"{bad.what}; no writer of this format makes such a row",
                line_no,
                offset,
                None,
                MOVE_ASIDE,
            )
            return
        self._tail.append((line_no, offset, bad))
        if len(self._tail) > _TORN_LINES:
            self._flush_tail(interior=True)

    def resume(self, size: int, head: str, run_uid: str | None, native: int) -> None:
        """Start behind ``size`` rows that are proven otherwise, the last hashing to ``head``."""
        self.expected_seq = size
        self.head = head
        self.run_uid = run_uid
        self.native = native

    def finish(self) -> None:
        """No more lines: malformed lines at the very end are a torn tail, not tampering."""
        self._flush_tail(interior=False)

    def _flush_tail(self, *, interior: bool) -> None:
        for line_no, offset, bad in self._tail:
            if interior:
                self._say(
                    "corrupt-row",
                    f"{bad.what} ({bad.reason}), and more lines follow it",
                    line_no,
                    offset,
                    None,
                    MOVE_ASIDE,
                )
            else:
                self._say(
                    "torn-tail",
                    f"{bad.what} ({bad.reason}); a writer stopped in the middle of this row",
                    line_no,
                    offset,
                    None,
                    "Open the run for writing: the fragment moves into a .torn file, no "
                    "acknowledged step is lost",
                )
        self._tail.clear()

    def _say(
        self,
        kind: str,
        what: str,
        line: int,
        offset: int,
        step: int | None,
        remedy: str,
        severity: Severity = "error",
    ) -> None:
        if severity == "error":
            self.errors += 1
        self._said += 1
        if self._said > CAP and self._count is not None:
            self._count(severity)
            return
        byte = offset if offset >= 0 else None
        self._emit(Finding(kind, severity, what, Place(self._file, line, byte, step), remedy))

    def _tolerated(self, line_no: int, offset: int, row: Row, seq: JSON) -> None:
        severity: Severity = "error" if self._strict else "warning"
        step = to_seq(seq)
        for kind, what, remedy in oddities(row):
            self._say(kind, what, line_no, offset, step, remedy, severity)

    def _faults(self, line_no: int, offset: int, row: Row, seq: JSON) -> None:
        number = to_seq(seq)
        if number is None:
            number = -1
            self._say("seq-not-a-number", f"seq is {shown(seq)}", line_no, offset, None, MOVE_ASIDE)
        elif not row.standard:
            self._tolerated(line_no, offset, row, seq)
        linked = row.stored_prev == self.head
        good = row.computed == row.stored_hash
        if number != self.expected_seq or not linked:
            here = Here(
                expected=self.expected_seq,
                head=self.head,
                steps=self.steps,
                native=self.native > 0,
                run_uid=self.run_uid,
                previous_good=self._previous_self_consistent,
                earlier=self._recent.get(number),
            )
            kind, what = break_name(here, row, number, linked=linked, good=good)
            self._say(kind, what, line_no, offset, number, MOVE_ASIDE)
        if not good:
            self._say(
                "step-hash-mismatch",
                f"its fields hash to {row.computed[:16]}..., it stores {row.stored_hash[:16]}...; "
                "a hashed field was changed",
                line_no,
                offset,
                number,
                MOVE_ASIDE,
            )
        lacks = missing_keys(row.obj)
        if "step_hash" in lacks:
            self._say("no-step-hash", "it has no step_hash", line_no, offset, number, MOVE_ASIDE)

    def _envelope(
        self, line_no: int, offset: int, obj: dict[str, JSON], call: dict[str, JSON]
    ) -> None:
        event = call.get("event")
        if event.__class__ is not str:
            return
        self.native += 1
        if call.get("seq") != obj.get("seq"):
            self._say(
                "envelope-seq-mismatch",
                f"seq is {shown(obj.get('seq'))}, the hashed envelope says "
                f"{shown(call.get('seq'))}",
                line_no,
                offset,
                to_seq(obj.get("seq")),
                "The envelope's seq is the proven one",
            )
        if event in ("run.started", "run.forked"):
            payload = call.get("payload")
            uid = payload.get("uid") if isinstance(payload, dict) else None
            self.run_uid = uid if isinstance(uid, str) else self.run_uid
