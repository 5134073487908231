"""A folded state as bytes and back, so that a later process need not fold from the beginning.

Lossless: what `decode` gives has the same canonical bytes and folds on to the same states. A
snapshot is a cache and never evidence: who keeps one binds it to the row it stands at, to
`fingerprint`, and to a secret (`playhead.store.snapshots`); one that does not fit is dropped and
the log is folded again, never migrated (design: "Snapshots").
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from playhead.core.encode import fast_bytes
from playhead.core.fold import Folded, resume
from playhead.core.model import JSON
from playhead.core.projection import Projection, checked, dump_state, fingerprint, load_dumped
from playhead.core.state import load_state
from playhead.errors import ValueRefused

OVERHEAD: Final = 512
"""Bytes that a kept snapshot takes besides its state, with room to spare."""


def encode(folded: Folded) -> bytes:
    """The core state and every projection's state as canonical JSON.

    Raises:
        ValueRefused: a projection has a state that is neither frozen JSON values nor has
            ``dump`` and ``load``: of this fold there are no snapshots. The message names it.
    """
    states: dict[str, JSON] = {}
    for one, state in zip(folded.projections, folded.states, strict=True):
        try:
            states[one.key] = dump_state(one, state)
        except ValueRefused as error:
            raise ValueRefused(
                f"no snapshot of the projection {one.key!r:.80}: {error.what}",
                remedy="Give it dump(state) and load(dumped), or make it with projection()",
            ) from None
    print_of = fingerprint(folded.projections)
    return fast_bytes({"set": print_of, "core": folded.state.dump(), "states": states})


def decode(data: bytes, projections: Iterable[Projection] = ()) -> Folded:
    """The fold that `encode` wrote, with the same projections in any order.

    Raises:
        ValueRefused: the bytes are no snapshot, or one of another reducer or other projections.
        UsageError, ReplayArgumentError: see `playhead.core.fold.start`.
    """
    chosen = checked(projections)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueRefused("no snapshot") from None
    match found:
        case {"set": str(print_of), "core": core, "states": dict(states)}:
            if print_of != fingerprint(chosen):
                raise ValueRefused("a snapshot of another reducer or of other projections")
            if states.keys() != {one.key for one in chosen}:
                raise ValueRefused("a snapshot with other states than its projections")
            loaded = tuple(_load(one, states[one.key]) for one in chosen)
            return resume(chosen, load_state(core), loaded)
    raise ValueRefused("no snapshot")


def _load(one: Projection, dumped: JSON) -> object:
    try:
        return load_dumped(one, dumped)
    except Exception as error:  # a projection's own code meets bytes that it may not know
        raise ValueRefused(
            f"the projection {one.key!r:.80} cannot read its state: {type(error).__name__}"
        ) from error


def worth_keeping(
    *, rows_since: int, log_bytes_since: int, snapshot_bytes: int, every: int = 256
) -> bool:
    """True when a snapshot of ``snapshot_bytes`` may be kept now: the write policy, all of it.

    A snapshot is kept only when the log has grown by at least as many bytes since the one before
    it, and by ``every`` rows. So all snapshots of a chat together never take more than its log,
    however the state grows; one of a small state comes every ``every`` rows, one of a state that
    holds the whole conversation each time the log has doubled.

    Ask it before encoding with the size of the last snapshot, which saves the encoding in nearly
    all cases, and again with the real size.

    Args:
        rows_since: rows since the last snapshot, or since the beginning.
        log_bytes_since: bytes of those rows.
        snapshot_bytes: bytes of the encoded state; `OVERHEAD` is added here.
        every: rows between two snapshots at least.
    """
    return rows_since >= every and log_bytes_since >= snapshot_bytes + OVERHEAD
