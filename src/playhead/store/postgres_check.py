"""Does row-level security hold this login, and does the server keep what it acknowledged?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.store.postgres_faults import said
from playhead.store.postgres_pool import Pool
from playhead.store.postgres_schema import RIGHTS, TABLES, Mode
from playhead.store.postgres_url import parse_url
from playhead.store.scope import check_tenant

if TYPE_CHECKING:
    from playhead.store.postgres_pool import Connection

_LOGIN = (
    "SELECT session_user::text, bool_or(rolsuper), bool_or(rolbypassrls), bool_or(rolcreaterole),"
    " bool_or(oid = (SELECT nspowner FROM pg_namespace WHERE nspname = %s))"
    " FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER')"
)
_OVER_TABLES = (
    "SELECT relname, relrowsecurity AND relforcerowsecurity AND row_security_active(c.oid),"
    " (SELECT array_agg(polname::text) FROM pg_policy WHERE polrelid = c.oid)"
    " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace"
    " WHERE nspname = %s AND relkind IN ('r', 'p')"
)
_MODE = (
    "SELECT prosecdef FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace"
    " WHERE nspname = %s AND proname = 'tenant' AND pronargs = 0"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds for a login. ``in_force``: no SQL of it can reach another tenant by leaving out
    a WHERE; ``faults`` say why not, ``warnings`` what it does not cover."""

    where: str
    schema: str
    login: str
    tenant_id: str
    mode: Mode
    in_force: bool
    chats: int
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def check_store(url: str, tenant_id: str, *, schema: str | None = None) -> Standing:
    """See whether row-level security holds the login of ``url``; writes nothing.

    Raises:
        UsageError: a blank tenant, a URL that is off.
        StoreError: no connection, no playhead schema, or no right to look at it.
    """
    target = parse_url(url, schema)
    check_tenant(tenant_id)
    pool = Pool(target)
    try:
        with pool.transaction(tenant_id) as connection:
            mode = _found_mode(connection, target.schema)
            if mode is None:
                raise said(
                    target,
                    "no playhead schema in this database",
                    "Make it with 'playhead store init URL', or name its schema (?schema=NAME)",
                )
            faults = [*_login_faults(connection, target.schema)]
            faults += _table_faults(connection, target.schema)
            warnings = [] if faults else [*_rights(connection, target.schema)]
            warnings += _server(connection)
            gone = any(fault.endswith("is not there") for fault in faults)
            count = 0 if gone else _one(connection, _count(target.schema), (tenant_id,))
            if mode == "role":
                bound = _one(connection, f'SELECT "{target.schema}".tenant()', ())
                if bound != tenant_id:
                    faults.append(
                        "this login is not bound to this tenant: it sees none of its rows"
                    )
            else:
                warnings.append(
                    "the tenant is a setting that any SQL of this login can change: a guard"
                    " against a forgotten WHERE only (--role-per-tenant binds it to the login)"
                )
            login = str(_one(connection, "SELECT session_user::text", ()))
        return Standing(
            target.shown,
            target.schema,
            login,
            tenant_id,
            mode,
            not faults,
            int(str(count)),
            tuple(faults),
            tuple(warnings),
        )
    finally:
        pool.close()


def _one(connection: Connection, sql: str, values: tuple[object, ...]) -> object:
    row = connection.execute(sql.encode(), values).fetchone()
    return None if row is None else row[0]


def _count(schema: str) -> str:
    return f'SELECT count(*) FROM "{schema}".chats WHERE tenant_id = %s'


def _found_mode(connection: Connection, schema: str) -> Mode | None:
    found = _one(connection, _MODE, (schema,))
    return None if found is None else "role" if found else "setting"


def _login_faults(connection: Connection, schema: str) -> Iterator[str]:
    row = connection.execute(_LOGIN, (schema,)).fetchone()
    assert row is not None
    _, superuser, bypass, maker, owner = row
    if superuser:
        yield "this login is a superuser or can become one: row-level security does not hold it"
        return  # and is everything below as well
    if bypass:
        yield "this login has or can get BYPASSRLS: row-level security does not hold it"
    if owner:
        yield "this login owns the tables or can become their owner: it can switch security off"
    if maker:
        yield "this login may make roles: it can make itself a member of the owner"


def _table_faults(connection: Connection, schema: str) -> Iterator[str]:
    found = {row[0]: row[1:] for row in connection.execute(_OVER_TABLES, (schema,))}
    for table in TABLES:
        active, policies = found.get(table, (None, None))
        if active is None:
            yield f"the table {table} is not there"
        elif not active:
            yield f"row-level security is not in force on {table}"
        elif policies != ["by_tenant"]:
            yield f"the policies of {table} are not those that playhead made"


def _rights(connection: Connection, schema: str) -> Iterator[str]:
    """Rights that an application login should not have."""
    for table, given in RIGHTS.items():
        more = [
            right
            for right in ("UPDATE", "DELETE", "TRUNCATE")
            if right not in given
            and _one(
                connection, "SELECT has_table_privilege(%s, %s)", (f'"{schema}".{table}', right)
            )
        ]
        if more:
            yield f"this login may {' and '.join(more)} on {table}, which playhead never does"
    if _one(connection, "SELECT has_table_privilege(%s, 'SELECT')", (f'"{schema}".tenants',)):
        yield "this login may read which login serves which tenant"


def _server(connection: Connection) -> Iterator[str]:
    """Settings under which a crash of the server loses what was acknowledged."""
    for name in ("fsync", "full_page_writes"):
        if _one(connection, "SELECT current_setting(%s)", (name,)) == "off":
            yield f"the server runs with {name} = off: a crash can lose acknowledged rows"
