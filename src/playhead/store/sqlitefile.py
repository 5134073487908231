"""Opening a SQLite file that playhead owns: its kind, its marks, its tables."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from playhead.errors import Place, Refused, StoreError
from playhead.store.sqlitekind import check_kind
from playhead.store.sqlitewait import patiently

APPLICATION: Final = 0x706C6864  # "plhd"
VERSION: Final = 1
BUSY_SECONDS: Final = 30.0
"""How long a process waits for another one's transaction."""

_TABLES: Final = (
    "CREATE TABLE chats (tenant_id TEXT NOT NULL, chat_id TEXT NOT NULL, run_id TEXT NOT NULL,"
    " size INTEGER NOT NULL, step_hash TEXT NOT NULL, length INTEGER NOT NULL,"
    " created REAL NOT NULL, written REAL NOT NULL, PRIMARY KEY (tenant_id, chat_id))",
    "CREATE UNIQUE INDEX chats_run ON chats (tenant_id, run_id)",
    "CREATE TABLE rows (tenant_id TEXT NOT NULL, chat_id TEXT NOT NULL,"
    " sequence_number INTEGER NOT NULL, event_type TEXT NOT NULL, event_id TEXT,"
    " step_hash TEXT NOT NULL, line BLOB NOT NULL,"
    " PRIMARY KEY (tenant_id, chat_id, sequence_number))",
    "CREATE INDEX rows_event ON rows (tenant_id, chat_id, event_id, sequence_number)"
    " WHERE event_id IS NOT NULL",
    "CREATE TABLE heads (tenant_id TEXT NOT NULL, chat_id TEXT NOT NULL, note TEXT NOT NULL,"
    " resume BLOB NOT NULL, PRIMARY KEY (tenant_id, chat_id))",
    "CREATE TABLE blobs (tenant_id TEXT NOT NULL, digest TEXT NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY (tenant_id, digest))",
)


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection to playhead's own database in ``path``, owner-only when it is made here.

    Raises:
        NotFound: it is missing and ``create`` is off.
        Refused, Unreadable: a link, another kind of file, or a database of another program.
        StoreError: SQLite refuses.
    """
    check_kind(path, create=create)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        patiently(db, lambda: _prepare(db, path), BUSY_SECONDS)
    except sqlite3.Error as error:
        db.close()
        raise _refused(error, path) from error
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = OFF"):
        db.execute(f"PRAGMA {pragma}")
    if not _is_ours(db, path):
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        try:
            if not _is_ours(db, path):  # another process may have been first
                for statement in _TABLES:
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")


def _is_ours(db: sqlite3.Connection, path: Path) -> bool:
    """True for playhead's database, False for an empty one.

    Raises:
        Refused: anything else.
    """
    application, version, found = _marks(db)
    if not found and not application and not version:
        return False
    if application != APPLICATION:
        raise _not_ours(path, "a SQLite database of another program")
    if version != VERSION:
        raise Refused(
            f"tables of version {version}, this playhead reads {VERSION}",
            place=Place(str(path)),
            remedy="Open it with the playhead that made it, and copy the runs from there",
        )
    if [row[0] for row in found] != sorted(_TABLES):
        raise _not_ours(path, "its tables are not playhead's")
    return True


def _marks(db: sqlite3.Connection) -> tuple[int, int, list[tuple[object]]]:
    """The two numbers and the tables, all of one moment: another process may be making them."""
    outer = db.in_transaction
    if not outer:
        db.execute("BEGIN")
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    found = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql")
    marks = (application, version, found.fetchall())
    if not outer:
        db.execute("COMMIT")
    return marks


def _not_ours(path: Path, what: str) -> Refused:
    return Refused(
        what, place=Place(str(path)), remedy="Name a file that playhead made, or a new one"
    )


def _refused(error: sqlite3.Error, path: Path) -> Refused | StoreError:
    name = getattr(error, "sqlite_errorname", "") or ""
    place = Place(str(path))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(
            "another process holds the database", place=place, remedy="Try again when it is done"
        )
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return _not_ours(path, "not a whole SQLite database")
    return StoreError(
        f"SQLite cannot open it ({name or type(error).__name__})",
        place=place,
        remedy="Check its owner, its permissions and the space on the disk",
    )
