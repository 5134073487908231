"""Sums over the leaves of a tree that shares its structure: only what changed is asked again.

Of two trees that follow one another all but a path is the same objects. What a part came to is
remembered by the object, which is held, so that its id stays its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

BITS = 5
"""Of a leaf's place, for each level of the tree."""

Node = tuple[Any, ...]  # Any: children, or values at the lowest level; mypy cannot say that
Sums = dict[int, tuple[Node, bytes]]


def summed(
    parts: Iterable[tuple[Node, int]],
    leaf: Callable[[Any], bytes],
    known: Sums,
    most: int,
) -> bytes:
    """``leaf`` of every leaf below ``parts`` (nodes with their shift), joined.

    ``known`` has what came out before and is filled on the way; beyond ``most`` entries, parts
    that are gone are dropped.
    """
    given = [(node, shift) for node, shift in parts if node]
    joined = b"".join(_sum(node, shift, leaf, known) for node, shift in given)
    if len(known) > most:
        live: Sums = {}
        for node, shift in given:
            _keep(node, shift, known, live)
        known.clear()
        known.update(live)
    return joined


def _sum(node: Node, shift: int, leaf: Callable[[Any], bytes], known: Sums) -> bytes:
    found = known.get(id(node))
    if found is not None and found[0] is node:
        return found[1]
    if shift:
        made = b"".join([_sum(child, shift - BITS, leaf, known) for child in node])
    else:
        made = leaf(node)
    known[id(node)] = (node, made)
    return made


def _keep(node: Node, shift: int, known: Sums, live: Sums) -> None:
    found = known.get(id(node))
    if found is None or found[0] is not node:
        return
    live[id(node)] = found
    if shift:
        for child in node:
            _keep(child, shift - BITS, known, live)
