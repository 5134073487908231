"""RFC 6962 Merkle trees over SHA-256: roots, proofs, and an accumulator for growing logs.

Leaves are always given as *leaf hashes* (`leaf_hash` of the data), so that a caller hashes
each row once. Proof verification takes hostile input: it answers False and never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from playhead.errors import Refused, UsageError

EMPTY_ROOT: Final = bytes.fromhex(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)
"""The root of no leaves: SHA-256 of nothing (RFC 6962, 2.1)."""


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf; its prefix keeps a leaf from posing as a node (RFC 6962, 2.1)."""
    return sha256(b"\x00" + data).digest()


def leaf_hashes(rows: Sequence[bytes]) -> list[bytes]:
    """`leaf_hash` of each: the hot path of verify."""
    sha, prefix = sha256, b"\x00"
    return [sha(prefix + data).digest() for data in rows]


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def _parents(nodes: Sequence[bytes]) -> list[bytes]:
    """The full pairs of one level, hashed; an odd last node is left to the caller."""
    sha, prefix = sha256, b"\x01"
    pairs = iter(nodes)
    return [sha(prefix + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]


def _join(hashes: Sequence[bytes]) -> bytes:
    """The root over perfect subtrees, given left to right."""
    if not hashes:
        return EMPTY_ROOT
    result = hashes[-1]
    for left in reversed(hashes[:-1]):
        result = node_hash(left, result)
    return result


class Frontier:
    """The right edge of a growing tree: O(log n) memory, any number of leaves.

    Args:
        size: number of leaves that ``hashes`` stands for.
        hashes: roots of the perfect subtrees, left to right, as `hashes` returned them.

    Raises:
        Refused: ``hashes`` cannot be the frontier of a tree of ``size`` leaves.
    """

    __slots__ = ("_levels", "_size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        given = list(hashes)
        if size < 0 or len(given) != size.bit_count() or any(len(h) != 32 for h in given):
            raise Refused(
                f"{len(given)} hashes are no frontier of {size} leaves",
                remedy="Build it again from the rows",
            )
        self._size = size
        # One slot a level, lowest first; None where the size has a zero bit.
        self._levels: list[bytes | None] = [
            given.pop() if size >> level & 1 else None for level in range(size.bit_length())
        ]

    @property
    def size(self) -> int:
        """Number of leaves so far."""
        return self._size

    @property
    def hashes(self) -> tuple[bytes, ...]:
        """Roots of the perfect subtrees, left (largest) to right."""
        return tuple(h for h in reversed(self._levels) if h is not None)

    def add(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        levels = self._levels
        for level, left in enumerate(levels):
            if left is None:
                levels[level] = leaf
                break
            leaf = sha256(b"\x01" + left + leaf).digest()
            levels[level] = None
        else:
            levels.append(leaf)
        self._size += 1

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add many leaf hashes, one level at a time: the hot path of verify."""
        levels, nodes, level = self._levels, list(leaves), 0
        while nodes:
            if level == len(levels):
                levels.append(None)
            waiting = levels[level]
            if waiting is not None:
                nodes.insert(0, waiting)
            levels[level] = nodes[-1] if len(nodes) & 1 else None
            nodes = _parents(nodes)
            level += 1
        self._size += len(leaves)

    def root(self) -> bytes:
        """The RFC 6962 root over every leaf so far."""
        return _join(self.hashes)


def root(leaf_hashes: Sequence[bytes]) -> bytes:
    """The RFC 6962 root over leaf hashes."""
    if not leaf_hashes:
        return EMPTY_ROOT
    nodes = leaf_hashes
    while len(nodes) > 1:
        nodes = _level_above(nodes)
    return nodes[0]


def _level_above(nodes: Sequence[bytes]) -> list[bytes]:
    # An odd last node rises unchanged: this gives the same tree as RFC 6962's recursion.
    above = _parents(nodes)
    if len(nodes) & 1:
        above.append(nodes[-1])
    return above


def inclusion_proof(leaf_hashes: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path of leaf ``index``, lowest first (RFC 6962, 2.1.1).

    Raises:
        UsageError: there is no such leaf.
    """
    if not 0 <= index < len(leaf_hashes):
        raise UsageError(f"no leaf {index} among {len(leaf_hashes)}")
    path: list[bytes] = []
    nodes = leaf_hashes
    while len(nodes) > 1:
        if index ^ 1 < len(nodes):
            path.append(nodes[index ^ 1])
        nodes = _level_above(nodes)
        index >>= 1
    return path


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Whether leaf hash ``leaf`` is number ``index`` of ``size`` leaves under ``root``.

    ``size`` must be as trusted as ``root`` (a checkpoint signs both): two sizes in which the
    leaf has a path of the same shape cannot be told apart.
    """
    if not 0 <= index < size or not _hashes([leaf, root, *proof]):
        return False
    here, last, result = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if here & 1 or here == last:
            result = node_hash(sibling, result)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            result = node_hash(result, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and result == root


def _hashes(values: Iterable[object]) -> bool:
    return all(isinstance(value, bytes) and len(value) == 32 for value in values)


def consistency_proof(leaf_hashes: Sequence[bytes], first: int) -> list[bytes]:
    """The proof that the tree of ``first`` leaves is a prefix of this one (RFC 6962, 2.1.2).

    Empty for ``first`` 0 and for the whole tree, where nothing needs to be shown.

    Raises:
        UsageError: ``first`` is over the number of leaves or negative.
    """
    if not 0 <= first <= len(leaf_hashes):
        raise UsageError(f"no tree of {first} leaves among {len(leaf_hashes)}")
    if first == 0:
        return []
    low, high, size, whole = 0, len(leaf_hashes), first, True
    path: list[bytes] = []
    while size < high - low:
        split = 1 << (high - low - 1).bit_length() - 1
        if size <= split:
            path.append(root(leaf_hashes[low + split : high]))
            high = low + split
        else:
            path.append(root(leaf_hashes[low : low + split]))
            low, size, whole = low + split, size - split, False
    if not whole:
        path.append(root(leaf_hashes[low:high]))
    return path[::-1]


def verify_consistency(
    first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the tree (``first``, ``first_root``) is a prefix of (``second``, ``second_root``)."""
    if not 0 <= first <= second or not _hashes([first_root, second_root, *proof]):
        return False
    if first == second:
        roots_agree = first_root == second_root
        return roots_agree and not proof and (first > 0 or first_root == EMPTY_ROOT)
    if first == 0:
        return first_root == EMPTY_ROOT and not proof
    here, last = first - 1, second - 1
    while here & 1:
        here, last = here >> 1, last >> 1
    path = list(proof) if here else [first_root, *proof]
    if not path:
        return False
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if here & 1 or here == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root
