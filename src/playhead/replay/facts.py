"""What two copies of a chain must agree in: rows, head, root and the state they replay to."""

from __future__ import annotations

from dataclasses import dataclass

from playhead.core.merkle import Frontier, leaf_hash
from playhead.core.model import GENESIS
from playhead.core.projections import BUILT_IN
from playhead.core.rows import BadRow, Row, decode_row
from playhead.replay.run import Run
from playhead.replay.runstates import RunEvents
from playhead.replay.sync import SyncReplayClient
from playhead.store.stores import ChainRef, Store

_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Facts:
    """``store`` is where it lies (no password), ``head`` the last step hash, ``root`` the RFC 6962
    root over the raw rows, ``state`` the digest of core state and every built-in projection."""

    store: str
    rows: int
    head: str
    root: str
    state: str

    def same(self, other: Facts) -> bool:
        """True when all but the place agrees."""
        mine = (self.rows, self.head, self.root, self.state)
        return mine == (other.rows, other.head, other.root, other.state)


class _Runtime:
    def __init__(self, run: Run) -> None:
        self.events = RunEvents(run)


def facts(store: Store, ref: ChainRef, upto: int | None = None) -> Facts:
    """Read a chain, or its first ``upto`` rows, and replay it, in memory that does not grow with
    the number of rows.

    Raises:
        NotFound, StoreError, Unreadable: it is not there, or the store does not answer.
    """
    lines = store.lines(ref)
    tree = Frontier()
    head = GENESIS
    leaves: list[bytes] = []
    last: bytes | BadRow = b""
    try:
        for _, _, line in lines.walk(0, upto):
            leaves.append(leaf_hash(b"" if isinstance(line, BadRow) else line))
            if len(leaves) == _ROWS:
                tree.extend(leaves)
                leaves.clear()
            last = line
        tree.extend(leaves)
        if tree.size:
            row = None if isinstance(last, BadRow) else decode_row(last)
            head = row.stored_hash if isinstance(row, Row) else ""
    finally:
        lines.close()
    return Facts(store.url, tree.size, head, tree.root().hex(), _state(store, ref, tree.size))


def _state(store: Store, ref: ChainRef, rows: int) -> str:
    with Run.stored(store, ref) as run, SyncReplayClient(_Runtime(run)) as client:
        handle = client.from_event_log(
            ref.chat_id,
            tenant_id=ref.tenant_id,
            up_to_sequence_number=rows,
            projections=BUILT_IN,
            verify="off",
            snapshots="off",
            unreadable="count",
        )
        with handle:
            handle.seek(rows)
            return handle.state_digest()
