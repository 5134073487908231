"""A snapshot that leaves the process: where a handle stands, as one document of bytes.

It is JSON: ``{"format": "playhead/snapshot/v1", "sha256": <hex>, "snapshot": {...}}``, the digest
taken over the canonical bytes of ``snapshot``, which holds tenant, chat, base, reducer version,
fingerprint of the projections, sequence number, row hash and the state
(`playhead.core.snapshot`). The digest finds damage. It does not prove who made the document:
only folding again does, which is what `from_snapshot` does by default.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from playhead.core.encode import fast_bytes
from playhead.core.fold import fingerprint
from playhead.core.model import JSON
from playhead.core.reducer import REDUCER_VERSION
from playhead.core.snapshot import encode
from playhead.errors import ReplayArgumentError, UsageError, ValueRefused
from playhead.replay.window import Spot, Window
from playhead.store.snapshots import MAX_STATE, Snapshot, SnapshotKey, zero_base

FORMAT: Final = "playhead/snapshot/v1"
_MOST: Final = MAX_STATE + 65_536
"""Bytes of a document."""


def base_of(window: Window) -> str:
    """Where the fold of a handle over ``window`` begins; one over a prefix begins at the zero
    state of the whole log."""
    return zero_base(0 if window.base == "prefix" else window.start)


def start_of(base: str) -> int | None:
    """The row that a fold from the zero state begins behind; None for no such base."""
    if base == "prefix":
        return 0
    word, _, number = base.partition("@")
    if word != "zero" or not number.isascii() or not number.isdigit() or len(number) > 16:
        return None
    return int(number)


def write_snapshot(window: Window, spot: Spot) -> bytes:
    """``spot`` as a document.

    Raises:
        ValueRefused: a projection's state cannot be kept; the message names it.
    """
    body: dict[str, JSON] = {
        "tenant_id": window.tenant_id,
        "chat_id": window.chat_id,
        "base": base_of(window),
        "reducer_version": REDUCER_VERSION,
        "fingerprint": fingerprint(spot.folded.projections),
        "sequence_number": spot.number,
        "row_hash": spot.row_hash,
        "state": json.loads(encode(spot.folded)),
    }
    return fast_bytes({"format": FORMAT, "sha256": _digest(body), "snapshot": body})


def read_snapshot(data: bytes) -> tuple[Snapshot, bool]:
    """What a document says, and whether its digest holds.

    Raises:
        ReplayArgumentError: the bytes are no such document.
    """
    if len(data) > _MOST:
        raise _no_snapshot(f"is over {_MOST} bytes")
    try:
        found = json.loads(data)
        match found:
            case {"format": str(kind), "sha256": str(digest), "snapshot": dict(body)}:
                if kind != FORMAT:
                    raise _no_snapshot("is of another version of this format")
                return _snapshot(body), digest == _digest(body)
    except (ValueRefused, RecursionError, ReplayArgumentError, ValueError) as error:
        if isinstance(error, ReplayArgumentError):
            raise
        raise _no_snapshot("is damaged") from None
    raise _no_snapshot("is no snapshot")


def _snapshot(body: dict[str, JSON]) -> Snapshot:
    match body:
        case {
            "tenant_id": str(tenant),
            "chat_id": str(chat),
            "base": str(base),
            "reducer_version": int(version),
            "fingerprint": str(print_of),
            "sequence_number": int(number),
            "row_hash": str(row_hash),
            "state": dict(state),
        }:
            try:
                key = SnapshotKey(tenant, chat, base, print_of, version)
            except UsageError:
                raise _no_snapshot("is of no tenant or chat") from None
            return Snapshot(key, number, row_hash, fast_bytes(state))
    raise _no_snapshot("lacks what a snapshot must have")


def _digest(body: dict[str, JSON]) -> str:
    return sha256(FORMAT.encode() + b"\0" + fast_bytes(body)).hexdigest()


def _no_snapshot(what: str) -> ReplayArgumentError:
    return ReplayArgumentError("snapshot", what, remedy="Give what handle.snapshot() returned")
