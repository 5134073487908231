"""The contract of every store (design: "Rows"): one suite, the same outcome in each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.events import Draft
from playhead.core.merkle import leaf_hashes
from playhead.core.merkle import root as merkle_root
from playhead.core.model import GENESIS
from playhead.core.projection import projection
from playhead.errors import (
    EventConflict,
    HeadConflict,
    InvalidId,
    JournalBroken,
    JournalClosed,
    NotFound,
    UsageError,
    ValueRefused,
)
from playhead.store.asynclog import EventLog
from playhead.store.eventlog import BlockingLog, LogHead
from playhead.store.scope import shown_url
from playhead.store.stores import Store
from playhead.store.urls import open_store

TENANT = "acme"
CHAT = "chat-1"
HERE: dict[str, str] = {"tenant_id": TENANT, "chat_id": CHAT}
NOBODY: list[Any] = [None, "", "  ", "\t\n", 7, True, "a\0b", "\ud800", "x" * 600]


def ticking() -> Callable[[], int]:
    """A clock that gives the same times in every store."""
    return iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1000)).__next__


def fill(log: BlockingLog, count: int, **where: Any) -> list[str]:
    scope = {**HERE, **where}
    return [
        log.append(Draft("note.taken", {"n": n, "text": "é" * n}, id=f"id-{n}"), **scope).row_hash
        for n in range(count)
    ]


def lines(store: Store) -> list[bytes]:
    found = store.lines(store.find(TENANT, CHAT))
    try:
        return [line for _, _, line in found.walk(0, None) if isinstance(line, bytes)]
    finally:
        found.close()


def test_the_same_rows_the_same_head_and_the_same_root_in_each_store(
    store: Store, tmp_path: Path
) -> None:
    """The memory store is the measure; each row is the same line, byte for byte."""
    roots, heads, rows = [], [], []
    for place in (open_store("memory://"), store):
        log = BlockingLog(place, clock=ticking())
        log.append(Draft("run.started", {"uid": "the-uid"}, run_id=CHAT), **HERE)
        fill(log, 50)
        log.close()
        rows.append(lines(place))
        heads.append(log.head(**HERE))
        chain = place.open_chain(TENANT, CHAT)
        roots.append(chain.anchor.root())
        chain.close()
    assert rows[0] == rows[1]
    assert heads[0] == heads[1] == LogHead(51, log.head(**HERE).row_hash)
    assert roots[0] == roots[1] == merkle_root(leaf_hashes(rows[0]))


def test_sequence_numbers_start_at_1_and_the_bounds_are_exclusive_and_inclusive(
    log: BlockingLog,
) -> None:
    fill(log, 5)
    every = list(log.iterate(**HERE))
    assert [row.sequence_number for row in every] == [1, 2, 3, 4, 5, 6]
    assert every[0].event_type == "run.started"
    assert dict(every[0].event.ids)["tenant_id"] == TENANT
    assert [row.prev_hash for row in every] == [GENESIS, *(row.row_hash for row in every[:-1])]
    some = list(log.iterate(**HERE, from_sequence_number=2, up_to_sequence_number=4))
    assert some == every[2:4]
    assert list(log.iterate(**HERE, from_sequence_number=6)) == []
    assert list(log.iterate(**HERE, from_sequence_number=99)) == []


def test_the_head_is_frozen_at_the_call(log: BlockingLog) -> None:
    fill(log, 3)
    rows = log.iterate(**HERE)
    log.append(Draft("note.taken", {}), **HERE)
    assert [row.sequence_number for row in rows] == [1, 2, 3, 4]


def test_an_append_returns_the_row_that_is_read_later(log: BlockingLog) -> None:
    given = log.append(
        Draft("tool.completed", {"call_id": "c", "result": {"a": [1, 2.5, None]}}, name="sum"),
        **HERE,
    )
    assert list(log.iterate(**HERE))[-1] == given
    assert given.payload["result"] == {"a": [1, 2.5, None]}


def test_the_same_event_under_its_id_is_a_no_op_and_another_one_a_conflict(
    log: BlockingLog,
) -> None:
    first = log.append(Draft("note.taken", {"n": 1}, id="one"), **HERE)
    head = log.head(**HERE)
    again = log.append(Draft("note.taken", {"n": 1}, id="one"), **HERE, expected_head=GENESIS)
    assert again == first
    others = [
        Draft("note.taken", {"n": 2}, id="one"),
        Draft("note.made", {"n": 1}, id="one"),
        Draft("note.taken", {"n": 1}, id="one", name="x"),
        Draft("note.taken", {"n": 1}, id="one", turn_id="t"),
        Draft("note.taken", {"n": 1}, id="one", model="m"),
        Draft("note.taken", {"n": True}, id="one"),
    ]
    for other in others:
        with pytest.raises(EventConflict):
            log.append(other, **HERE)
    assert log.head(**HERE) == head
    assert log.append(Draft("note.taken", {"n": 2}, id="two"), **HERE).sequence_number == 3


def test_an_id_belongs_to_its_chat(log: BlockingLog) -> None:
    one = log.append(Draft("note.taken", {"n": 1}, id="x"), **HERE)
    two = log.append(Draft("note.taken", {"n": 2}, id="x"), tenant_id=TENANT, chat_id="chat-2")
    assert one.sequence_number == two.sequence_number == 2


def test_ids_are_known_after_reopening(store: Store) -> None:
    for _ in range(2):
        log = BlockingLog(store)
        fill(log, 20)
        log.close()
    assert BlockingLog(store).head(**HERE) == log.head(**HERE)
    assert len(lines(store)) == 21


def test_expected_head(log: BlockingLog) -> None:
    with pytest.raises(HeadConflict):
        log.append(Draft("note.taken", {}), **HERE, expected_head="f" * 64)
    assert log.head(**HERE) is None
    row = log.append(Draft("note.taken", {}), **HERE, expected_head=GENESIS)
    after = log.append(Draft("note.taken", {}), **HERE, expected_head=row.row_hash)
    head = log.head(**HERE)
    assert head is not None
    log.append(Draft("note.taken", {}), **HERE, expected_head=head)
    with pytest.raises(HeadConflict) as caught:
        log.append(Draft("note.taken", {}), **HERE, expected_head=after.row_hash)
    now = log.head(**HERE)
    assert now is not None
    assert (caught.value.expected, caught.value.actual) == (after.row_hash, now.row_hash)
    assert now.size == 4


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


REFUSED: list[tuple[Draft, str]] = [
    (Draft("note", {}), "/type"),
    (Draft(".taken", {}), "/type"),
    (Draft("note.", {}), "/type"),
    (Draft("note.ta\nken", {}), "/type"),
    (Draft(None, {}), "/type"),  # type: ignore[arg-type]
    (Draft("a.b", []), "/payload"),  # type: ignore[arg-type]
    (Draft("tool.called", {"call_id": "c"}), "/payload/arguments"),
    (Draft("a.b", {"x": {"y": [0, float("nan")]}}), "/payload/x/y/1"),
    (Draft("a.b", {"x": float("inf")}), "/payload/x"),
    (Draft("a.b", {"x": "\ud800"}), "/payload/x"),
    (Draft("a.b", {"x": {1: 2}}), "/payload/x"),
    (Draft("a.b", {"x": b"raw"}), "/payload/x"),
    (Draft("a.b", {"x": deep(64)}), "/payload/x"),
    (Draft("a.b", {}, name=7), "/name"),  # type: ignore[arg-type]
    (Draft("a.b", {}, turn_id="\udfff"), "/turn_id"),
    (Draft("a.b", {}, id=""), "/id"),
    (Draft("a.b", {}, id="x" * 600), "/id"),
    (Draft("a.b", {}, id="a\0b"), "/id"),
    (Draft("run.started", {"uid": 7}), "/payload/uid"),
]


@pytest.mark.parametrize(("draft", "pointer"), REFUSED)
def test_a_bad_value_is_refused_with_its_pointer_and_nothing_is_written(
    log: BlockingLog, draft: Draft, pointer: str
) -> None:
    with pytest.raises(ValueRefused, match=pointer):
        log.append(draft, **HERE)
    assert log.head(**HERE) is None
    assert log.list_chats(TENANT) == []


def test_what_is_just_good_enough_is_written(log: BlockingLog) -> None:
    row = log.append(Draft("a.b", {"x": deep(63), "é": "\U0001f600", "big": 10**40}), **HERE)
    assert row.payload == {"x": deep(63), "é": "\U0001f600", "big": 10**40}
    assert list(log.iterate(**HERE))[-1] == row


def test_a_chain_is_opened_once(log: BlockingLog) -> None:
    log.append(Draft("run.started", {"uid": "u", "agent": "me"}), **HERE)
    with pytest.raises(ValueRefused, match=r"run\.started"):
        log.append(Draft("run.started", {"uid": "v"}), **HERE)
    rows = list(log.iterate(**HERE))
    assert [row.event_type for row in rows] == ["run.started"]
    assert dict(rows[0].event.ids) == {**HERE, "run_id": CHAT}


@pytest.mark.parametrize("bound", [-1, True, 1.0, "1", None])
def test_a_bad_bound_is_refused_at_the_call(log: BlockingLog, bound: Any) -> None:
    fill(log, 1)
    with pytest.raises(UsageError, match="from_sequence_number"):
        log.iterate(**HERE, from_sequence_number=bound)
    if bound is not None:
        with pytest.raises(UsageError, match="up_to_sequence_number"):
            log.iterate(**HERE, up_to_sequence_number=bound)


@pytest.mark.parametrize("nobody", NOBODY)
@pytest.mark.parametrize("field", ["tenant_id", "chat_id"])
def test_no_tenant_and_no_chat_is_refused_everywhere(
    log: BlockingLog, store: Store, field: str, nobody: Any
) -> None:
    fill(log, 2)
    scope: dict[str, Any] = {**HERE, field: nobody}
    calls: list[Callable[[], object]] = [
        lambda: log.iterate(**scope),
        lambda: log.fold(counter(), **scope),
        lambda: log.head(**scope),
        lambda: log.append(Draft("a.b", {}), **scope),
        lambda: store.find(scope["tenant_id"], scope["chat_id"]),
        lambda: store.open_chain(scope["tenant_id"], scope["chat_id"]),
        lambda: store.open_chain(scope["tenant_id"], scope["chat_id"], create=False),
    ]
    if field == "tenant_id":
        calls += [
            lambda: store.list_chats(nobody),
            lambda: store.find_run(nobody, "@last"),
            lambda: store.run_named(nobody, CHAT),
            lambda: store.blobs(nobody),
            lambda: log.list_chats(nobody),
        ]
    for call in calls:
        with pytest.raises(UsageError, match=field):
            call()


def test_another_tenants_chat_is_answered_as_a_missing_one(log: BlockingLog, store: Store) -> None:
    fill(log, 3, chat_id="their-secret-chat")
    ref = store.find(TENANT, "their-secret-chat")

    def said(call: Callable[[], object]) -> str:
        with pytest.raises(NotFound) as caught:
            call()
        return str(caught.value)

    for name, act in {
        "their-secret-chat": "",
        "missing-chat": "",
    }.items():
        assert log.head(name, "other") is None, act
    for ask in (
        lambda chat: log.iterate(tenant_id="other", chat_id=chat),
        lambda chat: store.find("other", chat),
        lambda chat: store.open_chain("other", chat, create=False),
        lambda chat: store.find_run("other", chat),
    ):
        theirs = said(lambda ask=ask: ask("their-secret-chat"))
        missing = said(lambda ask=ask: ask("missing-chat"))
        assert theirs.replace("their-secret-chat", "?") == missing.replace("missing-chat", "?")
        assert TENANT not in theirs
    assert store.run_named("other", ref.run_id) is None
    assert log.list_chats("other") == []
    assert said(lambda: store.find_run("other", "@last"))


def test_one_chat_id_of_two_tenants_is_two_chains(log: BlockingLog, store: Store) -> None:
    fill(log, 3)
    fill(log, 1, tenant_id="other")
    assert [len(list(log.iterate(tenant_id=t, chat_id=CHAT))) for t in (TENANT, "other")] == [4, 2]
    assert log.list_chats(TENANT) == log.list_chats("other") == [CHAT]
    tenants = {
        row.event.ids.get("tenant_id") for row in log.iterate(tenant_id="other", chat_id=CHAT)
    }
    assert tenants == {"other", None}


def test_an_event_that_names_another_chat_is_refused(log: BlockingLog) -> None:
    for draft in (Draft("a.b", {}, tenant_id="other"), Draft("a.b", {}, chat_id="other")):
        with pytest.raises(UsageError, match="another tenant or chat"):
            log.append(draft, **HERE)
    assert log.head(**HERE) is None


def test_runs_are_found_by_id_prefix_and_age(log: BlockingLog, store: Store) -> None:
    for chat in ("alpha-1", "alpha-2", "beta"):
        fill(log, 1, chat_id=chat)
    log.close()
    assert [ref.chat_id for ref in store.list_chats(TENANT)] == ["alpha-1", "alpha-2", "beta"]
    assert store.find_run(TENANT, "b").chat_id == "beta"
    assert store.find_run(TENANT, "alpha-1").chat_id == "alpha-1"
    assert store.find_run(TENANT, "@last").chat_id == "beta"
    with pytest.raises(UsageError, match="fits 2 runs"):
        store.find_run(TENANT, "alpha")
    with pytest.raises(NotFound):
        store.find_run(TENANT, "")


def test_odd_chat_ids_are_chats_too(log: BlockingLog, store: Store) -> None:
    odd = ["user:42", "../../etc", "a/b", "CON", "ünïcode", " lead", "x" * 512, "@last", "-"]
    for chat in odd:
        fill(log, 1, chat_id=chat)
    assert sorted(log.list_chats(TENANT)) == sorted(odd)
    for chat in odd:
        assert len(list(log.iterate(tenant_id=TENANT, chat_id=chat))) == 2
        assert store.find(TENANT, chat).run_id


def test_a_bad_run_id_is_refused(store: Store) -> None:
    for name in ("../x", "a/b", "con", ".hidden"):
        with pytest.raises(InvalidId):
            store.open_chain(TENANT, CHAT, run_id=name)


def counter() -> Any:
    return projection("counter", init=lambda: 0, apply=lambda state, event: state + 1)


def test_fold_is_the_fold_of_the_rows(log: BlockingLog) -> None:
    fill(log, 10)
    assert log.fold(counter(), **HERE) == 11
    assert log.fold(counter(), **HERE, up_to_sequence_number=4) == 4


async def test_the_asynchronous_log_is_the_same_log(log: BlockingLog) -> None:
    events = EventLog(log)
    row = await events.append(Draft("a.b", {"n": 1}, id="x"), **HERE)
    fill(log, 1200)
    assert [r async for r in events.iterate(**HERE)] == list(log.iterate(**HERE))
    some = events.iterate(**HERE, from_sequence_number=1, up_to_sequence_number=2)
    assert [r async for r in some] == [row]
    assert await events.head(**HERE) == log.head(**HERE)
    assert await events.fold(counter(), **HERE) == 1202
    assert await events.list_chats(TENANT) == [CHAT]
    with pytest.raises(UsageError):
        events.iterate(tenant_id="", chat_id=CHAT)


def test_finished_rows_are_taken_byte_for_byte(store: Store) -> None:
    source = open_store("memory://")
    log = BlockingLog(source)
    fill(log, 600)
    whole = lines(source)
    chain = store.open_chain(TENANT, CHAT)
    chain.append_lines(whole[:300])
    chain.append_lines(whole[300:])
    assert chain.find("id-7") == whole[8]
    assert chain.anchor.root() == merkle_root(leaf_hashes(whole))
    chain.close()
    assert lines(store) == whole
    again = BlockingLog(store)
    assert again.head(**HERE) == log.head(**HERE)
    row = again.append(Draft("a.b", {}), **HERE)  # and the copy goes on
    assert (row.sequence_number, row.prev_hash) == (602, log.head(**HERE).row_hash)
    again.close()


def broken(rows: list[bytes]) -> list[list[bytes]]:
    changed = rows[1].replace(b'"n":0', b'"n":9')
    assert changed != rows[1]
    return [
        [rows[0], changed],
        [rows[0], rows[2]],
        [rows[1]],
        [rows[0], rows[0]],
        [rows[0], rows[1][:-1]],
        [rows[0], b""],
        [rows[0], b"{}"],
        [rows[0], rows[1] + b"\n" + rows[2]],
        [rows[0], b"\xff"],
    ]


@pytest.mark.parametrize("case", range(9))
def test_rows_that_do_not_follow_are_refused_and_nothing_is_written(
    store: Store, case: int
) -> None:
    source = open_store("memory://")
    fill(BlockingLog(source), 3)
    bad = broken(lines(source))[case]
    chain = store.open_chain(TENANT, CHAT)
    with pytest.raises(JournalBroken):
        chain.append_lines(bad)
    assert (chain.next_seq, chain.head) == (0, GENESIS)
    chain.append_lines(lines(source))
    chain.close()
    assert lines(store) == lines(source)


def test_a_failure_inside_leaves_the_chain_as_it_was(store: Store, store_url: str) -> None:
    log = BlockingLog(store)
    fill(log, 1)
    log.close()
    chain = store.open_chain(TENANT, CHAT)
    fields: dict[str, Any] = {"input_hash": "", "model": None, "prompt": None, "tool_result": None}
    before = (chain.next_seq, chain.head)
    with pytest.raises(RuntimeError), chain.exclusive():
        chain.append_normal(tool_call={"n": 1}, **fields)
        assert chain.next_seq == 3
        raise RuntimeError
    if "://" in store_url:  # a journal writes row by row
        assert (chain.next_seq, chain.head) == before
    rows = chain.next_seq
    chain.append_normal(tool_call={"n": 2}, **fields)
    assert chain.next_seq == rows + 1
    chain.close()
    with pytest.raises(JournalClosed):
        chain.append_normal(tool_call=None, **fields)
    again = store.open_chain(TENANT, CHAT)
    assert again.next_seq == rows + 1
    again.close()


def test_the_head_is_signed_at_close_and_trusted_at_opening(store: Store) -> None:
    log = BlockingLog(store)
    fill(log, 5)
    log.close()
    chain = store.open_chain(TENANT, CHAT)
    heads = store.heads(store.find(TENANT, CHAT)).read(chain.anchor.ring.trusted())
    assert heads
    assert {seen.head.size for seen in heads if seen.head} == {6}
    assert not [seen.problem for seen in heads if seen.problem]
    assert chain.anchor.signed_size == 6
    assert chain.durable_upto == 6
    chain.close()


def test_blobs(store: Store) -> None:
    blobs = store.blobs(TENANT)
    digest = blobs.put(b"some bytes")
    assert digest == hashlib.sha256(b"some bytes").hexdigest()
    assert blobs.put(b"some bytes") == digest
    assert store.blobs(TENANT).get(digest) == b"some bytes"
    assert blobs.has(digest)
    assert not blobs.has("0" * 64)
    with pytest.raises(playhead.PlayheadError):
        blobs.get("0" * 64)
    with pytest.raises(playhead.PlayheadError):
        blobs.get(digest, 3)


def test_a_run_is_recorded_into_any_store(store: Store) -> None:
    for _ in range(2):
        with playhead.record("agent", root=store, run_id="r", tenant_id=TENANT) as run:
            with run.model_call("m-1", [{"role": "user", "content": "hi"}]) as call:
                call.respond({"role": "assistant", "content": "ho"})
            assert run.event("v.noted", {"n": 1}, id="once") == "once"
            with pytest.raises(EventConflict):
                run.event("v.noted", {"n": 2}, id="once")
            run.event("v.large", {"text": "x" * 100_000})
    ref = store.find_run(TENANT, "r")
    rows = list(BlockingLog(store).iterate(tenant_id=TENANT, chat_id=ref.chat_id))
    types = [row.event_type for row in rows]
    assert types.count("run.started") == 1
    assert types.count("v.noted") == 1
    assert types.count("run.ended") == 2
    assert rows[-1].row_hash == run.head
    large = next(row for row in rows if row.event_type == "v.large").payload["text"]
    assert isinstance(large, dict)
    assert store.blobs(TENANT).get(large["sha256"]) == b"x" * 100_000
    with pytest.raises(UsageError):
        store.open_chain(TENANT, "another chat", run_id="r")


def test_a_store_says_where_it_is_without_a_password(store: Store) -> None:
    assert store.url == shown_url(store.url)
