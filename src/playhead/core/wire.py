"""The canonical bytes of a folded state, and their digest: what "byte for byte" compares.

``{"core": <to_wire()>, "projections": {<key>: <view>}}`` in the ``step`` profile
(docs/reference/state.md). Nothing in it depends on the order of a dict, on a set or on Python's
hashes: what is no plain JSON value is refused.

The digest is taken over the digests of the parts, so that a part that did not change costs
nothing the second time. `StateBytes` remembers the parts of the last state it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TypeVar

from playhead.core.canonical import encode_step
from playhead.core.encode import fast_bytes
from playhead.core.fold import Folded
from playhead.core.model import JSON
from playhead.core.persistent import Vector, plain
from playhead.core.projection import Listed, Projection
from playhead.core.state import WIRE_NAMES, Records, record_wire
from playhead.errors import ValueRefused

_TAG = b"playhead/state/v1\0"

T = TypeVar("T")


def canonical_state(folded: Folded) -> bytes:
    """The canonical bytes of the core state and of what every projection shows.

    Raises:
        ValueRefused: a projection shows what is no plain JSON value; the message names it.
    """
    return StateBytes().canonical(folded)


def state_digest(folded: Folded) -> str:
    """SHA-256 hex of the state; equal for two states exactly when their canonical bytes are.

    It is SHA-256 over ``playhead/state/v1``, a zero byte, and the canonical bytes of ``{"core":
    {<part>: <digest>, ..., "eventCount": n}, "projections": {<key>: <digest>}}``, where a digest
    is the SHA-256 hex of the canonical bytes of that part.

    Raises:
        ValueRefused: as `canonical_state`.
    """
    return StateBytes().digest(folded)


class _Part:
    """One part of the last state: what it was made of, its bytes, its digest once asked for."""

    __slots__ = ("_digest", "data", "leaves", "of", "token")

    def __init__(
        self,
        of: object,
        data: bytes,
        leaves: dict[int, tuple[object, bytes]] | None = None,
        token: object = None,
    ) -> None:
        self.of = of
        self.data = data
        self.leaves = {} if leaves is None else leaves
        self.token = token
        self._digest = ""

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest = sha256(self.data).hexdigest()
        return self._digest


class StateBytes:
    """Canonical bytes and digests of one state after another.

    Parts that are the same objects as in the state before are not encoded again, and of a list
    only the pieces that changed are. It holds the bytes of one state, and is not thread-safe:
    one for each walk.
    """

    def __init__(self) -> None:
        self._core: dict[str, _Part] = {}
        self._views: dict[tuple[str, int], _Part] = {}

    def canonical(self, folded: Folded) -> bytes:
        """See `canonical_state`."""
        core = {name: part.data for name, part in self._core_parts(folded)}
        core["eventCount"] = b"%d" % folded.state.event_count
        views = {name: part.data for name, part in self._view_parts(folded)}
        return _object({"core": _object(core), "projections": _object(views)})

    def digest(self, folded: Folded) -> str:
        """See `state_digest`."""
        core: dict[str, JSON] = {name: part.digest for name, part in self._core_parts(folded)}
        core["eventCount"] = folded.state.event_count
        views = {name: part.digest for name, part in self._view_parts(folded)}
        return sha256(_TAG + fast_bytes({"core": core, "projections": views})).hexdigest()

    def _core_parts(self, folded: Folded) -> Iterator[tuple[str, _Part]]:
        for (name, id_name), records in zip(WIRE_NAMES, folded.state[:4], strict=True):
            part = self._core.get(name)
            if part is None or part.of is not records:
                part = _records(records, id_name, part)
                self._core[name] = part
            yield name, part

    def _view_parts(self, folded: Folded) -> Iterator[tuple[str, _Part]]:
        for one, state in zip(folded.projections, folded.states, strict=True):
            name = (one.key, id(one))  # the fold holds the projection
            part = self._views.get(name)
            if part is None or part.of is not state or _mutable(state):
                part = _view(one, state, part)
                self._views[name] = part
            yield one.key, part


def _mutable(state: object) -> bool:
    """An impure projection may have changed its own state in place: it is looked at again."""
    return not isinstance(state, (tuple, str, int, float, type(None)))


def _records(records: Records, id_name: str, before: _Part | None) -> _Part:
    return _list(records, records.items, lambda record: record_wire(record, id_name), None, before)


def _view(one: Projection, state: object, before: _Part | None) -> _Part:
    try:
        if isinstance(one, Listed):
            items, wire, token = one.listed(state)
            return _list(state, items, wire, token, before)
        return _Part(state, fast_bytes(plain(one.view(state))))
    except ValueRefused as error:
        raise ValueRefused(
            f"the projection {one.key!r:.80} shows no plain JSON value: {error.what}",
            remedy=error.remedy,
        ) from None


def _list(
    of: object,
    items: Vector[T],
    wire: Callable[[T], JSON],
    token: object,
    before: _Part | None,
) -> _Part:
    """A list's bytes from those of its pieces; ``token`` is what else the pieces depend on."""
    known = before.leaves if before is not None and before.token == token else {}
    leaves: dict[int, tuple[object, bytes]] = {}
    pieces: list[bytes] = []
    for leaf in items.leaves():
        found = known.get(id(leaf))
        if found is None or found[0] is not leaf:
            found = (leaf, b",".join([fast_bytes(plain(wire(item))) for item in leaf]))
        leaves[id(leaf)] = found  # the leaf is held, so its id stays its own
        pieces.append(found[1])
    return _Part(of, b"[" + b",".join(pieces) + b"]", leaves, token)


def _object(members: dict[str, bytes]) -> bytes:
    parts = [encode_step(name).encode("ascii") + b":" + members[name] for name in sorted(members)]
    return b"{" + b",".join(parts) + b"}"
