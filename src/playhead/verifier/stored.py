"""Verify a chain where it is stored, as it is at one moment.

The rows are frozen first, so a process that goes on appending changes no answer, and the row it
is just writing is no torn tail. Walk, heads and verdict are those of `playhead.verifier.api`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from playhead.core.model import Report
from playhead.core.rows import BadRow
from playhead.core.sign import PublicKey
from playhead.store.keys import KeyRing, state_dir
from playhead.store.reader import Batch
from playhead.store.stores import ChainRef, Lines, Store
from playhead.verifier.api import judge
from playhead.verifier.heads import require_head
from playhead.verifier.walk import gather

_ROWS = 2048


def verify_stored(
    store: Store,
    ref: ChainRef,
    *,
    ring: KeyRing | None = None,
    expected_head: str | None = None,
    keys: Sequence[PublicKey] = (),
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """The verdict over the chain ``ref``, against the signed heads beside and outside the store.

    Args:
        expected_head: the head you expect, as 64 hex digits.
        keys: public keys trusted for signed heads besides the user's own.

    Raises:
        UsageError: ``expected_head`` is no head. NotFound, StoreError, Unreadable: no such chain.
    """
    require_head(expected_head)
    ring = ring or KeyRing(state_dir())
    # The heads are read before the rows, so that none of them is newer than the rows are.
    heads = store.heads(ref).read([*ring.trusted(), *keys])
    lines = store.lines(ref)
    try:
        seen = gather(
            batches(lines),
            file=ref.where,
            sizes=[found.head.size for found in heads if found.head],
            expected_head=expected_head,
            strict=strict,
            progress=progress,
        )
        return judge(ref.run_id, ref.where, seen, heads, expected_head, lines.blocks)
    finally:
        lines.close()


def batches(lines: Lines) -> Iterator[Batch]:
    """The rows many at a time, as the walk takes them; where there are no offsets, those that the
    rows have in a journal."""
    held: list[bytes] = []
    first = at = 0  # the line number and the offset of what is held
    next_number = next_at = 0
    for number, offset, line in lines.walk(0, None):
        start = next_at if offset < 0 else offset
        follows = number == next_number and start == next_at
        if held and (isinstance(line, BadRow) or not follows or len(held) >= _ROWS):
            yield first, at, held
            held = []
        if isinstance(line, BadRow):
            yield number, start, line
            next_number, next_at = number + 1, start
            continue
        if not held:
            first, at = number, start
        held.append(line)
        next_number, next_at = number + 1, start + len(line) + 1
    if held:
        yield first, at, held
