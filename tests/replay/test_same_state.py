"""N steps == seek(N) == full fold == refold, whatever way a handle went (the contract's promise).

States are compared by their canonical bytes. The logs are random: every event type, ids that
collide, values of every shape.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facets import CHAT, TENANT, Runtime, chained, runtime
from playhead.core.events import TYPES, Draft
from playhead.core.fold import fold
from playhead.core.logrow import LogRow
from playhead.core.projections import BUILT_IN
from playhead.core.wire import canonical_state
from playhead.replay import ReplayClient
from playhead.replay.strict import create_strict_handle_replay

IDS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(IDS, inner, max_size=3),
    max_leaves=5,
)
KEYS = (
    "interrupt_id subagent_run_id export_id card_id call_id turn_id message_id version content "
    "usage result outcome reason stamp error name status"
).split()
PAYLOADS = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, IDS | VALUES))
KINDS = st.sampled_from([*TYPES, "acme.thing", "interrupt.raised.again", "turn."])


@st.composite
def logs(draw: st.DrawFn) -> list[LogRow]:
    parts = draw(st.lists(st.tuples(KINDS, PAYLOADS, st.none() | IDS), max_size=24))
    return chained(Draft(kind, payload, turn_id=turn) for kind, payload, turn in parts)


MOVES = st.lists(
    st.one_of(
        st.just(("step", 0)),
        st.just(("back", 0)),
        st.just(("turn", 0)),
        st.tuples(st.just("seek"), st.integers(0, 30)),
    ),
    max_size=25,
)


def full_fold(rows: list[LogRow]) -> bytes:
    """A fold by itself, no handle anywhere."""
    return canonical_state(fold((row.event for row in rows), BUILT_IN))


async def walk(rows: list[LogRow], moves: list[tuple[str, int]], **options: Any) -> None:
    """Every state on the way is that of a full fold up to there."""
    window = [
        row
        for row in rows
        if options.get("from_sequence_number", 0) < row.sequence_number
        and row.sequence_number <= (options.get("up_to_sequence_number") or len(rows))
    ]
    before = rows[: options.get("from_sequence_number", 0)] if options.get("base") else []
    client = ReplayClient(Runtime(runtime(*rows).events))
    async with client.from_event_log(
        CHAT, tenant_id=TENANT, projections=BUILT_IN, **options
    ) as handle:
        low = options.get("from_sequence_number", 0)
        high = options.get("up_to_sequence_number")
        for move, number in [*moves, ("seek", high or 30)]:
            if move == "step":
                await handle.step()
            elif move == "back":
                await handle.back()
            elif move == "turn":
                await handle.replay_turn()
            elif low <= number and (high is None or number <= high):
                await handle.seek(number)
            taken = handle.current_sequence_number() - low
            assert canonical_state(handle.folded) == full_fold([*before, *window[:taken]])
            assert handle.current_state().event_count == len(before) + taken


@pytest.mark.parametrize("snapshots", ["off", "use", "verify"])
@settings(max_examples=60, deadline=None)
@given(rows=logs(), moves=MOVES)
def test_every_way_to_a_row_gives_one_state(
    snapshots: str, rows: list[LogRow], moves: list[tuple[str, int]]
) -> None:
    asyncio.run(walk(rows, moves, snapshots=snapshots))


@settings(max_examples=60, deadline=None)
@given(rows=logs(), moves=MOVES, cut=st.tuples(st.integers(0, 24), st.integers(0, 24)))
def test_a_window_is_a_fold_of_its_own_rows(
    rows: list[LogRow], moves: list[tuple[str, int]], cut: tuple[int, int]
) -> None:
    low, high = sorted(min(n, len(rows)) for n in cut)
    bounds: dict[str, Any] = {"from_sequence_number": low, "up_to_sequence_number": high}
    asyncio.run(walk(rows, moves, **bounds))
    asyncio.run(walk(rows, moves, **bounds, base="prefix"))


@settings(max_examples=40, deadline=None)
@given(rows=logs())
def test_the_gate_finds_nothing_in_what_is_pure(rows: list[LogRow]) -> None:
    gate = create_strict_handle_replay(ReplayClient(runtime(*rows)), handles=3)
    verdict = asyncio.run(gate.replay(CHAT, tenant_id=TENANT, projections=BUILT_IN))
    assert (verdict.deterministic, verdict.steps) == (True, len(rows))


class Planted:
    """Pure but for one row, at which a counter outside the fold gets in."""

    key, version = "planted", 1

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def init(self) -> tuple[int, int]:
        return (0, 0)

    def apply(self, state: object, event: object) -> object:
        assert isinstance(state, tuple)
        self.calls += 1
        seen = state[0] + 1
        return (seen, self.calls if seen == self.at + 1 else state[1])

    def view(self, state: object) -> Any:
        assert isinstance(state, tuple)
        return list(state)


@settings(max_examples=40, deadline=None)
@given(rows=logs(), place=st.integers(0, 30))
def test_the_gate_finds_a_planted_impurity_at_its_index(rows: list[LogRow], place: int) -> None:
    gate = create_strict_handle_replay(ReplayClient(runtime(*rows)))
    verdict = asyncio.run(gate.replay(CHAT, tenant_id=TENANT, projections=[Planted(place)]))
    if place >= len(rows):
        assert verdict.deterministic
        return
    assert not verdict.deterministic
    assert (verdict.first_divergence_at, verdict.sequence_number) == (place, place + 1)
    assert len(set(verdict.digests)) == 2


def test_a_projection_that_depends_on_the_way_is_found_by_the_jump() -> None:
    """Two handles in lockstep agree; one that jumps to the end does not."""

    class Pairs:
        key, version = "pairs", 1

        def __init__(self) -> None:
            self.calls = 0

        def init(self) -> int:
            return 0

        def apply(self, state: object, event: object) -> int:
            self.calls += 1
            return (self.calls + 1) // 2

        def view(self, state: object) -> Any:
            return state

    rows = chained(Draft("acme.x", {}) for _ in range(4))
    gate = create_strict_handle_replay(ReplayClient(runtime(*rows)))
    verdict = asyncio.run(gate.replay(CHAT, tenant_id=TENANT, projections=[Pairs()]))
    assert not verdict.deterministic and verdict.first_divergence_at == 3


SCRIPT = """
import asyncio, random
from facets import CHAT, TENANT, chained, runtime
from playhead.core.events import TYPES, Draft
from playhead.core.projections import BUILT_IN
from playhead.replay import ReplayClient

async def main():
    rng = random.Random(5)
    keys = "interrupt_id subagent_run_id export_id card_id call_id message_id usage outcome".split()
    for _ in range(12):
        drafts = []
        for _ in range(40):
            drawn = {k: rng.choice(["x", "y", 1, {"b": 1, "a": [2]}]) for k in keys}
            payload = {k: drawn[k] for k in set(keys)}  # in the order of this process
            drafts.append(Draft(rng.choice(sorted(TYPES)), payload))
        client = ReplayClient(runtime(*chained(drafts)))
        async with client.from_event_log(CHAT, tenant_id=TENANT, projections=BUILT_IN) as handle:
            async for _ in handle:
                print(handle.state_digest())

asyncio.run(main())
"""


def test_states_do_not_depend_on_the_hash_seed(repo: Path) -> None:
    said = set()
    for seed in ("0", "1", "4242"):
        found = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(repo / "tests")},
        )
        assert found.stdout.count("\n") == 12 * 40
        said.add(found.stdout)
    assert len(said) == 1
