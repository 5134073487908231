"""RFC 6962 trees against the Certificate Transparency vectors and a naive recursion."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core import merkle
from playhead.core.merkle import Frontier, leaf_hash
from playhead.errors import Refused, UsageError

CT_LEAVES = [
    bytes.fromhex(text)
    for text in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def hashes(count: int) -> list[bytes]:
    return [leaf_hash(bytes([n])) for n in range(count)]


def naive(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word by word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + naive(leaves[:split]) + naive(leaves[split:])).digest()


def flipped(value: bytes, bit: int) -> bytes:
    out = bytearray(value)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_the_ct_project(size: int) -> None:
    leaves = [leaf_hash(data) for data in CT_LEAVES[:size]]
    assert merkle.root(leaves).hex() == CT_ROOTS[size - 1]


def test_the_empty_root_is_the_hash_of_nothing() -> None:
    assert merkle.root([]) == merkle.EMPTY_ROOT == sha256(b"").digest() == Frontier().root()


def test_a_ct_audit_path() -> None:
    leaves = [leaf_hash(data) for data in CT_LEAVES]
    assert [h.hex() for h in merkle.inclusion_proof(leaves, 0)] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]


@pytest.mark.parametrize("size", range(71))
def test_root_is_the_naive_recursion(size: int) -> None:
    leaves = hashes(size)
    one_by_one = Frontier()
    for leaf in leaves:
        one_by_one.add(leaf)
    assert one_by_one.root() == merkle.root(leaves) == naive(leaves)
    assert len(one_by_one.hashes) == bin(size).count("1")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=8))
def test_any_split_gives_the_same_frontier(parts: list[tuple[bool, int]]) -> None:
    leaves = [leaf_hash(n.to_bytes(2, "big")) for n in range(sum(count for _, count in parts))]
    frontier, at = Frontier(), 0
    for batch, count in parts:
        chunk = leaves[at : at + count]
        if batch:
            frontier.extend(chunk)
        else:
            for leaf in chunk:
                frontier.add(leaf)
        at += count
        frontier = Frontier(frontier.size, frontier.hashes)
    assert (frontier.size, frontier.root()) == (len(leaves), naive(leaves))


def test_extend_does_not_change_its_argument() -> None:
    leaves, frontier = hashes(5), Frontier(1, [leaf_hash(b"x")])
    frontier.extend(leaves)
    assert leaves == hashes(5)


@pytest.mark.parametrize(
    ("size", "given_hashes"), [(1, []), (-1, []), (2, [b"x" * 32] * 2), (1, [b"short"])]
)
def test_a_frontier_that_cannot_be_is_refused(size: int, given_hashes: list[bytes]) -> None:
    with pytest.raises(Refused, match="frontier"):
        Frontier(size, given_hashes)


@pytest.mark.parametrize("size", range(1, 20))
def test_inclusion_holds_for_its_own_place_only(size: int) -> None:
    leaves = hashes(size)
    root = merkle.root(leaves)
    for index in range(size):
        proof = merkle.inclusion_proof(leaves, index)
        for place in range(-1, size + 1):
            for other in (index, (index + 1) % size):
                right = place == index and leaves[other] == leaves[index]
                assert merkle.verify_inclusion(leaves[other], place, size, proof, root) is right
        assert not merkle.verify_inclusion(leaves[index], index, size, [*proof, root], root)
        if proof:
            assert not merkle.verify_inclusion(leaves[index], index, size, proof[:-1], root)
            cut = [proof[0][:31], *proof[1:]]
            assert not merkle.verify_inclusion(leaves[index], index, size, cut, root)


@given(st.integers(1, 40), st.data())
def test_inclusion_fails_on_any_flipped_bit(size: int, data: st.DataObject) -> None:
    leaves = hashes(size)
    index = data.draw(st.integers(0, size - 1))
    parts = [leaves[index], merkle.root(leaves), *merkle.inclusion_proof(leaves, index)]
    at = data.draw(st.integers(0, len(parts) - 1))
    parts[at] = flipped(parts[at], data.draw(st.integers(0, 255)))
    assert not merkle.verify_inclusion(parts[0], index, size, parts[2:], parts[1])


@pytest.mark.parametrize("second", range(20))
def test_consistency_holds_between_real_prefixes_only(second: int) -> None:
    leaves = hashes(second)
    new = merkle.root(leaves)
    for first in range(second + 1):
        old = merkle.root(leaves[:first])
        proof = merkle.consistency_proof(leaves, first)
        assert merkle.verify_consistency(first, second, old, new, proof)
        assert not merkle.verify_consistency(first, second, leaf_hash(b"no"), new, proof)
        assert not merkle.verify_consistency(first, second, old, new, [*proof, old])
        assert not merkle.verify_consistency(second + 1, second, old, new, proof)
        for other in range(1, second + 1):
            if other != first and first > 0:
                assert not merkle.verify_consistency(other, second, old, new, proof)


@given(st.integers(2, 40), st.data())
def test_consistency_fails_on_any_flipped_bit(second: int, data: st.DataObject) -> None:
    leaves = hashes(second)
    first = data.draw(st.integers(1, second - 1))
    proof = merkle.consistency_proof(leaves, first)
    parts = [merkle.root(leaves[:first]), merkle.root(leaves), *proof]
    at = data.draw(st.integers(0, len(parts) - 1))
    parts[at] = flipped(parts[at], data.draw(st.integers(0, 255)))
    assert not merkle.verify_consistency(first, second, parts[0], parts[1], parts[2:])


def test_proofs_of_what_is_not_there_are_usage_errors() -> None:
    with pytest.raises(UsageError):
        merkle.inclusion_proof(hashes(3), 3)
    with pytest.raises(UsageError):
        merkle.consistency_proof(hashes(3), 4)
