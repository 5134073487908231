"""The tables of a PostgreSQL store, and the row-level security over each of them (resolution 17).

Every table has a tenant and one policy: a row is seen, added, changed or removed only where its
tenant is the one of the session. What that is, one function says: in the ``setting`` mode the
variable ``playhead.tenant`` of the transaction, which any SQL of the login can set; in the
``role`` mode the tenant that the owner has bound to the login, which no SQL of the login changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Mode = Literal["setting", "role"]

TABLES = ("tenants", "chats", "rows", "notes", "blobs")

RIGHTS = {
    "chats": "SELECT, INSERT, UPDATE",
    "rows": "SELECT, INSERT",
    "notes": "SELECT, INSERT, UPDATE",
    "blobs": "SELECT, INSERT",
}
"""What an application login may do: rows and blobs are only ever added. ``tenants`` is the
owner's alone."""

_ID = 'text COLLATE "C" NOT NULL'
_TENANT = f"tenant_id {_ID} CHECK (btrim(tenant_id, E' \\t\\r\\n') <> '')"
_CHAT = f"chat_id {_ID} CHECK (btrim(chat_id, E' \\t\\r\\n') <> '')"
_GENESIS = "0" * 64

_CREATE = (
    f"CREATE TABLE IF NOT EXISTS @tenants (role_name name PRIMARY KEY, {_TENANT})",
    f"CREATE TABLE IF NOT EXISTS @chats ({_TENANT}, {_CHAT}, run_id {_ID},"
    f" size bigint NOT NULL DEFAULT 0, step_hash text NOT NULL DEFAULT '{_GENESIS}',"
    " length bigint NOT NULL DEFAULT 0,"
    " created double precision NOT NULL, written double precision NOT NULL,"
    " PRIMARY KEY (tenant_id, chat_id), UNIQUE (tenant_id, run_id))",
    f"CREATE TABLE IF NOT EXISTS @rows ({_TENANT}, {_CHAT},"
    " sequence_number bigint NOT NULL CHECK (sequence_number >= 1), event_type text NOT NULL,"
    " event_key bytea, row_hash text NOT NULL, line bytea NOT NULL,"
    " PRIMARY KEY (tenant_id, chat_id, sequence_number))",
    "CREATE INDEX IF NOT EXISTS rows_by_event"
    " ON @rows (tenant_id, chat_id, event_key, sequence_number) WHERE event_key IS NOT NULL",
    f"CREATE TABLE IF NOT EXISTS @notes ({_TENANT}, {_CHAT}, note text NOT NULL,"
    " resume bytea NOT NULL, PRIMARY KEY (tenant_id, chat_id))",
    f'CREATE TABLE IF NOT EXISTS @blobs ({_TENANT}, digest text COLLATE "C" NOT NULL,'
    " data bytea NOT NULL, PRIMARY KEY (tenant_id, digest))",
)

_TENANT_OF = {
    "setting": (
        "CREATE OR REPLACE FUNCTION @tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE"
        " SECURITY INVOKER SET search_path = pg_catalog, pg_temp"
        " AS $$ SELECT nullif(current_setting('playhead.tenant', true), '') $$"
    ),
    # session_user is who logged in: SET ROLE and SECURITY DEFINER leave it as it is, and only a
    # superuser can SET SESSION AUTHORIZATION. The function runs as the owner, who alone reads
    # the table of tenants.
    "role": (
        "CREATE OR REPLACE FUNCTION @tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE"
        " SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
        " AS $$ SELECT tenant_id FROM @tenants WHERE role_name = session_user $$"
    ),
}


def statements(schema: str, mode: Mode) -> Iterator[str]:
    """All that makes the schema, in order; every statement may run again.

    Args:
        schema: a plain name, checked by `parse_url`.
        mode: how the tenant of a session is known.
    """
    prefix = f'"{schema}".'
    yield f'CREATE SCHEMA IF NOT EXISTS "{schema}"'
    yield f"COMMENT ON SCHEMA \"{schema}\" IS 'playhead, tables of version 1'"
    for text in _CREATE:
        yield text.replace("@", prefix)
    yield _TENANT_OF[mode].replace("@", prefix)
    yield f"REVOKE ALL ON FUNCTION {prefix}tenant() FROM PUBLIC"
    for table in TABLES:
        yield f"ALTER TABLE {prefix}{table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {prefix}{table} FORCE ROW LEVEL SECURITY"
        yield f"REVOKE ALL ON {prefix}{table} FROM PUBLIC"
        yield f"DROP POLICY IF EXISTS by_tenant ON {prefix}{table}"
    yield f"CREATE POLICY by_tenant ON {prefix}tenants TO CURRENT_USER USING (true)"
    mine = f"tenant_id = (SELECT {prefix}tenant())"
    for table in RIGHTS:
        yield f"CREATE POLICY by_tenant ON {prefix}{table} USING ({mine}) WITH CHECK ({mine})"


def grants(schema: str, role: str) -> Iterator[str]:
    """What an application login gets, and nothing else; ``role`` is quoted already."""
    yield f'REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM {role}'
    yield f'REVOKE ALL ON SCHEMA "{schema}" FROM {role}'
    yield f'GRANT USAGE ON SCHEMA "{schema}" TO {role}'
    yield f'GRANT EXECUTE ON FUNCTION "{schema}".tenant() TO {role}'
    for table, rights in RIGHTS.items():
        yield f'GRANT {rights} ON "{schema}".{table} TO {role}'
