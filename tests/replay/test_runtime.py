"""``ReplayRuntime``: whole turns, forks in memory, the tenant it is bound to."""

from __future__ import annotations

from typing import Any

import pytest

from facets import CHAT, TENANT, ListEvents, Runtime, chained, row, runtime
from playhead.core.events import Draft
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS
from playhead.core.projections import BUILT_IN, Turns
from playhead.errors import (
    ReplayArgumentError,
    ReplayDivergenceError,
    ReplayTenantMismatchError,
    ReplayTurnNotFoundError,
)
from playhead.replay import create_replay_runtime
from playhead.replay.forked import ForkedEvents, ForkedReplay
from playhead.replay.runtime import ReplayRuntime
from playhead.replay.strict import create_strict_replay


def turns() -> list[LogRow]:
    """Two whole turns and the beginning of a third."""
    return chained(
        [
            Draft("turn.started", {}, turn_id="t1"),
            Draft("interrupt.raised", {"interrupt_id": "i", "reason": "ask"}),
            Draft("turn.completed", {"message_id": "m1", "output": "one"}, turn_id="t1"),
            Draft("turn.started", {}, turn_id="t2"),
            Draft("interrupt.resolved", {"interrupt_id": "i"}),
            Draft("turn.completed", {"message_id": "m2", "output": {"b": 1}}, turn_id="t2"),
            Draft("turn.started", {}, turn_id="t3"),
            Draft("acme.note", {"n": 1}),
        ]
    )


def made(*rows: Any, **options: Any) -> ReplayRuntime:
    return create_replay_runtime(tenant_id=TENANT, session_runtime=runtime(*rows), **options)


# -- making one


def test_it_needs_a_tenant_and_a_runtime() -> None:
    with pytest.raises(TypeError, match="runtime is required"):
        create_replay_runtime(tenant_id=TENANT, session_runtime=None)  # type: ignore[arg-type]
    for tenant in (None, "", "  ", 7):
        with pytest.raises(ReplayArgumentError) as caught:
            create_replay_runtime(tenant_id=tenant, session_runtime=runtime())  # type: ignore[arg-type]
        assert caught.value.field == "tenant_id"


async def test_every_call_names_the_tenant_that_it_is_bound_to() -> None:
    replay = made(*turns())
    calls = [
        lambda tenant: replay.replay_turn(CHAT, tenant_id=tenant),
        lambda tenant: replay.fork(CHAT, 1, [], tenant_id=tenant),
        lambda tenant: replay.verify_chain_integrity(CHAT, tenant_id=tenant),
        lambda tenant: replay.generate_proof(1, chat_id=CHAT, tenant_id=tenant),
    ]
    for call in calls:
        with pytest.raises(ReplayTenantMismatchError):
            await call("somebody-else")
        for tenant in (None, "", " "):
            with pytest.raises(ReplayArgumentError):
                await call(tenant)


async def test_what_a_facet_cannot_do_is_said() -> None:
    replay = made(*turns())
    with pytest.raises(TypeError, match=r"verify\(\)"):
        await replay.verify_chain_integrity(CHAT, tenant_id=TENANT)
    with pytest.raises(TypeError, match=r"proof\(\)"):
        await replay.generate_proof(1, chat_id=CHAT, tenant_id=TENANT)


# -- turns


async def test_the_last_completed_turn_is_meant_without_an_id() -> None:
    turn = await made(*turns()).replay_turn(CHAT, tenant_id=TENANT)
    assert (turn.completed, turn.message_id, turn.output) == (True, "m2", {"b": 1})
    assert (turn.first_sequence_number, turn.sequence_number) == (4, 6)
    assert turn.state.event_count == 6 and len(turn.digests) == 3
    assert [record.status for record in turn.state.interrupts] == ["resolved"]


async def test_a_turn_by_its_message_id_or_its_turn_id() -> None:
    for name in ("m1", "t1"):
        turn = await made(*turns()).replay_turn(CHAT, tenant_id=TENANT, message_id=name)
        assert (turn.message_id, turn.sequence_number) == ("m1", 3)
        assert [record.status for record in turn.state.interrupts] == ["pending"]
    with pytest.raises(ReplayTurnNotFoundError):
        await made(*turns()).replay_turn(CHAT, tenant_id=TENANT, message_id="t3")
    with pytest.raises(ReplayArgumentError):
        await made(*turns()).replay_turn(CHAT, tenant_id=TENANT, message_id=" ")


async def test_a_chat_that_never_ended_a_turn_gives_its_last_state() -> None:
    turn = await made(row(1, "turn.started"), row(2, "a.b")).replay_turn(CHAT, tenant_id=TENANT)
    assert (turn.completed, turn.message_id, turn.state.event_count) == (False, None, 2)
    empty = await made().replay_turn(CHAT, tenant_id=TENANT)
    assert (empty.completed, empty.sequence_number, empty.state.event_count) == (False, 0, 0)


async def test_the_gate_over_turns() -> None:
    verdict = await create_strict_replay(made(*turns())).replay(CHAT, tenant_id=TENANT)
    assert (verdict.deterministic, verdict.steps) == (True, 3)

    class Counter:
        key, version = "counter", 1
        calls = 0

        def init(self) -> int:
            return 0

        def apply(self, state: object, event: object) -> object:
            Counter.calls += 1
            return Counter.calls if getattr(event, "seq", 0) >= 4 else 0

        def view(self, state: object) -> Any:
            return state

    impure = made(*turns(), projections=[Counter()])
    verdict = await create_strict_replay(impure).replay(CHAT, tenant_id=TENANT)
    assert (verdict.deterministic, verdict.first_divergence_at) == (False, 1)
    assert verdict.sequence_number == 5
    with pytest.raises(TypeError):
        create_strict_replay(None)  # type: ignore[arg-type]
    with pytest.raises(ReplayArgumentError):
        create_strict_replay(impure, runs=1)


# -- forks

NO_TIME = "1970-01-01T00:00:00.000000Z"
NEW = [{"event_type": "acme.new", "payload": {"n": n}} for n in range(2)]


async def forked(at: int, events: Any = NEW, rows: Any = None, **options: Any) -> ForkedReplay:
    replay = made(*(turns() if rows is None else rows))
    return await replay.fork(CHAT, at, events, tenant_id=TENANT, **options)


async def test_a_fork_shares_the_rows_up_to_its_point_and_drops_the_rest() -> None:
    fork = await forked(3)
    rows = await fork.rows()
    assert [r.event_type for r in rows[2:]] == ["turn.completed", "acme.new", "acme.new"]
    assert [r.sequence_number for r in rows] == [1, 2, 3, 4, 5]
    assert {(r.tenant_id, r.chat_id) for r in rows} == {(TENANT, fork.branch_id)}
    assert fork.lineage == (fork.lineage.__class__)(CHAT, 3, turns()[2].row_hash)
    assert not fork.mid_turn
    async with fork.open(projections=BUILT_IN) as handle:
        assert [r.sequence_number async for r in handle] == [1, 2, 3, 4, 5]
        assert [record.status for record in handle.current_state().interrupts] == ["pending"]
        await handle.back()
        assert handle.current_sequence_number() == 4


async def test_the_rows_of_a_fork_are_a_chain() -> None:
    """Linked, hashed, numbered in the envelope: verify="step" finds nothing."""
    for at in (0, 1, 8):
        fork = await forked(at)
        async with fork.open(verify="step") as handle:
            assert len([r async for r in handle]) == at + 2
        prev = GENESIS if not at else turns()[at - 1].row_hash
        for number, made_row in enumerate((await fork.rows())[at:], at):
            assert made_row.prev_hash == prev and made_row.event.seq == number
            assert made_row.event.at == (
                "1970-01-01T00:00:00.000000Z" if not at else turns()[at - 1].event.at
            )
            prev = made_row.row_hash


async def test_the_same_fork_has_the_same_id_and_another_one_another() -> None:
    one, same = await forked(3), await forked(3)
    others = [
        await forked(2),
        await forked(3, NEW[:1]),
        await forked(3, [{**NEW[0], "payload": {"n": 9}}, NEW[1]]),
    ]
    assert one.branch_id == same.branch_id and len(one.branch_id) == 32
    assert len({one.branch_id, *(fork.branch_id for fork in others)}) == 4


async def test_the_original_is_only_read() -> None:
    events = ListEvents(turns())
    before = list(events.rows)
    replay = create_replay_runtime(tenant_id=TENANT, session_runtime=Runtime(events))
    fork = await replay.fork(CHAT, 2, NEW, tenant_id=TENANT)
    await fork.rows()
    assert events.rows == before
    events.rows.append(turns()[0]._replace(sequence_number=99))
    assert len(await fork.rows()) == 4  # what the original gets later is not seen


async def test_a_fork_can_be_forked() -> None:
    first = await forked(3)
    again = create_replay_runtime(tenant_id=TENANT, session_runtime=first)
    second = await again.fork(first.chat_id, 4, NEW[:1], tenant_id=TENANT)
    assert second.lineage.parent_chat_id == first.branch_id
    assert [r.event.payload for r in (await second.rows())[3:]] == [{"n": 0}, {"n": 0}]
    async with second.open(verify="step") as handle:
        assert len([r async for r in handle]) == 5


async def test_another_chat_or_tenant_has_no_rows_in_a_fork() -> None:
    fork = await forked(3)
    for chat, tenant in ((CHAT, TENANT), (fork.chat_id, "other")):
        rows = fork.events.iterate(chat_id=chat, tenant_id=tenant)
        assert [r async for r in rows] == []
        assert await fork.events.head(chat_id=chat, tenant_id=tenant) is None
        folded = await fork.events.fold(Turns(), chat_id=chat, tenant_id=tenant)
        assert folded == Turns().init()


async def test_forking_inside_a_turn_is_told_or_refused() -> None:
    assert [(await forked(at)).mid_turn for at in range(9)] == [
        False, True, True, False, True, True, False, True, True,
    ]  # fmt: skip
    assert not (await forked(3, require_turn_boundary=True)).mid_turn
    with pytest.raises(ReplayArgumentError) as caught:
        await forked(2, require_turn_boundary=True)
    assert caught.value.field == "at"


@pytest.mark.parametrize("at", [9, 1000, -1, True, "3", None, 2.0])
async def test_a_point_that_is_not_there_is_refused(at: Any) -> None:
    with pytest.raises(ReplayArgumentError) as caught:
        await forked(at)
    assert caught.value.field == "at"


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "acme.new", "payload": {}, "sequence_number": 4},
        {"event_type": "acme.new", "payload": {}, "seq": 4},
        {"payload": {}},
        {"event_type": "", "payload": {}},
        {"event_type": "nodot", "payload": {}},
        {"event_type": "acme.new", "payload": []},
        {"event_type": "acme.new", "payload": {"n": float("nan")}},
        {"event_type": "acme.new", "payload": {"n": "\ud800"}},
        {"event_type": "acme.new", "payload": {7: 1}},
        {"event_type": "tool.failed", "payload": {"call_id": "c"}},
        {"event_type": "acme.new", "name": 7},
        {"event_type": "acme.new", "turn_id": ["t"]},
        {"event_type": "acme.new", "event_id": ""},
        {"event_type": "acme.new", "paylaod": {}},
        {"event_type": "acme.new", "at": "yesterday"},
        {"event_type": "acme.new", "at": "2030-01-01T00:00:00"},
        {"event_type": "acme.new", "at": 0},
        {"event_type": "run.started", "payload": {"uid": "u"}},
        Draft("acme.new", {"n": object()}),
        Draft("acme.new", {}, prompt="\ud800"),
        Draft("acme.new", {}, tenant_id="SECRET"),
        Draft("acme.new", {}, chat_id="SECRET"),
        Draft("nodot", {}),
        "acme.new",
        None,
    ],
    ids=repr,
)
async def test_an_event_that_is_off_is_refused_by_its_place(event: Any) -> None:
    with pytest.raises(ReplayArgumentError) as caught:
        await forked(3, [NEW[0], event])
    assert caught.value.field == "events[1]" and "SECRET" not in str(caught.value)


@pytest.mark.parametrize("events", [None, "acme.new", {"event_type": "acme.new"}, 7])
async def test_events_are_a_list(events: Any) -> None:
    with pytest.raises(ReplayArgumentError) as caught:
        await forked(3, events)
    assert caught.value.field == "events"


async def test_an_event_id_is_taken_once_in_a_fork_as_in_a_chat() -> None:
    mine = {"event_type": "acme.new", "event_id": "mine"}
    for at, events in ((3, [mine, mine]), (3, [{**mine, "event_id": turns()[1].event.id}])):
        with pytest.raises(ReplayArgumentError, match="the id"):
            await forked(at, events)
    assert len(await (await forked(1, [{**mine, "event_id": turns()[1].event.id}])).rows()) == 2


async def test_values_are_in_a_fork_what_they_are_in_a_stored_row() -> None:
    given = {"pair": (1, 2), "float": 1.0, "deep": {"b": None, "a": True}}
    fork = await forked(3, [Draft("acme.new", given)])
    [*_, last] = await fork.rows()
    assert last.event.payload == {"pair": [1, 2], "float": 1.0, "deep": {"a": True, "b": None}}
    given["float"] = 2.0
    assert (await fork.rows())[-1].event.payload["float"] == 1.0


async def test_a_row_too_large_for_any_reader_is_refused() -> None:
    with pytest.raises(ReplayArgumentError, match="bytes as a row"):
        await forked(3, [Draft("acme.new", {"t": "x" * (32 << 20)})])


async def test_a_fork_never_takes_over_a_row_of_somebody_else() -> None:
    for key in ("tenant_id", "chat_id"):
        foreign = row(2, "secret.event", {"v": "SECRET"}) | {key: "SECRET"}
        with pytest.raises(ReplayTenantMismatchError) as caught:
            await forked(3, NEW, [row(1, "a.b"), foreign, row(3, "a.b")])
        assert "SECRET" not in f"{caught.value}{caught.value.__dict__}"
    events = ListEvents([row(1, "a.b"), row(2, "a.b")])
    replay = create_replay_runtime(tenant_id=TENANT, session_runtime=Runtime(events))
    fork = await replay.fork(CHAT, 2, NEW, tenant_id=TENANT)
    events.rows[1] = row(2, "a.b") | {"tenant_id": "SECRET"}
    for read in (fork.rows, fork.open().__aenter__):
        with pytest.raises(ReplayTenantMismatchError):
            found = await read()
            await found.seek(4)  # type: ignore[union-attr]


async def test_an_edited_row_of_the_shared_part_is_found_by_the_handle() -> None:
    rows = turns()
    fork = await forked(6, NEW, rows)
    rows[1] = rows[1]._replace(line=rows[1].line.replace(b"ask", b"not"))
    edited = ForkedReplay(
        fork.branch_id,
        TENANT,
        fork.lineage,
        False,
        ForkedEvents(ListEvents(rows), fork.lineage, TENANT, fork.branch_id, ()),
    )
    async with edited.open() as handle:
        with pytest.raises(ReplayDivergenceError) as caught:
            await handle.seek(6)
    assert (caught.value.kind, caught.value.sequence_number) == ("chain", 2)


async def test_a_host_that_only_says_when_turns_end_has_turns_too() -> None:
    rows = [row(1, "a.b"), row(2, "turn.completed"), row(3, "a.b"), row(4, "turn.completed")]
    rows += [row(5, "turn.paused"), row(6, "run.ended", {"status": "ok"})]
    points = [(await forked(at, [], rows)).mid_turn for at in range(7)]
    assert points == [False, True, False, True, False, False, False]


async def test_the_head_of_a_fork_without_events_is_the_shared_row() -> None:
    for at, last in ((0, GENESIS), (3, turns()[2].row_hash)):
        fork = await forked(at, [])
        assert await fork.events.head(chat_id=fork.chat_id, tenant_id=TENANT) == (at, last, 0)
        state = await fork.events.fold(Turns(), chat_id=fork.chat_id, tenant_id=TENANT)
        async with fork.open(projections=[Turns()]) as handle:
            await handle.seek(at)
            assert Turns().view(state) == handle.view("turns")


async def test_events_of_a_fork_may_bring_a_time_and_ids() -> None:
    when = "2030-01-01T00:00:00.000000Z"
    fork = await forked(
        1,
        [
            {"event_type": "turn.completed", "payload": {"message_id": "m"}, "at": when,
             "turn_id": "t1", "event_id": "mine"},
            Draft("tool.completed", {"call_id": "c", "result": [1]}, name="t"),
        ],
    )  # fmt: skip
    done, tool = (await fork.rows())[1:]
    assert (done.event.at, done.event.turn_id, done.event.id) == (when, "t1", "mine")
    assert tool.event.at == when and tool.event.payload["result"] == [1]
