"""Row-level security, looked at by a connection that knows nothing of playhead's WHERE clauses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, LiteralString

import psycopg
import pytest

from playhead.errors import StoreError, UsageError
from playhead.store.database import NewRow, Tip
from playhead.store.postgres import PostgresDatabase
from playhead.store.postgres_check import check_store
from playhead.store.postgres_roles import init_store
from playhead.store.postgres_schema import RIGHTS, TABLES
from postgres import DATABASE, OWNER, Server, Site

Raw = psycopg.Connection[tuple[Any, ...]]
H = "a" * 64
SECRET = b"globex-secret"
DATA = tuple(RIGHTS)


def fill(site: Site, tenant: str, login: str | None = None) -> None:
    """A chat with two rows, a head and a blob; every value of it holds the tenant's name."""
    db = PostgresDatabase(site.url(login))
    mark = f"{tenant}-secret".encode()
    with db.exclusive(tenant, f"{tenant}-secret", f"{tenant}-secret", create=True):
        rows = [NewRow(n, f"{tenant}-secret.seen", f"{tenant}-{n}", H, mark) for n in range(2)]
        db.insert(tenant, f"{tenant}-secret", rows, Tip(2, H, 30), 1.0)
        db.put_note(tenant, f"{tenant}-secret", mark.decode(), mark)
        db.put_blob(tenant, H, mark)
    db.close()


@pytest.fixture
def shared_login(pg: Site) -> Iterator[tuple[Site, Raw]]:
    """Two tenants behind one login, in the setting mode."""
    fill(pg, "acme")
    fill(pg, "globex")
    with pg.raw() as raw:
        yield pg, raw


@pytest.fixture
def own_login(pg_server: Server) -> Iterator[tuple[Site, Raw]]:
    """Two tenants, each behind its login; the connection is acme's."""
    site = pg_server.site("acme", "globex")
    for tenant, login in site.logins.items():
        fill(site, tenant, login)
    with site.raw(site.logins["acme"]) as raw:
        yield site, raw


def counts(raw: Raw, schema: str) -> list[int]:
    found = [raw.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone() for table in DATA]
    return [int(row[0]) for row in found if row]


def refused(raw: Raw, sql: str, *values: object) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        raw.execute(sql.encode(), values)
    assert b"secret" not in str(caught.value).encode()


FOREIGN = {
    "chats": "(tenant_id, chat_id, run_id, created, written) VALUES (%s, 'new', 'new', 1, 1)",
    "rows": "(tenant_id, chat_id, sequence_number, event_type, row_hash, line)"
    " VALUES (%s, 'globex-secret', 3, 'x', 'x', 'x')",
    "notes": "(tenant_id, chat_id, note, resume) VALUES (%s, 'new', 'x', 'x')",
    "blobs": "(tenant_id, digest, data) VALUES (%s, 'new', 'x')",
}


@pytest.mark.parametrize(
    "tenant", [None, "", " ", "\t", "acme ", "ACME", "nobody", "%", "acme' OR ''='"]
)
def test_no_tenant_or_another_one_sees_no_row_of_any_table(
    shared_login: tuple[Site, Raw], tenant: str | None
) -> None:
    site, raw = shared_login
    if tenant is not None:
        raw.execute("SELECT set_config('playhead.tenant', %s, false)", (tenant,))
    assert counts(raw, site.schema) == [0, 0, 0, 0]
    for table in DATA:
        for into in ("globex", "acme", "", " "):
            if into != (tenant or ""):
                refused(raw, f"INSERT INTO {site.schema}.{table} {FOREIGN[table]}", into)
    assert raw.execute(f"UPDATE {site.schema}.chats SET size = 9").rowcount == 0
    assert raw.execute(f"UPDATE {site.schema}.notes SET note = 'x'").rowcount == 0


def test_a_tenant_sees_its_own_rows_and_no_other(shared_login: tuple[Site, Raw]) -> None:
    site, raw = shared_login
    raw.execute("SELECT set_config('playhead.tenant', 'acme', false)")
    assert counts(raw, site.schema) == [1, 2, 1, 1]
    look_everywhere(site, raw)


def test_a_login_of_its_own_sees_its_own_rows_and_no_other(own_login: tuple[Site, Raw]) -> None:
    site, raw = own_login
    assert counts(raw, site.schema) == [1, 2, 1, 1], "no setting is needed"
    look_everywhere(site, raw)


ATTEMPTS: list[LiteralString] = [
    "SELECT set_config('playhead.tenant', 'globex', false)",
    "SET playhead.tenant = 'globex'",
    "SET ROLE {globex}",
    "SET SESSION ROLE {globex}",
    "SET SESSION AUTHORIZATION {globex}",
    "SET ROLE {owner}",
    "SET row_security = off",
    "SET search_path = pg_temp, public; CREATE TEMP VIEW tenants AS"
    " SELECT session_user::name AS role_name, 'globex'::text AS tenant_id",
    "CREATE FUNCTION pg_temp.tenant() RETURNS text LANGUAGE sql AS 'SELECT ''globex''::text'",
    "CREATE OR REPLACE FUNCTION {schema}.tenant() RETURNS text LANGUAGE sql"
    " AS 'SELECT ''globex''::text'",
    "UPDATE {schema}.tenants SET tenant_id = 'globex'",
    "INSERT INTO {schema}.tenants VALUES (session_user, 'globex')",
    "ALTER TABLE {schema}.rows DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE {schema}.rows NO FORCE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON {schema}.rows USING (true)",
    "DROP POLICY by_tenant ON {schema}.rows",
    "ALTER ROLE {globex} PASSWORD 'known'",
    "ALTER ROLE {acme} BYPASSRLS",
    "GRANT {globex} TO {acme}",
    "GRANT {owner} TO {acme}",
    "CREATE TABLE {schema}.mine (x int)",
    "CREATE TRIGGER t BEFORE INSERT ON {schema}.rows EXECUTE FUNCTION pg_catalog.now()",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_sql_of_a_login_opens_another_tenant(own_login: tuple[Site, Raw], attempt: str) -> None:
    site, raw = own_login
    names = {"owner": OWNER, "schema": site.schema, **site.logins}
    try:
        raw.execute(attempt.format_map(names).encode())
    except psycopg.errors.Error as error:
        assert isinstance(error, psycopg.errors.InsufficientPrivilege)
    try:
        assert counts(raw, site.schema) == [1, 2, 1, 1]
    except psycopg.errors.InsufficientPrivilege:  # row_security = off refuses to answer
        raw.execute("SET row_security = on")
    look_everywhere(site, raw)


def test_membership_in_another_login_opens_nothing(own_login: tuple[Site, Raw]) -> None:
    """Even when an administrator made it: the tenant is of who logged in."""
    site, raw = own_login
    with site.raw("postgres") as admin:
        admin.execute(f"GRANT {site.logins['globex']} TO {site.logins['acme']}")
    raw.execute(f"SET ROLE {site.logins['globex']}")
    assert counts(raw, site.schema) == [1, 2, 1, 1]
    look_everywhere(site, raw)


def look_everywhere(site: Site, raw: Raw) -> None:
    """As acme: no value of globex comes out of any statement, and none goes in."""
    schema = site.schema
    raw.execute(f"SET search_path = {schema}, public")
    raw.execute(
        "CREATE OR REPLACE FUNCTION pg_temp.spy(x text) RETURNS boolean LANGUAGE plpgsql"
        " COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'saw %', x; RETURN true; END $$"
    )
    notices: list[str] = []
    raw.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary or ""))
    out: list[object] = []
    for table in DATA:
        raw.execute(f"CREATE OR REPLACE TEMP VIEW mine_{table} AS SELECT * FROM {schema}.{table}")
        for sql in (
            f"SELECT t::text FROM {schema}.{table} AS t",
            f"SELECT t::text FROM {schema}.{table} AS t WHERE tenant_id = 'globex' OR true",
            f"SELECT t::text FROM {schema}.{table} AS t WHERE pg_temp.spy(t::text)",
            f"SELECT t::text FROM mine_{table} AS t",
            f"SELECT t::text FROM mine_{table} AS t WHERE pg_temp.spy(t::text)",
            f"WITH t AS (SELECT * FROM {schema}.{table}) SELECT t::text FROM t",
            f"SELECT a::text FROM {schema}.{table} AS a FULL JOIN {schema}.chats AS b ON true",
            f"SELECT query_to_xml('SELECT * FROM {schema}.{table}', true, true, '')::text",
            f"SELECT table_to_xml('{schema}.{table}', true, true, '')::text",
            f"SELECT max(tenant_id), string_agg(t::text, '') FROM {schema}.{table} AS t",
            f"EXPLAIN (ANALYZE, VERBOSE) TABLE {schema}.{table}",
            f"EXPLAIN (ANALYZE) SELECT FROM {schema}.{table} WHERE pg_temp.spy(tenant_id)",
            f"TABLE {schema}.{table}",
            f"SELECT * FROM pg_stats WHERE tablename = '{table}' AND schemaname = '{schema}'",
        ):
            with suppress(psycopg.errors.FeatureNotSupported):  # some servers know no XML
                out += raw.execute(sql.encode()).fetchall()
        with raw.cursor().copy(f"COPY (SELECT * FROM {schema}.{table}) TO STDOUT".encode()) as copy:
            out += [bytes(data) for data in copy]
        with raw.cursor().copy(f"COPY {schema}.{table} TO STDOUT".encode()) as copy:
            out += [bytes(data) for data in copy]
        refused(raw, f"INSERT INTO {schema}.{table} {FOREIGN[table]}", "globex")
        refused(raw, f"TRUNCATE {schema}.{table}")
        refused(raw, f"DELETE FROM {schema}.{table}")
    refused(raw, f"SELECT * FROM {schema}.tenants")
    refused(raw, f"UPDATE {schema}.rows SET line = 'x'")
    refused(raw, f"UPDATE {schema}.blobs SET data = 'x'")
    for moved in ("chats", "notes"):
        refused(raw, f"UPDATE {schema}.{moved} SET tenant_id = 'globex'")
    out += raw.execute(f"SELECT {schema}.tenant()").fetchall()
    shown = repr(out) + repr(notices)
    assert "acme-secret" in shown and "acme-secret" in repr(notices)
    for spelling in ("globex-secret", SECRET.hex()):
        assert spelling not in shown
    # A conflict with a row that is not seen says no more than that it is refused.
    taken = f"INSERT INTO {schema}.blobs VALUES ('globex', '{H}', 'x') ON CONFLICT DO NOTHING"
    refused(raw, taken)


def test_every_table_is_forced_and_owned_by_the_owner(pg: Site) -> None:
    with pg.raw(OWNER) as raw:
        found = raw.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity, relowner::regrole::text"
            " FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            (pg.schema,),
        ).fetchall()
        assert sorted(found) == sorted((table, True, True, OWNER) for table in TABLES)
        owned = raw.execute(
            "SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", (pg.app,)
        ).fetchone()
        assert owned == (0,)


def test_the_owner_is_held_too(shared_login: tuple[Site, Raw]) -> None:
    site, _ = shared_login
    with site.raw(OWNER) as raw:
        assert counts(raw, site.schema) == [0, 0, 0, 0]


def test_playhead_itself_sees_one_tenant_with_a_login_of_its_own(pg_server: Server) -> None:
    site = pg_server.site("acme", "globex")
    fill(site, "globex", site.logins["globex"])
    db = PostgresDatabase(site.url(site.logins["acme"]))
    assert db.chats("globex") == [] and db.blob("globex", H) is None
    assert not [*db.rows("globex", "globex-secret", 0, 9)]
    with (
        pytest.raises(StoreError, match="may not do that") as caught,
        db.exclusive("globex", "new", "new", create=True),
    ):
        pass
    assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="may not do that"):
        db.put_blob("globex", "b" * 64, b"x")
    db.close()


# --- init and check --------------------------------------------------------------------------


def test_init_may_run_again_and_takes_nothing_back(pg_server: Server) -> None:
    site = pg_server.site("acme")
    fill(site, "acme", site.logins["acme"])
    more = pg_server.fresh("t")
    url = site.url(OWNER)
    made = init_store(url, role_per_tenant=True, tenants=[("globex", more)])
    assert made.created == () and set(made.kept) == set(TABLES) and made.new_roles == (more,)
    with pytest.raises(StoreError, match="not taken back"):
        init_store(url, app_role=site.app)
    with pytest.raises(StoreError, match="bound to another tenant"):
        init_store(url, role_per_tenant=True, tenants=[("globex", site.logins["acme"])])
    with site.raw(site.logins["acme"]) as raw:
        assert counts(raw, site.schema) == [1, 2, 1, 1]


def test_the_setting_mode_can_be_made_stricter(pg: Site) -> None:
    fill(pg, "acme")
    fill(pg, "globex")
    login = pg.server.fresh("t")
    made = init_store(pg.url(OWNER), role_per_tenant=True, tenants=[("acme", login)])
    assert made.mode == "role"
    with pg.raw(login) as raw:
        assert counts(raw, pg.schema) == [1, 2, 1, 1]
    with pg.raw() as raw:
        raw.execute("SET playhead.tenant = 'globex'")
        assert counts(raw, pg.schema) == [0, 0, 0, 0], "the login without a tenant sees nothing"


@pytest.mark.parametrize("role", [OWNER, "postgres"])
def test_no_login_that_stands_above_is_taken(pg: Site, role: str) -> None:
    with pytest.raises(StoreError, match="superuser or a maker of roles"):
        init_store(pg.url(OWNER), app_role=role)


def test_a_login_that_can_become_the_owner_is_not_taken(pg: Site) -> None:
    sly = pg.server.fresh("sly")
    with pg.raw("postgres") as raw:
        raw.execute(f"CREATE ROLE {sly} LOGIN NOINHERIT; GRANT {OWNER} TO {sly}")
    with pytest.raises(StoreError, match="superuser or a maker of roles"):
        init_store(pg.url(OWNER), app_role=sly)
    assert not check_store(pg.url(), "acme").faults


@pytest.mark.parametrize(
    "words",
    [
        {"app_role": ""},
        {"app_role": "public"},
        {"app_role": "pg_monitor"},
        {"app_role": "x" * 64},
        {"app_role": "a\0b"},
        {"tenants": [("acme", "x")]},
        {"tenants": [(" ", "x")], "role_per_tenant": True},
        {"schema": "a b"},
        {"schema": 'x"; DROP TABLE rows; --'},
        {"schema": "other"},
    ],
)
def test_words_of_init_that_do_not_fit(pg: Site, words: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        init_store(pg.url(OWNER), **words)


@pytest.mark.parametrize("name", ['we"ird', "Grö ße", "a'b", "-- x", "%s"])
def test_odd_names_of_logins_are_quoted(pg: Site, name: str) -> None:
    role = pg.server.fresh(name)
    made = init_store(pg.url(OWNER), app_role=role)
    assert made.new_roles == (role,) and check_store(pg.url(role), "acme").in_force


def test_rights_that_were_given_by_hand_are_taken_back(pg: Site) -> None:
    with pg.raw(OWNER) as raw:
        raw.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {pg.schema} TO {pg.app}, PUBLIC")
    assert "UPDATE and DELETE" in " ".join(check_store(pg.url(), "acme").warnings)
    init_store(pg.url(OWNER), app_role=pg.app)
    standing = check_store(pg.url(), "acme")
    assert standing.in_force and len(standing.warnings) == 1


def test_init_without_rights_is_refused_whole(pg: Site) -> None:
    with pytest.raises(StoreError, match="may not do that"):
        init_store(pg.server.url(pg.app, DATABASE, schema=pg.server.fresh("s")))


def test_init_of_a_superuser_says_so(pg_server: Server) -> None:
    schema = pg_server.fresh("s")
    made = init_store(pg_server.url("postgres", DATABASE), schema=schema)
    assert [w for w in made.warnings if "superuser" in w] and len(made.warnings) == 3
    assert f"schema={schema}" in made.where


def test_check_says_what_holds(pg: Site, pg_server: Server) -> None:
    fill(pg, "acme")
    standing = check_store(pg.url(), "acme")
    assert (standing.in_force, standing.mode, standing.chats) == (True, "setting", 1)
    assert standing.login == pg.app and "forgotten WHERE" in standing.warnings[0]
    for login, word in ((OWNER, "owns the tables"), ("postgres", "superuser")):
        standing = check_store(pg.url(login), "acme")
        assert not standing.in_force and word in standing.faults[0]
    site = pg_server.site("acme", "globex")
    standing = check_store(site.url(site.logins["acme"]), "acme")
    assert standing.in_force and standing.mode == "role" and not standing.warnings
    standing = check_store(site.url(site.logins["acme"]), "globex")
    assert not standing.in_force and "not bound to this tenant" in standing.faults[0]


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        ("ALTER TABLE {}.rows DISABLE ROW LEVEL SECURITY", "not in force on rows"),
        ("ALTER TABLE {}.blobs NO FORCE ROW LEVEL SECURITY", "not in force on blobs"),
        ("CREATE POLICY more ON {}.chats USING (true)", "policies of chats"),
        ("DROP POLICY by_tenant ON {}.notes", "policies of notes"),
        ("DROP TABLE {}.notes", "notes is not there"),
        ("ALTER ROLE {app} BYPASSRLS", "BYPASSRLS"),
        ("ALTER ROLE {app} CREATEROLE", "make roles"),
        ("REVOKE {app} FROM {owner}; GRANT {owner} TO {app}", "owns the tables"),
    ],
)
def test_check_sees_what_was_undone(pg: Site, harm: str, word: str) -> None:
    with pg.raw("postgres") as raw:
        raw.execute(harm.format(pg.schema, app=pg.app, owner=OWNER).encode())
    standing = check_store(pg.url(), "acme")
    assert not standing.in_force and word in " ".join(standing.faults)
