"""Values that share their structure: each change gives a new one and leaves the old as it was.

A state is kept for many steps of a run at once, so stepping back is taking an older value,
not computing one. Appending, replacing and looking up cost O(log n) time and new memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from playhead.core.canonical import encode_step
from playhead.core.model import JSON

T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1
_MAX_FROZEN_DEPTH = 96

# A tree node: 32 children, or up to 32 values at the lowest level. mypy cannot say that.
_Node = tuple[object, ...]


class Vector(Generic[T]):
    """An immutable sequence as a tree of 32-wide tuples."""

    __slots__ = ("_root", "_shift", "_size")

    def __init__(self, size: int = 0, shift: int = 0, root: _Node = ()) -> None:
        self._size = size
        self._shift = shift
        self._root = root

    def append(self, value: T) -> Vector[T]:
        """One longer, with ``value`` at the end."""
        if self._size == _WIDTH << self._shift:
            root: _Node = (self._root, _path(self._shift, value))
            return Vector(self._size + 1, self._shift + _BITS, root)
        root = _put(self._root, self._shift, self._size, value)
        return Vector(self._size + 1, self._shift, root)

    def replace(self, index: int, value: T) -> Vector[T]:
        """The same length, with ``value`` at ``index``.

        Raises:
            IndexError: there is no such place.
        """
        if not 0 <= index < self._size:
            raise IndexError(index)
        return Vector(self._size, self._shift, _put(self._root, self._shift, index, value))

    def __getitem__(self, index: int) -> T:
        if index < 0:
            index += self._size
        if not 0 <= index < self._size:
            raise IndexError(index)
        node = self._root
        shift = self._shift
        while shift:
            node = node[(index >> shift) & _MASK]  # type: ignore[assignment]
            shift -= _BITS
        return node[index & _MASK]  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return _leaves(self._root, self._shift)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        return self is other or (self._size == other._size and self._root == other._root)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vector({list(self)!r})"


def _path(shift: int, value: object) -> _Node:
    node: _Node = (value,)
    while shift:
        node = (node,)
        shift -= _BITS
    return node


def _put(node: _Node, shift: int, index: int, value: object) -> _Node:
    at = (index >> shift) & _MASK
    if not shift:
        child: object = value
    elif at < len(node):
        child = _put(node[at], shift - _BITS, index, value)  # type: ignore[arg-type]
    else:
        child = _path(shift - _BITS, value)
    return (*node[:at], child, *node[at + 1 :])


def _leaves(node: _Node, shift: int) -> Iterator[T]:
    if shift:
        for child in node:
            yield from _leaves(child, shift - _BITS)  # type: ignore[arg-type]
    else:
        yield from node  # type: ignore[misc]


class Index:
    """An immutable map from text to a number: a tree over the hash, 32 ways a level.

    Python's text hash differs from process to process, so the order inside does too; nothing
    here can be iterated, and no result depends on it.
    """

    __slots__ = ("_root",)

    def __init__(self, root: Mapping[int, object] | None = None) -> None:
        self._root = root or {}

    def get(self, key: str) -> int | None:
        """The number of ``key``, or None."""
        node: object = self._root
        digest = hash(key)
        while isinstance(node, dict):
            node = node.get(digest & _MASK)
            digest >>= _BITS
        if isinstance(node, tuple):
            for known, number in node:
                if known == key:
                    return int(number)
        return None

    def set(self, key: str, number: int) -> Index:
        """With ``key`` standing for ``number``."""
        grown = _grow(self._root, hash(key), key, number, 0)
        return Index(grown)


def _grow(
    node: Mapping[int, object], digest: int, key: str, number: int, depth: int
) -> dict[int, object]:
    at = (digest >> (depth * _BITS)) & _MASK
    child = node.get(at)
    if isinstance(child, dict):
        grown: object = _grow(child, digest, key, number, depth + 1)
    elif not isinstance(child, tuple) or depth >= 12:
        kept = tuple(p for p in child if p[0] != key) if isinstance(child, tuple) else ()
        grown = (*kept, (key, number))
    elif child[0][0] == key:
        grown = ((key, number),)
    else:  # two keys in one place: push both a level down
        other, its = child[0]
        pushed = {(hash(other) >> ((depth + 1) * _BITS)) & _MASK: ((other, its),)}
        grown = _grow(pushed, digest, key, number, depth + 1)
    return {**node, at: grown}


def freeze(value: JSON, depth: int = 0) -> JSON:
    """A JSON value that nobody can change: objects as read-only views, lists as tuples.

    What is nested deeper than any recorded value may be becomes its JSON text.
    """
    if isinstance(value, (dict, MappingProxyType)):
        if depth >= _MAX_FROZEN_DEPTH:
            return _flat(value)
        return MappingProxyType({key: freeze(item, depth + 1) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        if depth >= _MAX_FROZEN_DEPTH:
            return _flat(value)
        return tuple(freeze(item, depth + 1) for item in value)
    return value


def _flat(value: JSON) -> str:
    try:
        return encode_step(thaw(value))
    except (RecursionError, TypeError, ValueError):
        return "nested too deeply to be shown"


def thaw(value: JSON) -> JSON:
    """A frozen value as plain dicts and lists, for an encoder."""
    if isinstance(value, (dict, MappingProxyType)):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value
