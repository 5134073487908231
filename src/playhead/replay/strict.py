"""Gates that find what is not deterministic: ``playhead.replay.strict``.

Several handles walk the same window in lockstep, and the canonical bytes of their states are
compared at each step (contract: "create_strict_handle_replay"). The same log cannot give two
states unless something outside it got in: a clock, a random number, the order of a set, a
counter kept between calls.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from playhead.core.wire import state_digest
from playhead.errors import PlayheadError, ReplayDivergenceError, ValueRefused
from playhead.replay.arguments import require_number
from playhead.replay.client import ReplayClient
from playhead.replay.handle import ReplayHandle
from playhead.replay.results import ReplayDoneResult
from playhead.replay.seeds import strict_processes
from playhead.replay.strictness import (
    BY_FAULT,
    BY_JUMP,
    BY_LENGTH,
    BY_STATE,
    StrictVerdict,
    all_equal,
    require_projection_fault,
)
from playhead.replay.turns import TurnReplay

if TYPE_CHECKING:
    from playhead.replay.runtime import ReplayRuntime

__all__ = [
    "StrictHandleReplay",
    "StrictReplay",
    "StrictVerdict",
    "create_strict_handle_replay",
    "create_strict_replay",
    "strict_processes",
]

_MOST_HANDLES = 64


class StrictHandleReplay:
    """The gate over the event-granular handle. Made by `create_strict_handle_replay`."""

    def __init__(self, client: ReplayClient, handles: int) -> None:
        self._client = client
        self._handles = handles

    # Any: the options are those of `ReplayClient.from_event_log`, which checks each of them.
    async def replay(self, chat_id: str, *, tenant_id: str, **options: Any) -> StrictVerdict:
        """Walk the window with every handle, then jump to its end with one more.

        ``options`` are those of `ReplayClient.from_event_log`.

        Raises:
            As `ReplayClient.from_event_log`, and what every handle alike raises at a step: that
            is the record's own fault and no divergence between them.
        """
        async with AsyncExitStack() as stack:
            handles: list[ReplayHandle] = []
            for _ in range(self._handles):
                opening = self._client.from_event_log(chat_id, tenant_id=tenant_id, **options)
                handles.append(await stack.enter_async_context(opening))
                # The chain is verified once; the handles that follow read the same rows.
                options = {
                    **options,
                    "verify": "step" if options.get("verify") == "step" else "off",
                }
                if handles[0].window.stop is not None:
                    options["up_to_sequence_number"] = handles[0].window.stop
            verdict = await _lockstep(handles)
            if not verdict.deterministic or not verdict.steps:
                return verdict
            return await self._jumped(chat_id, tenant_id, options, handles[0], verdict)

    async def _jumped(
        self,
        chat_id: str,
        tenant_id: str,
        options: dict[str, Any],
        walked: ReplayHandle,
        verdict: StrictVerdict,
    ) -> StrictVerdict:
        """N steps must equal ``seek(N)``: a projection may depend on how it was reached. Both
        states are digested anew, so that what changed one in place is seen as well."""
        number, jumped = walked.current_sequence_number(), ""
        options = {**options, "snapshots": "off", "snapshot_store": None}
        async with self._client.from_event_log(chat_id, tenant_id=tenant_id, **options) as other:
            try:
                await other.seek(number)
                jumped = state_digest(other.folded)
            except (ReplayDivergenceError, ValueRefused) as error:
                require_projection_fault(error)
        digests = (state_digest(walked.folded), jumped)
        if digests[0] == digests[1]:
            return verdict
        at = verdict.steps - 1
        return StrictVerdict(False, verdict.steps, at, number, digests, BY_JUMP)


async def _lockstep(handles: list[ReplayHandle]) -> StrictVerdict:
    digests = tuple(handle.state_digest() for handle in handles)
    if not all_equal(digests):
        number = handles[0].current_sequence_number()
        return StrictVerdict(False, 0, 0, number, digests, BY_STATE)
    steps = 0
    while True:
        outcomes = [await _stepped(handle) for handle in handles]
        faults = [outcome for outcome in outcomes if isinstance(outcome, PlayheadError)]
        if len(faults) == len(handles) and all_equal(fault.what for fault in faults):
            raise faults[0]
        if all(outcome == "" for outcome in outcomes):
            return StrictVerdict(True, steps)
        digests = tuple(outcome if isinstance(outcome, str) else "" for outcome in outcomes)
        if faults or not all_equal(digests):
            number = max(handle.current_sequence_number() for handle in handles)
            reason = BY_FAULT if faults else BY_LENGTH if "" in digests else BY_STATE
            return StrictVerdict(False, steps, steps, number, digests, reason)
        steps += 1


async def _stepped(handle: ReplayHandle) -> str | PlayheadError:
    """The digest behind one more step, "" at the end, or the fault of a projection."""
    try:
        result = await handle.step()
        return "" if isinstance(result, ReplayDoneResult) else handle.state_digest()
    except (ReplayDivergenceError, ValueRefused) as error:
        require_projection_fault(error)
        return error


def create_strict_handle_replay(client: ReplayClient, *, handles: int = 2) -> StrictHandleReplay:
    """The gate over handles of ``client``.

    Args:
        handles: how many walk beside one another, from 2 on.

    Raises:
        TypeError: no client. ReplayArgumentError: a bad number of handles.
    """
    if not callable(getattr(client, "from_event_log", None)):
        raise TypeError("client is required: a ReplayClient")
    return StrictHandleReplay(client, require_number("handles", handles, 2, _MOST_HANDLES))


class StrictReplay:
    """The gate over whole turns of a `ReplayRuntime`. Made by `create_strict_replay`."""

    def __init__(self, runtime: ReplayRuntime, runs: int) -> None:
        self._runtime = runtime
        self._runs = runs

    async def replay(
        self, chat_id: str, *, tenant_id: str, message_id: str | None = None
    ) -> StrictVerdict:
        """Replay the turn several times; ``steps`` counts its rows.

        Raises:
            As `ReplayRuntime.replay_turn`, when every run raises alike.
        """
        runs: list[TurnReplay] = []
        faults: list[ReplayDivergenceError] = []
        for _ in range(self._runs):
            try:
                turn = await self._runtime.replay_turn(
                    chat_id, tenant_id=tenant_id, message_id=message_id
                )
                runs.append(turn)
            except ReplayDivergenceError as error:
                require_projection_fault(error)
                faults.append(error)
        if not runs and all_equal(fault.what for fault in faults):
            raise faults[0]
        if faults:
            return _faulty(runs, faults)
        first, rows = runs[0], [run.digests for run in runs]
        shortest = min(map(len, rows))
        for index in range(max(map(len, rows))):
            digests = tuple(row[index] if index < len(row) else "" for row in rows)
            if not all_equal(digests):
                number = first.first_sequence_number + index
                reason = BY_STATE if index < shortest else BY_LENGTH
                return StrictVerdict(False, index, index, number, digests, reason)
        return StrictVerdict(True, shortest)


def _faulty(runs: list[TurnReplay], faults: list[ReplayDivergenceError]) -> StrictVerdict:
    """Some runs raised: the row at which the first did, counted from the turn's first."""
    number = min((fault.sequence_number or 0 for fault in faults), default=0)
    index = max(0, number - (runs[0].first_sequence_number if runs else 1))
    ends = tuple(run.digests[-1] if run.digests else "" for run in runs)
    digests = (*ends, *("" for _ in faults))
    return StrictVerdict(False, index, index, number, digests, BY_FAULT)


def create_strict_replay(runtime: ReplayRuntime, *, runs: int = 2) -> StrictReplay:
    """The gate over the turns of ``runtime``.

    Raises:
        TypeError: no runtime. ReplayArgumentError: a bad number of runs.
    """
    if not callable(getattr(runtime, "replay_turn", None)):
        raise TypeError("runtime is required: a ReplayRuntime")
    return StrictReplay(runtime, require_number("runs", runs, 2, _MOST_HANDLES))
