"""The house rules that a machine can check: floors, purity, one durable place, small modules.

The floors and the reason for each are in ARCHITECTURE.md. Every rule is a function from a
parsed module to the sentences that say what is wrong; each is also run on a small breach, so
that a rule that stops seeing anything fails.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src" / "playhead"
MAX_LINES = 300

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "_version"),
    ("core",),
    ("formats",),
    ("store",),
    ("capture",),
    ("recorder", "verifier", "replay", "rerun", "fork", "diff", "publish", "convert"),
    ("cli", "tui", "web", "pytest_plugin", "demo", "testing", "__main__"),
)
FLOOR_OF = {unit: number for number, units in enumerate(FLOORS) for unit in units}
EDGES = FLOORS[-1]
FACADES = ("__init__", "api")
# The facade gives this one constant to everybody; all else in it is loaded on first use.
CONSTANTS = ("__version__",)

IMPURE_MODULES = frozenset(
    "asyncio fcntl ftplib getpass glob http importlib io locale logging mmap multiprocessing os "
    "pathlib platform queue random secrets select shutil signal socket sqlite3 ssl subprocess "
    "tempfile threading time urllib uuid".split()
)
IMPURE_CALLS = frozenset({"open", "print", "input", "__import__", "eval", "exec", "compile"})
IMPURE_METHODS = frozenset({"now", "utcnow", "today", "generate", "urandom"})
DURABLE_CALLS = {
    "os": frozenset({"fsync", "fdatasync", "sync", "rename", "renames", "replace", "lockf"}),
    "fcntl": frozenset({"flock", "lockf"}),
    "shutil": frozenset({"move"}),
}
PURE_NAMES = frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"})  # text, no disk
BROAD = frozenset({"Exception", "BaseException"})
# Runs the __repr__ and properties of an agent's own objects, which may raise anything, and
# may not raise into the agent: there the fault becomes part of the recorded value. A generator
# on record hands what its consumer throws on into the generator itself.
MARKS_FAULTS = ("core/values.py", "recorder/tools.py")


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: its place below src/playhead, and its tree."""

    path: str
    text: str

    @property
    def unit(self) -> str:
        """The part of the house it belongs to: the package or module below playhead."""
        return self.path.split("/")[0].removesuffix(".py")

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


def modules() -> list[Module]:
    found = sorted(SRC.rglob("*.py"))
    return [Module(p.relative_to(SRC).as_posix(), p.read_text("utf-8")) for p in found]


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, unit, name) of everything imported from playhead, inside functions as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "playhead":
                    yield node.lineno, parts[1] if len(parts) > 1 else "__init__", parts[-1]
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] != "playhead":
                continue
            for alias in node.names:
                unit = parts[1] if len(parts) > 1 else alias.name
                known = unit in FLOOR_OF or unit in FACADES
                yield node.lineno, unit if known or len(parts) > 1 else "__init__", alias.name


def floors(module: Module) -> Iterator[str]:
    """Imports go down only; what is on no floor has no place in the house."""
    here = module.unit
    if here in FACADES:
        yield from lazy(module)
        return
    if here not in FLOOR_OF:
        yield f"{here} is on no floor: give it one here and in ARCHITECTURE.md"
        return
    for line, unit, name in imports(module.tree):
        if name in CONSTANTS or unit == here:
            continue
        if unit in FACADES and here in EDGES:
            continue
        if unit in FACADES:
            yield f"line {line}: {here} may not import the facade: name the module that it means"
        elif unit not in FLOOR_OF:
            yield f"line {line}: {here} imports {unit}, which is on no floor"
        elif FLOOR_OF[unit] > FLOOR_OF[here]:
            yield f"line {line}: {here} may not import {unit}: imports go down only"
        elif name.startswith("_") and not name.startswith("__"):
            yield f"line {line}: {here} may not use {unit}'s private name {name}"


def lazy(module: Module) -> Iterator[str]:
    """The facade may name everything, but loads nothing before it is asked for."""
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for line, unit, _ in imports(node):
                if FLOOR_OF.get(unit) != 0:
                    yield f"line {line}: the facade may load {unit} only when it is first used"


def purity(module: Module) -> Iterator[str]:
    """core has no I/O, no clock, no network, no randomness: same bytes in, same answer out."""
    if module.unit != "core":
        return
    for node in ast.walk(module.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            pure = node.module == "pathlib" and {a.name for a in node.names} <= PURE_NAMES
            names = [] if pure else [node.module or ""]
        for name in names:
            if name.split(".")[0] in IMPURE_MODULES:
                yield f"line {node.lineno}: core may not import {name}: no I/O, clock or randomness"
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=called) if called in IMPURE_CALLS:
                    yield f"line {node.lineno}: core may not call {called}()"
                case ast.Attribute(attr=called) if called in IMPURE_METHODS:
                    yield f"line {node.lineno}: core may not call .{called}(): take it as a value"


def durability(module: Module) -> Iterator[str]:
    """Only store/durable syncs, locks and renames: the promises about a crash stand there."""
    if module.path == "store/durable.py":
        return
    alias_of: dict[str, str] = {}
    why = "only store/durable.py may: call it instead"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            alias_of |= {a.asname or a.name: a.name for a in node.names if a.name in DURABLE_CALLS}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in DURABLE_CALLS.get(node.module or "", ()):
                    yield f"line {node.lineno}: imports {node.module}.{alias.name}; {why}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=base), attr=called) if called in DURABLE_CALLS.get(
                alias_of.get(base, ""), ()
            ):
                yield f"line {node.lineno}: uses {base}.{called}; {why}"
            case (
                ast.Call(func=ast.Attribute(attr="rename"), args=[_], keywords=[])
                | ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[])
            ):  # str.replace takes two and dataclasses.replace takes keywords: this is a path
                yield f"line {node.lineno}: renames a path; {why}"


def size(module: Module) -> Iterator[str]:
    """A module does one job and is read in one sitting."""
    lines = module.text.count("\n")
    if lines > MAX_LINES:
        yield f"{lines} lines, over {MAX_LINES}: part it by job"


def swallowing(module: Module) -> Iterator[str]:
    """Whoever catches everything raises again or leaves a finding: no fault is lost in silence."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and _broad(node.type):
            inside = [inner for stmt in node.body for inner in ast.walk(stmt)]
            words = [n.id for n in inside if isinstance(n, ast.Name)]
            words += [n.attr for n in inside if isinstance(n, ast.Attribute)]
            raises = any(isinstance(n, ast.Raise) for n in inside)
            marked = module.path in MARKS_FAULTS and node.name in words
            if not (raises or marked or any("finding" in word.lower() for word in words)):
                yield f"line {node.lineno}: catches everything, raises nothing and finds nothing"


def _broad(caught: ast.expr | None) -> bool:
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(p is None or (isinstance(p, ast.Name) and p.id in BROAD) for p in parts)


RULES: tuple[Callable[[Module], Iterator[str]], ...] = (
    floors,
    purity,
    durability,
    size,
    swallowing,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Callable[[Module], Iterator[str]]) -> None:
    found = [f"{m.path}: {breach}" for m in modules() for breach in rule(m)]
    assert not found, "\n".join([f"{rule.__doc__} See ARCHITECTURE.md.", *found])


def test_the_rules_see_the_house() -> None:
    assert {"errors", "core", "store"} <= {module.unit for module in modules()}


def test_no_import_cycle_between_the_parts_of_the_house() -> None:
    graph: dict[str, set[str]] = {}
    for module in modules():
        used = {unit for _, unit, _ in imports(module.tree) if unit in FLOOR_OF}
        if module.unit not in FACADES:
            graph.setdefault(module.unit, set()).update(used - {module.unit})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' -> '.join(reversed(error.args[1]))}")


BREACHES = [
    (floors, "store/x.py", "from playhead.replay import walk", "store may not import replay"),
    (floors, "store/x.py", "def f():\n    import playhead.cli.main", "store may not import cli"),
    (floors, "core/x.py", "from playhead import formats", "core may not import formats"),
    (floors, "recorder/x.py", "from playhead import recorder", None),
    (floors, "verifier/x.py", "from playhead import run", "may not import the facade"),
    (floors, "cli/x.py", "from playhead import run", None),
    (floors, "cli/x.py", "from playhead.verifier import _walk", "private name _walk"),
    (floors, "store/x.py", "from playhead import __version__", None),
    (floors, "utils/x.py", "", "utils is on no floor"),
    (floors, "__init__.py", "from playhead.recorder import run", "only when it is first used"),
    (floors, "__init__.py", "def f():\n    from playhead.recorder import run", None),
    (purity, "core/x.py", "from os import path", "core may not import os"),
    (purity, "core/x.py", "datetime.now()", "core may not call .now()"),
    (purity, "core/x.py", "open('x')", "core may not call open()"),
    (purity, "core/x.py", "from pathlib import PurePath, Path", "core may not import pathlib"),
    (purity, "core/x.py", "from pathlib import PurePath", None),
    (purity, "core/x.py", "import json, hashlib, datetime", None),
    (purity, "store/x.py", "import os", None),
    (durability, "store/x.py", "import os as o\no.fsync(3)", "uses o.fsync"),
    (durability, "store/x.py", "from fcntl import flock", "imports fcntl.flock"),
    (durability, "store/x.py", "import os\nos.replace(a, b)", "uses os.replace"),
    (durability, "store/x.py", "path.replace(target)", "renames a path"),
    (durability, "store/x.py", "text.replace('a', 'b'); replace(x, y=1)", None),
    (durability, "store/durable.py", "import os\nos.fsync(3)", None),
    (size, "core/x.py", "\n" * 301, "301 lines"),
    (size, "core/x.py", "\n" * 300, None),
    (swallowing, "x.py", "try: f()\nexcept: pass", "line 2"),
    (swallowing, "x.py", "try: f()\nexcept (OSError, Exception): g()", "line 2"),
    (swallowing, "x.py", "try: f()\nexcept Exception as e: raise X from e", None),
    (swallowing, "x.py", "try: f()\nexcept Exception as e: findings.append(e)", None),
    (swallowing, "x.py", "try: f()\nexcept Exception as e: x = mark(e)", "line 2"),
    (swallowing, "core/values.py", "try: f()\nexcept Exception as e: x = mark(e)", None),
    (swallowing, "core/values.py", "try: f()\nexcept Exception as e: x = 1", "line 2"),
    (swallowing, "x.py", "try: f()\nexcept OSError: pass", None),
]


@pytest.mark.parametrize(("rule", "path", "text", "expected"), BREACHES)
def test_a_breach_is_seen_and_what_is_allowed_is_not(
    rule: Callable[[Module], Iterator[str]], path: str, text: str, expected: str | None
) -> None:
    found = list(rule(Module(path, text)))
    if expected is None:
        assert found == []
    else:
        assert len(found) == 1
        assert expected in found[0]
