"""States kept on the way, against a plain model of the rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.kept import KeptStates


@given(
    st.integers(1, 7),
    st.integers(2, 6),
    st.lists(st.integers(0, 300), max_size=120),
    st.lists(st.integers(-1, 320), max_size=20),
)
def test_it_keeps_multiples_and_finds_the_nearest(
    every: int, most: int, offered: list[int], asked: list[int]
) -> None:
    kept: KeptStates[str] = KeptStates(every, most)
    model: set[int] = set()
    stride = every
    for number in offered:
        assert kept.wants(number) == (number % stride == 0 and number not in model)
        kept.put(number, f"s{number}")
        if number % stride == 0:
            model.add(number)
        while len(model) > most:
            stride *= 2
            model = {one for one in model if one % stride == 0}
        assert (kept.numbers(), kept.stride) == (tuple(sorted(model)), stride)
        assert len(kept) <= most
    for number in asked:
        below = [one for one in model if one <= number]
        assert kept.nearest(number) == (f"s{max(below)}" if below else None)


def test_a_long_log_keeps_a_bounded_number_evenly() -> None:
    kept: KeptStates[int] = KeptStates()
    for number in range(0, 4_000_000, 256):
        kept.put(number, number)
    assert 2048 <= len(kept) <= 4096
    assert kept.stride == 1024
    assert kept.nearest(3_999_999) == 3_999_744


def test_the_first_value_of_a_place_stays() -> None:
    kept: KeptStates[str] = KeptStates(2)
    kept.put(4, "first")
    kept.put(4, "second")
    assert kept.nearest(4) == "first"
    with pytest.raises(ValueError, match="at least"):
        KeptStates(0)
