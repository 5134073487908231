"""Gates that find what is not deterministic: ``playhead.replay.strict``.

Several handles walk the same window in lockstep, and the canonical bytes of their states are
compared at each step (contract: "create_strict_handle_replay"). The same log cannot give two
states unless something outside it got in: a clock, a random number, the order of a set, a
counter kept between calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import ReplayDivergenceError
from playhead.replay.arguments import require_number
from playhead.replay.client import ReplayClient
from playhead.replay.handle import ReplayHandle
from playhead.replay.results import ReplayDoneResult

if TYPE_CHECKING:
    from playhead.replay.runtime import ReplayRuntime

_MOST_HANDLES = 64


@dataclass(frozen=True, slots=True)
class StrictVerdict:
    """What a gate saw.

    ``steps`` were taken by every handle; ``first_divergence_at`` is the index of a step, from 0,
    at which states differ first, None when they never do; ``sequence_number`` is its row and
    ``digests`` the digests there, one for each handle ("" for one that could not go on).
    """

    deterministic: bool
    steps: int
    first_divergence_at: int | None = None
    sequence_number: int | None = None
    digests: tuple[str, ...] = ()


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
        """N steps must equal ``seek(N)``: a projection may depend on how it was reached."""
        options = {**options, "snapshots": "off"}
        async with self._client.from_event_log(chat_id, tenant_id=tenant_id, **options) as other:
            await other.seek(walked.current_sequence_number())
            digests = (walked.state_digest(), other.state_digest())
        if digests[0] == digests[1]:
            return verdict
        number = walked.current_sequence_number()
        return StrictVerdict(False, verdict.steps, verdict.steps - 1, number, digests)


async def _lockstep(handles: list[ReplayHandle]) -> StrictVerdict:
    if not _all_equal(handle.state_digest() for handle in handles):
        digests = tuple(handle.state_digest() for handle in handles)
        return StrictVerdict(False, 0, 0, handles[0].current_sequence_number(), digests)
    steps = 0
    while True:
        outcomes = [await _stepped(handle) for handle in handles]
        faults = [outcome for outcome in outcomes if isinstance(outcome, ReplayDivergenceError)]
        if len(faults) == len(handles):
            raise faults[0]
        if all(outcome == "" for outcome in outcomes):
            return StrictVerdict(True, steps)
        digests = tuple(outcome if isinstance(outcome, str) else "" for outcome in outcomes)
        if faults or not _all_equal(digests):
            number = max(handle.current_sequence_number() for handle in handles)
            return StrictVerdict(False, steps, steps, number, digests)
        steps += 1


async def _stepped(handle: ReplayHandle) -> str | ReplayDivergenceError:
    """The digest behind one more step, "" at the end, or the fault of a projection."""
    try:
        result = await handle.step()
    except ReplayDivergenceError as error:
        if error.kind != "projection":
            raise
        return error
    return "" if isinstance(result, ReplayDoneResult) else handle.state_digest()


def _all_equal(values: Iterable[object]) -> bool:
    return len(set(values)) <= 1


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
            As `ReplayRuntime.replay_turn`.
        """
        runs = []
        for _ in range(self._runs):
            turn = await self._runtime.replay_turn(
                chat_id, tenant_id=tenant_id, message_id=message_id
            )
            runs.append(turn)
        first = runs[0]
        for index in range(max(len(run.digests) for run in runs)):
            digests = tuple(run.digests[index] if index < len(run.digests) else "" for run in runs)
            if not _all_equal(digests):
                number = first.first_sequence_number + index
                return StrictVerdict(False, index, index, number, digests)
        return StrictVerdict(True, len(first.digests))


def create_strict_replay(runtime: ReplayRuntime, *, runs: int = 2) -> StrictReplay:
    """The gate over the turns of ``runtime``.

    Raises:
        TypeError: no runtime. ReplayArgumentError: a bad number of runs.
    """
    if not callable(getattr(runtime, "replay_turn", None)):
        raise TypeError("runtime is required: a ReplayRuntime")
    return StrictReplay(runtime, require_number("runs", runs, 2, _MOST_HANDLES))
