"""A run that is not open, messages that are no list, and what a wrapped tool still is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.events import decode_event
from playhead.store.root import Root

SETTING: ContextVar[str] = ContextVar("SETTING", default="as before")


def test_a_run_that_could_not_be_opened_counts_every_event() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with playhead.record("h", root="/dev/null/full", on_error="warn") as run:

            @run.tool
            def add(a: int) -> int:
                return a + 1

            @playhead.tool
            def double(a: int) -> int:
                return a * 2

            assert [add(1), add(2), add(3), double(4)] == [2, 3, 4, 8]
            run.state("k", 1)
            assert not run.is_open
        assert run.lost == 9
        assert double(4) == 8
        assert run.lost == 9, "a closed run is not current"
    assert [w.category for w in seen] == [RuntimeWarning]


@pytest.mark.parametrize("on_error", ["raise", "warn"])
def test_an_event_outside_of_the_run_is_lost_with_one_warning(
    root: Path, on_error: playhead.recorder.session.OnError
) -> None:
    run = playhead.record("h", root=root, on_error=on_error)
    with pytest.warns(RuntimeWarning, match=r"state\.changed is lost, the run is not open"):
        run.state("k", 0)
    with run:
        run.state("k", 1)
    run.state("k", 2)  # a second warning would fail this test
    assert run.lost == 2
    assert playhead.verify(run.id, root=Root(root)).steps == 3


@pytest.mark.parametrize("message", ["just text", {"role": "user", "content": "hi"}])
def test_one_message_is_a_conversation_of_one(root: Path, message: Any) -> None:
    with playhead.record("h", root=root) as run, run.model_call("m", message) as call:
        call.respond("yes")
    with playhead.record("h", root=root) as listed, listed.model_call("m", [message]) as call:
        call.respond("yes")

    def prompt(run_id: str) -> object:
        reader = playhead.JournalReader(Root(root).journal_dir(run_id))
        found = [step for step in reader.entries() if step.prompt is not None]
        assert [decode_event(step).type for step in found] == ["model.requested"]
        return found[0].prompt

    assert prompt(run.id) == prompt(listed.id)


def test_what_a_tool_sets_in_the_context_stays_for_its_caller(root: Path) -> None:
    @playhead.tool
    def choose(value: str) -> None:
        SETTING.set(value)

    @playhead.tool
    def each(value: str) -> Iterator[int]:
        SETTING.set(value)
        yield 1

    with playhead.record("h", root=root):
        choose("chosen")
        assert SETTING.get() == "chosen"
        assert list(each("each")) == [1]
        assert SETTING.get() == "each"


async def test_what_an_async_tool_sets_stays_for_its_caller(root: Path) -> None:
    @playhead.tool
    async def choose(value: str) -> None:
        SETTING.set(value)

    async with playhead.record("h", root=root):
        await choose("chosen")
        assert SETTING.get() == "chosen"


def plain(a: int, *, b: str = "x") -> int:
    return a


async def coroutine(a: int, *, b: str = "x") -> int:
    return a


def generator(a: int, *, b: str = "x") -> Iterator[int]:
    yield a


async def async_generator(a: int, *, b: str = "x") -> AsyncIterator[int]:
    yield a


@pytest.mark.parametrize("fn", [plain, coroutine, generator, async_generator])
def test_a_wrapped_tool_is_the_kind_of_function_it_was(fn: Callable[..., Any]) -> None:
    wrapped = playhead.tool(fn)
    assert wrapped is not fn
    assert inspect.signature(wrapped) == inspect.signature(fn)
    for kind in (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    ):
        assert kind(wrapped) == kind(fn), kind.__name__
    assert (wrapped.__name__, wrapped.__doc__) == (fn.__name__, fn.__doc__)
