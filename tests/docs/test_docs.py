"""What README.md and docs/ show is run, in order, and what it prints is compared.

* ``console``: a line with ``$`` is a command, the lines after it are what it prints.
* ``python``: run by itself. When its first line is ``# name.py`` the block is saved under that
  name instead, for the commands that follow. An ``output`` block after it is what it prints.
* ``...`` in expected output stands for anything: alone on a line for any number of lines.
* ``*Not run by the tests: <reason>*`` on the line before a block leaves it out, and says so to
  the reader too.

A page has one temporary directory, and its own home, so that keys and runs of the person who
runs the tests are neither read nor written. It is one shell: ``cd`` and ``export`` last.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
DOCS = REPO / "docs"
PAGES = [REPO / "README.md", *sorted(DOCS.rglob("*.md"))]
MAX_NOT_RUN = 4
"""Blocks in all pages together that may be left out; each gives its reason."""

_NOT_RUN = re.compile(r"\*Not run by the tests: .{10,}\*\Z")
_FILE = re.compile(r"# ([\w-]+\.\w+)\Z")
_END = "\x1e"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line of its fence, and whether to run it."""

    lang: str
    text: str
    line: int
    skipped: bool


def blocks(text: str) -> Iterator[Block]:
    before, lang, start, body = "", None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if lang is None:
                lang, start, body = line[3:].strip(), number, []
            else:
                skipped = _NOT_RUN.match(before) is not None
                yield Block(lang, "\n".join(body), start, skipped)
                lang, before = None, ""
        elif lang is not None:
            body.append(line)
        elif line.strip():
            before = line.strip()
    assert lang is None, f"the fence of line {start} is not closed"


def fits(expected: str, actual: str) -> bool:
    """Whether the output is the documented one; ``...`` stands for anything."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += (
                ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ ]*\n"
            )
    return re.fullmatch(pattern, actual.rstrip() + "\n" if actual.strip() else "") is not None


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that follows it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0] + "\n" + line, [])
        else:
            assert found, f"output before any command: {line!r}"
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


class Stage:
    """The directory in which one page is played."""

    def __init__(self, place: Path) -> None:
        self.cwd = place / "page"
        self._shell = place / "shell"
        tools = place / "bin"
        for folder in (self.cwd, tools, place / "home"):
            folder.mkdir()
        for name, words in (("python", ""), ("playhead", " -m playhead")):
            script = tools / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
            script.chmod(0o755)
        for examples in ("docs/examples", "examples"):
            shutil.copytree(REPO / examples, self.cwd / examples)
        self.env = {
            "PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(place / "home"),
            "PYTHONPATH": str(REPO / "src"),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }

    def run(self, words: list[str], text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            input=text,
            cwd=self.cwd,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )

    def console(self, where: str, text: str) -> None:
        shown = commands(text)
        script = "".join(
            f"{{ {command}\n}} </dev/null\ns=$?; printf '{_END}'; (exit $s)\n"
            for command, _ in shown
        )
        script += f"{{ pwd; env -0; }} > '{self._shell}'\n"
        outputs = self.run(["bash"], script).stdout.split(_END)
        self._go_on_there()
        for (command, expected), actual in zip(shown, outputs, strict=False):
            assert fits(expected, actual), f"{where}: $ {command}\nprints\n{actual}"
        assert len(outputs) == len(shown) + 1 and not outputs[-1], f"{where}:\n{outputs[-1]}"

    def _go_on_there(self) -> None:
        """What comes next stands where the block left off, with what it exported."""
        place, _, exported = self._shell.read_text().partition("\n")
        self.cwd = Path(place)
        self.env = dict(item.split("=", 1) for item in exported.split("\0") if item)

    def python(self, where: str, text: str, expected: str | None) -> None:
        saved = _FILE.match(text.split("\n", 1)[0])
        if saved:
            assert expected is None, f"{where}: a saved file prints nothing by itself"
            (self.cwd / saved[1]).write_text(text + "\n")
            return
        done = self.run(["python", "-"], text)
        assert done.returncode == 0, f"{where}:\n{done.stdout}"
        if expected is not None:
            assert fits(expected, done.stdout), f"{where}: prints\n{done.stdout}"


def page_id(page: Path) -> str:
    return str(page.relative_to(REPO))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_what_a_page_shows_is_what_happens(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stage = Stage(tmp_path)
    if page.name == "postgresql.md":  # as on a machine that has a server
        server = request.getfixturevalue("pg_server")
        stage.env |= {"PGHOST": str(server.place), "PGPORT": str(server.port)}
        stage.env["PATH"] += f"{os.pathsep}{server.bin}"
    found = list(blocks(page.read_text("utf-8")))
    for index, block in enumerate(found):
        where = f"{page_id(page)}:{block.line}"
        if block.skipped:
            continue
        if block.lang == "console":
            stage.console(where, block.text)
        elif block.lang == "python":
            after = found[index + 1] if index + 1 < len(found) else None
            shows = after is not None and after.lang == "output"
            stage.python(where, block.text, after.text if after and shows else None)


def test_nearly_everything_is_run() -> None:
    left_out = [
        f"{page_id(page)}:{block.line}"
        for page in PAGES
        for block in blocks(page.read_text("utf-8"))
        if block.skipped
    ]
    assert len(left_out) <= MAX_NOT_RUN, left_out


def test_the_readme_shows_a_command_before_line_25() -> None:
    first = next(
        block for block in blocks((REPO / "README.md").read_text()) if block.lang == "console"
    )
    assert first.line < 25 and commands(first.text)[0][1]


@pytest.mark.parametrize(
    ("expected", "actual", "answer"),
    [
        ("a ... c", "a b c\n", True),
        ("a\n...\nz", "a\nb\nc\nz\n", True),
        ("a\n...\nz", "a\nz\n", True),
        ("a\n...", "a\n", True),
        ("", "", True),
        ("", "something\n", False),
        ("a", "a\nb\n", False),
        ("a ... c", "a b\nc\n", False),
        ("a", "", False),
    ],
)
def test_expected_output_is_compared(expected: str, actual: str, answer: bool) -> None:
    assert fits(expected, actual) is answer


def test_a_block_that_is_wrong_is_seen(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.console("page:1", "$ echo one; false\none\n$ echo $?\n1")
    for text in ("$ echo one\ntwo", "$ exit 3", "$ no-such-program"):
        with pytest.raises(AssertionError):
            stage.console("page:1", text)
    with pytest.raises(AssertionError):
        stage.python("page:1", "raise SystemExit(1)", None)
    with pytest.raises(AssertionError):
        stage.python("page:1", "print(1)", "2")
