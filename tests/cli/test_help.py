"""Help texts, and the pages that are written from them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from commands import Cli
from playhead import errors
from playhead.cli.main import COMMANDS
from story import a_run

LIGHT = "playhead.store playhead.core textual rich cryptography zstandard orjson asyncio".split()


def reference(repo: Path) -> ModuleType:
    path = repo / "tools" / "docs" / "cli_reference.py"
    spec = importlib.util.spec_from_file_location("cli_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_page_is_what_the_help_texts_say(repo: Path) -> None:
    page = (repo / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert page == reference(repo).page(), "run `make docs`"


def test_every_command_has_one_example_that_works_and_its_exit_statuses(repo: Path) -> None:
    seen = 0
    for name, context in reference(repo).commands():
        text = context.get_help()
        example = re.search(r"EXAMPLE\n +playhead (.+)\n", text)
        assert example, name
        assert example[1].startswith(name.split()[0]), name
        assert text.count("EXAMPLE") == 1
        assert re.search(r"EXIT STATUS\n  +0 ", text), name
        options = {word for param in context.command.params for word in param.opts}
        assert set(re.findall(r" (--[a-z-]+)", example[1].split(" -- ")[0])) <= options, name
        seen += 1
    assert seen >= len(COMMANDS)


def test_every_command_takes_root_and_json(repo: Path) -> None:
    for name, context in reference(repo).commands():
        if isinstance(context.command, click.Group):
            continue
        options = {word for param in context.command.params for word in param.opts}
        place = "url" if name.startswith("store ") else "--root"  # it is what they are about
        assert {place, "--json"} <= options, name


def test_the_first_help_names_every_command_with_its_own_words(cli: Cli, repo: Path) -> None:
    done = cli("--help")
    assert done.status == 0
    for name, (module, words) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", done.out, re.M)
        assert (repo / "src" / "playhead" / "cli" / f"{module}.py").is_file()


def test_without_words_the_help_goes_to_stderr(cli: Cli) -> None:
    done = cli()
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: playhead")


def test_a_shell_can_complete_commands_and_options() -> None:
    def complete(words: str, place: int) -> list[str]:
        shell = {"_PLAYHEAD_COMPLETE": "bash_complete", "COMP_WORDS": words}
        environment = {**os.environ, **shell, "COMP_CWORD": str(place)}
        command = [sys.executable, "-m", "playhead"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("playhead ver", 1) == ["plain,verify"]
    assert "plain,--strict" in complete("playhead verify --s", 2)


def test_the_version(cli: Cli) -> None:
    import playhead

    assert cli("--version").out == f"playhead {playhead.__version__}\n"


def test_the_first_help_loads_next_to_nothing() -> None:
    code = (
        "import sys; from playhead.cli.main import run; run(['--help']); "
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    heavy = [name for name in loaded if any(name == m or name.startswith(m + ".") for m in LIGHT)]
    assert not heavy
    own = [name for name in loaded if name.startswith("playhead.cli.")]
    assert own == ["playhead.cli.faults", "playhead.cli.main"]


def test_the_exit_status_page_names_every_error(repo: Path) -> None:
    page = (repo / "docs" / "reference" / "exit-status.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page, re.M))
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.PlayheadError)
    ]
    assert rows == {kind.code: str(kind.exit_code) for kind in kinds} | {"bug": "70"}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"demo", "run", "import", "keys", "store"}))
def test_json_is_one_document_and_nothing_else(cli: Cli, name: str) -> None:
    import json

    a_run()
    more = {
        "ls": ["--verify"],
        "fsck": [],
        "show": ["first", "5"],
        "export": ["first", "-o", "x.jsonl"],
        "copy": ["first", "--to", "sqlite:///x.db"],
    }
    done = cli(name, *more.get(name, ["first"]), "--json")
    assert done.status == 0, done
    assert done.err == ""
    assert isinstance(json.loads(done.out), dict)
    assert done.out.isascii()
