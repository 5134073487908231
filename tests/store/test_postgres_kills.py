"""kill -9 of the writer, and of the server, in mid-append: what was acknowledged is there."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256

import pytest

from playhead.errors import StoreError
from playhead.store.database import NewRow, Tip
from playhead.store.postgres import COPY_FROM, PostgresDatabase
from postgres import Server, Site
from procs import kill

pytestmark = pytest.mark.crash

START = "0" * 64

# Each row's hash is over the one before and its line: the test re-derives the whole chain. It
# goes on until the server is lost; an append whose outcome is not known is no acknowledgement.
WRITER = """
import os, sys
from hashlib import sha256
from playhead.errors import StoreError
from playhead.store.database import NewRow, Tip
from playhead.store.postgres import PostgresDatabase
say = lambda text: os.write(1, (text + chr(10)).encode())
db, many = PostgresDatabase(sys.argv[1]), int(sys.argv[2])
try:
    while True:
        with db.exclusive("acme", "c1", "r1", create=True) as record:
            size, head, length = record.tip
            rows = []
            for seq in range(size, size + many):
                line = f"{os.getpid()} {seq} ".encode() + b"x" * (seq % 3000)
                head = sha256(head.encode() + line).hexdigest()
                length += len(line) + 1
                rows.append(NewRow(seq, "x.y", f"{os.getpid()}-{seq}", head, line))
            db.insert("acme", "c1", rows, Tip(size + many, head, length), 1.0)
        say(f"ack {size + many} {head}")
except StoreError as error:
    say(f"lost {error.what}")
"""


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that nobody else is using while it is killed."""
    from postgres import NoServer, servers

    running = servers()
    try:
        yield next(running)
    except NoServer as error:
        pytest.skip(f"no PostgreSQL server runs here: {error}")
    running.close()  # type: ignore[attr-defined]


def write_until(url: str, many: int, acks: int, strike: str, server: Server) -> dict[int, str]:
    """The acknowledged ends of a writer that was struck, or whose server was, after some."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(many)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        said = [child.stdout.readline() for _ in range(acks)]
        if strike == "writer":
            kill(child.pid)
        else:
            server.crash(kill=strike == "kill")
        said += child.stdout.readlines()
    words = [line.split() for line in said if line.endswith("\n")]
    if strike != "writer":
        assert words[-1][0] == "lost", "the writer was told, and did not end in a traceback"
    return {int(word[1]): word[2] for word in words if word[0] == "ack"}


def check_chain(db: PostgresDatabase, server_site: Site) -> dict[int, str]:
    """No gap, no fork, no half append; the heads by size."""
    heads = {0: START}
    head, length = START, 0
    for batch in db.rows("acme", "c1", 0, 1 << 60):
        for line in batch:
            head = sha256(head.encode() + line).hexdigest()
            length += len(line) + 1
            heads[len(heads)] = head
    record = db.chat("acme", "c1")
    assert (record.tip if record else Tip()) == Tip(len(heads) - 1, head, length)
    with server_site.raw("postgres") as raw:
        row = raw.execute(f"SELECT count(*) FROM {server_site.schema}.rows").fetchone()
    assert row == (len(heads) - 1,)
    return heads


@pytest.mark.parametrize("strike", ["writer", "immediate", "kill"])
def test_what_was_acknowledged_is_there_after_a_kill(
    own_server: Server, kills: int, strike: str
) -> None:
    site = own_server.site()
    dice = random.Random(f"2026-{strike}")
    acked: dict[int, str] = {}
    db = PostgresDatabase(site.url())
    for number in range(max(3, kills // 3)):
        many = (1, 7, COPY_FROM + 5)[number % 3]
        acks = dice.randrange(1, 15)
        acked |= write_until(site.url(), many, acks, strike, own_server)
        if strike != "writer":
            with pytest.raises(StoreError, match=r"cannot connect"):
                db.chats("acme")
            own_server.start()
        heads = check_chain(db, site)
        assert {size: heads[size] for size in acked} == acked
    assert len(acked) > kills
    db.close()


def test_a_row_in_mid_flight_leaves_no_lock_behind(own_server: Server) -> None:
    """The server lets go of a chat when its writer is killed inside of the transaction."""
    site = own_server.site()
    holder = (
        "import sys, time\n"
        "from playhead.store.postgres import PostgresDatabase\n"
        "with PostgresDatabase(sys.argv[1]).exclusive('acme', 'c1', 'r1', create=True):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, site.url()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout and child.stdout.readline() == "held\n"
        kill(child.pid)
    db = PostgresDatabase(site.url(lock_timeout="20"))
    with db.exclusive("acme", "c1", "r1", create=True) as record:
        assert record is not None and record.tip == Tip()
        db.insert("acme", "c1", [NewRow(0, "x.y", None, START, b"on")], Tip(1, START, 3), 1.0)
    db.close()
