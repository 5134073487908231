"""A command that only reads writes nothing: no file, no time, no directory, no lock."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commands import Cli
from playhead.store.seal import seal_folder
from story import a_run, oddities, tree

NOBODY = 65534

READING = [
    ["ls"],
    ["ls", "--verify", "--json"],
    ["log", "first"],
    ["log", "@last", "--turns", "--grep", "again"],
    ["show", "first", "5", "--full"],
    ["walk", "--plain", "first"],
    ["walk", "--plain", "--back", "first"],
    ["verify", "first"],
    ["verify", "--strict", "first", "nope"],
    ["fsck"],
    ["export", "first", "-o", "-"],
    ["keys", "show"],
    ["replay", "first"],
    ["replay", "first", "--from-step", "3", "--verify-mode", "step"],
    ["replay", "first", "--verify"],
    ["replay", "--all", "--tenant", "local", "--jobs", "1"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_nothing_is_written(
    cli: Cli, tmp_path: Path, root: Path, words: list[str], sealed: bool
) -> None:
    a_run()
    if sealed:
        seal_folder(root / "runtime" / "journal" / "first")
    before = tree(tmp_path)
    done = cli(*words)
    assert done.status in (0, 2), done
    assert done.out
    assert tree(tmp_path) == before


@pytest.mark.parametrize("words", [["ls"], ["ls", "--verify"], ["fsck"], ["keys", "show"]])
def test_nothing_is_made_where_there_is_nothing(cli: Cli, tmp_path: Path, words: list[str]) -> None:
    before = tree(tmp_path)
    assert cli(*words).status == (0 if words[0] == "keys" else 2)  # a root that is named is there
    assert tree(tmp_path) == before


WRONG = [
    ["verify", "link.jsonl"],
    ["verify", "folder.jsonl"],
    ["verify", "archive.jsonl"],
    ["import", "folder.jsonl"],
    ["import", "link.jsonl"],
    ["import", "noise.jsonl"],
    ["import", "noise.jsonl", "--run-id", "../x"],
    ["import", "nope.jsonl"],
    ["run", "--run-id", "../../x", "--", "true"],
    ["run", "--", "no-such-program-anywhere"],
    ["log", "../../x"],
    ["log", "CON"],
    ["log", "a\\b"],
    ["seal", "../../x"],
    ["unseal", "nope"],
    ["export", "first", "-o", "folder.jsonl"],
    ["export", "first", "-o", "x.tar"],
    ["export", "first", "--original", "-o", "x"],
    ["keys", "trust", "noise.jsonl"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_refusal_is_one_line_and_writes_nothing(
    cli: Cli, tmp_path: Path, words: list[str]
) -> None:
    oddities()
    before = tree(tmp_path)
    done = cli(*words)
    assert done.status in (2, 4, 127), done
    assert done.out == ""
    assert done.err.startswith("playhead: ")
    assert done.err.count("\n") == 1
    assert tree(tmp_path) == before


def test_export_does_not_write_into_the_run(cli: Cli, root: Path) -> None:
    a_run()
    folder = root / "runtime" / "journal" / "first"
    before = tree(folder)
    done = cli("export", "first", "-o", str(folder / "000000.jsonl"), "--force")
    assert done.status == 4
    assert "inside the run itself" in done.err
    assert tree(folder) == before


@pytest.fixture
def powerless() -> Iterator[Callable[[], None]]:
    """Give up root's right to read everything, until the test ends."""
    yield lambda: os.seteuid(NOBODY) if os.geteuid() == 0 else None
    if os.getuid() == 0:
        os.seteuid(0)


def test_a_journal_without_permission_is_refused(
    cli: Cli, powerless: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv("PLAYHEAD_ROOT", name)
        a_run()
        cli("log", "first")  # whatever is imported late is imported now
        cli("ls")
        journal = Path(name, "runtime", "journal", "first", "000000.jsonl")
        for place in [Path(name), *journal.parents[:3]]:
            place.chmod(0o755)
        journal.chmod(0)
        powerless()
        done = cli("log", "first")
        assert done.status == 4
        assert done.err == (
            f"playhead: {journal}: permission denied. Check its kind, owner and permissions\n"
        )
        listed = cli("ls")
        assert "unreadable: permission denied" in listed.out
        if os.getuid() == 0:
            os.seteuid(0)
