"""``playhead store``: make a database for runs, and see whether it keeps tenants apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, FAILED, epilog, json_option, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.store.postgres_check import Standing
    from playhead.store.postgres_roles import Made

_MODES = {
    "role": "bound to the login",
    "setting": "a setting of the session",
}


@click.group(
    name="store",
    epilog=epilog("playhead store init sqlite:///runs.db", status=status_table(0, 1, 2, 4)),
)
def command() -> None:
    """Make a database for runs, and check it.

    URL is sqlite:///FILE or postgresql://LOGIN@HOST:PORT/DATABASE. Give a password in a
    password file or in PGPASSWORD; one in the URL works, and is never printed.
    """


@command.command(
    "init",
    short_help="Make a database ready to hold runs.",
    epilog=epilog(
        "playhead store init postgresql://owner@db.example/runs \\",
        "  --role-per-tenant --tenant acme=acme_agent",
        status=status_table(0, 2, 4, s1="the database refused"),
    ),
)
@click.argument("url", metavar="URL")
@click.option("--app-role", metavar="NAME", help="The login that programs use; it owns nothing.")
@click.option(
    "--role-per-tenant",
    is_flag=True,
    help="Bind the tenant to the login. Without it the tenant is a setting that any SQL of the"
    " login can change: that guards only against a forgotten WHERE.",
)
@click.option(
    "--tenant",
    "pairs",
    metavar="T=ROLE",
    multiple=True,
    help="With --role-per-tenant: the login ROLE serves tenant T. May be given several times.",
)
@click.option("--schema", metavar="S", help="The schema to use (default: the URL's, or playhead).")
@json_option
def init(
    url: str,
    app_role: str | None,
    role_per_tenant: bool,
    pairs: tuple[str, ...],
    schema: str | None,
    as_json: bool,
) -> int:
    """Make a database ready to hold runs; what is there already stays.

    In PostgreSQL, URL is the owner's: tables, row-level security on each of them, and the rights
    of the logins are made in one transaction. A login that is missing is made without a
    password. Rows are only ever added: no login gets UPDATE or DELETE on them.
    """
    from playhead.errors import UsageError

    if url.startswith("sqlite:"):
        if app_role is not None or role_per_tenant or pairs or schema is not None:
            raise UsageError("SQLite has no logins", remedy="Leave the options of PostgreSQL away")
        return _init_sqlite(url, as_json)
    from playhead.store.postgres_roles import init_store

    made = init_store(
        url,
        app_role=app_role,
        role_per_tenant=role_per_tenant,
        tenants=[_pair(text) for text in pairs],
        schema=schema,
    )
    _show_made(made, as_json)
    return DONE


@command.command(
    "check",
    short_help="Say whether row-level security holds a login.",
    epilog=epilog(
        "playhead store check postgresql://acme_agent@db.example/runs --tenant acme",
        status=status_table(0, 2, 4, s0="in force", s1="not in force, or the database refused"),
    ),
)
@click.argument("url", metavar="URL")
@click.option("--tenant", "tenant_id", metavar="T", required=True, help="The tenant to look as.")
@click.option("--schema", metavar="S", help="The schema to use (default: the URL's, or playhead).")
@json_option
def check(url: str, tenant_id: str, schema: str | None, as_json: bool) -> int:
    """Say whether row-level security holds the login of URL; writes nothing.

    It does not hold an owner, a superuser or a login with BYPASSRLS: use none of them to record
    or to replay.
    """
    from playhead.store.postgres_check import check_store

    standing = check_store(url, tenant_id, schema=schema)
    _show_standing(standing, as_json)
    return DONE if standing.in_force else FAILED


def _init_sqlite(url: str, as_json: bool) -> int:
    from playhead.replay.text import visible
    from playhead.store.urls import open_store

    store = open_store(url)
    store.close()
    if as_json:
        show_json({"url": store.url, "kind": "sqlite"})
    else:
        say(visible(store.url))
    return DONE


def _pair(text: str) -> tuple[str, str]:
    from playhead.errors import UsageError

    tenant_id, equals, role = text.rpartition("=")
    if not equals or not tenant_id.strip() or not role.strip():
        raise UsageError("--tenant is no T=ROLE", remedy="Write --tenant acme=acme_agent")
    return tenant_id, role


def _show_made(made: Made, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "url": made.where,
                "kind": "postgresql",
                "schema": made.schema,
                "owner": made.owner,
                "mode": made.mode,
                "created": made.created,
                "kept": made.kept,
                "logins": made.roles,
                "new_logins": made.new_roles,
                "tenants": [{"tenant_id": t, "login": role} for t, role in made.tenants],
                "warnings": made.warnings,
            }
        )
        return
    from playhead.replay.text import visible

    say(visible(made.where))
    say(visible(f"  schema   {made.schema}, owned by {made.owner}"))
    say(f"  tables   {_tables(made)}; row-level security is forced on each")
    say(f"  tenant   {_MODES[made.mode]}")
    serves = {role: tenant_id for tenant_id, role in made.tenants}
    for role in made.roles:
        of = f" for tenant {serves[role]}" if role in serves else ""
        new = " (new: it has no password yet)" if role in made.new_roles else ""
        say(visible(f"  login    {role}{of}{new}"))
    _warn(made.warnings)


def _tables(made: Made) -> str:
    parts = [("made", made.created), ("there already", made.kept)]
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)


def _show_standing(standing: Standing, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "url": standing.where,
                "schema": standing.schema,
                "login": standing.login,
                "tenant_id": standing.tenant_id,
                "mode": standing.mode,
                "in_force": standing.in_force,
                "chats": standing.chats,
                "faults": standing.faults,
                "warnings": standing.warnings,
            }
        )
        return
    from playhead.replay.text import visible

    word = "in force" if standing.in_force else "NOT in force"
    say(visible(f"row-level security is {word} for {standing.login} in {standing.where}"))
    say(f"  tenant   {_MODES[standing.mode]}")
    say(visible(f"  sees     {standing.chats} chats of {standing.tenant_id}"))
    for fault in standing.faults:
        say(f"  fault    {fault}")
    _warn(standing.warnings)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        say(f"  warning  {warning}")
