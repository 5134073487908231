"""Append and iterate in each store, beside a plain INSERT and SELECT of the same rows."""

from __future__ import annotations

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import events
from events import CHAT, TENANT
from timing import line, title

from playhead.core.events import Draft
from playhead.store.eventlog import BlockingLog
from playhead.store.stores import Store
from playhead.store.urls import open_store

TESTS = Path(__file__).resolve().parents[2] / "tests"


def stores(folder: Path, quick: bool) -> None:
    """Every store in one run; PostgreSQL where a server can be started."""
    rows = list(events.lines(5_000 if quick else 50_000))
    single = 200 if quick else 1_000
    title(
        f"append {single:,} events one by one, durable each; {len(rows):,} rows at once; read them"
    )
    _plain_sqlite(folder / "plain.db", rows, single)
    _store("memory", open_store("memory://"), rows, single)
    _store("directory", open_store(str(folder / "stores")), rows, single)
    _store("sqlite", open_store(f"sqlite:///{folder / 'stores.db'}"), rows, single)
    with _server() as server:
        if isinstance(server, str):
            print(f"  postgresql is left out: {server}")
            return
        site = server.site()
        _plain_postgres(site, rows, single)
        _store("postgresql", open_store(site.url()), rows, single)


def _store(name: str, store: Store, rows: list[bytes], single: int) -> None:
    log = BlockingLog(store)
    drafts = [Draft("acme.note", {"n": n, "text": "x" * 300}) for n in range(single)]
    log.append(drafts[0], chat_id="one", tenant_id=TENANT)
    ones = [
        _timed(lambda draft=draft: log.append(draft, chat_id="one", tenant_id=TENANT))
        for draft in drafts
    ]

    def bulk() -> None:
        chain = store.open_chain(TENANT, CHAT)
        for at in range(0, len(rows), 2_000):
            chain.append_lines(rows[at : at + 2_000])
        chain.close()

    took = _timed(bulk)
    ref = store.find(TENANT, CHAT)
    raw = _timed(lambda: sum(1 for _ in store.lines(ref).walk(0, None)))
    decoded = _timed(lambda: sum(1 for _ in log.iterate(chat_id=CHAT, tenant_id=TENANT)))
    log.close()
    store.close()
    _said(name, ones, len(rows) / took, len(rows) / raw, len(rows) / decoded)


def _said(name: str, ones: list[float], bulk: float, raw: float, decoded: float | None) -> None:
    parts = [f"one {statistics.median(ones) * 1e6:,.0f} us", f"bulk {bulk:,.0f}/s"]
    parts.append(f"rows {raw:,.0f}/s")
    if decoded is not None:
        parts.append(f"events {decoded:,.0f}/s")
    line(name, *parts)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _plain_sqlite(path: Path, rows: list[bytes], single: int) -> None:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE r (chat TEXT, n INTEGER, line BLOB, PRIMARY KEY (chat, n))")
    insert = "INSERT INTO r VALUES (?, ?, ?)"
    ones = [_timed(lambda n=n: base.execute(insert, ("one", n, rows[n]))) for n in range(single)]

    def bulk() -> None:
        base.execute("BEGIN")
        base.executemany(insert, (("all", n, row) for n, row in enumerate(rows)))
        base.execute("COMMIT")

    took = _timed(bulk)
    query = "SELECT line FROM r WHERE chat = 'all' ORDER BY n"
    read = _timed(lambda: sum(1 for _ in base.execute(query)))
    base.close()
    _said("plain INSERT, SQLite", ones, len(rows) / took, len(rows) / read, None)


def _plain_postgres(site: Any, rows: list[bytes], single: int) -> None:
    import psycopg

    from postgres import DATABASE, OWNER

    with psycopg.connect(site.server.url(OWNER, DATABASE), autocommit=True) as base:
        base.execute("CREATE TABLE r (chat TEXT, n BIGINT, line BYTEA, PRIMARY KEY (chat, n))")
        insert = "INSERT INTO r VALUES (%s, %s, %s)"
        ones = [
            _timed(lambda n=n: base.execute(insert, ("one", n, rows[n]))) for n in range(single)
        ]

        def bulk() -> None:
            with base.transaction(), base.cursor() as cursor:
                cursor.executemany(insert, [("all", n, row) for n, row in enumerate(rows)])

        took = _timed(bulk)
        query = "SELECT line FROM r WHERE chat = 'all' ORDER BY n"
        read = _timed(lambda: sum(1 for _ in base.execute(query)))
        base.execute("DROP TABLE r")
    _said("plain INSERT, PostgreSQL", ones, len(rows) / took, len(rows) / read, None)


@contextmanager
def _server() -> Iterator[Any]:
    """A server as the tests start it, or the reason why there is none."""
    sys.path.insert(0, str(TESTS))
    try:
        from postgres import NoServer, servers

        running = servers()
        try:
            yield next(running)
        except NoServer as error:
            yield str(error)
        finally:
            running.close()  # type: ignore[attr-defined]
    finally:
        sys.path.remove(str(TESTS))
