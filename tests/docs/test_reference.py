"""The tables of docs/reference say what the code says: no more, no less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import playhead
from playhead.core.events import TYPES

REPO = Path(__file__).resolve().parents[2]
REFERENCE = REPO / "docs" / "reference"
SOURCE = REPO / "src" / "playhead"
_MAKERS = {"Finding", "_say", "note"}


def texts(node: ast.expr) -> list[str]:
    """The words that an expression can be, when it is written out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    return []


def kinds_made(path: Path) -> Iterator[str]:
    """Kinds of the findings that a module of `core` or `verifier` makes."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in _MAKERS:
                yield from texts(node.args[0])
        elif (
            path.name in ("oddities.py", "breaks.py")  # the kind is the first of a tuple
            and isinstance(node, (ast.Yield, ast.Return))
            and isinstance(node.value, ast.Tuple)
        ):
            yield from texts(node.value.elts[0])


def rows(page: str) -> list[list[str]]:
    text = (REFERENCE / page).read_text("utf-8")
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def test_every_kind_of_finding_is_in_the_table() -> None:
    made = {
        kind
        for folder in ("core", "verifier")
        for path in (SOURCE / folder).glob("*.py")
        for kind in kinds_made(path)
    }
    told = [
        (line[0].strip("`"), line[1])
        for line in rows("verdicts.md")
        if line[0].strip("`") not in ("verified", "unproven", "failed")
    ]
    assert {kind for kind, _ in told} == made
    assert len(told) == len(made) > 25
    assert {severity for _, severity in told} == {"error", "warning", "notice", "oddity"}


def test_the_oddities_are_those_of_the_code() -> None:
    oddities = set(kinds_made(SOURCE / "core" / "oddities.py"))
    assert {line[0].strip("`") for line in rows("verdicts.md") if line[1] == "oddity"} == oddities


def test_every_verdict_is_in_the_table() -> None:
    told = {line[0].strip("`") for line in rows("verdicts.md")}
    assert {verdict.value for verdict in playhead.Verdict} <= told


def test_every_event_type_is_in_the_table_with_its_keys() -> None:
    told = {
        line[0].strip("`"): tuple(re.findall(r"`(\w+)`", line[1])) for line in rows("events.md")
    }
    assert told == dict(TYPES)


def test_every_public_name_has_a_section_with_an_example() -> None:
    text = (REFERENCE / "python-api.md").read_text("utf-8")
    sections = dict(re.findall(r"(?ms)^### `(\w+)`\n(.*?)(?=^##|\Z)", text))
    assert sorted(sections) == sorted(playhead.__all__)
    for name, body in sections.items():
        assert re.search(rf"```python\n.*?\b{name}\b.*?```", body, re.S) or name == "Recording", (
            name
        )


def test_every_error_code_is_in_the_table() -> None:
    from playhead import errors

    codes = {
        value.code: value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type)
        and issubclass(value, errors.PlayheadError)
        and value is not errors.PlayheadError
    }
    told = {line[0].strip("`"): int(line[1]) for line in rows("exit-status.md")}
    assert codes.items() <= told.items()
