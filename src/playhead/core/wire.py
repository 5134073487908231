"""The canonical bytes of a folded state, and its digest: what "byte for byte" compares.

``{"core": <to_wire()>, "projections": {<key>: <view>}}`` in the ``step`` profile
(docs/reference/state.md). Nothing in it depends on the order of a dict, on a set or on Python's
hashes: what is no plain JSON value is refused.

The digest is a tree over the parts of that value, so that of two states that follow one another
only the difference is hashed: a part that is the same object has the same digest, and of a list
only the pieces that changed are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import TypeVar

from playhead.core.encode import fast_bytes
from playhead.core.fold import Folded
from playhead.core.model import JSON
from playhead.core.persistent import Vector, plain
from playhead.core.projection import Listed, Projection
from playhead.core.state import WIRE_NAMES, record_wire
from playhead.core.sums import Sums
from playhead.errors import ValueRefused

PIECE = 32
"""Members of a list that are hashed together: the width of a `Vector`'s leaves."""

_STATE = b"playhead/state/v1\0"
_LIST = b"playhead/state-list/v1\0"

T = TypeVar("T")


def canonical_state(folded: Folded) -> bytes:
    """The canonical bytes of the core state and of what every projection shows.

    Raises:
        ValueRefused: a projection shows what is no plain JSON value; the message names it.
    """
    views: dict[str, JSON] = {}
    for one, state in zip(folded.projections, folded.states, strict=True):
        views[one.key] = _shown(one, state)
    return fast_bytes({"core": folded.state.to_wire(), "projections": views})


def state_digest(folded: Folded) -> str:
    """SHA-256 hex of the state; equal for two states exactly when their canonical bytes are.

    It is SHA-256 over ``playhead/state/v1``, a zero byte, and the canonical bytes of ``{"core":
    {<part>: <digest>, ..., "eventCount": n}, "projections": {<key>: <digest>}}``. The digest of
    a list is SHA-256 over ``playhead/state-list/v1``, a zero byte, and the 32-byte digests of
    its pieces of 32 members; of a piece and of everything else it is that of the canonical bytes.

    Raises:
        ValueRefused: as `canonical_state`.
    """
    return StateDigests().digest(folded)


class StateDigests:
    """`state_digest` of one state after another, at the cost of what changed between them.

    It remembers the digests of the last state, and is not thread-safe: one for each walk.
    """

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}

    def digest(self, folded: Folded) -> str:
        """See `state_digest`."""
        core: dict[str, JSON] = {"eventCount": folded.state.event_count}
        for (name, id_name), records in zip(WIRE_NAMES, folded.state[:4], strict=True):
            part = self._parts.get(name)
            if part is None or part.of is not records:
                part = _list(records, records.items, _record(id_name), None, part)
                self._parts[name] = part
            core[name] = part.digest
        views: dict[str, JSON] = {}
        for one, state in zip(folded.projections, folded.states, strict=True):
            name = f"projections/{one.key}"
            part = self._parts.get(name)
            if part is None or not part.holds(one, state):
                part = _view(one, state, part)
                self._parts[name] = part
            views[one.key] = part.digest
        said = fast_bytes({"core": core, "projections": views})
        return sha256(_STATE + said).hexdigest()


class _Part:
    """One part of the last state: what it was made of, its digest and those of its pieces,
    handed on from part to part."""

    __slots__ = ("by", "digest", "of", "pieces", "token")

    def __init__(
        self,
        of: object,
        digest: str,
        pieces: Sums | None = None,
        token: object = None,
    ) -> None:
        self.of = of
        self.by: Projection | None = None
        self.digest = digest
        self.pieces = {} if pieces is None else pieces
        self.token = token

    def holds(self, one: Projection, state: object) -> bool:
        """True when this is ``state`` and ``one`` cannot have changed it in place since."""
        fixed = isinstance(state, (tuple, str, int, float, type(None)))
        return self.of is state and self.by is one and fixed


def _record(id_name: str) -> Callable[[object], JSON]:
    return lambda record: record_wire(record, id_name)  # type: ignore[arg-type]


def _shown(one: Projection, state: object) -> JSON:
    try:
        return plain(one.view(state))
    except ValueRefused as error:
        raise ValueRefused(
            f"the projection {one.key!r:.80} shows no plain JSON value: {error.what}",
            remedy=error.remedy,
        ) from None


def _view(one: Projection, state: object, before: _Part | None) -> _Part:
    if isinstance(one, Listed):
        items, wire, token = one.listed(state)
        made = _list(state, items, wire, token, before)
    else:
        shown = _shown(one, state)
        if isinstance(shown, list):
            made = _Part(state, _joined(_piece(members) for members in _pieces(shown)))
        else:
            made = _Part(state, sha256(fast_bytes(shown)).hexdigest())
    made.by = one
    return made


def _list(
    of: object,
    items: Vector[T],
    wire: Callable[[T], JSON],
    token: object,
    before: _Part | None,
) -> _Part:
    """A list's digest from those of its pieces; ``token`` is what else the pieces depend on."""
    known: Sums = {} if before is None or before.token != token else before.pieces

    def digest(leaf: tuple[T, ...]) -> bytes:
        return _piece([plain(wire(item)) for item in leaf])

    said = sha256(_LIST + items.summed(digest, known)).hexdigest()
    return _Part(of, said, known, token)


def _pieces(members: list[JSON]) -> Iterator[list[JSON]]:
    rest = iter(members)
    while piece := list(islice(rest, PIECE)):
        yield piece


def _piece(members: list[JSON]) -> bytes:
    return sha256(fast_bytes(members)).digest()


def _joined(digests: Iterable[bytes]) -> str:
    return sha256(_LIST + b"".join(digests)).hexdigest()
