"""The URL of a PostgreSQL store: what libpq gets, what is playhead's own, what may be shown.

``postgresql://LOGIN@HOST:PORT/DATABASE?schema=playhead&lock_timeout=10``; its options are told in
docs/how-to/postgresql.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from playhead.errors import UsageError

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "playhead"
LOCK_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
CONNECT_SECONDS = 10

_OWN = ("schema", "lock_timeout", "statement_timeout")
_SECRET = ("password", "passwd", "sslpassword")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_REMEDY = "Write it as postgresql://LOGIN@HOST:PORT/DATABASE?schema=NAME"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a database is. ``conninfo`` may hold a password, ``shown`` never does.

    ``secrets`` are the passwords in every spelling of the URL: a message that holds one is not
    passed on. Timeouts are in seconds; 0 waits for ever.
    """

    conninfo: str
    shown: str
    schema: str
    lock_timeout: float
    statement_timeout: float
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Target({self.shown!r})"


def parse_url(url: str, schema: str | None = None) -> Target:
    """Take a URL apart; ``schema`` is put into one that names none.

    Raises:
        UsageError: no PostgreSQL URL, a schema that is no plain name or not the URL's own, a
            timeout that is no number of seconds. The message never holds the URL itself.
    """
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        password = parts.password
    except ValueError:
        raise UsageError("this is no URL", remedy=_REMEDY) from None
    if parts.scheme not in SCHEMES or "\0" in unquote(url):
        raise UsageError("this is no PostgreSQL URL", remedy=_REMEDY)
    if parts.fragment:
        raise UsageError(
            "the URL holds a '#'", remedy="Spell '#' in a password as %23, or use a password file"
        )
    own = {name: value for name, value in pairs if name in _OWN}
    if schema is not None and own.setdefault("schema", schema) != schema:
        raise UsageError("the URL names another schema", remedy="Name the schema once")
    shown = without_password(url)
    if schema is not None and ("schema", schema) not in pairs:
        shown += ("&" if parts.query else "?") + urlencode({"schema": schema})
    schema = own.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(
            "the schema is no plain name",
            remedy="Use small letters, digits and '_', not starting with a digit or 'pg_'",
        )
    passed = [(name, value) for name, value in pairs if name not in _OWN]
    given = [password] if password else []
    given += [value for name, value in passed if name in _SECRET and value]
    return Target(
        conninfo=urlunsplit(parts._replace(query=urlencode(passed))),
        shown=shown,
        schema=schema,
        lock_timeout=_seconds(own, "lock_timeout", LOCK_SECONDS),
        statement_timeout=_seconds(own, "statement_timeout", STATEMENT_SECONDS),
        secrets=tuple({spelling for word in given for spelling in (word, unquote(word))}),
    )


def without_password(url: str) -> str:
    """The URL as it may be shown: no password before the host and none among the options."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in pairs if name not in _SECRET])
    return urlunsplit(parts._replace(netloc=login.partition(":")[0] + at + host, query=kept))


def _seconds(own: dict[str, str], name: str, default: float) -> float:
    text = own.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text, re.ASCII):
        raise UsageError(
            f"{name} is no number of seconds", remedy=f"Write {name}=30, or 0 for none"
        )
    return float(text)
