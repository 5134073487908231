"""Prompt deltas: what is stored rebuilds to what was sent, at linear cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.prompts import (
    PromptIndex,
    answer_segments,
    full_prompt,
    parse_segments,
    rebuild,
)
from playhead.errors import TooLarge, ValueRefused

MESSAGE = st.sampled_from(
    [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "a"},
        "plain",
        [1, 2, 3],
        [0, 0, 1],
        {"$message": "mine"},
        None,
        7,
    ]
)


@given(st.lists(st.lists(MESSAGE, max_size=8), max_size=12), st.booleans())
def test_every_request_rebuilds_to_what_was_sent(requests: list[list[Any]], answers: bool) -> None:
    index, rows = PromptIndex(), {}
    seq = 0
    for messages in requests:
        rows[seq] = parse_segments(index.encode(seq, messages))
        assert rebuild(seq, rows.__getitem__) == messages
        seq += 1
        if answers:
            result = {"message": {"role": "assistant", "content": "a"}}
            index.answered(seq, result)
            rows[seq] = answer_segments(result)
            seq += 1
    for number, messages in enumerate(requests):
        assert rebuild(number * (2 if answers else 1), rows.__getitem__) == messages


@given(st.lists(MESSAGE, max_size=8))
def test_full_prompts_rebuild_too(messages: list[Any]) -> None:
    assert rebuild(0, lambda seq: parse_segments(full_prompt(messages))) == messages


def test_a_growing_conversation_is_one_range_and_its_news() -> None:
    index = PromptIndex()
    history: list[Any] = []
    for n in range(50):
        history.append({"role": "user", "content": f"message {n}"})
        text = index.encode(n, history)
        assert len(json.loads(text)) == (2 if n else 1)


def test_a_clock_in_the_first_message_costs_one_message() -> None:
    index = PromptIndex()
    history = [{"role": "user", "content": f"{n}"} for n in range(20)]
    index.encode(0, [{"role": "system", "content": "12:00"}, *history])
    segments = json.loads(index.encode(1, [{"role": "system", "content": "12:01"}, *history]))
    assert segments == [{"role": "system", "content": "12:01"}, [0, 1, 21]]


def test_a_plain_text_prompt_is_one_message() -> None:
    assert parse_segments("say hi") == ["say hi"]
    assert parse_segments("[not json") == ["[not json"]
    assert parse_segments(None) == []


@pytest.mark.parametrize("segment", [[5, 0, 1], [0, 0, 1], [-1, 0, 1], [0, 2, 1]])
def test_a_range_that_is_not_before_is_refused(segment: Any) -> None:
    with pytest.raises(ValueRefused):
        rebuild(0, lambda seq: [segment])


def test_a_range_past_the_end_is_refused() -> None:
    rows: dict[int, list[Any]] = {0: ["a"], 1: [[0, 0, 2]]}
    with pytest.raises(ValueRefused, match="wants 2"):
        rebuild(1, rows.__getitem__)


def test_rows_that_double_themselves_are_stopped() -> None:
    def source(seq: int) -> list[Any]:
        return ["a"] if seq == 0 else [[seq - 1, 0, 2 ** (seq - 1)]] * 2

    assert len(rebuild(10, source)) == 1024
    with pytest.raises(TooLarge):
        rebuild(40, source)


def test_the_index_forgets_instead_of_growing() -> None:
    index = PromptIndex()
    for n in range(300):
        index.encode(n, [f"{n}-{i}" for i in range(500)])
    assert len(index._where) <= 66_000
    assert json.loads(index.encode(300, ["0-0"])) == ["0-0"]
