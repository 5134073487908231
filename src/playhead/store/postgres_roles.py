"""Make the schema of a PostgreSQL store with its logins, and see what holds for a login.

`init_store` is run by the owner (a login of its own, no superuser where that can be had); the
programs that record and replay use an application login, which owns nothing (resolution 17).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError
from playhead.store.postgres_faults import in_our_words, said
from playhead.store.postgres_pool import connect
from playhead.store.postgres_schema import TABLES, Mode, grants, statements
from playhead.store.postgres_url import Target, parse_url
from playhead.store.scope import check_tenant

if TYPE_CHECKING:
    from playhead.store.postgres_pool import Connection

_LONGEST_ROLE = 63
_SERVER_SINCE = 120000

# A login that is, or can become, one of these is not held by row-level security.
_ABOVE: Final = (
    "SELECT count(*) FROM pg_roles AS above WHERE pg_has_role(%(role)s, above.oid, 'MEMBER')"
    " AND (above.rolsuper OR above.rolbypassrls OR above.rolcreaterole OR above.oid ="
    " (SELECT nspowner FROM pg_namespace WHERE nspname = %(schema)s))"
)


@dataclass(frozen=True, slots=True)
class Made:
    """What `init_store` found or made. ``created`` and ``kept`` name tables, ``new_roles`` the
    logins that were made (without a password); ``tenants`` pairs a tenant with its login."""

    where: str
    schema: str
    owner: str
    mode: Mode
    created: tuple[str, ...]
    kept: tuple[str, ...]
    roles: tuple[str, ...]
    new_roles: tuple[str, ...]
    tenants: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]


def init_store(
    url: str,
    *,
    app_role: str | None = None,
    role_per_tenant: bool = False,
    tenants: Sequence[tuple[str, str]] = (),
    schema: str | None = None,
) -> Made:
    """Make schema, tables, row-level security and rights, in one transaction; runs again safely.

    Args:
        url: the owner's.
        app_role: a login that programs use; made when it is missing, without a password.
        role_per_tenant: bind the tenant to the login instead of to a setting.
        tenants: pairs of a tenant and its login, added to those that are bound already.
        schema: its name, unless the URL says it (default ``playhead``).

    Raises:
        UsageError: names that do not fit, a tenant without ``role_per_tenant``.
        StoreError: the server refused, a login stands above row-level security, or the schema
            binds tenants to logins and ``role_per_tenant`` is missing (it is never weakened).
    """
    target = parse_url(url, schema)
    if tenants and not role_per_tenant:
        raise UsageError(
            "tenants are bound to logins in one mode only", remedy="Add --role-per-tenant"
        )
    roles = [*([app_role] if app_role is not None else []), *(role for _, role in tenants)]
    for tenant_id, _ in tenants:
        check_tenant(tenant_id)
    for role in roles:
        _check_role_name(role)
    mode: Mode = "role" if role_per_tenant else "setting"
    with _session(target) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('playhead store init'))")
        _check_server(connection, target)
        before = _tables(connection, target)
        if _mode(connection, target) == "role" and mode == "setting":
            raise said(
                target,
                "this schema binds each tenant to its login, which is not taken back here",
                "Add --role-per-tenant, or make another schema",
            )
        for statement in statements(target.schema, mode):
            connection.execute(statement.encode())
        new_roles = [role for role in dict.fromkeys(roles) if _add_role(connection, target, role)]
        for tenant_id, role in tenants:
            _bind(connection, target, tenant_id, role)
        owner, above = _owner(connection)
        return Made(
            where=target.shown,
            schema=target.schema,
            owner=owner,
            mode=mode,
            created=tuple(name for name in TABLES if name not in before),
            kept=tuple(name for name in TABLES if name in before),
            roles=tuple(dict.fromkeys(roles)),
            new_roles=tuple(new_roles),
            tenants=tuple(tenants),
            warnings=tuple(_warnings(roles, above, mode)),
        )


def _warnings(roles: Sequence[str], above: bool, mode: Mode) -> Iterator[str]:
    if above:
        yield "the owner is a superuser or passes row-level security: use a login of its own"
    if not roles:
        yield "no application login was named: the owner can take the security away again"
    if mode == "setting":
        yield (
            "the tenant is a setting that any SQL of the login can change: this guards against a"
            " forgotten WHERE, not against the program (--role-per-tenant does)"
        )


@contextmanager
def _session(target: Target) -> Iterator[Connection]:
    """One transaction of the owner, for statements about tables and roles."""
    with in_our_words(target):
        connection = connect(target)
        try:
            connection.execute(
                "SELECT set_config('lock_timeout', %s, true)",
                (str(round(target.lock_timeout * 1000)),),
            )
            yield connection
            connection.commit()
        finally:
            connection.close()  # takes back what was not committed


def _check_server(connection: Connection, target: Target) -> None:
    if connection.info.server_version < _SERVER_SINCE:
        raise said(target, "this server is too old", "Use PostgreSQL 12 or newer")
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise said(
            target,
            "the database does not hold UTF-8",
            "Make one: createdb --encoding=UTF8 --template=template0",
        )


def _tables(connection: Connection, target: Target) -> set[str]:
    found = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s", (target.schema,)
    )
    return {str(row[0]) for row in found}


def _mode(connection: Connection, target: Target) -> Mode | None:
    """How the schema knows the tenant of a session; None when it is not there."""
    row = connection.execute(
        "SELECT prosecdef FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace"
        " WHERE nspname = %s AND proname = 'tenant' AND pronargs = 0",
        (target.schema,),
    ).fetchone()
    return None if row is None else "role" if row[0] else "setting"


def _owner(connection: Connection) -> tuple[str, bool]:
    row = connection.execute(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    assert row is not None
    return str(row[0]), bool(row[1])


def _check_role_name(role: str) -> None:
    if not role.strip() or "\0" in role or len(role.encode("utf-8", "replace")) > _LONGEST_ROLE:
        raise UsageError("a login has no usable name", remedy="Use at most 63 bytes of UTF-8")
    if role.lower() in ("public", "none") or role.startswith("pg_"):
        raise UsageError("this name is the server's own", remedy="Name another login")


def _add_role(connection: Connection, target: Target, role: str) -> bool:
    """Give a login its rights; True when it had to be made."""
    from psycopg import sql

    name = sql.Identifier(role)
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if known is None:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
    values = {"role": role, "schema": target.schema}
    row = connection.execute(_ABOVE, values).fetchone()
    if row is None or row[0]:
        raise said(
            target,
            "a login named here is or can become the owner, a superuser or a maker of roles",
            "Name a login that owns nothing: row-level security does not hold the others",
        )
    for statement in grants(target.schema, name.as_string(connection)):
        connection.execute(statement.encode())
    return known is None


def _bind(connection: Connection, target: Target, tenant_id: str, role: str) -> None:
    """Bind a login to its tenant. One that serves another tenant is not moved."""
    table = f'"{target.schema}".tenants'
    connection.execute(
        f"INSERT INTO {table} (role_name, tenant_id) VALUES (%s, %s)"
        " ON CONFLICT DO NOTHING".encode(),
        (role, tenant_id),
    )
    row = connection.execute(
        f"SELECT tenant_id = %s FROM {table} WHERE role_name = %s".encode(), (tenant_id, role)
    ).fetchone()
    if row is None or not row[0]:
        raise said(
            target,
            "a login named here is bound to another tenant",
            "Give each tenant a login of its own",
        )
