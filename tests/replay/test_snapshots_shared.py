"""One snapshot store for many handles and processes: no way of going shows another state."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import playhead
from facets import CHAT, TENANT, ListEvents, Runtime, chained
from playhead.core.events import TYPES, Draft
from playhead.core.fold import fingerprint, fold
from playhead.core.logrow import LogRow
from playhead.core.model import Report, Verdict
from playhead.core.projections import BUILT_IN
from playhead.core.snapshot import encode
from playhead.core.wire import canonical_state
from playhead.errors import PlayheadError, ReplayArgumentError, ReplayDivergenceError
from playhead.replay import persisted
from playhead.replay.client import ReplayClient, create_default_replay_client
from playhead.replay.source import StoreRuntime
from playhead.replay.sync import SyncReplayClient
from playhead.store.snapshotdb import SqliteSnapshots
from playhead.store.snapshots import MemorySnapshots, Snapshot, SnapshotKey, SnapshotStore

SECRET = b"s" * 32
IDS = st.sampled_from(["a", "b", "c"])
KEYS = "interrupt_id subagent_run_id export_id card_id call_id turn_id message_id status".split()
PAYLOADS = st.dictionaries(st.sampled_from(KEYS), IDS | st.integers(-9, 9), max_size=5)


@st.composite
def logs(draw: st.DrawFn) -> list[LogRow]:
    kinds = st.sampled_from([*TYPES, "acme.thing"])
    parts = draw(st.lists(st.tuples(kinds, PAYLOADS), min_size=1, max_size=20))
    return chained(Draft(kind, payload) for kind, payload in parts)


MOVES = st.lists(
    st.one_of(
        st.sampled_from([("step", 0), ("back", 0), ("turn", 0), ("open", 0)]),
        st.tuples(st.just("seek"), st.integers(0, 24)),
    ),
    max_size=20,
)


class Verified(ListEvents):
    """A facet that says its chain was verified."""

    async def verify(self, *, chat_id: str, tenant_id: str) -> Report:
        return Report(chat_id, Verdict.VERIFIED, "", len(self.rows))


def at_every_row(store: SnapshotStore, rows: list[LogRow], start: int, base: str) -> None:
    """What the write policy would keep of a longer log, one behind each row."""
    key = SnapshotKey(TENANT, CHAT, base, fingerprint(BUILT_IN))
    for number in range(start + 1, len(rows) + 1):
        state = encode(fold((row.event for row in rows[start:number]), BUILT_IN))
        store.put(Snapshot(key, number, rows[number - 1].row_hash, state, 1))


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is looked for even when it saves a single row."""
    monkeypatch.setattr(persisted, "_NEAR", 1)


async def wander(
    rows: list[LogRow], moves: list[tuple[str, int]], store: SnapshotStore, **options: Any
) -> None:
    """Two handles in turns over one store; "open" changes to a fresh one."""
    client = ReplayClient(Runtime(Verified(rows)))
    low = options.get("from_sequence_number", 0)
    begin = 0 if options.get("base") == "prefix" else low

    async def fresh() -> Any:
        return await client.from_event_log(
            CHAT, tenant_id=TENANT, projections=BUILT_IN, snapshot_store=store, **options
        )

    handle, other = await fresh(), await fresh()
    for move, number in [*moves, ("seek", 24)]:
        handle, other = other, handle
        if move == "step":
            await handle.step()
        elif move == "back":
            await handle.back()
        elif move == "turn":
            await handle.replay_turn()
        elif move == "open":
            handle = await fresh()
        elif number >= low:
            await handle.seek(number)
        here = handle.current_sequence_number()
        whole = fold((row.event for row in rows[begin:here]), BUILT_IN)
        assert canonical_state(handle.folded) == canonical_state(whole)


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("snapshots", ["use", "verify"])
def test_every_way_to_a_row_gives_one_state(snapshots: str, tmp_path: Path) -> None:
    file = iter(range(10**6))

    @settings(max_examples=50, deadline=None)
    @given(rows=logs(), moves=MOVES, low=st.integers(0, 20), on_disk=st.booleans())
    def check(rows: list[LogRow], moves: list[tuple[str, int]], low: int, on_disk: bool) -> None:
        low = min(low, len(rows))
        for words in (
            {},
            {"from_sequence_number": low},
            {"from_sequence_number": low, "base": "prefix"},
        ):
            store: SnapshotStore = MemorySnapshots(SECRET)
            if on_disk:
                store = SqliteSnapshots(tmp_path / f"{next(file)}.db", SECRET)
            at_every_row(store, rows, 0, "zero@0")
            if low:
                at_every_row(store, rows, low, f"zero@{low}")
            asyncio.run(wander(rows, moves, store, snapshots=snapshots, **words))
            assert store.stats.dropped == 0
            store.close()

    check()


@pytest.mark.usefixtures("near")
@settings(max_examples=50, deadline=None)
@given(old=logs(), new=logs(), same=st.integers(0, 20), moves=MOVES)
def test_the_snapshots_of_an_older_log_show_nothing_of_it(
    old: list[LogRow], new: list[LogRow], same: int, moves: list[tuple[str, int]]
) -> None:
    """A log that was cut and written on, or made anew under the same id."""
    store = MemorySnapshots(SECRET)
    at_every_row(store, old, 0, "zero@0")
    kept = [row.event for row in old[:same]]
    drafts = [Draft(e.type, e.payload) for e in [*kept, *(row.event for row in new)]]
    asyncio.run(wander(chained(drafts), moves, store))


# -- a store, its file and other processes

LONG = 700


def record(url: str, word: str = "x", rows: int = LONG, tenant: str = TENANT) -> None:
    with playhead.record("agent", root=url, tenant_id=tenant, chat_id=CHAT) as run:
        for number in range(rows):
            run.event("interrupt.raised", {"interrupt_id": f"{word}{number % 5}", "reason": word})


SCRIPT = """
import asyncio, sys
from facets import CHAT, TENANT
from playhead.core.projections import BUILT_IN
from playhead.replay import create_default_replay_client
from playhead.store.snapshotdb import SqliteSnapshots

async def main(url, file, mode, secret, number):
    store = SqliteSnapshots(file, secret.encode() * 32)
    client = create_default_replay_client(url)
    async with client.from_event_log(
        CHAT, tenant_id=TENANT, projections=BUILT_IN, snapshots=mode, snapshot_store=store
    ) as handle:
        await handle.seek(int(number))
        print(handle.state_digest(), store.stats.found, store.stats.kept, store.stats.dropped)

asyncio.run(main(*sys.argv[1:]))
"""


def elsewhere(repo: Path, *words: object) -> list[str]:
    """digest, found, kept and dropped, in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repo / "tests")},
    )
    return found.stdout.split()


def test_a_second_process_begins_where_the_first_one_kept(repo: Path, tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "snapshots.db"
    record(url)
    first = elsewhere(repo, url, file, "use", "s", LONG)
    assert first[1] == "0" and int(first[2]) > 0
    plain = elsewhere(repo, url, file, "off", "s", LONG)
    assert plain[1:] == ["0", "0", "0"]
    for mode in ("use", "verify"):
        second = elsewhere(repo, url, file, mode, "s", LONG)
        assert second[0] == plain[0] == first[0] and second[1] != "0" and second[2:] == ["0", "0"]
    stranger = elsewhere(repo, url, file, "use", "t", LONG)  # another secret: nothing holds
    assert stranger[0] == plain[0] and stranger[1] == "0" and int(stranger[3]) > 0


async def seek(url: str, store: SnapshotStore | None, number: int, **options: Any) -> Any:
    """The canonical state behind a row, or the error."""
    with StoreRuntime.open(url) as opened:
        try:
            async with ReplayClient(opened).from_event_log(
                CHAT,
                projections=BUILT_IN,
                snapshot_store=store,
                **{"tenant_id": TENANT, **options},
            ) as handle:
                await handle.seek(number)
                return canonical_state(handle.folded)
        except PlayheadError as error:
            return error


async def test_a_flipped_byte_anywhere_in_the_file_changes_no_state(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "snapshots.db"
    record(url)
    store = SqliteSnapshots(file, SECRET)
    expected = await seek(url, store, LONG)
    assert isinstance(expected, bytes) and store.stats.kept > 0
    store.close()
    link = sqlite3.connect(file)
    link.execute("PRAGMA journal_mode = DELETE")
    link.close()
    raw = file.read_bytes()
    noticed = 0
    # One of each page's head and cells, and everything around what is kept.
    for at in [*range(0, len(raw), max(1, len(raw) // 300)), *range(0, 120, 7)]:
        file.write_bytes(raw[:at] + bytes([raw[at] ^ 0x41]) + raw[at + 1 :])
        for rest in ("-wal", "-shm", "-journal"):
            Path(f"{file}{rest}").unlink(missing_ok=True)
        damaged = SqliteSnapshots(file, SECRET)
        assert await seek(url, damaged, LONG, verify="open") == expected, at
        noticed += bool(damaged.stats.dropped or damaged.stats.failed)
        damaged.close()
    assert noticed > 20


async def test_an_edited_row_below_a_snapshot_is_found_at_opening(tmp_path: Path) -> None:
    log, store = tmp_path / "log.db", SqliteSnapshots(tmp_path / "snapshots.db", SECRET)
    record(f"sqlite:///{log}")
    await seek(f"sqlite:///{log}", store, LONG)
    link = sqlite3.connect(log)
    with link:
        (line,) = link.execute("SELECT line FROM rows WHERE sequence_number = 3").fetchone()
        edited = line.replace(b'"reason":"x"', b'"reason":"y"')
        assert edited != line
        link.execute("UPDATE rows SET line = ? WHERE sequence_number = 3", (edited,))
    link.close()
    for mode in ("use", "verify"):
        found = await seek(f"sqlite:///{log}", store, LONG, snapshots=mode)
        assert isinstance(found, ReplayDivergenceError)
        assert (found.kind, found.sequence_number) == ("chain", 3)
    believed = await seek(f"sqlite:///{log}", store, LONG, verify="off")
    folded = await seek(f"sqlite:///{log}", store, LONG, verify="off", snapshots="off")
    assert believed == folded and b'"y"' in believed


async def test_another_tenant_gets_nothing_of_a_shared_store(tmp_path: Path) -> None:
    """The same chat id, the same projections, the same file of snapshots."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    record(url, "MARKER")
    record(url, "mine", tenant="other")
    store = SqliteSnapshots(tmp_path / "snapshots.db", SECRET)
    assert b"MARKER" in await seek(url, store, LONG)
    theirs = await seek(url, store, LONG, tenant_id="other")
    assert b"MARKER" not in theirs and b"mine" in theirs
    link = sqlite3.connect(store.path)
    with link:  # who can write the file gives one tenant's rows to the other
        link.execute("DELETE FROM snapshots WHERE tenant_id = 'other'")
        link.execute("UPDATE snapshots SET tenant_id = 'other'")
    link.close()
    assert await seek(url, store, LONG, tenant_id="other") == theirs
    assert store.stats.dropped > 0


async def test_a_chat_made_anew_under_its_id_shows_nothing_of_the_old_one(tmp_path: Path) -> None:
    old, new = (f"sqlite:///{tmp_path / name}" for name in ("old.db", "new.db"))
    store = SqliteSnapshots(tmp_path / "snapshots.db", SECRET)
    record(old, "MARKER")
    await seek(old, store, LONG)
    record(new, "fresh")
    for mode in ("use", "verify"):
        again = await seek(new, store, LONG, snapshots=mode)
        assert b"MARKER" not in again and b"fresh" in again
    assert store.stats.dropped > 0


@pytest.mark.usefixtures("near")
async def test_a_frozen_end_stays_though_a_later_snapshot_is_there() -> None:
    """A facet that cannot tell its head: the first end that it reports is the end."""
    rows = chained(Draft("acme.thing", {"n": n}) for n in range(20))
    store, events = MemorySnapshots(SECRET), Verified(rows[:10])
    handle = await ReplayClient(Runtime(events)).from_event_log(
        CHAT, tenant_id=TENANT, projections=BUILT_IN, snapshot_store=store
    )
    await handle.seek(99)
    assert handle.current_sequence_number() == 10
    events.rows = rows
    at_every_row(store, rows, 0, "zero@0")
    await handle.seek(99)
    assert handle.current_sequence_number() == 10
    assert (await handle.step()).done


async def test_the_store_of_a_client_serves_all_its_handles(tmp_path: Path) -> None:
    url, store = f"sqlite:///{tmp_path / 'log.db'}", MemorySnapshots(SECRET)
    record(url)
    client = create_default_replay_client(url, snapshot_store=store)
    for number in range(2):
        async with client.from_event_log(CHAT, tenant_id=TENANT) as handle:
            await handle.seek(LONG)
            said = handle.snapshot_stats()
        assert (said.begun, said.kept > 0, said.dropped) == (number, number == 0, 0)
    mine = MemorySnapshots(SECRET)
    async with client.from_event_log(CHAT, tenant_id=TENANT, snapshot_store=mine) as handle:
        await handle.seek(LONG)
    assert mine.stats.kept > 0
    with StoreRuntime.open(url) as opened:
        sync = SyncReplayClient(opened, snapshot_store=store)
        with sync, sync.from_event_log(CHAT, tenant_id=TENANT) as walked:
            before = store.stats.found
            walked.seek(LONG)
            assert store.stats.found > before
            assert walked.snapshot_stats() == persisted.SnapshotUse(begun=1)
        for made in (ReplayClient, SyncReplayClient):
            with pytest.raises(ReplayArgumentError, match="snapshot_store"):
                made(opened, snapshot_store=object())  # type: ignore[arg-type]


@pytest.mark.usefixtures("near")
async def test_a_handle_says_what_it_dropped() -> None:
    rows = chained(Draft("acme.thing", {"n": n}) for n in range(20))
    store = MemorySnapshots(SECRET)
    at_every_row(store, chained(Draft("acme.other", {}) for _ in range(20)), 0, "zero@0")
    handle = await ReplayClient(Runtime(Verified(rows)), snapshot_store=store).from_event_log(
        CHAT, tenant_id=TENANT, projections=BUILT_IN
    )
    assert handle.snapshot_stats() == persisted.SnapshotUse()
    await handle.seek(15)
    assert handle.snapshot_stats() == persisted.SnapshotUse(dropped=15)
    assert canonical_state(handle.folded) == canonical_state(
        fold((row.event for row in rows[:15]), BUILT_IN)
    )
