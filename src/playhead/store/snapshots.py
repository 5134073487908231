"""Folded states kept between processes, so that a seek in a long log starts near its place.

A cache and never evidence (docs/reference/state.md, "Snapshots"):

* keyed by tenant, chat, base, reducer version and the fingerprint of the projections, at one
  sequence number; the tenant comes first and has no default;
* bound to the hash of the row it stands behind: who uses one compares ``row_hash`` with that row
  of the chain before showing anything, and drops a snapshot whose row is another;
* authenticated by an HMAC under a secret of the state directory: who can write the cache, or
  the store that it lies beside, cannot plant a state;
* whatever is not exactly what was put is dropped, counted, and answered as "there is none".
"""

from __future__ import annotations

import hmac
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal, Protocol

from playhead.core.encode import fast_bytes
from playhead.core.reducer import REDUCER_VERSION
from playhead.store.keys import KeyRing
from playhead.store.scope import check_scope

MAX_STATE: Final = 64 * 1024 * 1024
"""Bytes of an encoded state; a larger one is not kept."""

_SECRET_NAME: Final = "playhead\0snapshots"
_TAG: Final = b"playhead/snapshot/v1\0"


@dataclass(frozen=True, slots=True)
class SnapshotKey:
    """Whose fold it is. ``base`` is where the fold began: `zero_base` or ``"prefix"``.

    Raises:
        UsageError: a blank tenant or chat, or one that no store can hold.
    """

    tenant_id: str
    chat_id: str
    base: str
    fingerprint: str
    reducer_version: int = REDUCER_VERSION

    def __post_init__(self) -> None:
        check_scope(self.tenant_id, self.chat_id)


def zero_base(from_sequence_number: int) -> str:
    """The base of a fold that starts from the zero state behind a row (0: the whole log)."""
    return f"zero@{from_sequence_number}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state behind row ``sequence_number``, whose hash is ``row_hash``.

    ``state`` is what `playhead.core.snapshot.encode` gave; ``log_bytes`` the bytes of the log up
    to that row, which the write policy needs (`playhead.core.snapshot.worth_keeping`).
    """

    key: SnapshotKey
    sequence_number: int
    row_hash: str
    state: bytes = field(repr=False)
    log_bytes: int = 0


@dataclass(slots=True)
class SnapshotStats:
    """What became of snapshots since this store was opened. ``dropped`` were not what was put,
    ``failed`` counts the times that the place they lie in did not answer."""

    found: int = 0
    missed: int = 0
    kept: int = 0
    refused: int = 0
    dropped: int = 0
    failed: int = 0


class SnapshotStore(Protocol):
    """Where snapshots are kept. Blocking and thread-safe. No method raises for what it finds or
    for a disk that does not answer: a cache that is gone is an empty one, and is counted."""

    @property
    def stats(self) -> SnapshotStats: ...

    def nearest(self, key: SnapshotKey, at_or_below: int) -> Snapshot | None:
        """The latest snapshot at or below a sequence number; what does not hold is dropped and
        the one before it is looked at."""
        ...

    def put(self, snapshot: Snapshot) -> bool:
        """Keep a snapshot; False when it is too large or could not be written."""
        ...

    def drop(self, key: SnapshotKey, sequence_number: int | None = None) -> None:
        """Remove one snapshot, or all of a fold. For who finds that one does not fit the log."""
        ...

    def forget(self, tenant_id: str, chat_id: str) -> int:
        """Remove every snapshot of a chat, whatever its base and version; returns how many.

        Raises:
            UsageError: a blank tenant or chat.
        """
        ...

    def close(self) -> None: ...


def snapshot_secret(ring: KeyRing) -> bytes:
    """The secret that snapshots are authenticated with, made at its first use.

    Raises:
        Refused: others can read it. WriteFailed: it could not be made.
    """
    found = ring.run_secret(_SECRET_NAME, create=True)
    assert found is not None
    return found


def mac_of(secret: bytes, snapshot: Snapshot) -> bytes:
    """HMAC-SHA256 over everything that a snapshot says."""
    key = snapshot.key
    said = [
        key.tenant_id,
        key.chat_id,
        key.base,
        key.fingerprint,
        key.reducer_version,
        snapshot.sequence_number,
        snapshot.row_hash,
        snapshot.log_bytes,
        sha256(snapshot.state).hexdigest(),
    ]
    return hmac.digest(secret, _TAG + fast_bytes(said), "sha256")


def holds(secret: bytes, snapshot: Snapshot, mac: object) -> bool:
    """True when ``mac`` is that of ``snapshot``. Takes the same time whatever is wrong."""
    return isinstance(mac, bytes) and hmac.compare_digest(mac_of(secret, snapshot), mac)


_Place = tuple[SnapshotKey, int]


class MemorySnapshots:
    """Snapshots of this process. Nobody else can write them; they are checked all the same.

    Args:
        secret: 32 bytes that nobody else has.
        most: snapshots that are kept; the one that was put first goes first.
    """

    def __init__(self, secret: bytes, most: int = 4096) -> None:
        self._secret = secret
        self._most = most
        self._stats = SnapshotStats()
        self._held: dict[_Place, tuple[Snapshot, bytes]] = {}
        self._lock = threading.Lock()

    @property
    def stats(self) -> SnapshotStats:
        return self._stats

    def nearest(self, key: SnapshotKey, at_or_below: int) -> Snapshot | None:
        with self._lock:
            numbers = sorted(number for known, number in self._held if known == key)
            for number in reversed(numbers[: bisect_right(numbers, at_or_below)]):
                snapshot, mac = self._held[key, number]
                same = snapshot.key == key and snapshot.sequence_number == number
                if same and holds(self._secret, snapshot, mac):
                    self._stats.found += 1
                    return snapshot
                del self._held[key, number]
                self._stats.dropped += 1
            self._stats.missed += 1
            return None

    def put(self, snapshot: Snapshot) -> bool:
        if len(snapshot.state) > MAX_STATE:
            self._stats.refused += 1
            return False
        mac = mac_of(self._secret, snapshot)
        with self._lock:
            self._held[snapshot.key, snapshot.sequence_number] = (snapshot, mac)
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
            self._stats.kept += 1
        return True

    def drop(self, key: SnapshotKey, sequence_number: int | None = None) -> None:
        with self._lock:
            for place in self._places(key, sequence_number):
                del self._held[place]
                self._stats.dropped += 1

    def forget(self, tenant_id: str, chat_id: str) -> int:
        check_scope(tenant_id, chat_id)
        with self._lock:
            mine = [p for p in self._held if (p[0].tenant_id, p[0].chat_id) == (tenant_id, chat_id)]
            for place in mine:
                del self._held[place]
        return len(mine)

    def _places(self, key: SnapshotKey, number: int | None) -> Iterator[_Place]:
        yield from [p for p in self._held if p[0] == key and number in (None, p[1])]

    def close(self) -> None:
        with self._lock:
            self._held.clear()


SnapshotMode = Literal["off", "use", "verify"]
"""Whether a handle uses snapshots; "verify" folds again and compares (design: "Snapshots")."""
