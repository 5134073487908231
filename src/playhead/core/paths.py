"""Merkle proofs from leaves that go by once: O(log n) memory, however long the chain is.

The nodes of an RFC 6962 proof stand for ranges of leaves that do not overlap. With the size
known beforehand the ranges are known too, so one pass over the leaves gives every node. The
result is that of `playhead.core.merkle.inclusion_proof` and `consistency_proof`, which need
all leaves at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from playhead.core.merkle import Frontier
from playhead.errors import UsageError

Span = tuple[int, int]
"""Leaves from the first number up to, not including, the second."""

MAX_PATH: Final = 65
"""Nodes of the longest proof of a tree of up to 10**19 - 1 leaves (the checkpoint's limit)."""

_AT_ONCE: Final = 4096


def inclusion_spans(index: int, size: int) -> list[Span]:
    """The ranges behind the audit path of leaf ``index`` of ``size``, lowest first (2.1.1).

    Raises:
        UsageError: there is no such leaf.
    """
    if not 0 <= index < size:
        raise UsageError(f"no leaf {index} among {size}")
    low, high = 0, size
    spans: list[Span] = []
    while high - low > 1:
        split = low + _split(high - low)
        if index < split:
            spans.append((split, high))
            high = split
        else:
            spans.append((low, split))
            low = split
    return spans[::-1]


def consistency_spans(first: int, second: int) -> list[Span]:
    """The ranges behind the proof that ``first`` leaves begin a tree of ``second`` (2.1.2).

    Raises:
        UsageError: ``first`` is negative or over ``second``.
    """
    if not 0 <= first <= second:
        raise UsageError(f"no tree of {first} leaves among {second}")
    if first == 0:
        return []
    low, high = 0, second
    spans: list[Span] = []
    while first < high:
        split = low + _split(high - low)
        if first <= split:
            spans.append((split, high))
            high = split
        else:
            spans.append((low, split))
            low = split
    if low:
        spans.append((low, high))
    return spans[::-1]


def _split(count: int) -> int:
    """The largest power of two below ``count``: where RFC 6962 parts a tree."""
    return 1 << (count - 1).bit_length() - 1


def stream_inclusion(leaves: Iterable[bytes], index: int, size: int) -> tuple[bytes, list[bytes]]:
    """Leaf hash ``index`` and its audit path in the tree of the first ``size`` leaf hashes.

    Takes ``size`` leaf hashes from ``leaves`` and no more.

    Raises:
        UsageError: there is no such leaf, or ``leaves`` ends before ``size``.
    """
    spans = inclusion_spans(index, size)
    leaf, *path = _roots(leaves, [(index, index + 1), *spans])
    return leaf, path


def stream_consistency(leaves: Iterable[bytes], first: int, second: int) -> list[bytes]:
    """The proof that the tree of ``first`` leaf hashes is a prefix of that of ``second``.

    Takes at most ``second`` leaf hashes; none where nothing needs to be shown.

    Raises:
        UsageError: ``first`` is over ``second``, or ``leaves`` ends before it.
    """
    spans = consistency_spans(first, second)
    start = min(spans, default=(0, 0))[0]
    passed = [(0, start)] if start else []  # the old root itself stands for these
    return _roots(leaves, [*spans, *passed])[: len(spans)]


def _roots(leaves: Iterable[bytes], spans: list[Span]) -> list[bytes]:
    """The root over each range, in the order given; together they are all leaves from 0 on."""
    source = iter(leaves)
    found: dict[Span, bytes] = {}
    for low, high in sorted(spans):
        tree = Frontier()
        while tree.size < high - low:
            some = list(islice(source, min(_AT_ONCE, high - low - tree.size)))
            if not some:
                raise UsageError(f"the leaves end at {low + tree.size}")
            tree.extend(some)
        found[low, high] = tree.root()
    return [found[span] for span in spans]
