"""The tenant matrix of the command line: another tenant's run is not there, in every store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import playhead
from commands import Cli, Done
from playhead.store.urls import open_store

MARK = "zq9marker"
"""In every name and value of the other tenant's run; it may be seen nowhere."""
OTHER = f"{MARK}-tenant"
KINDS = ["directory", "sqlite", "postgresql"]
BLANK = ["", "  ", "\t"]
SHOWING: dict[str, list[str]] = {
    "log": [],
    "show": ["0"],
    "walk": ["--plain"],
    "replay": [],
    "export": ["-o", "out.jsonl"],
    "copy": ["--to", "sqlite:///copied.db"],
}
"""Commands that take RUN and show what is in it, with what they need besides."""


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL or the path of an empty store."""
    if request.param == "postgresql":
        site = request.getfixturevalue("pg")
        return str(site.url())
    return {
        "directory": str(tmp_path / "runs"),
        "sqlite": f"sqlite:///{tmp_path / 'runs.db'}",
    }[request.param]


def plant(place: str, tenant_id: str = OTHER) -> str:
    """A run of the other tenant, full of markers; returns its id."""
    run_id = f"{MARK}-run"
    with playhead.record(
        f"{MARK}-agent",
        root=place,
        run_id=run_id,
        chat_id=f"{MARK}-chat",
        tenant_id=tenant_id,
        meta={"note": f"{MARK}-meta"},
    ) as run:
        run.state("key", f"{MARK}-value")
    return run_id


def own(place: str) -> None:
    with playhead.record("mine", root=place, run_id="own", tenant_id="acme") as run:
        run.state("key", "value")


def words(name: str, run: str, place: str) -> list[str]:
    return [name, run, *SHOWING[name], "--root", place]


def silent(done: Done, asked: str = "") -> None:
    """No foreign value, beyond what the question itself says."""
    said = done.out + done.err
    assert MARK not in said.replace(asked, "") if asked else MARK not in said, done


def asks(place: str, run_id: str) -> list[str]:
    """The words that would mean the foreign run."""
    found = [run_id, run_id[:6], "@last", f"{MARK}-chat"]
    if "://" not in place:
        folder = Path(place) / "runtime" / "journal" / run_id
        found += [str(folder), str(folder / "000000.jsonl")]
    return found


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", SHOWING)
def test_another_tenants_run_answers_as_one_that_is_not_there(
    cli: Cli, here: Path, place: str, name: str, as_json: bool
) -> None:
    run_id = plant(place)
    more = ["--tenant", "acme", *(["--json"] if as_json else [])]
    for asked in asks(place, run_id):
        done = cli(*words(name, asked, place), *more)
        missing = asked if asked == "@last" else asked.replace(MARK, "nothing-here")
        never = cli(*words(name, missing, place), *more)
        assert done.status == never.status == 2, (asked, done)
        silent(done, asked)
        if asked != "@last":
            there = done.out + done.err
            assert there.replace(asked, "X") == (never.out + never.err).replace(missing, "X")
    assert not list(here.iterdir())


@pytest.mark.parametrize("name", SHOWING)
def test_last_is_the_last_of_this_tenant(cli: Cli, place: str, name: str) -> None:
    own(place)
    plant(place)
    done = cli(*words(name, "@last", place), "--tenant", "acme")
    assert done.status == 0, done
    silent(done)


@pytest.mark.parametrize("name", SHOWING)
@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_a_blank_tenant_is_refused(
    cli: Cli, place: str, name: str, blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = plant(place)
    for done in _blank(cli, words(name, run_id, place), blank, monkeypatch):
        assert done.status == 2, done
        assert "is blank" in done.err
        silent(done)


@pytest.mark.parametrize(
    "line", [["ls"], ["ls", "--verify"], ["verify", "own"], ["verify", "@last"]], ids=" ".join
)
@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_a_blank_tenant_lists_and_verifies_nothing(
    cli: Cli, place: str, line: list[str], blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(place)
    for done in _blank(cli, [*line, "--root", place], blank, monkeypatch):
        assert done.status == 2, done
        assert "is blank" in done.err
        silent(done)


def _blank(
    cli: Cli, line: Sequence[str], blank: str, monkeypatch: pytest.MonkeyPatch
) -> list[Done]:
    given = cli(*line, "--tenant", blank)
    monkeypatch.setenv("PLAYHEAD_TENANT", blank)
    return [given, cli(*line)]


@pytest.mark.parametrize("name", [*SHOWING, "ls", "verify"])
def test_without_a_tenant_a_database_is_refused_and_a_directory_is_local(
    cli: Cli, place: str, name: str
) -> None:
    run_id = plant(place)
    line = words(name, run_id, place) if name in SHOWING else [name, "--root", place]
    line = [*line, run_id] if name == "verify" else line
    done = cli(*line)
    if name == "ls" and "://" not in place:
        assert done.status == 0
        assert done.out.startswith("no run under")
        silent(done)
        return
    assert done.status == 2, done
    silent(done, run_id)
    assert ("--tenant" in done.err) == ("://" in place)


def test_ls_lists_only_the_tenants_runs(cli: Cli, place: str) -> None:
    own(place)
    plant(place)
    for more in ([], ["--json"], ["--verify"], ["--verify", "--json"]):
        done = cli("ls", "--root", place, "--tenant", "acme", *more)
        assert done.status == 0
        assert "own" in done.out
        silent(done)
    listed = json.loads(cli("ls", "--root", place, "--tenant", "acme", "--json").out)
    assert [run["run_id"] for run in listed["runs"]] == ["own"]
    listed = json.loads(cli("ls", "--root", place, "--tenant", OTHER, "--json").out)
    assert [run["run_id"] for run in listed["runs"]] == [f"{MARK}-run"]


def test_verify_of_another_tenants_run(cli: Cli, place: str) -> None:
    run_id = plant(place)
    for asked in [run_id, run_id[:6], "@last"]:
        done = cli("verify", asked, "--root", place, "--tenant", "acme")
        assert done.status == 2, done
        silent(done, asked)
    assert cli("verify", run_id, "--root", place, "--tenant", OTHER).status == 0


def test_the_variable_names_the_tenant_and_the_option_wins(
    cli: Cli, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(place)
    monkeypatch.setenv("PLAYHEAD_TENANT", "acme")
    monkeypatch.setenv("PLAYHEAD_ROOT", place)
    assert cli("log", "own").status == 0
    assert cli("log", "own", "--tenant", "other").status == 2


def test_an_ambiguous_prefix_names_only_the_own_runs(cli: Cli, place: str) -> None:
    for run_id in (f"{MARK}-a", f"{MARK}-b"):
        playhead.record("x", root=place, run_id=run_id, tenant_id=OTHER).open().close()
    for run_id in ("zq-one", "zq-two"):
        playhead.record("x", root=place, run_id=run_id, tenant_id="acme").open().close()
    done = cli("log", "zq", "--root", place, "--tenant", "acme")
    assert done.status == 2
    assert "fits 2 runs" in done.err
    silent(done)


@pytest.mark.parametrize("name", ["run", "import"])
def test_what_is_written_has_the_tenant_that_is_named(
    cli: Cli, place: str, name: str, repo: Path
) -> None:
    session = str(repo / "docs" / "examples" / "session.jsonl")
    line = {"run": ["--", "true"], "import": [session]}[name]
    done = cli(name, "--root", place, *line)
    assert done.status == (2 if "://" in place else 0), done
    for blank in BLANK:
        assert cli(name, "--root", place, "--tenant", blank, *line).status == 2
    more = ["--run-id", "again"]
    assert cli(name, "--root", place, "--tenant", "acme", *more, *line).status == 0
    store = open_store(place)
    assert [ref.run_id for ref in store.list_chats("acme")] == ["again"]
    assert len(store.list_chats("local")) == (0 if "://" in place else 1)
    store.close()


@pytest.mark.parametrize("name", ["fsck", "seal", "unseal", "keys"])
def test_what_is_about_directories_refuses_a_database(cli: Cli, tmp_path: Path, name: str) -> None:
    file = tmp_path / "runs.db"
    line = {"fsck": [], "keys": ["show"]}.get(name, ["x"])
    done = cli(name, *line, "--root", f"sqlite:///{file}")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "directory" in done.err
    assert not file.exists()


@pytest.mark.parametrize("name", [*SHOWING, "ls", "verify"])
def test_a_command_that_reads_makes_no_database(cli: Cli, tmp_path: Path, name: str) -> None:
    url = f"sqlite:///{tmp_path / 'typo.db'}"
    line = words(name, "x", url) if name in SHOWING else [name, "--root", url]
    line = [*line, "x"] if name == "verify" else line
    done = cli(*line, "--tenant", "acme")
    assert done.status == 2, done
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("name", [*SHOWING, "ls", "verify", "fsck", "run", "import"])
def test_a_password_is_never_shown(cli: Cli, name: str, tmp_path: Path) -> None:
    secret = "s3cretword"
    url = f"postgresql://someone:{secret}@127.0.0.1:1/nowhere?connect_timeout=1"
    (tmp_path / "x.jsonl").write_text("{}\n")
    line = words(name, "x", url) if name in SHOWING else [name, "--root", url]
    line += {"verify": ["x"], "run": ["--", "true"], "import": [str(tmp_path / "x.jsonl")]}.get(
        name, []
    )
    scope = ["--tenant", "acme"] if name not in ("fsck", "run") else []
    for more in ([], ["--json"]):
        at = line.index("--") if "--" in line else len(line)
        done = cli(*line[:at], *scope, *more, *line[at:])
        assert done.status != 0
        assert secret not in done.out + done.err, done
    wrong = cli("ls", url)
    assert wrong.status == 2
    assert secret not in wrong.out + wrong.err


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no /proc/self/mem here")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cretword@127.0.0.1:1/x",
        "postgresql://u:s3/cret@word@h/x",
        "postgresql://h/x?password=s3cretword&sslmode=disable",
    ],
)
def test_a_process_list_shows_no_password(url: str) -> None:
    code = (
        "from playhead.cli.title import hide_passwords; hide_passwords();"
        "print(open('/proc/self/cmdline').read())"
    )
    command = [sys.executable, "-c", code, "log", "x", "--root", url, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "s3" not in done.stdout
    assert "cret" not in done.stdout
    shown = done.stdout.split("\0")
    assert shown[-3].startswith("postgresql://")
    assert [*shown[-6:-3], shown[-2]] == ["log", "x", "--root", "--json"]


def test_the_screens_of_every_store_are_the_same(
    cli: Cli, root: Path, tmp_path: Path, pg_server: object, request: pytest.FixtureRequest
) -> None:
    """One run in three stores: log, show, walk and verify print the same but for the place."""
    from story import a_run

    a_run()
    site = request.getfixturevalue("pg")
    sqlite = f"sqlite:///{tmp_path / 'runs.db'}"
    assert cli("copy", "first", "--to", sqlite, "--to", site.url()).status == 0
    for line in (
        ["log", "first"],
        ["log", "first", "--turns"],
        ["log", "@last", "--grep", "zebra", "--json"],
        ["walk", "first", "--plain"],
        ["walk", "first", "--plain", "--back", "--full"],
        ["show", "first", "5", "--full"],
        ["export", "first", "-o", "-"],
        ["verify", "first"],
        ["ls"],
    ):
        said = [
            cli(*line, "--root", where, "--tenant", "local")
            for where in (str(root), sqlite, site.url())
        ]
        assert {done.status for done in said} == {0}, (line, said)
        shown = [_placeless(done.out) for done in said]
        assert shown[0] == shown[1] == shown[2], line
        assert shown[0]


def _placeless(text: str) -> str:
    """Without the lines that say where a row lies."""
    places = ("000000.jsonl", "sqlite:", "postgresql:", " line ", "byte")
    return "\n".join(line for line in text.splitlines() if not any(p in line for p in places))
