"""The handle, item by item of the contract, over a facet made of a list."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from facets import CHAT, TENANT, ListEvents, Runtime, chained, row, rows, runtime
from playhead.core.events import Draft
from playhead.core.projections import BUILT_IN
from playhead.errors import (
    PlayheadError,
    ReplayArgumentError,
    ReplayClosedError,
    ReplayDivergenceError,
    ReplayError,
    ReplayNotImplementedError,
    ReplayTenantMismatchError,
    ReplayTurnNotFoundError,
    ReplayUnknownEventError,
)
from playhead.replay import ReplayClient, SyncReplayClient
from playhead.replay.handle import ReplayHandle

ZERO = {"interrupts": [], "subagents": [], "exports": [], "userCards": [], "eventCount": 0}


def five() -> list[dict[str, Any]]:
    return [
        row(1, "interrupt.raised", {"interrupt_id": "i1", "reason": "ask"}),
        row(2, "vendor.thing"),
        row(3, "turn.completed", {"message_id": "m1"}),
        row(4, "interrupt.resolved", {"interrupt_id": "i1"}),
        row(5, "turn.completed", {"message_id": "m2"}),
    ]


def client(*given: Any) -> ReplayClient:
    return ReplayClient(runtime(*given))


async def opened(*given: Any, **options: Any) -> ReplayHandle:
    return await client(*given).from_event_log(CHAT, tenant_id=TENANT, **options)


# -- the client


def test_a_client_needs_a_runtime_and_says_what_it_lacks() -> None:
    class NoFold:
        def iterate(self) -> None: ...

    for given, said in (
        (None, "runtime is required"),
        (object(), "no events"),
        (Runtime(object()), "no iterate"),
        (Runtime(NoFold()), "no fold"),
    ):
        with pytest.raises(TypeError, match=said):
            ReplayClient(given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"no get\(\)"):
        ReplayClient(runtime(), cache_backend=object())  # type: ignore[arg-type]


def test_bad_arguments_raise_at_once_and_name_their_field() -> None:
    """Before anything is awaited; the one class is a TypeError and a ValueError."""
    good: dict[str, Any] = {"tenant_id": TENANT}
    bad: list[tuple[str, Any, dict[str, Any]]] = [
        ("chat_id", chat, good) for chat in (None, "", "  ", "\n", 7, b"c", True, "a\0", "\ud800")
    ]
    bad += [("tenant_id", CHAT, {"tenant_id": t}) for t in (None, "", " ", "\t", 0, [], "x" * 513)]
    bad += [
        ("from_sequence_number", CHAT, {**good, "from_sequence_number": n})
        for n in (-1, True, "3", 1.0, None, 1 << 53)
    ]
    bad += [
        ("up_to_sequence_number", CHAT, {**good, "from_sequence_number": 4, k: n})
        for k, n in (("up_to_sequence_number", 3), ("up_to_sequence_number", False))
    ]
    bad += [
        (field, CHAT, {**good, field: value})
        for field, value in (
            ("cache_read_mode", "strict"),
            ("base", "none"),
            ("verify", "yes"),
            ("snapshots", True),
            ("unreadable", ""),
            ("projections", "turns"),
            ("projections", [object()]),
            ("projections", [BUILT_IN[0], BUILT_IN[0]]),
        )
    ]
    for field, chat, options in bad:
        with pytest.raises(ReplayArgumentError) as caught:
            client().from_event_log(chat, **options)
        assert caught.value.field == field and field in str(caught.value)
        assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


def test_the_tenant_has_no_default() -> None:
    parameter = inspect.signature(ReplayClient.from_event_log).parameters["tenant_id"]
    assert parameter.default is inspect.Parameter.empty
    with pytest.raises(TypeError):
        client().from_event_log(CHAT)  # type: ignore[call-arg]


async def test_an_opening_is_awaited_or_entered_and_each_gives_a_fresh_handle() -> None:
    opening = client(*five()).from_event_log(CHAT, tenant_id=TENANT)
    first, second = await opening, await opening
    await first.step()
    assert (first.current_sequence_number(), second.current_sequence_number()) == (1, 0)
    async with opening as third:
        assert third.current_sequence_number() == 0
    with pytest.raises(ReplayClosedError):
        await third.step()


# -- steps


async def test_a_fresh_handle_stands_on_the_zero_state() -> None:
    handle = await opened(*five())
    assert handle.current_state().to_wire() == ZERO
    assert handle.current_sequence_number() == 0
    with pytest.raises(AttributeError):
        handle.current_state().event_count = 3  # type: ignore[misc]


async def test_steps_give_results_and_done_for_ever() -> None:
    handle = await opened(*five())
    result = await handle.step()
    assert not result.done
    assert (result.event_type, result.sequence_number) == ("interrupt.raised", 1)
    assert result.row.payload["interrupt_id"] == "i1" and result.cache_lookup is None
    assert result.next_state is handle.current_state()
    assert [r.sequence_number async for r in handle] == [2, 3, 4, 5]
    for _ in range(3):
        assert (await handle.step()).done is True
    assert handle.current_state().event_count == 5


async def test_bounds_are_exclusive_below_and_inclusive_above() -> None:
    handle = await opened(*five(), from_sequence_number=1, up_to_sequence_number=4)
    assert handle.current_sequence_number() == 1
    assert [r.sequence_number async for r in handle] == [2, 3, 4]
    empty = await opened(*five(), from_sequence_number=3, up_to_sequence_number=3)
    assert (await empty.step()).done


async def test_a_window_folds_from_zero_or_from_what_precedes() -> None:
    zero = await opened(*five(), from_sequence_number=3)
    whole = await opened(*five(), from_sequence_number=3, base="prefix")
    assert zero.current_state().to_wire() == ZERO
    assert whole.current_state().event_count == 3 and whole.current_sequence_number() == 3
    for handle in (zero, whole):
        await handle.step()
    assert [r.status for r in zero.current_state().interrupts] == []
    assert [r.status for r in whole.current_state().interrupts] == ["resolved"]
    await whole.seek(3)
    assert whole.current_state().event_count == 3


async def test_a_step_that_raises_moves_nothing_and_raises_again() -> None:
    handle = await opened(*rows("a.b", "c.d"), row(3, ""), row(4, "e.f"))
    await handle.step()
    await handle.step()
    before = handle.state_digest()
    for _ in range(2):
        with pytest.raises(ReplayUnknownEventError) as caught:
            await handle.step()
        assert (caught.value.sequence_number, caught.value.chat_id) == (3, CHAT)
        assert handle.current_sequence_number() == 2 and handle.state_digest() == before
    with pytest.raises(ReplayUnknownEventError):
        await handle.seek(4)
    assert handle.current_sequence_number() == 2


@pytest.mark.parametrize("kind", [None, "", 7, [], {}])
async def test_a_row_without_a_usable_type_is_the_only_row_that_stops_a_walk(kind: object) -> None:
    handle = await opened(row(1, "nobody.models_this"), row(2, kind))
    assert not (await handle.step()).done
    with pytest.raises(ReplayUnknownEventError):
        await handle.step()


@pytest.mark.parametrize("key", ["tenant_id", "chat_id"])
async def test_a_row_of_somebody_else_is_refused_before_it_is_folded(key: str) -> None:
    foreign = row(2, "secret.event", {"value": "SECRET-VALUE"}) | {key: "SECRET-SCOPE"}
    handle = await opened(row(1, "a.b"), foreign)
    await handle.step()
    for act in (handle.step, lambda: handle.seek(2), handle.replay_turn):
        with pytest.raises(ReplayTenantMismatchError) as caught:
            await act()
        assert "SECRET" not in f"{caught.value}{caught.value.__dict__}"
        assert handle.current_state().event_count == 1


async def test_numbers_must_grow_and_gaps_are_passed() -> None:
    handle = await opened(*[row(n, "a.b") for n in (1, 2, 5, 9)])
    await handle.seek(4)
    assert handle.current_sequence_number() == 2
    assert (await handle.step()).sequence_number == 5  # type: ignore[union-attr]
    await handle.seek(7)
    assert handle.current_sequence_number() == 5
    back = await opened(row(1, "a.b"), row(3, "a.b"), row(2, "a.b"))
    await back.seek(1)
    await back.step()
    with pytest.raises(ReplayDivergenceError) as caught:
        await back.step()
    assert caught.value.kind == "sequence"


# -- seek and back


async def test_seek_is_idempotent_and_steps_go_on_behind_it() -> None:
    handle = await opened(*five())
    for number in (4, 1, 1, 5, 0, 3):
        await handle.seek(number)
        fresh = await opened(*five())
        for _ in range(number):
            await fresh.step()
        assert handle.state_digest() == fresh.state_digest()
        assert handle.current_sequence_number() == number
    assert (await handle.step()).sequence_number == 4  # type: ignore[union-attr]


async def test_seek_outside_the_window_is_refused_and_moves_nothing() -> None:
    handle = await opened(*five(), from_sequence_number=1, up_to_sequence_number=4)
    await handle.seek(3)
    for number in (0, 5, -1, True, "2", None, 2.0):
        with pytest.raises(ReplayArgumentError) as caught:
            await handle.seek(number)  # type: ignore[arg-type]
        assert caught.value.field == "sequence_number"
        assert handle.current_sequence_number() == 3


async def test_seek_beyond_an_open_head_stands_at_the_head() -> None:
    handle = await opened(*five())
    await handle.seek(99)
    assert handle.current_sequence_number() == 5 and (await handle.step()).done


async def test_back_undoes_a_step_and_stops_at_the_start() -> None:
    handle = await opened(*five(), from_sequence_number=1)
    digests = [handle.state_digest()]
    async for _ in handle:
        digests.append(handle.state_digest())
    for expected in digests[-2::-1]:
        await handle.back()
        assert handle.state_digest() == expected
    await handle.back()
    assert handle.current_sequence_number() == 1


async def test_kept_states_that_lie_are_found_by_verify() -> None:
    """`snapshots="verify"` folds again and compares; a state kept by an impure fold is seen."""
    given = [row(n, "a.b") for n in range(1, 600)]
    counter = {"calls": 0}

    class Impure:
        key, version = "impure", 1

        def init(self) -> int:
            return 0

        def apply(self, state: object, event: object) -> int:
            counter["calls"] += 1
            return counter["calls"]

        def view(self, state: object) -> int:
            assert isinstance(state, int)
            return state

    handle = await opened(*given, projections=[Impure()], snapshots="verify")
    await handle.seek(599)
    with pytest.raises(ReplayDivergenceError) as caught:
        await handle.seek(300)
    assert caught.value.kind == "state" and handle.current_sequence_number() == 599


# -- turns


async def test_replay_turn_goes_to_the_next_turn_or_the_one_named() -> None:
    handle = await opened(*five())
    turn = await handle.replay_turn()
    assert (turn.completed, turn.message_id, len(turn.step_results)) == (True, "m1", 3)
    turn = await handle.replay_turn("m2")
    assert [r.sequence_number for r in turn.step_results] == [4, 5]
    assert turn.state is handle.current_state()
    rest = await handle.replay_turn()
    assert rest == (False, None, (), handle.current_state())


async def test_a_turn_that_is_not_there_raises_and_does_not_move() -> None:
    handle = await opened(*five())
    await handle.replay_turn("m1")
    for name in ("m1", "typo"):
        with pytest.raises(ReplayTurnNotFoundError):
            await handle.replay_turn(name)
        assert handle.current_sequence_number() == 3
    for name in ("", " ", 7):
        with pytest.raises(ReplayArgumentError):
            await handle.replay_turn(name)  # type: ignore[arg-type]


async def test_a_turn_is_found_by_its_camel_case_alias() -> None:
    handle = await opened(row(1, "turn.completed", {"messageId": "camel"}))
    assert (await handle.replay_turn("camel")).message_id == "camel"


# -- the end, the head, the log below


async def test_close_is_idempotent_and_what_was_seen_stays() -> None:
    handle = await opened(*five())
    await handle.step()
    await handle.close()
    await handle.close()
    assert handle.current_state().event_count == 1 and handle.current_sequence_number() == 1
    for act in (handle.step, lambda: handle.seek(1), handle.back, handle.replay_turn):
        with pytest.raises(ReplayClosedError):
            await act()


async def test_the_end_that_was_seen_stays_the_end() -> None:
    """A facet without ``head``: the first end it reports is frozen for this handle."""
    events = ListEvents(five())
    handle = await ReplayClient(Runtime(events)).from_event_log(CHAT, tenant_id=TENANT)
    await handle.seek(5)
    await handle.step()
    events.rows.append(row(6, "a.b"))
    assert (await handle.step()).done
    await handle.seek(6)
    assert handle.current_sequence_number() == 5
    fresh = await ReplayClient(Runtime(events)).from_event_log(CHAT, tenant_id=TENANT)
    await fresh.seek(6)
    assert fresh.current_sequence_number() == 6


async def test_a_facet_may_be_synchronous_and_may_take_a_bound() -> None:
    class Plain:
        def __init__(self) -> None:
            self.upto: list[int | None] = []

        def iterate(
            self,
            *,
            chat_id: str,
            from_sequence_number: int,
            up_to_sequence_number: int | None = None,
            **more: object,
        ) -> list[dict[str, Any]]:
            self.upto.append(up_to_sequence_number)
            return [r for r in five() if r["sequence_number"] > from_sequence_number]

        def fold(self) -> None: ...

    events = Plain()
    handle = await ReplayClient(Runtime(events)).from_event_log(
        CHAT, tenant_id=TENANT, up_to_sequence_number=2
    )
    assert len([r async for r in handle]) == 2 and events.upto == [2]


async def test_a_facet_that_breaks_gives_the_rows_before_it_and_then_its_error() -> None:
    class Breaks(ListEvents):
        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            async for item in super().iterate(**words):
                if item["sequence_number"] == 3:
                    raise OSError("the disk is gone")
                yield item

    handle = await ReplayClient(Runtime(Breaks(five()))).from_event_log(CHAT, tenant_id=TENANT)
    await handle.step()
    await handle.step()
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            await handle.step()
    assert handle.current_sequence_number() == 2


async def test_overlapping_steps_wait_for_one_another() -> None:
    handle = await opened(*five())
    results = await asyncio.gather(*(handle.step() for _ in range(7)))
    assert [getattr(r, "sequence_number", None) for r in results] == [1, 2, 3, 4, 5, None, None]


async def test_a_cancelled_step_takes_nothing() -> None:
    class Slow(ListEvents):
        async def iterate(self, **words: Any) -> AsyncIterator[Any]:
            await asyncio.Event().wait()
            yield None

    handle = await ReplayClient(Runtime(Slow([]))).from_event_log(CHAT, tenant_id=TENANT)
    task = asyncio.ensure_future(handle.step())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handle.current_sequence_number() == 0


# -- verification row by row


async def test_verify_step_finds_an_edited_byte_at_its_row() -> None:
    lines = chained(Draft("vendor.thing", {"n": n}) for n in range(5))
    handle = await opened(*lines, verify="step")
    assert len([r async for r in handle]) == 5
    edited = lines[:]
    edited[2] = edited[2]._replace(line=edited[2].line.replace(b'"n":2', b'"n":3'))
    handle = await opened(*edited, verify="step")
    await handle.seek(2)
    for act in (handle.step, lambda: handle.seek(4)):
        with pytest.raises(ReplayDivergenceError) as caught:
            await act()
        assert (caught.value.kind, caught.value.sequence_number) == ("chain", 3)
    moved = [lines[0], lines[1], *(r._replace(sequence_number=n) for n, r in ((3, lines[3]),))]
    handle = await opened(*moved, verify="step")
    with pytest.raises(ReplayDivergenceError, match="does not follow"):
        await handle.seek(3)


async def test_verify_step_finds_a_first_row_that_is_not_the_first() -> None:
    lines = chained(Draft("vendor.thing", {"n": n}) for n in range(4))
    cut = [row._replace(sequence_number=n) for n, row in enumerate(lines[1:], 1)]
    handle = await opened(*cut, verify="step")
    with pytest.raises(ReplayDivergenceError, match="does not follow the beginning") as caught:
        await handle.step()
    assert (caught.value.kind, caught.value.sequence_number) == ("chain", 1)


# -- errors


def test_every_error_of_replay_pickles_with_its_fields() -> None:
    scope = {"chat_id": CHAT, "tenant_id": TENANT}
    errors: list[PlayheadError] = [
        ReplayUnknownEventError(**scope, event_type=None, sequence_number=3),
        ReplayTurnNotFoundError("no turn", **scope),
        ReplayClosedError("closed", **scope),
        ReplayTenantMismatchError("other", **scope),
        ReplayDivergenceError("x", **scope, kind="chain", sequence_number=1, expected="a"),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and isinstance(again, ReplayError)
        assert again.__dict__ == error.__dict__ and str(again) == str(error)
    assert not issubclass(ReplayNotImplementedError, ReplayError)
    assert issubclass(ReplayNotImplementedError, NotImplementedError)


# -- without await


async def test_the_sync_client_does_the_same_inside_a_running_loop() -> None:
    with SyncReplayClient(runtime(*five())) as sync:
        with sync.from_event_log(CHAT, tenant_id=TENANT, projections=BUILT_IN) as handle:
            assert handle.current_state().to_wire() == ZERO
            assert [r.sequence_number for r in handle] == [1, 2, 3, 4, 5]
            assert handle.step().done
            handle.seek(2)
            handle.back()
            assert handle.current_sequence_number() == 1
            assert handle.replay_turn("m2").completed
            assert handle.view("turns") is not None
        with pytest.raises(ReplayClosedError):
            handle.step()
        with pytest.raises(ReplayArgumentError):
            sync.from_event_log(CHAT, tenant_id=" ")


def test_the_sync_client_mirrors_every_method() -> None:
    from playhead.replay.sync import SyncReplayHandle

    def public(cls: type) -> set[str]:
        return {name for name in vars(cls) if not name.startswith("_")}

    assert public(ReplayHandle) - public(SyncReplayHandle) == {"step_ready"}
    ours = inspect.signature(SyncReplayClient.from_event_log).parameters
    assert list(ours.values()) == list(
        inspect.signature(ReplayClient.from_event_log).parameters.values()
    )
