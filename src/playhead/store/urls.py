"""Where the chains lie, as one word: a directory or the URL of a database.

DIR, file:///DIR              journals below a root directory
sqlite:///x.db                a SQLite file, relative; sqlite:////var/x.db absolute
postgresql://host/database    PostgreSQL (the extra playhead[postgres])
memory://                     this process only
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import cast
from urllib.parse import unquote

from playhead.errors import UsageError
from playhead.store.database import Database
from playhead.store.dbstore import DbStore
from playhead.store.dirstore import DirStore
from playhead.store.root import Root
from playhead.store.scope import LOCAL, check_tenant, shown_url
from playhead.store.stores import Store

Where = str | os.PathLike[str] | Root | Store | None
"""What every ``root`` parameter takes; None means ``PLAYHEAD_ROOT``, else ``.sdd``."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)\Z", re.DOTALL)
SCHEMES = "file, sqlite, postgresql, memory"


def open_store(place: Where = None, *, create: bool = True) -> Store:
    """The store that ``place`` names; a `Store` is given back as it is.

    A directory is not made before something is written; a database file is, unless ``create`` is
    off, as a command wants it that only reads.

    Raises:
        NotFound: the database file is missing and ``create`` is off.
        UsageError: an unknown scheme, a URL without a place, or a driver that is not installed.
        Refused, Unreadable, StoreError: what is there cannot be opened.
    """
    if place is None:
        place = os.environ.get("PLAYHEAD_ROOT") or None
    if place is None or isinstance(place, Root):
        return DirStore(place or Root())
    if not isinstance(place, (str, os.PathLike)):
        return place
    word = os.fspath(place)
    if not word or "\0" in word:
        raise UsageError("the root is no path", remedy="Name a directory or the URL of a store")
    parts = _SCHEME.match(word)
    if parts is None:
        return DirStore(Root(word))
    scheme, rest = parts[1].lower(), parts[2]
    opener = _OPENERS.get(scheme)
    if opener is None:
        raise UsageError(
            f"{scheme!r:.40} is no kind of store", remedy=f"Use {SCHEMES}, or a directory"
        )
    return opener(word, rest, create)


def is_url(word: str) -> bool:
    """True for the URL of a store, False for a path."""
    return _SCHEME.match(word) is not None


def is_directory(place: Where) -> bool:
    """True when ``place`` names a directory of journals, False for a database."""
    if place is None:
        place = os.environ.get("PLAYHEAD_ROOT") or None
    if place is None or isinstance(place, (Root, DirStore)):
        return True
    if not isinstance(place, (str, os.PathLike)):
        return False
    parts = _SCHEME.match(os.fspath(place))
    return parts is None or parts[1].lower() == "file"


def tenant_for(place: Where, given: str | None) -> str:
    """The tenant that a command line means: ``given``, else ``local`` in a directory.

    Everything recorded without a tenant, and every journal of another recorder, is ``local``. A
    database has no such default (decision 12).

    Raises:
        UsageError: it is blank or no key, or none is given for a database.
    """
    if given is None:
        if is_directory(place):
            return LOCAL
        raise UsageError(
            "a database needs a tenant", remedy="Name it with --tenant ID, or in PLAYHEAD_TENANT"
        )
    try:
        return check_tenant(given)
    except UsageError as error:
        what = error.what.removeprefix("tenant_id ")
        raise UsageError(
            f"--tenant (or PLAYHEAD_TENANT) {what}", remedy="Name the tenant that owns the run"
        ) from None


def _directory(url: str, rest: str, create: bool) -> Store:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"{shown_url(url)!r:.200} is no local directory", remedy="Write file:///the/directory"
        )
    return DirStore(Root(unquote("/" + path)))


def _sqlite(url: str, rest: str, create: bool) -> Store:
    from playhead.store.sqlite import SqliteDatabase

    host, _, path = rest.partition("/")
    if host or not path or "?" in path or "#" in path:
        raise UsageError(
            f"{shown_url(url)!r:.200} names no SQLite file",
            remedy="Write sqlite:///relative.db or sqlite:////absolute/file.db",
        )
    return DbStore(SqliteDatabase(unquote(path), create=create))


def _memory(url: str, rest: str, create: bool) -> Store:
    from playhead.store.memory import MemoryDatabase

    if rest:
        raise UsageError("memory:// takes nothing behind it", remedy="Write memory://")
    return DbStore(MemoryDatabase())


def _postgres(url: str, rest: str, create: bool) -> Store:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UsageError(
            "the driver for PostgreSQL is not installed",
            remedy="Install it: pip install 'playhead[postgres]'",
        ) from None
    from playhead.store.postgres import PostgresDatabase

    return DbStore(cast(Database, PostgresDatabase(url)))


_OPENERS: dict[str, Callable[[str, str, bool], Store]] = {
    "file": _directory,
    "sqlite": _sqlite,
    "memory": _memory,
    "postgresql": _postgres,
    "postgres": _postgres,
}
