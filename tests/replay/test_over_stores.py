"""A replay over every store: the same states, no row of another tenant, an end that stays."""

from __future__ import annotations

import inspect
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.events import Draft
from playhead.core.projections import BUILT_IN
from playhead.errors import (
    HeadConflict,
    NotFound,
    PlayheadError,
    ReplayArgumentError,
    ReplayDivergenceError,
    ReplayTenantMismatchError,
    UsageError,
)
from playhead.formats.journal import SEGMENT
from playhead.replay import (
    ReplayClient,
    StoreRuntime,
    SyncReplayClient,
    create_default_replay_client,
    create_replay_runtime,
)
from playhead.replay.evaluation import LastAnswer
from playhead.replay.strict import create_strict_handle_replay
from playhead.store.stores import Store
from playhead.store.urls import open_store
from postgres import DATABASE, Site

TENANT, CHAT = "acme", "chat-1"
MARKER = "MARKER-of-somebody-else"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = open_store(store_url)
    yield opened
    opened.close()


def record(store: Store | str, tenant: str = TENANT, chat: str = CHAT, word: str = "hello") -> None:
    """A short run with turns, a model's answer, a tool, an interrupt."""
    with playhead.record(word, root=store, tenant_id=tenant, chat_id=chat) as run:
        for number in range(2):
            with run.turn(f"{word} {number}", turn_id=f"{word}-turn-{number}"):
                with run.model_call("m-1", [{"role": "user", "content": word}]) as call:
                    call.respond(f"{word} answered {number}")
                run.tool(lambda text: text.upper(), name="shout")(word)
        run.event("interrupt.raised", {"interrupt_id": word, "reason": word})


async def digests(store: Store, **options: Any) -> list[str]:
    client = create_default_replay_client(store)
    async with client.from_event_log(
        CHAT, tenant_id=TENANT, projections=BUILT_IN, **options
    ) as handle:
        found = [handle.state_digest()]
        async for _ in handle:
            found.append(handle.state_digest())
        await handle.seek(3)
        assert handle.state_digest() == found[3]
        await handle.back()
        assert handle.state_digest() == found[2]
        return found


@pytest.mark.parametrize("verify", ["open", "step", "off"])
async def test_a_recorded_run_is_walked_in_every_store(store: Store, verify: str) -> None:
    record(store)
    found = await digests(store, verify=verify)
    lines = store.lines(store.find(TENANT, CHAT))
    assert len(found) == lines.count() + 1
    lines.close()


async def test_opening_carries_the_verdict_and_freezes_the_head(store: Store) -> None:
    record(store)
    handle = await create_default_replay_client(store).from_event_log(CHAT, tenant_id=TENANT)
    tip = store.tip(store.find(TENANT, CHAT))
    assert handle.report is not None and handle.report.verdict is playhead.Verdict.VERIFIED
    assert (handle.window.stop, handle.report.head) == (tip.size, tip.step_hash)
    await handle.seek(tip.size)
    assert handle.row_hash == tip.step_hash


# -- tenants

NOBODY: list[Any] = [None, "", "  ", "\t\n", 7, True]


def uses(store: Store) -> list[Callable[[Any, Any], Any]]:
    """Every way of the public API to read a chat, as a function of chat and tenant."""
    runtime = StoreRuntime(store)
    client = ReplayClient(runtime)
    made = create_replay_runtime(tenant_id=TENANT, session_runtime=runtime)
    allowing = create_replay_runtime(
        tenant_id=TENANT, session_runtime=runtime, authorize=lambda tenant: True
    )

    def opened(**options: Any) -> Callable[[Any, Any], Any]:
        async def use(chat: Any, tenant: Any) -> Any:
            async with client.from_event_log(chat, tenant_id=tenant, **options) as handle:
                return [r async for r in handle]

        return use

    def sync(chat: Any, tenant: Any) -> Any:
        with SyncReplayClient(runtime) as replay:
            return list(replay.from_event_log(chat, tenant_id=tenant))

    async def iterate(chat: Any, tenant: Any) -> Any:
        return [r async for r in runtime.events.iterate(chat_id=chat, tenant_id=tenant)]

    def blocking(chat: Any, tenant: Any) -> Any:
        return list(runtime.events.blocking.iterate(chat_id=chat, tenant_id=tenant))

    async def aggregate(chat: Any, tenant: Any) -> Any:
        found = await allowing.aggregate_multi_tenant([tenant], chats={tenant: [chat]})
        return found.tenants[0].chats

    async def listed(chat: Any, tenant: Any) -> Any:
        return [name for name in await runtime.events.list_chats(tenant) if name == chat]

    async def evaluated(chat: Any, tenant: Any) -> Any:
        return await LastAnswer(client, tenant).replay(chat)

    strict = create_strict_handle_replay(client)
    named = lambda call: lambda chat, tenant: call(chat_id=chat, tenant_id=tenant)  # noqa: E731
    return [
        opened(),
        opened(verify="off"),
        opened(verify="step", base="prefix", from_sequence_number=1),
        sync,
        iterate,
        blocking,
        named(lambda **k: runtime.events.fold(BUILT_IN[0], **k)),
        named(runtime.events.head),
        named(runtime.events.verify),
        named(lambda **k: runtime.events.proof(sequence_number=1, **k)),
        named(lambda **k: runtime.events.append(Draft("a.b", {}), **k, expected_head="f" * 64)),
        listed,
        lambda chat, tenant: made.replay_turn(chat, tenant_id=tenant),
        lambda chat, tenant: made.fork(chat, 1, [], tenant_id=tenant),
        lambda chat, tenant: made.verify_chain_integrity(chat, tenant_id=tenant),
        lambda chat, tenant: made.generate_proof(1, chat_id=chat, tenant_id=tenant),
        aggregate,
        evaluated,
        lambda chat, tenant: strict.replay(chat, tenant_id=tenant),
    ]


async def outcome(use: Callable[[Any, Any], Any], chat: Any, tenant: Any) -> Any:
    """What came of it: a result, or the error. Anything else than ours is a bug."""
    try:
        found = use(chat, tenant)
        return await found if inspect.isawaitable(found) else found
    except PlayheadError as error:
        return error


@pytest.mark.parametrize("tenant", NOBODY, ids=repr)
async def test_without_a_tenant_every_use_is_refused(store: Store, tenant: Any) -> None:
    record(store)
    for use in uses(store):
        for chat in (CHAT, "not-there"):
            found = await outcome(use, chat, tenant)
            assert isinstance(found, UsageError), use
            assert isinstance(found, (ReplayArgumentError, UsageError))


@pytest.mark.parametrize("chat", NOBODY, ids=repr)
async def test_without_a_chat_every_use_is_refused_or_empty(store: Store, chat: Any) -> None:
    record(store)
    for use in uses(store):
        found = await outcome(use, chat, TENANT)
        assert found == [] or isinstance(found, UsageError), use


async def test_another_tenants_chat_is_never_seen(store: Store) -> None:
    """Neither a row nor a value of it, and no other words than for a chat that is not there."""
    record(store)
    record(store, MARKER, "theirs", MARKER)
    record(store, MARKER, CHAT + "-x", MARKER)
    for use in uses(store):
        theirs = await outcome(use, "theirs", TENANT)
        missing = await outcome(use, "gone!!", TENANT)
        assert MARKER not in repr(theirs) and MARKER not in str(theirs), use
        assert type(theirs) is type(missing)
        if isinstance(theirs, PlayheadError):
            assert isinstance(theirs, (NotFound, UsageError, playhead.PlayheadError))
            assert str(theirs).replace("theirs", "gone!!") == str(missing)
        else:
            assert not theirs, use
    # and the other way round: the tenant that a runtime is bound to is the only one it serves
    for use in uses(store):
        found = await outcome(use, CHAT, MARKER)
        allowed = (NotFound, ReplayTenantMismatchError, UsageError, HeadConflict)
        assert isinstance(found, allowed) or not found, (use, found)
        assert "hello" not in repr(found)


# -- the end stays the end


async def test_a_handle_on_a_growing_chat_stays_what_it_was(store: Store) -> None:
    record(store)
    before = await digests(store)
    runtime = StoreRuntime(store)
    client = ReplayClient(runtime)
    async with client.from_event_log(CHAT, tenant_id=TENANT, projections=BUILT_IN) as handle:
        seen = [handle.state_digest()]
        number = 0
        while not (await handle.step()).done:
            seen.append(handle.state_digest())
            draft = Draft("acme.more", {"n": number})
            await runtime.events.append(draft, chat_id=CHAT, tenant_id=TENANT)
            number += 1
        assert seen == before
        await handle.seek(len(before) - 1)
        assert (await handle.step()).done
        with pytest.raises(ReplayArgumentError):
            await handle.seek(len(before))
    async with client.from_event_log(CHAT, tenant_id=TENANT) as later:
        assert later.window.stop == len(before) - 1 + number
    await runtime.events.close()


WRITER = """
import sys
import playhead
with playhead.record("live", root=sys.argv[1], tenant_id="acme", chat_id="live") as run:
    for n in range(3000):
        run.state("n", n)
        if n % 50 == 0:
            print(n, flush=True)
            if n == 1000:
                sys.stdin.readline()
"""


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_handle_is_deterministic_beside_a_live_writer(kind: str, tmp_path: Path) -> None:
    """Another process is appending all the while; every handle keeps the end that it saw."""
    url = str(tmp_path / "root") if kind == "directory" else f"sqlite:///{tmp_path / 'x.db'}"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert writer.stdout is not None and writer.stdin is not None
    sizes = []
    try:
        while writer.stdout.readline().strip() != "950":
            pass
        writer.stdin.write("go on\n")
        writer.stdin.flush()
        with SyncReplayClient(StoreRuntime.open(url)) as client:
            for _ in range(6):
                first = client.from_event_log("live", tenant_id=TENANT, projections=BUILT_IN)
                second = client.from_event_log(
                    "live",
                    tenant_id=TENANT,
                    projections=BUILT_IN,
                    up_to_sequence_number=first.window.stop,
                )
                assert first.report is not None
                assert first.report.verdict is not playhead.Verdict.FAILED
                walked = [first.state_digest() for _ in first]
                second.seek(len(walked))
                assert second.state_digest() == walked[-1]
                assert first.window.stop == len(walked) and first.step().done
                sizes.append(len(walked))
    finally:
        writer.stdin.close()
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert sizes == sorted(sizes) and sizes[0] > 900


# -- every edited byte is found


def small(store: Store | str) -> None:
    with playhead.record("a", root=store, tenant_id=TENANT, chat_id=CHAT) as run:
        run.state("k", 1)


def edit_file(root: str) -> Callable[[int, bytes], None]:
    [path] = Path(root).rglob(SEGMENT)
    whole = path.read_bytes().split(b"\n")

    def put(number: int, line: bytes) -> None:
        lines = [*whole[:number], line, *whole[number + 1 :]]
        path.write_bytes(b"\n".join(lines))

    return put


def edit_sqlite(path: str) -> Callable[[int, bytes], None]:
    def put(number: int, line: bytes) -> None:
        with sqlite3.connect(path) as database:
            database.execute(
                "UPDATE rows SET line = ? WHERE sequence_number = ?", (line, number + 1)
            )
        database.close()

    return put


def edit_postgres(site: Site) -> Callable[[int, bytes], None]:
    def put(number: int, line: bytes) -> None:
        import psycopg

        # A superuser: row-level security keeps everybody else from it, the owner too.
        with psycopg.connect(site.server.url(database=DATABASE), autocommit=True) as connection:
            connection.execute(
                f"UPDATE {site.schema}.rows SET line = %s WHERE sequence_number = %s",
                (line, number + 1),
            )

    return put


@pytest.mark.parametrize(("kind", "every"), [("directory", 1), ("sqlite", 5), ("postgresql", 29)])
def test_any_edited_byte_of_any_row_is_found_at_opening(
    kind: str, every: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "postgresql":
        site = request.getfixturevalue("pg")
        url, put = site.url(), edit_postgres(site)
    elif kind == "sqlite":
        url, put = f"sqlite:///{tmp_path / 'e.db'}", edit_sqlite(str(tmp_path / "e.db"))
    else:
        url = str(tmp_path / "root")
    small(url)
    if kind == "directory":
        put = edit_file(url)
    store = open_store(url)
    lines = [bytes(line) for _, _, line in store.lines(store.find(TENANT, CHAT)).walk(0, None)]  # type: ignore[arg-type]
    with SyncReplayClient(StoreRuntime(store)) as client:

        def opens() -> bool:
            try:
                client.from_event_log(CHAT, tenant_id=TENANT).close()
            except (ReplayDivergenceError, NotFound, PlayheadError):
                return False
            return True

        assert opens() and len(lines) == 3
        for number, line in enumerate(lines):
            for at in range(number % every, len(line), every):
                put(number, line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])
                assert not opens(), (number, at)
            put(number, line)
        assert opens()
    store.close()


def test_an_edit_is_found_without_any_signed_head_where_it_is_hashed(tmp_path: Path) -> None:
    """Only ``ts``, ``seq``, ``blob_refs`` and ``schema_version`` stand outside the step hash."""
    root = str(tmp_path / "root")
    small(root)
    for head in [*Path(root).rglob("*.checkpoint"), *(tmp_path / "state").rglob("*.checkpoint")]:
        head.unlink()
    put = edit_file(root)
    [path] = Path(root).rglob(SEGMENT)
    line = path.read_bytes().split(b"\n")[1]
    begin, end = line.index(b'"tool_call"') + 13, line.rindex(b',"tool_result"')
    with SyncReplayClient(StoreRuntime.open(root)) as client:
        for at in range(begin, end):
            put(1, line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])
            with pytest.raises(ReplayDivergenceError) as caught:
                client.from_event_log(CHAT, tenant_id=TENANT)
            assert caught.value.kind == "chain"
            assert caught.value.sequence_number in (None, 2, 3)
