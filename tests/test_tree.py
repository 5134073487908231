"""What may not stand in any file of the repository, and what the set-up files promise."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

# Put together here, so that this file does not hold what it looks for.
MACHINE_PATHS = ["/" + "work/", "/" + "root/", "/" + "tmp/dev"]
REGISTRY_HOSTS = ["python" + "hosted.org", "pypi.org" + "/simple", "--index" + "-url"]
FORBIDDEN = MACHINE_PATHS + REGISTRY_HOSTS


def tracked(repo: Path) -> list[Path]:
    """The files git knows; the test is skipped in an unpacked archive, which has none."""
    if not (repo / ".git").exists():
        pytest.skip("not a git checkout: there is no list of tracked files")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=repo, capture_output=True, check=True)
    paths = [repo / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def forbidden_in(data: bytes) -> list[tuple[int, str]]:
    """(line, word) for every forbidden word; binary files hold no lines and are left out."""
    if b"\0" in data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    return [(n, word) for n, line in enumerate(lines, 1) for word in FORBIDDEN if word in line]


def test_no_file_names_a_machine_or_a_registry(repo: Path) -> None:
    found = [
        f"{path.relative_to(repo)}:{line}: holds {word!r}"
        for path in tracked(repo)
        for line, word in forbidden_in(path.read_bytes())
    ]
    assert not found, "\n".join(["the tree must mean the same on every machine", *found])


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_forbidden_word_is_seen(word: str) -> None:
    assert forbidden_in(f"first\nsee {word}x\n".encode()) == [(2, word)]


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_locked_package_has_a_version_and_hashes_and_no_address(
    repo: Path, name: str
) -> None:
    text = (repo / "requirements" / name).read_text("utf-8")
    assert "://" not in text
    pins = re.findall(r"(?m)^(?=\S)(?!#)(.*(?:\n    --hash=.*)+)", text)
    heads = [line for line in text.splitlines() if line[:1].strip() and line[0] != "#"]
    assert len(pins) == len(heads) > 5
    assert all("==" in head for head in heads)


def test_both_locks_name_the_same_versions(repo: Path) -> None:
    run, dev = (
        dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", (repo / "requirements" / name).read_text()))
        for name in ("run.txt", "dev.txt")
    )
    assert run.items() <= dev.items()


def test_every_dependency_is_locked_and_explained(repo: Path) -> None:
    project = tomllib.loads((repo / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    named = project["project"]["dependencies"] + extras["dev"] + extras["postgres"]
    named += project["build-system"]["requires"]
    names = {re.split(r"[<>=!~ \[]", spec)[0] for spec in named}
    lock = (repo / "requirements" / "dev.txt").read_text("utf-8")
    assert names <= set(re.findall(r"(?m)^([\w.-]+)==", lock))
    page = (repo / "docs" / "explanation" / "dependencies.md").read_text("utf-8")
    assert names == set(re.findall(r"(?m)^\| `([\w.-]+)` \|", page))
