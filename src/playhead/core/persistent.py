"""Values that share their structure: each change gives a new one and leaves the old as it was.

A state is kept for many steps of a run at once, so stepping back is taking an older value,
not computing one. Appending, replacing and looking up cost O(log n) time and new memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from types import MappingProxyType
from typing import Generic, TypeVar

from playhead.core.model import JSON
from playhead.core.sums import BITS, Sums, summed
from playhead.errors import ValueRefused

T = TypeVar("T")

_BITS = BITS
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1
_MAX_FROZEN_DEPTH = 96
_SUMS = 1024
_PLAIN = "Use None, bool, int, float, str, lists, and dicts with text for names"

SCALARS = frozenset((str, int, float, bool, type(None)))
"""Types of the values that nobody can change."""
TOO_DEEP = "nested too deeply to be shown"
"""What `freeze` puts in place of a value below 96 levels."""

# A tree node: 32 children, or up to 32 values at the lowest level. mypy cannot say that.
_Node = tuple[object, ...]


class Vector(Generic[T]):
    """An immutable sequence: a tree of 32-wide tuples, and its last up to 32 values beside it."""

    __slots__ = ("_root", "_shift", "_size", "_tail")

    def __init__(
        self, size: int = 0, shift: int = 0, root: _Node = (), tail: tuple[T, ...] = ()
    ) -> None:
        self._size = size
        self._shift = shift
        self._root = root
        self._tail = tail

    @classmethod
    def of(cls, values: Iterable[T]) -> Vector[T]:
        """All of ``values``; the same as appending each."""
        made: Vector[T] = Vector()
        chunk = iter(values)
        while leaf := tuple(islice(chunk, _WIDTH)):
            made = made._grown(leaf)
        return made

    def append(self, value: T) -> Vector[T]:
        """One longer, with ``value`` at the end."""
        tail = self._tail
        if len(tail) < _WIDTH:
            return Vector(self._size + 1, self._shift, self._root, (*tail, value))
        return self._grown((value,))

    def _grown(self, tail: tuple[T, ...]) -> Vector[T]:
        """With the full tail put into the tree, and a new one."""
        size, shift, root = self._size, self._shift, self._root
        if size:
            before = size - _WIDTH
            if before == _WIDTH << shift:
                root, shift = (root, _path(shift, self._tail)), shift + _BITS
            else:
                root = _put_leaf(root, shift, before, self._tail)
        return Vector(size + len(tail), shift, root, tail)

    def replace(self, index: int, value: T) -> Vector[T]:
        """The same length, with ``value`` at ``index``.

        Raises:
            IndexError: there is no such place.
        """
        if not 0 <= index < self._size:
            raise IndexError(index)
        tail, start = self._tail, self._size - len(self._tail)
        if index >= start:
            at = index - start
            return Vector(self._size, self._shift, self._root, (*tail[:at], value, *tail[at + 1 :]))
        return Vector(self._size, self._shift, _put(self._root, self._shift, index, value), tail)

    def __getitem__(self, index: int) -> T:
        size = self._size
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError(index)
        start = size - len(self._tail)
        if index >= start:
            return self._tail[index - start]
        node = self._root
        shift = self._shift
        while shift:
            node = node[(index >> shift) & _MASK]  # type: ignore[assignment]
            shift -= _BITS
        return node[index & _MASK]  # type: ignore[return-value]

    def leaves(self) -> Iterator[tuple[T, ...]]:
        """The values in pieces of up to 32; a piece that did not change is the same object."""
        if self._size > len(self._tail):
            yield from _leaves(self._root, self._shift)
        if self._tail:
            yield self._tail

    def summed(self, leaf: Callable[[tuple[T, ...]], bytes], known: Sums) -> bytes:
        """``leaf`` of every piece, joined; what ``known`` has of a part is not asked again.

        ``known`` is filled on the way and thinned out when most of it is of parts that are gone.
        """
        inner = self._size > len(self._tail)
        parts = ((self._root, self._shift),) if inner else ()
        return summed((*parts, (self._tail, 0)), leaf, known, _SUMS + self._size // 8)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.leaves())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        if self is other:
            return True
        return (self._size, self._tail, self._root) == (other._size, other._tail, other._root)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vector({list(self)!r})"


def _path(shift: int, leaf: _Node) -> _Node:
    node = leaf
    while shift:
        node = (node,)
        shift -= _BITS
    return node


def _put_leaf(node: _Node, shift: int, index: int, leaf: _Node) -> _Node:
    """With ``leaf`` behind the last one; the place of its first value is ``index``."""
    if not shift:
        return leaf
    at = (index >> shift) & _MASK
    if at < len(node):
        child = _put_leaf(node[at], shift - _BITS, index, leaf)  # type: ignore[arg-type]
    else:
        child = _path(shift - _BITS, leaf)
    return (*node[:at], child)


def _put(node: _Node, shift: int, index: int, value: object) -> _Node:
    at = (index >> shift) & _MASK
    child = _put(node[at], shift - _BITS, index, value) if shift else value  # type: ignore[arg-type]
    return (*node[:at], child, *node[at + 1 :])


def _leaves(node: _Node, shift: int) -> Iterator[tuple[T, ...]]:
    if shift:
        for child in node:
            yield from _leaves(child, shift - _BITS)  # type: ignore[arg-type]
    else:
        yield node  # type: ignore[misc]


class Index:
    """An immutable map from text to its place: the first text added has place 0.

    All versions of one history share two dicts that only grow; a version sees the places below
    its own size. Who adds to an older version either repeats what the history says already, and
    shares it, or gets a history of its own, at the cost of a copy. ``setdefault`` decides whose
    a place is, in one step, so that this also holds between threads.
    """

    __slots__ = ("_owners", "_places", "_size")

    def __init__(
        self,
        size: int = 0,
        places: dict[str, int] | None = None,
        owners: dict[int, str] | None = None,
    ) -> None:
        self._size = size
        self._places: dict[str, int] = {} if places is None else places
        self._owners: dict[int, str] = {} if owners is None else owners

    @classmethod
    def of(cls, keys: Iterable[str]) -> Index:
        """Each of ``keys`` once, in the order in which they come first."""
        places: dict[str, int] = {}
        for key in keys:
            places.setdefault(key, len(places))
        return cls(len(places), places, dict(enumerate(places)))

    def get(self, key: str) -> int | None:
        """The place of ``key``, or None."""
        at = self._places.get(key)
        return None if at is None or at >= self._size else at

    def key(self, place: int) -> str:
        """The text at ``place``.

        Raises:
            IndexError: there is no such place.
        """
        if not 0 <= place < self._size:
            raise IndexError(place)
        return self._owners[place]

    def add(self, key: str) -> Index:
        """With ``key``, which must not be in it yet, at the next place."""
        size, places, owners = self._size, self._places, self._owners
        if not size:  # the empty one is everybody's and stays empty
            return Index(1, {key: 0}, {0: key})
        if owners.setdefault(size, key) != key:
            kept = [owners[place] for place in range(size)]
            return Index.of([*kept, key])
        places[key] = size
        return Index(size + 1, places, owners)

    def __len__(self) -> int:
        return self._size


def freeze(value: JSON, depth: int = 0) -> JSON:
    """A JSON value that nobody can change: objects as read-only views, lists as tuples.

    What is nested deeper than any recorded value may be is `TOO_DEEP` in its place: a fixed
    rule, because how far Python recurses differs from place to place.
    """
    if value.__class__ in SCALARS:
        return value
    if isinstance(value, (dict, MappingProxyType)):
        if depth >= _MAX_FROZEN_DEPTH:
            return TOO_DEEP
        return MappingProxyType({key: freeze(item, depth + 1) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        if depth >= _MAX_FROZEN_DEPTH:
            return TOO_DEEP
        return tuple([freeze(item, depth + 1) for item in value])
    return value


def thaw(value: JSON) -> JSON:
    """A frozen value as plain dicts and lists, for an encoder."""
    if isinstance(value, (dict, MappingProxyType)):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def plain(value: JSON, depth: int = 0) -> JSON:
    """`thaw` for a value of somebody else's making: only what JSON has, and names are text.

    Raises:
        ValueRefused: a set, an object, a name that is no text, or nesting deeper than `freeze`
            leaves. The message names the type and never the value.
    """
    kind = value.__class__
    if kind in SCALARS:
        return value
    if depth > _MAX_FROZEN_DEPTH:
        raise ValueRefused("it is nested too deeply", remedy=_PLAIN)
    if kind is dict or kind is MappingProxyType:
        assert isinstance(value, (dict, MappingProxyType))
        for key in value:
            if key.__class__ is not str:
                raise ValueRefused(f"a name is {type(key).__name__}, not text", remedy=_PLAIN)
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if kind is list or kind is tuple:
        assert isinstance(value, (list, tuple))
        return [plain(item, depth + 1) for item in value]
    raise ValueRefused(f"a {kind.__name__} has no JSON form", remedy=_PLAIN)
