"""``playhead store``: what it makes and says, and that no password comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Cli
from postgres import DATABASE, OWNER, PASSWORD, Server, Site


def test_init_makes_a_sqlite_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        done = cli("store", "init", "sqlite:///runs.db")
        assert (done.status, done.err) == (0, "")
    assert (tmp_path / "runs.db").stat().st_mode & 0o777 == 0o600
    made = json.loads(cli("store", "init", "sqlite:///runs.db", "--json").out)
    assert made["kind"] == "sqlite" and made["url"].endswith("/runs.db")
    done = cli("store", "init", "sqlite:///other.db", "--app-role", "x")
    assert done.status == 2 and not (tmp_path / "other.db").exists()
    done = cli("store", "check", "sqlite:///runs.db", "--tenant", "acme")
    assert done.status == 2 and "PostgreSQL" in done.err


def test_init_and_check_of_a_login_for_all(cli: Cli, pg_server: Server) -> None:
    schema, login = pg_server.fresh("s"), pg_server.fresh("app")
    url = pg_server.url(OWNER, DATABASE)
    done = cli("store", "init", url, "--app-role", login, "--schema", schema)
    assert (done.status, done.err) == (0, "")
    assert f"schema   {schema}, owned by {OWNER}" in done.out
    assert f"login    {login} (new: it has no password yet)" in done.out
    assert "forgotten WHERE" in done.out, "the limit of this mode is told"
    again = cli("store", "init", url, "--app-role", login, "--schema", schema)
    assert again.status == 0 and "there already: tenants" in again.out and "new" not in again.out
    done = cli(
        "store", "check", pg_server.url(login, DATABASE), "--schema", schema, "--tenant", "t"
    )
    assert (done.status, done.err) == (0, "")
    assert "is in force" in done.out and "forgotten WHERE" in done.out


def test_init_and_check_of_a_login_for_each_tenant(cli: Cli, pg_server: Server) -> None:
    schema, acme, globex = (pg_server.fresh(word) for word in ("s", "a", "g"))
    url = pg_server.url(OWNER, DATABASE, schema=schema)
    words = ["--role-per-tenant", "--tenant", f"acme={acme}", "--tenant", f"a=b={globex}", "--json"]
    done = cli("store", "init", url, *words)
    assert done.status == 0 and done.err == "" and done.out.isascii()
    made = json.loads(done.out)
    assert made["mode"] == "role" and made["new_logins"] == [acme, globex]
    assert made["tenants"][1] == {"tenant_id": "a=b", "login": globex} and not made["warnings"]
    for login, tenant, status in ((acme, "acme", 0), (acme, "a=b", 1), (OWNER, "acme", 1)):
        where = pg_server.url(login, DATABASE, schema=schema)
        done = cli("store", "check", where, "--tenant", tenant, "--json")
        standing = json.loads(done.out)
        assert (done.status, standing["in_force"]) == (status, status == 0)
        assert bool(standing["faults"]) == (status == 1)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["init"], 2, "Missing argument 'URL'"),
        (["init", "runs.db"], 2, "no PostgreSQL URL"),
        (["init", "mysql://x:pw0rd@h/d"], 2, "no PostgreSQL URL"),
        (["init", "sqlite://runs.db"], 2, "names no SQLite file"),
        (["init", "postgresql://x@/d", "--tenant", "acme=x"], 2, "Add --role-per-tenant"),
        (["init", "postgresql://x@/d", "--role-per-tenant", "--tenant", "acme"], 2, "T=ROLE"),
        (["init", "postgresql://x@/d", "--role-per-tenant", "--tenant", "=x"], 2, "T=ROLE"),
        (["init", "postgresql://x@/d", "--role-per-tenant", "--tenant", "a= "], 2, "T=ROLE"),
        (["init", "postgresql://x@/d", "--schema", "A b"], 2, "no plain name"),
        (["init", "postgresql://x@/d", "--app-role", "public"], 2, "server's own"),
        (["init", "postgresql://x:pw0rd@127.0.0.1:1/d"], 1, "cannot connect"),
        (["check", "postgresql://x:pw0rd@127.0.0.1:1/d", "--tenant", "t"], 1, "cannot connect"),
        (["check", "postgresql://x:pw0rd@h/d"], 2, "Missing option '--tenant'"),
        (["check", "postgresql://x:pw0rd@h/d", "--tenant", " "], 2, "tenant_id is blank"),
    ],
)
def test_wrong_words(cli: Cli, words: list[str], status: int, said: str) -> None:
    done = cli("store", *words)
    assert (done.status, done.out) == (status, "") and said in done.err
    assert done.err.count("\n") == 1 and "pw0rd" not in done.err
    done = cli("store", *words, "--json")
    assert done.status == status and json.loads(done.out)["error"] and "pw0rd" not in done.out


def test_a_password_that_works_is_not_printed_either(cli: Cli, pg_server: Server) -> None:
    schema = pg_server.fresh("s")
    url = pg_server.tcp_url(PASSWORD, database=DATABASE)
    for words in (["init", url], ["check", url, "--tenant", "t"]):
        for more in ([], ["--json"]):
            done = cli("store", *words, "--schema", schema, *more)
            assert "superuser" in done.out and done.err == ""
            for spelled in (PASSWORD, "s3cret", "p%40ss"):
                assert spelled not in done.out


def test_what_the_schema_binds_is_not_taken_back(cli: Cli, pg_server: Server) -> None:
    site: Site = pg_server.site("acme")
    done = cli("store", "init", site.url(OWNER), "--app-role", site.app)
    assert done.status == 1 and "Add --role-per-tenant" in done.err
    other = f"globex={site.logins['acme']}"
    done = cli("store", "init", site.url(OWNER), "--role-per-tenant", "--tenant", other)
    assert done.status == 1 and "bound to another tenant" in done.err and "acme" not in done.err
