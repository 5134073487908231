"""What PostgreSQL answers when it refuses, in playhead's words.

A server's own message can hold values of rows ("Key (...)=(...)"), and libpq's a password: only
the code of the fault decides what is said here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.errors import Place, StoreError
from playhead.store.postgres_url import Target

if TYPE_CHECKING:
    import psycopg

_INIT = "Make it with 'playhead store init URL', or name its schema in the URL (?schema=NAME)"
_RIGHTS = (
    "'playhead store check URL --tenant T' says what this login may do; the owner gives rights "
    "with 'playhead store init'"
)
_AGAIN = "Try again"

LOST = "the connection was lost"
UNSURE = "the connection was lost while committing: the rows may be there or not"

_BY_CODE: dict[str, tuple[str, str]] = {
    "22021": ("a name is not valid text", "Use UTF-8 without NUL in the ids of tenants and chats"),
    "22P05": ("the database cannot hold this text", "Make the database with encoding UTF8"),
    "23505": (
        "a row of this key is there already",
        "Read the chat again: another writer was first",
    ),
    "23514": ("a value does not fit the table", "Give a tenant and a chat that are not blank"),
    "25006": ("the server takes no writes", "Connect to the primary: a standby only reads"),
    "28000": ("the server refused this login", "Check the login and the server's pg_hba.conf"),
    "28P01": ("the server refused this password", "Check PGPASSWORD, the password file or the URL"),
    "3D000": ("there is no such database", "Make it with createdb, or name another one"),
    "3F000": ("no playhead schema in this database", _INIT),
    "40001": ("another transaction was first", _AGAIN),
    "40P01": ("two transactions waited for each other", _AGAIN),
    "42501": ("this login may not do that", _RIGHTS),
    "42703": ("the tables are of another version of playhead", _INIT),
    "42883": ("no playhead functions in this database", _INIT),
    "42P01": ("no playhead tables in this database", _INIT),
    "53100": ("the server's disk is full", "Free space there; what was acknowledged is whole"),
    "53200": ("the server is out of memory", _AGAIN),
    "53300": ("the server has too many connections", "Close some, or raise max_connections"),
    "54000": ("a name is too long for an index", "Use shorter ids of tenants and chats"),
}
_BY_CLASS: dict[str, tuple[str, str]] = {
    "08": (LOST, "Check that the server runs, then try again"),
    "57": (LOST, "Check that the server runs, then try again"),
    "58": ("the server's disk failed", "See the server's log"),
    "XX": ("the server found damage in itself", "See the server's log; restore a copy if it is so"),
}


def no_driver() -> StoreError:
    """The extra is not installed."""
    return StoreError(
        "the client of PostgreSQL is not installed",
        remedy="Install it: pip install 'playhead[postgres]'",
    )


def said(target: Target, what: str, remedy: str) -> StoreError:
    """A fault at this database."""
    return StoreError(what, place=Place(target.shown), remedy=remedy)


@contextmanager
def in_our_words(target: Target) -> Iterator[None]:
    """Turn every error of psycopg, and text that no database can hold, into a `StoreError`."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise fault(error, target) from None
    except UnicodeError:
        raise said(target, *_BY_CODE["22021"]) from None


def fault(error: psycopg.Error, target: Target) -> StoreError:
    """The `StoreError` for what psycopg raised."""
    import psycopg

    code = error.sqlstate or ""
    if code == "55P03":
        return said(
            target,
            f"another writer holds the chat (waited {target.lock_timeout:g} s)",
            "Try again when it is done, or wait longer (?lock_timeout=SECONDS in the URL)",
        )
    if code == "57014":
        return said(
            target,
            f"the statement took longer than {target.statement_timeout:g} s",
            "Look for locks on the server, or allow more (?statement_timeout=SECONDS in the URL)",
        )
    known = _BY_CODE.get(code) or _BY_CLASS.get(code[:2])
    if known:
        return said(target, *known)
    if code:
        return said(target, f"the database refused (SQLSTATE {code})", "See the server's log")
    if isinstance(error, psycopg.DataError):
        return said(target, *_BY_CODE["22021"])
    if isinstance(error, psycopg.OperationalError):
        return said(target, *_BY_CLASS["08"])
    return said(target, f"the client refused ({type(error).__name__})", "Check the URL")


def no_connection(error: psycopg.Error, target: Target) -> StoreError:
    """A connection was not made: libpq's first line says why, unless it holds a password."""
    import psycopg

    if not isinstance(error, psycopg.OperationalError):
        return said(target, "PostgreSQL does not understand this URL", "Check its options")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = (lines[0] if lines else "no answer").removeprefix("connection failed: ")[:300]
    if any(secret in str(error) for secret in target.secrets):
        why = "no answer, or the login was refused"
    return said(target, f"cannot connect: {why}", "Check that the server runs and takes this login")
