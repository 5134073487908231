"""Snapshots around a handle: taken, opened, kept for later seeks, and never believed too much."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import playhead
from facets import CHAT, TENANT, ListEvents, Runtime, chained, row, runtime
from playhead.core.canonical import step_bytes
from playhead.core.events import Draft
from playhead.core.fold import fingerprint, fold
from playhead.core.logrow import LogRow
from playhead.core.model import Report, Verdict
from playhead.core.projection import projection
from playhead.core.projections import BUILT_IN
from playhead.core.snapshot import OVERHEAD, encode
from playhead.core.wire import state_digest
from playhead.errors import (
    NotFound,
    ReplayArgumentError,
    ReplayDivergenceError,
    ReplayTenantMismatchError,
    ValueRefused,
)
from playhead.replay import ReplayClient, SyncReplayClient, create_replay_runtime
from playhead.replay.portable import FORMAT
from playhead.replay.runtime import ReplayRuntime
from playhead.replay.source import StoreRuntime
from playhead.store.snapshotdb import SqliteSnapshots
from playhead.store.snapshots import MemorySnapshots, Snapshot, SnapshotKey

SECRET = b"k" * 32


def log(count: int = 12) -> list[LogRow]:
    return chained(
        Draft("interrupt.raised", {"interrupt_id": f"i{n}", "reason": "x" * 40})
        if n % 3 == 0
        else Draft("turn.completed", {"message_id": f"m{n}"})
        for n in range(count)
    )


def made(rows: list[Any], projections: Any = BUILT_IN, tenant: str = TENANT) -> ReplayRuntime:
    return create_replay_runtime(
        tenant_id=tenant, session_runtime=runtime(*rows), projections=projections
    )


async def taken(rows: list[Any], number: int, projections: Any = BUILT_IN, **options: Any) -> bytes:
    client = ReplayClient(runtime(*rows))
    opening = client.from_event_log(CHAT, tenant_id=TENANT, projections=projections, **options)
    async with opening as handle:
        await handle.seek(number)
        return handle.snapshot()


# -- from_snapshot


@pytest.mark.parametrize("verify", ["full", "digest"])
async def test_a_handle_goes_on_where_the_snapshot_stands(verify: Any) -> None:
    rows = log()
    for number in range(13):
        data = await taken(rows, number)
        handle = await made(rows).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify=verify)
        async with handle:
            assert handle.current_sequence_number() == number and handle.snapshot() == data
            for at in range(number, 13):
                events = [r.event for r in rows[:at]]
                assert handle.state_digest() == state_digest(fold(events, BUILT_IN))
                done = (await handle.step()).done
                assert done == (at == 12)
            await handle.seek(number)
            assert handle.snapshot() == data
            await handle.seek(3)
            assert handle.state_digest() == state_digest(
                fold([r.event for r in rows[:3]], BUILT_IN)
            )


@pytest.mark.parametrize("verify", ["full", "digest"])
@pytest.mark.parametrize("options", [{"from_sequence_number": 4}, {"base": "prefix"}])
async def test_a_window_has_its_own_base(verify: Any, options: Any) -> None:
    rows = log()
    options = {"from_sequence_number": 4, **options}
    data = await taken(rows, 8, **options)
    handle = await made(rows).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify=verify)
    assert handle.snapshot() == data and handle.current_sequence_number() == 8
    assert handle.current_state().event_count == (8 if "base" in options else 4)


def test_the_sync_handle_gives_the_same_bytes() -> None:
    with (
        SyncReplayClient(runtime(*log())) as client,
        client.from_event_log(CHAT, tenant_id=TENANT, projections=BUILT_IN) as handle,
    ):
        handle.seek(5)
        assert json.loads(handle.snapshot())["snapshot"]["sequence_number"] == 5


async def test_a_projection_that_cannot_be_kept_is_named() -> None:
    class Bare:
        key, version = "bare", 1

        def init(self) -> object:
            return []

        def apply(self, state: object, event: object) -> object:
            return state

        def view(self, state: object) -> Any:
            return state

    with pytest.raises(ValueRefused, match="bare"):
        await taken(log(), 3, [Bare()])


async def refused(data: Any, rows: list[Any], verify: str, **more: Any) -> Exception:
    words = {"chat_id": CHAT, "tenant_id": TENANT, **more}
    projections = words.pop("projections", BUILT_IN)
    with pytest.raises((ReplayArgumentError, ReplayDivergenceError)) as caught:
        await made(rows, projections, words["tenant_id"]).from_snapshot(
            data, verify=verify, **words
        )
    assert "SECRET" not in f"{caught.value}{caught.value.__dict__}"
    return caught.value


@pytest.mark.parametrize("verify", ["full", "digest"])
async def test_a_snapshot_of_something_else_is_refused(verify: str) -> None:
    rows, data = log(), await taken(log(), 6)
    for more in ({"chat_id": "other"}, {"tenant_id": "other"}, {"projections": BUILT_IN[:2]}):
        error = await refused(data, rows, verify, **more)
        assert isinstance(error, ReplayArgumentError) and error.field == "snapshot"
    bumped = projection("turns-too", init=dict, apply=lambda state, event: state, version=1)
    newer = projection("turns-too", init=dict, apply=lambda state, event: state, version=2)
    error = await refused(await taken(rows, 6, [bumped]), rows, verify, projections=[newer])
    assert "other projections" in str(error)
    for bad in (None, "text", 7, b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, data[:-1]):
        error = await refused(bad, rows, verify)
        assert isinstance(error, ReplayArgumentError) and error.field == "snapshot"


@pytest.mark.parametrize("verify", ["full", "digest"])
async def test_every_damaged_byte_is_found(verify: str) -> None:
    rows = log(4)
    data = await taken(rows, 3, [])
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        error = await refused(damaged, rows, verify, projections=[])
        assert getattr(error, "kind", "state") == "state"


def forged(data: bytes, **members: Any) -> bytes:
    """The document with other members and a digest that holds."""
    doc = json.loads(data)
    doc["snapshot"].update(members)
    doc["sha256"] = sha256(FORMAT.encode() + b"\0" + step_bytes(doc["snapshot"])).hexdigest()
    return json.dumps(doc).encode()


async def test_a_forged_state_is_found_by_folding_again() -> None:
    rows = log()
    data = await taken(rows, 6)
    state = json.loads(data)["snapshot"]["state"]
    other = json.loads(await taken(rows, 5))["snapshot"]["state"]
    error = await refused(forged(data, state=other), rows, "full")
    assert isinstance(error, ReplayDivergenceError) and error.kind == "state"
    for bad in ({}, {**state, "core": None}, {**state, "states": {}}, {**state, "set": "x"}):
        for verify in ("full", "digest"):
            error = await refused(forged(data, state=bad), rows, verify)
            assert getattr(error, "kind", "state") == "state"
    for member in (
        {"reducer_version": 99},
        {"fingerprint": "0" * 64},
        {"base": "zero@"},
        {"base": "zero@-1"},
        {"base": "zero@99"},
        {"base": "SECRET"},
        {"sequence_number": -1},
        {"sequence_number": "6"},
        {"tenant_id": " "},
        {"chat_id": None},
    ):
        for verify in ("full", "digest"):
            assert isinstance(await refused(forged(data, **member), rows, verify), ValueError)
    for member in ({"row_hash": "0" * 64}, {"sequence_number": 7}, {"sequence_number": 600}):
        for verify in ("full", "digest"):
            error = await refused(forged(data, **member), rows, verify)
            assert isinstance(error, ReplayDivergenceError) and error.kind == "chain"
    zero = forged(await taken(rows, 0), state=state)
    for verify in ("full", "digest"):
        error = await refused(zero, rows, verify)
        assert isinstance(error, ReplayDivergenceError) and error.kind == "state"


@pytest.mark.parametrize("verify", ["full", "digest"])
async def test_a_log_that_changed_is_found(verify: str) -> None:
    rows, data = log(), await taken(log(), 6)
    other = chained(Draft("acme.other", {"n": n}) for n in range(12))
    for changed in (rows[:5], other, []):
        error = await refused(data, changed, verify)
        assert isinstance(error, ReplayDivergenceError) and error.kind == "chain"
    edited = rows[:]
    edited[5] = edited[5]._replace(line=edited[5].line.replace(b"m5", b"m6"))
    if verify == "digest":  # the row itself no longer hashes to what it stores
        error = await refused(data, edited, verify)
        assert isinstance(error, ReplayDivergenceError) and error.kind == "chain"
    foreign = [*rows[:5], rows[5]._replace(tenant_id="SECRET")]
    with pytest.raises(ReplayTenantMismatchError):
        await made(foreign).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify=verify)


async def test_rows_behind_a_believed_snapshot_are_checked_as_they_are_taken() -> None:
    rows, data = log(), await taken(log(), 6)
    rows[8] = rows[8]._replace(line=rows[8].line.replace(b"m8", b"m9"))
    handle = await made(rows).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify="digest")
    assert not (await handle.step()).done and not (await handle.step()).done
    with pytest.raises(ReplayDivergenceError):
        await handle.step()
    moved = [*log()[:6], log()[7]._replace(sequence_number=7)]
    handle = await made(moved).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify="digest")
    with pytest.raises(ReplayDivergenceError, match="does not follow"):
        await handle.step()


async def test_rows_without_hashes_bind_no_snapshot() -> None:
    rows = [row(n, "a.b") for n in range(1, 5)]
    data = await taken(rows, 3)
    handle = await made(rows).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT)
    assert handle.current_sequence_number() == 3
    error = await refused(data, rows, "digest")
    assert isinstance(error, ReplayArgumentError)


async def test_the_tenant_and_the_word_are_checked_first() -> None:
    data = await taken(log(), 6)
    with pytest.raises(ReplayTenantMismatchError):
        await made(log()).from_snapshot(data, chat_id=CHAT, tenant_id="other")
    for tenant in (None, "", " "):
        with pytest.raises(ReplayArgumentError):
            await made(log()).from_snapshot(data, chat_id=CHAT, tenant_id=tenant)  # type: ignore[arg-type]
    for word in ("FULL", None, True):
        with pytest.raises(ReplayArgumentError) as caught:
            await made(log()).from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify=word)  # type: ignore[arg-type]
        assert caught.value.field == "verify"


async def test_over_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    with playhead.record("agent", root=url, tenant_id=TENANT, chat_id=CHAT) as run:
        for number in range(6):
            run.event("interrupt.raised", {"interrupt_id": f"i{number}", "reason": "r"})
    with StoreRuntime.open(url) as opened:
        replay = create_replay_runtime(
            tenant_id=TENANT, session_runtime=opened, projections=BUILT_IN
        )
        client = ReplayClient(opened)
        async with client.from_event_log(CHAT, tenant_id=TENANT, projections=BUILT_IN) as handle:
            await handle.seek(4)
            data, digest = handle.snapshot(), handle.state_digest()
        for verify in ("full", "digest"):
            again = await replay.from_snapshot(data, chat_id=CHAT, tenant_id=TENANT, verify=verify)  # type: ignore[arg-type]
            assert again.state_digest() == digest
            assert (again.report is not None) == (verify == "full")
        other = create_replay_runtime(tenant_id="other", session_runtime=opened)
        theirs = forged(data, tenant_id="other")
        with pytest.raises((NotFound, ReplayArgumentError)):
            await other.from_snapshot(theirs, chat_id=CHAT, tenant_id="other")


# -- a store of snapshots below seek


class Verified(ListEvents):
    """A facet whose chain was verified, over rows that a test may change afterwards."""

    async def verify(self, *, chat_id: str, tenant_id: str) -> Report:
        return Report(chat_id, Verdict.VERIFIED, "", len(self.rows))


SMALL = projection("count", init=lambda: 0, apply=lambda state, event: state + 1)


def quiet(count: int) -> list[LogRow]:
    return chained(Draft("acme.thing", {"n": n}) for n in range(count))


async def opened(events: ListEvents, store: Any, **options: Any) -> Any:
    options = {"projections": [SMALL], "snapshot_store": store, **options}
    return await ReplayClient(Runtime(events)).from_event_log(CHAT, tenant_id=TENANT, **options)


def key() -> SnapshotKey:
    return SnapshotKey(TENANT, CHAT, "zero@0", fingerprint([SMALL]))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return MemorySnapshots(SECRET)
    return SqliteSnapshots(tmp_path / "snapshots.db", SECRET)


class Asked(ListEvents):
    """Tells which rows were asked for: the rows behind ``from_sequence_number``."""

    def __init__(self, rows: list[LogRow]) -> None:
        super().__init__(rows)
        self.first: list[int] = []

    verify = Verified.verify

    def iterate(self, *, chat_id: str, tenant_id: str, from_sequence_number: int = 0) -> Any:
        self.first.append(from_sequence_number)
        return super().iterate(
            chat_id=chat_id, tenant_id=tenant_id, from_sequence_number=from_sequence_number
        )


@pytest.mark.parametrize("mode", ["off", "use", "verify"])
@pytest.mark.parametrize("checked", ["open", "step"])
async def test_a_later_handle_starts_near_and_gives_the_same_state(
    store: Any, mode: str, checked: str
) -> None:
    rows = quiet(1200)
    first = await opened(Asked(rows), store, snapshots=mode, verify=checked)
    await first.seek(1200)
    assert store.stats.kept == (0 if mode == "off" else 4)
    events = Asked(rows)
    later = await opened(events, store, snapshots=mode, verify=checked)
    await later.seek(1100)
    assert later.state_digest() == state_digest(fold([r.event for r in rows[:1100]], [SMALL]))
    assert (1024 in events.first) == (mode != "off")
    assert (0 in events.first) == (mode != "use")
    assert (await later.step()).sequence_number == 1101
    await later.seek(100)
    assert later.view("count") == 100


async def test_small_seeks_ask_no_store() -> None:
    class Never:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            def method(*words: Any) -> Any:
                raise AssertionError(name)

            return method

    handle = await opened(Verified(quiet(400)), Never())
    for number in (255, 3, 200):
        await handle.seek(number)
    for words in ({"snapshots": "off"}, {"verify": "off"}, {"unreadable": "count"}):
        handle = await opened(Verified(quiet(600)), Never(), **words)
        await handle.seek(600)
    handle = await opened(ListEvents(quiet(600)), Never())  # nobody verified these rows
    await handle.seek(600)


async def test_what_does_not_fit_is_dropped_and_the_log_folded_again(store: Any) -> None:
    rows = quiet(600)
    lie = (await opened(Verified(rows), MemorySnapshots(SECRET)))._first.folded
    hashes = {n: rows[n - 1].row_hash for n in (300, 400, 500, 550)}
    for number, row_hash, state in (
        (300, hashes[300], b"{}"),
        (400, "0" * 64, encode(lie)),
        (500, "", encode(lie)),
        (550, hashes[400], encode(lie)),
    ):
        assert store.put(Snapshot(key(), number, row_hash, state, 10))
    handle = await opened(Verified(rows), store)
    await handle.seek(600)
    assert handle.state_digest() == state_digest(fold([r.event for r in rows], [SMALL]))
    assert store.stats.dropped == 4
    await handle.seek(10)
    await handle.seek(600)
    assert handle.view("count") == 600


async def test_a_rewritten_or_shorter_log_never_shows_the_old_state(store: Any) -> None:
    await (await opened(Verified(quiet(600)), store)).seek(600)
    assert store.stats.kept == 2
    other = chained(Draft("acme.else", {"n": -n}) for n in range(560))
    last = projection("count", init=lambda: 0, apply=lambda state, event: event.payload["n"])
    handle = await opened(Verified(other), store, projections=[last])  # the same key and version
    await handle.seek(560)
    assert handle.view("count") == -559
    short = await opened(Verified(quiet(100)), store)
    await short.seek(100)
    assert short.view("count") == 100


async def test_a_planted_state_is_seen_by_verify_and_dropped(store: Any) -> None:
    rows = quiet(600)
    wrong = encode(fold([r.event for r in rows[:299]], [SMALL]))
    store.put(Snapshot(key(), 300, rows[299].row_hash, wrong, 10))
    handle = await opened(Verified(rows), store, snapshots="verify")
    with pytest.raises(ReplayDivergenceError) as caught:
        await handle.seek(600)
    assert caught.value.kind == "state" and handle.current_sequence_number() == 0
    for again in (handle, await opened(Verified(rows), store, snapshots="verify")):
        await again.seek(600)
        assert again.view("count") == 600
        await again.seek(310)
        assert again.view("count") == 310


async def test_what_was_folded_on_from_a_planted_state_goes_with_it(store: Any) -> None:
    rows = quiet(1200)
    wrong = encode(fold([r.event for r in rows[:299]], [SMALL]))
    store.put(Snapshot(key(), 300, rows[299].row_hash, wrong, 10))
    await (await opened(Verified(rows), store, snapshots="use")).seek(1200)
    with pytest.raises(ReplayDivergenceError):
        await (await opened(Verified(rows), store, snapshots="verify")).seek(1200)
    handle = await opened(Verified(rows), store, snapshots="use")
    await handle.seek(1200)
    assert handle.view("count") == 1200


async def test_an_edited_row_is_never_kept_from(store: Any) -> None:
    """Under verify="step" the walk stops; without verification nothing is written."""
    rows = quiet(600)
    rows[100] = rows[100]._replace(line=rows[100].line.replace(b'"n":100', b'"n":101'))
    handle = await opened(Verified(rows), store, verify="step")
    with pytest.raises(ReplayDivergenceError):
        await handle.seek(600)
    for words in ({"verify": "off"}, {}):
        await (await opened(ListEvents(rows), store, **words)).seek(600)
    mixed = [r._replace(line=b"") if r.sequence_number == 9 else r for r in quiet(600)]
    await (await opened(ListEvents(mixed), store, verify="step")).seek(600)
    assert store.stats.kept == 0


async def test_all_snapshots_together_are_no_larger_than_the_log() -> None:
    grows = projection(
        "grows", init=lambda: "", apply=lambda state, event: state + str(event.payload["n"])
    )
    rows = quiet(4000)
    kept = MemorySnapshots(SECRET)
    await (await opened(Verified(rows), kept, projections=[grows])).seek(4000)
    sizes = [len(snapshot.state) for snapshot, _ in kept._held.values()]
    assert len(sizes) >= 2
    assert sum(sizes) + OVERHEAD * len(sizes) <= sum(len(r.line) + 1 for r in rows)
    again = await opened(Verified(rows), kept, projections=[grows])
    await again.seek(4000)
    assert len(kept._held) == len(sizes)  # a second handle writes none of them again


async def test_folds_of_other_bases_and_projections_keep_apart(store: Any) -> None:
    rows = quiet(900)
    whole = await opened(Verified(rows), store)
    await whole.seek(900)
    window = await opened(Verified(rows), store, from_sequence_number=100)
    await window.seek(900)
    assert window.view("count") == 800
    again = await opened(Verified(rows), store, from_sequence_number=100)
    await again.seek(900)
    assert again.view("count") == 800
    prefix = await opened(Verified(rows), store, from_sequence_number=100, base="prefix")
    await prefix.seek(900)
    assert prefix.view("count") == 900


async def test_a_fold_that_cannot_be_kept_is_folded(store: Any) -> None:
    class Bare:
        key, version = "bare", 1

        def init(self) -> object:
            return [0]

        def apply(self, state: Any, event: object) -> object:
            return [state[0] + 1]

        def view(self, state: Any) -> Any:
            return state[0]

    handle = await opened(Verified(quiet(900)), store, projections=[Bare()])
    await handle.seek(900)
    assert handle.view("bare") == 900 and store.stats.kept == 0


@pytest.mark.parametrize("given", [object(), "sqlite:///x.db", 7])
def test_a_store_that_is_none_is_refused_at_the_call(given: Any) -> None:
    client = ReplayClient(runtime())
    with pytest.raises(ReplayArgumentError) as caught:
        client.from_event_log(CHAT, tenant_id=TENANT, snapshot_store=given)
    assert caught.value.field == "snapshot_store"


async def test_a_store_that_answers_nonsense_changes_no_state() -> None:
    rows = quiet(600)
    good = Snapshot(key(), 590, rows[589].row_hash, b"{}", 10)
    for answer in (replace(good, sequence_number=9999), replace(good, sequence_number=0), good):

        class Odd(MemorySnapshots):
            def nearest(self, key: SnapshotKey, at_or_below: int, found: Any = answer) -> Any:
                return found

        handle = await opened(Verified(rows), Odd(SECRET))
        await handle.seek(600)
        assert handle.view("count") == 600
