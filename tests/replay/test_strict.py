"""The gates find what is not deterministic, name its place, and raise what is the record's own."""

from __future__ import annotations

import itertools
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import playhead
from facets import CHAT, TENANT, chained, row, runtime
from playhead.core.events import Draft
from playhead.core.projection import projection
from playhead.errors import (
    NotFound,
    PlayheadError,
    ReplayArgumentError,
    ReplayDivergenceError,
    ReplayUnknownEventError,
    ValueRefused,
)
from playhead.replay import ReplayClient, create_replay_runtime
from playhead.replay.strict import (
    create_strict_handle_replay,
    create_strict_replay,
    strict_processes,
)


def log(count: int = 6) -> list[Any]:
    return chained(
        Draft("turn.completed", {"message_id": f"m{n}"}) if n % 3 == 2 else Draft("a.b", {"n": n})
        for n in range(count)
    )


async def gate(one: Any, rows: list[Any] | None = None, handles: int = 2, **options: Any) -> Any:
    client = ReplayClient(runtime(*(log() if rows is None else rows)))
    strict = create_strict_handle_replay(client, handles=handles)
    return await strict.replay(CHAT, tenant_id=TENANT, projections=[one], **options)


async def turn_gate(one: Any, runs: int = 2) -> Any:
    replay = create_replay_runtime(
        tenant_id=TENANT, session_runtime=runtime(*log()), projections=[one]
    )
    return await create_strict_replay(replay, runs=runs).replay(CHAT, tenant_id=TENANT)


def planted(apply: Any, init: Any = lambda: 0) -> Any:
    return projection("planted", init=init, apply=apply)


COUNT, DRAW = itertools.count(), random.Random(1)
SOURCES = {
    "counter": lambda: next(COUNT),
    "random": DRAW.random,
    "clock": time.perf_counter_ns,
    "system": lambda: random.SystemRandom().getrandbits(64),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("at", [0, 4])
async def test_what_gets_in_from_outside_is_found_at_its_step(name: str, at: int) -> None:
    impure = planted(lambda state, event: SOURCES[name]() if event.seq == at else state)
    verdict = await gate(impure, handles=3)
    assert not verdict.deterministic
    assert (verdict.steps, verdict.first_divergence_at) == (at, at)
    assert verdict.sequence_number == at + 1 and verdict.reason == "the states differ"
    assert len(verdict.digests) == 3
    found = await turn_gate(impure)
    assert (found.deterministic, found.sequence_number) == (False, max(4, at + 1))
    assert found.first_divergence_at == (0 if at == 0 else 1)  # the last turn is rows 4 to 6


async def test_a_first_state_from_outside_is_found_before_any_step() -> None:
    count = itertools.count()
    verdict = await gate(planted(lambda state, event: state, lambda: next(count)))
    assert (verdict.deterministic, verdict.steps, verdict.sequence_number) == (False, 0, 0)


async def test_an_empty_window_is_deterministic() -> None:
    verdict = await gate(planted(lambda state, event: state), [])
    assert (verdict.deterministic, verdict.steps, verdict.reason) == (True, 0, "")


async def test_one_walk_that_raises_is_a_divergence() -> None:
    count = itertools.count()

    def apply(state: object, event: Any) -> object:
        if event.seq == 4 and next(count) == 1:
            raise ValueError("SECRET")
        return 0

    verdict = await gate(planted(apply))
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 4)
    assert verdict.digests[1] == "" and "raised" in verdict.reason
    count = itertools.count()
    verdict = await turn_gate(planted(apply))
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 1)
    assert verdict.sequence_number == 5 and "raised" in verdict.reason


async def test_a_jump_that_raises_is_a_divergence() -> None:
    count = itertools.count()

    def apply(state: object, event: Any) -> object:
        if event.seq == 5 and next(count) >= 2:
            raise ValueError
        return 0

    verdict = await gate(planted(apply))
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 5)
    assert "jump" in verdict.reason and verdict.digests[1] == ""


async def test_what_every_walk_raises_alike_is_raised() -> None:
    def broken(state: object, event: Any) -> object:
        raise ValueError("SECRET")

    for act in (gate, turn_gate):
        with pytest.raises(ReplayDivergenceError) as caught:
            await act(planted(broken))
        assert caught.value.kind == "projection" and "planted" in str(caught.value)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(ReplayUnknownEventError):
        await gate(planted(lambda state, event: state), [row(1, "a.b"), row(2, "")])
    shown = projection("shown", init=lambda: 0, apply=lambda s, e: s, view=lambda s: {1, 2})  # type: ignore[arg-type,return-value]
    with pytest.raises((ValueRefused, ReplayDivergenceError)):
        await gate(shown)


async def test_one_walk_that_shows_no_value_is_a_divergence() -> None:
    views = itertools.count()

    class Sometimes:
        key, version = "sometimes", 1

        def init(self) -> int:
            return 0

        def apply(self, state: Any, event: object) -> int:
            return int(state) + 1

        def view(self, state: Any) -> Any:
            return {1} if state == 2 and next(views) == 1 else state

    verdict = await gate(Sometimes())
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 1)


async def test_a_state_that_is_changed_in_place_behind_the_back_is_found() -> None:
    shared: list[int] = []

    class Shared:
        key, version = "shared", 1

        def init(self) -> list[int]:
            return shared

        def apply(self, state: Any, event: object) -> Any:
            shared.append(1)
            return state

        def view(self, state: Any) -> Any:
            return list(state)

    assert not (await gate(Shared())).deterministic


async def test_the_gates_check_their_arguments() -> None:
    for given in (None, object()):
        with pytest.raises(TypeError):
            create_strict_handle_replay(given)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            create_strict_replay(given)  # type: ignore[arg-type]
    for handles in (1, 0, True, "2", 65):
        with pytest.raises(ReplayArgumentError):
            create_strict_handle_replay(ReplayClient(runtime()), handles=handles)  # type: ignore[arg-type]
    with pytest.raises(ReplayArgumentError):
        await gate(planted(lambda state, event: state), verify="sometimes")


# -- processes with different hash seeds


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    found = f"sqlite:///{tmp_path / 's.db'}"
    with playhead.record("agent", root=found, tenant_id=TENANT, chat_id=CHAT) as run:
        for number in range(4):
            run.event("interrupt.raised", {"interrupt_id": f"i{number}", "reason": "r"})
    shutil.copy(Path(__file__).with_name("planted.py"), tmp_path / "planted_projections.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


def seeded(url: str, *names: str, **options: Any) -> Any:
    names = tuple(name.replace("planted:", "planted_projections:") for name in names)
    return strict_processes(url, CHAT, tenant_id=TENANT, projections=names, **options)


def test_what_is_pure_is_the_same_under_every_seed(url: str) -> None:
    verdict = seeded(url, "turns", "messages", "planted:PURE", seeds=("0", "1", "4242"))
    assert (verdict.deterministic, verdict.steps, verdict.digests) == (True, 6, ())


def test_the_order_of_a_set_is_seen(url: str) -> None:
    verdict = seeded(url, "planted:FIRST_OF_SET", seeds=[str(n) for n in range(8)])
    assert not verdict.deterministic and verdict.first_divergence_at == 0
    verdict = seeded(url, "planted:HASHED")
    assert (verdict.first_divergence_at, verdict.sequence_number) == (3, 4)
    assert verdict.reason == "the states differ" and len(set(verdict.digests)) == 2


def test_a_walk_that_raises_under_one_seed_is_a_divergence(url: str) -> None:
    verdict = seeded(url, "planted:SOMETIMES")
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 2)
    assert verdict.sequence_number == 3 and verdict.digests[1] == "" and "raised" in verdict.reason


def test_what_every_process_raises_is_raised_here(url: str) -> None:
    with pytest.raises(ReplayDivergenceError) as caught:
        seeded(url, "planted:ALWAYS")
    assert caught.value.kind == "projection" and caught.value.sequence_number == 1
    with pytest.raises(NotFound):
        strict_processes(url, "nobody", tenant_id=TENANT)
    with pytest.raises(NotFound):
        strict_processes(url, CHAT, tenant_id="somebody-else")
    with pytest.raises(PlayheadError, match="did not end"):
        seeded(url, "planted:DIES")


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"tenant_id": ""}, "tenant_id"),
        ({"tenant_id": None}, "tenant_id"),
        ({"url": "memory://"}, "url"),
        ({"url": None}, "url"),
        ({"seeds": ("1",)}, "seeds"),
        ({"seeds": ("1", "01")}, "seeds"),
        ({"seeds": "01"}, "seeds"),
        ({"seeds": ("random", "1")}, "seeds"),
        ({"seeds": (0, 1)}, "seeds"),
        ({"seeds": ("0", "4294967296")}, "seeds"),
        ({"projections": "turns"}, "projections"),
        ({"projections": ["nobody"]}, "projections"),
        ({"projections": ["planted_projections:NOBODY"]}, "projections"),
        ({"projections": ["planted_projections:NONE"]}, "projections"),
        ({"projections": ["no_such_module:X"]}, "projections"),
        ({"projections": [":"]}, "projections"),
    ],
)
def test_bad_arguments_start_no_process(url: str, words: dict[str, Any], field: str) -> None:
    given = {"url": url, "chat_id": CHAT, "tenant_id": TENANT, **words}
    with pytest.raises(ReplayArgumentError) as caught:
        strict_processes(**given)
    assert caught.value.field == field
