"""Proofs in one pass are those of the tree that holds every leaf."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core import merkle, paths
from playhead.core.merkle import leaf_hash
from playhead.errors import UsageError


def hashes(count: int) -> list[bytes]:
    return [leaf_hash(b"%d" % number) for number in range(count)]


@pytest.mark.parametrize("size", range(71))
def test_every_small_tree_gives_the_same_proofs(size: int) -> None:
    leaves = hashes(size)
    for index in range(size):
        leaf, path = paths.stream_inclusion(iter(leaves), index, size)
        assert leaf == leaves[index]
        assert path == merkle.inclusion_proof(leaves, index)
    for first in range(size + 1):
        path = paths.stream_consistency(iter(leaves), first, size)
        assert path == merkle.consistency_proof(leaves, first)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20_000), st.data())
def test_larger_trees_too(size: int, data: st.DataObject) -> None:
    leaves = hashes(size)
    index = data.draw(st.integers(0, size - 1))
    leaf, path = paths.stream_inclusion(iter(leaves), index, size)
    assert (leaf, path) == (leaves[index], merkle.inclusion_proof(leaves, index))
    assert merkle.verify_inclusion(leaf, index, size, path, merkle.root(leaves))
    first = data.draw(st.integers(0, size))
    proof = paths.stream_consistency(iter(leaves), first, size)
    assert proof == merkle.consistency_proof(leaves, first)


@given(st.integers(1, 10**19 - 1), st.data())
def test_no_proof_is_over_the_limit(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    spans = [*paths.inclusion_spans(index, size), (index, index + 1)]
    assert len(spans) - 1 <= paths.MAX_PATH
    ends = [0, *(high for _, high in sorted(spans))]
    assert [low for low, _ in sorted(spans)] == ends[:-1] and ends[-1] == size
    assert len(paths.consistency_spans(index, size)) <= paths.MAX_PATH


def test_leaves_beyond_the_size_are_not_taken() -> None:
    leaves = iter(hashes(20))
    _, path = paths.stream_inclusion(leaves, 3, 13)
    assert path == merkle.inclusion_proof(hashes(13), 3)
    assert next(leaves) == hashes(14)[13]


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_a_leaf_that_is_not_there(index: int, size: int) -> None:
    with pytest.raises(UsageError, match="no leaf"):
        paths.stream_inclusion(hashes(5), index, size)


@pytest.mark.parametrize(("first", "second"), [(-1, 3), (4, 3)])
def test_a_tree_that_is_no_prefix(first: int, second: int) -> None:
    with pytest.raises(UsageError, match="no tree"):
        paths.stream_consistency(hashes(5), first, second)


def test_leaves_that_end_too_soon() -> None:
    with pytest.raises(UsageError, match="the leaves end at 5"):
        paths.stream_inclusion(hashes(5), 2, 6)
    with pytest.raises(UsageError, match="the leaves end at 5"):
        paths.stream_consistency(hashes(5), 2, 6)


def test_memory_does_not_grow_with_the_chain() -> None:
    def peak(size: int) -> int:
        def leaves() -> Iterator[bytes]:
            for number in range(size):
                yield leaf_hash(number.to_bytes(8, "big"))

        tracemalloc.start()
        paths.stream_inclusion(leaves(), size // 3, size)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(60_000) < 2 * peak(12_000)
