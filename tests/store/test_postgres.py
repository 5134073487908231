"""PostgresDatabase against a real server: bytes, limits, dropped connections, errors, races."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import StoreError, UsageError
from playhead.store.database import NewRow, Tip
from playhead.store.postgres import BATCH_BYTES, COPY_FROM, PostgresDatabase
from playhead.store.postgres_roles import init_store
from playhead.store.postgres_sql import chunks
from playhead.store.postgres_url import parse_url, without_password
from postgres import DATABASE, OWNER, PASSWORD, Server, Site

HASH = "a" * 64
SCALARS = [
    b"",
    b"\x00",
    b"\\x41",
    b"\\N",
    b"\xff\xfe",
    b"\n",
    b"{}",
    b"PGCOPY\n\xff\r\n\0",
    "ä\u2028".encode(),
]


@pytest.fixture
def db(pg: Site) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(pg.url())
    yield database
    database.close()


def new_rows(lines: list[bytes], start: int = 0) -> list[NewRow]:
    return [NewRow(start + n, "x.y", f"e{start + n}", HASH, line) for n, line in enumerate(lines)]


def add(db: PostgresDatabase, lines: list[bytes], chat: str = "c1", tenant: str = "acme") -> Tip:
    """Append lines, as a store does."""
    with db.exclusive(tenant, chat, f"run-{chat}", create=True) as record:
        assert record is not None
        old = record.tip
        length = old.length + sum(len(line) + 1 for line in lines)
        tip = Tip(old.size + len(lines), HASH, length)
        db.insert(tenant, chat, new_rows(lines, old.size), tip, 12.5)
    return tip


def lines_of(db: PostgresDatabase, chat: str = "c1", tenant: str = "acme") -> list[bytes]:
    return [line for batch in db.rows(tenant, chat, 0, 1 << 60) for line in batch]


def test_a_chat_is_made_grows_and_is_listed(db: PostgresDatabase) -> None:
    with db.exclusive("acme", "c1", "r1", create=False) as record:
        assert record is None
    assert db.chat("acme", "c1") is None and db.chats("acme") == []
    tip = add(db, [b"one", b"two"])
    assert add(db, []) == tip, "an empty append changes nothing"
    record = db.chat("acme", "c1")
    assert record is not None and record.tip == Tip(2, HASH, 8)
    assert (record.run_id, record.written) == ("run-c1", 12.5) and record.created > 1.6e9
    add(db, [b"x"], "c0")
    assert [chat.chat_id for chat in db.chats("acme")] == ["c1", "c0"], "oldest first"
    assert db.chats("other") == [] and db.chat("other", "c1") is None


def test_any_bytes_come_back_by_both_ways(db: PostgresDatabase) -> None:
    few = [scalar * n for scalar in SCALARS for n in (1, 3)]
    many = few * (COPY_FROM // len(few) + 1)
    assert len(few) < COPY_FROM <= len(many)
    add(db, few, "few")
    add(db, many, "many")
    assert lines_of(db, "few") == few and lines_of(db, "many") == many


def test_a_copy_of_100k_rows_is_what_inserts_are(pg: Site, db: PostgresDatabase) -> None:
    """Column by column, through a cursor that knows nothing of playhead."""
    lines = [b'{"n":%d,"x":"\\\xff\x00\t"}' % n for n in range(100_000)]
    add(db, lines, "copied")
    db._may_copy = False
    add(db, lines, "inserted")
    columns = "sequence_number, event_type, event_key, row_hash, line"
    with pg.raw("postgres") as raw:
        raw.execute(f"ANALYZE {pg.schema}.rows")  # without figures the join may be a nested loop
        same = raw.execute(
            f"SELECT count(*), bool_and(a.event_type = b.event_type AND a.event_key = b.event_key"
            f" AND a.row_hash = b.row_hash AND a.line = b.line)"
            f" FROM {pg.schema}.rows AS a JOIN {pg.schema}.rows AS b USING (sequence_number)"
            " WHERE a.chat_id = 'copied' AND b.chat_id = 'inserted'"
        ).fetchone()
        assert same == (100_000, True)
        first = raw.execute(f"SELECT {columns} FROM {pg.schema}.rows LIMIT 1").fetchone()
        assert first is not None and len(first[2]) == 32
    assert lines_of(db, "copied") == lines


def test_chunks_are_bounded_and_lose_nothing() -> None:
    rows = new_rows([b"x" * (5 << 20)] * 7 + [b"y"] * 50_000)
    parts = list(chunks(rows))
    assert [row for part in parts for row in part] == rows
    assert all(len(part) <= 20_000 for part in parts) and all(parts)
    assert all(sum(len(row.line) for row in part) <= 16 << 20 for part in parts)
    assert list(chunks([])) == [] and len(list(chunks(new_rows([b"z" * (20 << 20)])))) == 1


def test_reading_is_in_batches_of_bounded_size(db: PostgresDatabase) -> None:
    big = [bytes([n]) * (BATCH_BYTES // 3) for n in range(9)] + [b"z" * (2 * BATCH_BYTES), b"end"]
    add(db, big)
    batches = list(db.rows("acme", "c1", 0, 1 << 60))
    assert [line for batch in batches for line in batch] == big
    assert all(len(batch) == 1 or sum(map(len, batch[:-1])) < BATCH_BYTES for batch in batches), (
        "a batch ends when it is full"
    )
    assert max(len(batch) for batch in batches) <= 4
    add(db, [b"%d" % n for n in range(2000)], "small")
    assert max(len(batch) for batch in db.rows("acme", "small", 0, 5000)) <= 512
    assert [*db.rows("acme", "small", 1990, 1993)] == [[b"1990", b"1991", b"1992"]]
    assert not [*db.rows("acme", "small", 5, 5)] and not [*db.rows("acme", "small", 9000, 9001)]


def test_a_missing_row_ends_the_rows(pg: Site, db: PostgresDatabase) -> None:
    add(db, [b"%d" % n for n in range(1500)])
    with pg.raw("postgres") as raw:
        raw.execute(f"DELETE FROM {pg.schema}.rows WHERE sequence_number = 701")
    assert lines_of(db) == [b"%d" % n for n in range(700)]
    assert [*db.rows("acme", "c1", 700, 703)] == []


@pytest.mark.parametrize("odd", ["", "\0", "\ud800", "x" * 100_000, "ä\u202e", "%s"])
def test_an_event_is_found_by_any_id_and_any_type_is_taken(db: PostgresDatabase, odd: str) -> None:
    with db.exclusive("acme", "c1", "r1", create=True):
        rows = [
            NewRow(0, odd, odd, HASH, b"first"),
            NewRow(1, odd, odd, HASH, b"second"),
            NewRow(2, odd, None, HASH, b"third"),
        ]
        db.insert("acme", "c1", rows, Tip(3, HASH, 19), 1.0)
        assert db.find_event("acme", "c1", odd) == b"first", "inside, uncommitted"
    assert db.find_event("acme", "c1", odd) == b"first"
    assert db.find_event("acme", "c1", odd + "x") is None
    assert db.find_event("other", "c1", odd) is None


def test_notes_and_blobs(db: PostgresDatabase) -> None:
    assert db.note("acme", "c1") is None and db.blob("acme", HASH) is None
    db.put_note("acme", "c1", "head\n1", b"\x00\xff")
    db.put_note("acme", "c1", "head\n2", b"")
    assert db.note("acme", "c1") == ("head\n2", b"")
    data = bytes(range(256)) * 50_000
    db.put_blob("acme", HASH, data)
    db.put_blob("acme", HASH, b"another")
    assert db.blob("acme", HASH) == data, "what is there stays"
    assert db.blob("other", HASH) is None and db.note("other", "c1") is None


def test_leaving_with_an_exception_leaves_nothing(db: PostgresDatabase) -> None:
    class Struck(BaseException):
        pass

    with pytest.raises(Struck), db.exclusive("acme", "c1", "r1", create=True):
        db.insert("acme", "c1", new_rows([b"x"]), Tip(1, HASH, 2), 1.0)
        db.put_blob("acme", HASH, b"inside")
        db.put_note("acme", "c1", "inside", b"")
        raise Struck
    assert db.chats("acme") == [] and db.blob("acme", HASH) is None
    assert db.note("acme", "c1") is None
    add(db, [b"on"])


def test_rows_are_added_inside_exclusive_of_their_chat_and_at_its_end(db: PostgresDatabase) -> None:
    add(db, [b"0"])
    rows = new_rows([b"1"], 1)
    with pytest.raises(StoreError, match="inside 'exclusive'"):
        db.insert("acme", "c1", rows, Tip(2, HASH, 4), 1.0)
    for chat, tenant in (("c2", "acme"), ("c1", "other")):
        with (
            pytest.raises(StoreError, match="inside 'exclusive'"),
            db.exclusive(tenant, chat, "r9", create=True),
        ):
            db.insert("acme", "c1", rows, Tip(2, HASH, 4), 1.0)
    for gap in (2, 0):
        with (
            pytest.raises(StoreError, match=r"follow the end|there already"),
            db.exclusive("acme", "c1", "r1", create=True),
        ):
            db.insert("acme", "c1", new_rows([b"1"], gap), Tip(gap + 1, HASH, 4), 1.0)
    with (
        pytest.raises(StoreError, match="holds a chat already"),
        db.exclusive("acme", "c1", "r1", create=True),
        db.exclusive("acme", "c2", "r2", create=True),
    ):
        pass
    with (
        pytest.raises(StoreError, match="holds another chat"),
        db.exclusive("acme", "c3", "run-c1", create=True),
    ):
        pass
    assert lines_of(db) == [b"0"] and [chat.chat_id for chat in db.chats("acme")] == ["c1"]


def test_another_tenant_is_not_seen_from_inside_of_exclusive(db: PostgresDatabase) -> None:
    add(db, [b"theirs"], tenant="other")
    with db.exclusive("acme", "c1", "r1", create=True):
        assert lines_of(db) == [] and lines_of(db, tenant="other") == [b"theirs"]
        assert [chat.tip.size for chat in db.chats("acme")] == [0]


@pytest.mark.parametrize("bad", ["", " ", "\t\n", "a\0b", "\ud800", "x" * 600, None, 7, True])
def test_what_is_no_id_is_refused_by_every_method(db: PostgresDatabase, bad: Any) -> None:
    calls = [
        lambda: db.chats(bad),
        lambda: db.chat(bad, "c1"),
        lambda: db.chat("acme", "" if bad is None else bad),
        lambda: list(db.rows(bad, "c1", 0, 9)),
        lambda: db.find_event(bad, "c1", "e"),
        lambda: db.note(bad, "c1"),
        lambda: db.blob(bad, HASH),
        lambda: db.put_note(bad, "c1", "", b""),
        lambda: db.put_blob(bad, HASH, b""),
        lambda: db.exclusive(bad, "c1", "r1", create=True).__enter__(),
    ]
    for call in calls:
        with pytest.raises(UsageError):
            call()


# --- connections and faults ------------------------------------------------------------------


def ended(pg: Site) -> int:
    """End every connection of the application login."""
    with pg.raw("postgres") as raw:
        sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = %s"
        row = raw.execute(sql, (pg.app,)).fetchone()
        assert row is not None
        return int(row[0])


def test_a_connection_that_was_dropped_is_replaced(pg: Site, db: PostgresDatabase) -> None:
    add(db, [b"0"])
    assert ended(pg) == 1
    add(db, [b"1"])
    assert ended(pg) == 1
    assert lines_of(db) == [b"0", b"1"]
    taken = db.rows("acme", "c1", 0, 1 << 60)
    assert ended(pg) == 1
    assert next(taken) == [b"0", b"1"]


def test_a_connection_lost_inside_is_told_and_nothing_is_half_there(
    pg: Site, db: PostgresDatabase
) -> None:
    add(db, [b"0"])
    with (
        pytest.raises(StoreError, match="connection was lost"),
        db.exclusive("acme", "c1", "r1", create=True),
    ):
        db.insert("acme", "c1", new_rows([b"1"], 1), Tip(2, HASH, 4), 1.0)
        ended(pg)
        db.insert("acme", "c1", new_rows([b"2"], 2), Tip(3, HASH, 6), 1.0)
    with (
        pytest.raises(StoreError, match="while committing"),
        db.exclusive("acme", "c1", "r1", create=True),
    ):
        db.insert("acme", "c1", new_rows([b"1"], 1), Tip(2, HASH, 4), 1.0)
        ended(pg)
    assert lines_of(db) == [b"0"]
    add(db, [b"1"])


def test_a_writer_that_waits_too_long_is_told(pg: Site, db: PostgresDatabase) -> None:
    add(db, [b"0"])
    hasty = PostgresDatabase(pg.url(lock_timeout="0.05"))
    with db.exclusive("acme", "c1", "r1", create=True):
        with pytest.raises(StoreError, match=r"another writer holds the chat \(waited 0.05 s\)"):
            add(hasty, [b"1"])
        assert lines_of(hasty) == [b"0"], "readers never wait"
        add(hasty, [b"x"], "c2")
    add(hasty, [b"1"])
    hasty.close()


def test_a_statement_that_takes_too_long_is_told(pg: Site) -> None:
    with pg.raw("postgres") as raw:
        raw.execute(
            f"CREATE OR REPLACE FUNCTION {pg.schema}.tenant() RETURNS text LANGUAGE sql VOLATILE"
            " AS 'SELECT pg_sleep(30)::text'"
        )
    hasty = PostgresDatabase(pg.url(statement_timeout="0.05"))
    with pytest.raises(StoreError, match=r"longer than 0.05 s"):
        hasty.chats("acme")
    hasty.close()


def test_nothing_is_left_on_a_connection(pg: Site, db: PostgresDatabase) -> None:
    add(db, [b"%d" % n for n in range(COPY_FROM)])
    (connection,) = db._pool._idle
    for name in ("playhead.tenant", "statement_timeout", "lock_timeout"):
        row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        assert row in (("",), ("0",))
    assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname ~ '^pg_temp'")
    connection.rollback()


@pytest.mark.parametrize("server_says", ["off", "local", "remote_apply"])
def test_a_commit_waits_for_the_flush_whatever_the_server_says(
    pg: Site, db: PostgresDatabase, server_says: str
) -> None:
    with pg.raw("postgres") as raw:
        raw.execute(f"ALTER ROLE {pg.app} SET synchronous_commit = {server_says}")
    with db.exclusive("acme", "c1", "r1", create=True):
        held = db._mine()
        assert held is not None
        row = held[2].execute("SHOW synchronous_commit").fetchone()
    assert row == ("remote_apply" if server_says == "remote_apply" else "on",)


def test_no_temporary_table_is_needed(pg: Site) -> None:
    with pg.raw("postgres") as raw:
        raw.execute(f"REVOKE TEMPORARY ON DATABASE {DATABASE} FROM PUBLIC")
        try:
            db = PostgresDatabase(pg.url())
            lines = [b"%d" % n for n in range(COPY_FROM * 2)]
            add(db, lines)
            assert lines_of(db) == lines
            db.close()
        finally:
            raw.execute(f"GRANT TEMPORARY ON DATABASE {DATABASE} TO PUBLIC")


def test_closing_is_final_and_may_be_repeated(db: PostgresDatabase) -> None:
    add(db, [b"0"])
    db.close()
    db.close()
    with pytest.raises(StoreError, match="was closed"):
        db.chats("acme")


def test_the_password_is_shown_nowhere(pg_server: Server) -> None:
    wrong = pg_server.tcp_url("wr0ng&pass")
    right = pg_server.tcp_url(PASSWORD)
    assert PostgresDatabase(right).chats is not None
    for url in (
        wrong,
        right.replace("/postgres", "/nowhere"),
        right.replace("127.0.0.1", "no-such-host.invalid"),
        right + "?sslmode=perhaps",
        right + "?passwd=hidden",
        right,  # the database holds no schema of playhead
    ):
        database = PostgresDatabase(url)
        with pytest.raises(StoreError) as caught:
            database.chats("acme")
        database.close()
        for text in (str(caught.value), repr(caught.value), database.url, repr(database._target)):
            for secret in ("wr0ng", "s3cret", "p%40ss", "p@ss", "hidden"):
                assert secret not in text
        assert caught.value.remedy and caught.value.__cause__ is None
    for odd in (
        "http://x:pw@h/d",
        "postgresql://x:pw@h:99999/d",
        "postgresql://x:p#pw@h/d",
        "postgresql://x:pw@[h/d",
        "postgresql://x:pw@h/d\0",
        "postgresql://x:pw@h/d?schema=a-b",
        "postgresql://x:pw@h/d?schema=pg_x",
        "postgresql://x:pw@h/d?lock_timeout=soon",
    ):
        with pytest.raises((UsageError, StoreError)) as caught:
            PostgresDatabase(odd).chats("acme")
        assert "pw" not in str(caught.value)
    assert without_password("postgresql://a:b@h/d?password=c&x=1") == "postgresql://a@h/d?x=1"
    assert parse_url("postgres://a@h/d", "s1").shown == "postgres://a@h/d?schema=s1"


def test_a_database_without_the_schema_says_how_to_make_it(pg: Site) -> None:
    for schema in ("nowhere", pg.schema):
        database = PostgresDatabase(pg.server.url(pg.app, "postgres", schema=schema))
        with pytest.raises(StoreError, match="store init"):
            database.chats("acme")
        database.close()


# --- several threads and processes -----------------------------------------------------------


def test_threads_share_one_database(db: PostgresDatabase) -> None:
    start = threading.Barrier(6)
    faults: list[BaseException] = []

    def work(name: int) -> None:
        try:
            start.wait()
            for n in range(20):
                add(db, [b"%d-%d" % (name, n)], "shared")
                add(db, [b"%d" % n], f"own{name}")
        except BaseException as error:
            faults.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert sorted(lines_of(db, "shared")) == sorted(
        b"%d-%d" % (n, m) for n in range(6) for m in range(20)
    )
    assert len(db._pool._idle) <= 4


RACER = """
import sys
from playhead.store.database import NewRow, Tip
from playhead.store.postgres import PostgresDatabase
db, name = PostgresDatabase(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
for word in sys.stdin:
    size = int(word)
    with db.exclusive("acme", "c1", "r1", create=True) as record:
        won = record.tip.size == size
        if won:
            row = NewRow(size, "x.y", None, "a" * 64, name)
            db.insert("acme", "c1", [row], Tip(size + 1, "a" * 64, 2 * size + 2), 1.0)
    print("won" if won else f"conflict {record.tip.size}", flush=True)
"""


def test_two_processes_race_on_one_chat(pg: Site, db: PostgresDatabase) -> None:
    """Both expect the same end of the chain: one wins, the other is told where it is now."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, pg.url(), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for n in range(2)
    ]
    pipes = [(racer.stdin, racer.stdout) for racer in racers]
    with racers[0], racers[1]:
        assert all(out and out.readline() == "ready\n" for _, out in pipes)
        winners = []
        for size in range(60):
            for into, _ in pipes:
                assert into
                into.write(f"{size}\n")
            said = [out.readline().strip() for _, out in pipes if out]
            assert sorted(said) == [f"conflict {size + 1}", "won"]
            winners.append(b"%d" % said.index("won"))
        for into, _ in pipes:
            assert into
            into.close()
    assert lines_of(db) == winners


def test_a_forked_child_uses_connections_of_its_own(db: PostgresDatabase) -> None:
    from procs import in_fork

    add(db, [b"0"])
    assert in_fork(lambda: str(add(db, [b"1"]).size)) == "2"
    add(db, [b"2"])
    assert lines_of(db) == [b"0", b"1", b"2"]


def test_memory_is_flat_while_reading(pg: Site, tmp_path: Path) -> None:
    import tracemalloc

    db = PostgresDatabase(pg.url())
    for _ in range(6):
        add(db, [b"x" * 4000] * 2500)
    tracemalloc.start()
    count = sum(len(batch) for batch in db.rows("acme", "c1", 0, 1 << 60))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    db.close()
    assert count == 15_000 and peak < 4 * BATCH_BYTES, "of 60 MB in all"


def test_init_needs_a_database_in_utf8(pg_server: Server) -> None:
    name = pg_server.fresh("latin")
    import psycopg

    with psycopg.connect(pg_server.url(), autocommit=True) as raw:
        raw.execute(
            f"CREATE DATABASE {name} OWNER {OWNER} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0"
        )
    with pytest.raises(StoreError, match="UTF-8"):
        init_store(pg_server.url(OWNER, name))
