"""A handle opened where a snapshot stands (contract: "from_snapshot").

A snapshot is never believed beyond what was asked for: one that does not fit chat, tenant,
version, projections or log is refused, and no other state is shown in its place.
"""

from __future__ import annotations

from typing import Literal

from playhead.core.fold import Projection, fingerprint
from playhead.core.reducer import REDUCER_VERSION
from playhead.core.snapshot import decode, encode
from playhead.core.wire import state_digest
from playhead.errors import ReplayArgumentError, ReplayDivergenceError, ValueRefused
from playhead.replay.arguments import require_number
from playhead.replay.client import ReplayClient
from playhead.replay.facet import ReplayEvents
from playhead.replay.handle import ReplayHandle
from playhead.replay.persisted import row_at
from playhead.replay.portable import read_snapshot, start_of
from playhead.replay.window import Spot, check_row
from playhead.store.snapshots import Snapshot

SnapshotVerify = Literal["full", "digest"]


async def restore(
    client: ReplayClient,
    events: ReplayEvents,
    given: bytes | Snapshot,
    *,
    chat_id: str,
    tenant_id: str,
    full: bool,
    projections: tuple[Projection, ...],
) -> ReplayHandle:
    """See `ReplayRuntime.from_snapshot`."""
    snapshot, whole = _read(given)
    begin = _fitting(snapshot, chat_id, tenant_id, projections)
    handle = await client.from_event_log(
        chat_id,
        tenant_id=tenant_id,
        from_sequence_number=begin,
        projections=projections,
        verify="open" if full else "step",
    )
    try:
        if not whole:
            raise _other(handle, "the snapshot is not what was written: its digest is another")
        if handle.window.stop is not None and snapshot.sequence_number > handle.window.stop:
            raise _moved(handle, snapshot)
        if full:
            await _refolded(handle, snapshot)
        else:
            await _believed(handle, events, snapshot)
    except BaseException:
        await handle.close()
        raise
    return handle


def _read(given: object) -> tuple[Snapshot, bool]:
    if isinstance(given, Snapshot):
        return given, True
    if not isinstance(given, bytes):
        kind = type(given).__name__
        raise ReplayArgumentError("snapshot", f"must be bytes or a Snapshot, not {kind}")
    return read_snapshot(given)


def _fitting(
    snapshot: Snapshot, chat_id: str, tenant_id: str, projections: tuple[Projection, ...]
) -> int:
    """The row that the snapshot's fold begins behind.

    Raises:
        ReplayArgumentError: it is a snapshot of something else.
    """
    key = snapshot.key
    if (key.tenant_id, key.chat_id) != (tenant_id, chat_id):
        raise ReplayArgumentError("snapshot", "is of another tenant or chat")
    if key.reducer_version != REDUCER_VERSION:
        raise ReplayArgumentError("snapshot", "is of another reducer", remedy="Fold the log again")
    if key.fingerprint != fingerprint(projections):
        raise ReplayArgumentError(
            "snapshot", "is of other projections", remedy="Give the runtime the same projections"
        )
    begin = start_of(key.base)
    if begin is None:
        raise ReplayArgumentError("snapshot", "is of no base that there is")
    require_number("snapshot", snapshot.sequence_number, begin)
    return begin


async def _refolded(handle: ReplayHandle, snapshot: Snapshot) -> None:
    """Fold up to the snapshot's row and compare: the state shown is the one folded here.

    Raises:
        ReplayDivergenceError: the row is another ("chain"), or the state ("state").
    """
    await handle.seek(snapshot.sequence_number)
    number = snapshot.sequence_number
    if (handle.current_sequence_number(), handle.row_hash) != (number, snapshot.row_hash):
        raise _moved(handle, snapshot)
    here, there = handle.state_digest(), state_digest(_decoded(handle, snapshot).folded)
    if here != there or encode(handle.folded) != snapshot.state:
        what = f"the snapshot at event {number} holds another state than a full fold"
        raise _other(handle, what, here, there)


async def _believed(handle: ReplayHandle, events: ReplayEvents, snapshot: Snapshot) -> None:
    """Stand where the snapshot says, when the log still has its row.

    Raises:
        ReplayDivergenceError: the row is another, or not there ("chain").
        ReplayArgumentError: the snapshot is bound to no row.
    """
    number, begin = snapshot.sequence_number, handle.window.start
    if number > begin:
        if not snapshot.row_hash:
            raise ReplayArgumentError(
                "snapshot", "is bound to no row hash", remedy="Use verify='full'"
            )
        row = await row_at(events, handle.window, number)
        if row is None or row.row_hash != snapshot.row_hash:
            raise _moved(handle, snapshot)
        check_row(handle.window, Spot(number - 1, handle.folded), row)
    elif encode(handle.folded) != snapshot.state:
        raise _other(handle, "the snapshot before any row is not the zero state")
    handle._stand(_decoded(handle, snapshot), number)


def _decoded(handle: ReplayHandle, snapshot: Snapshot) -> Spot:
    try:
        folded = decode(snapshot.state, handle.folded.projections)
    except ValueRefused as error:
        raise _other(handle, f"the snapshot does not decode: {error.what}") from None
    return Spot(snapshot.sequence_number, folded, snapshot.row_hash)


def _moved(handle: ReplayHandle, snapshot: Snapshot) -> ReplayDivergenceError:
    number = snapshot.sequence_number
    what = f"the log has not the event {number} that the snapshot was taken behind"
    return handle.window.diverged("chain", what, number, snapshot.row_hash)


def _other(
    handle: ReplayHandle, what: str, expected: str = "", actual: str = ""
) -> ReplayDivergenceError:
    return handle.window.diverged("state", what, None, expected, actual)
