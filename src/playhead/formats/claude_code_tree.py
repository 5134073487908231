"""The tree in a Claude Code file: which rows are the active path, which were left behind.

A session is a tree by ``parentUuid`` (at a compaction by ``logicalParentUuid``): going back in
the conversation starts a branch. The active leaf is the newest message row; its ancestors are
the path. Rows that only hang beside the path (the results of parallel calls, the other blocks
of one reply, attachments, notices) belong to it; every other row lies on a branch that the
user left, and is listed. (docs/reference/formats/claude-code.md, "The active path")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from playhead.formats.claude_code_blocks import calls, content, is_prompt, results
from playhead.formats.claude_code_rows import MESSAGES, STATES, Row, text
from playhead.formats.transcript import Branch, Notes


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows of the active path in file order; ``fresh`` holds the index of each row whose
    prompt starts empty; ``asides`` are the subagents that run inside the file, by root row."""

    rows: Sequence[Row]
    branches: Sequence[Branch]
    fresh: frozenset[int]
    asides: Sequence[Sequence[Row]]


class _Tree:
    """Parents by row index. A parent always stands earlier in the file, so there is no cycle
    whatever the uuids say."""

    def __init__(self, rows: Sequence[Row], file: str, notes: Notes) -> None:
        self.rows = rows
        self.parent: list[int | None] = []
        self.fresh: set[int] = set()
        self.loose: set[int] = set()
        self._roots: set[int] = set()
        self._mixed = any(not row.sidechain and row.type in MESSAGES for row in rows)
        self._file = file
        self._notes = notes
        self._by_uuid: dict[str, int] = {}
        self._spine: int | None = None
        spine = [row for row in rows if row.is_spine]
        named = sum(text(row.obj.get("parentUuid")) is not None for row in spine)
        # One row that names a parent does not make a tree of a file whose others name none.
        self._linked = named * 2 >= len(spine) - 1
        for row in rows:
            self.parent.append(self._parent_of(row))
            if row.uuid is not None:
                self._by_uuid[row.uuid] = row.index
            if row.is_spine:
                self._spine = row.index
        if not self._linked:
            what = "most rows do not name their parent; file order is taken"
            notes.add("no-parents", "notice", what, file=file)

    def _parent_of(self, row: Row) -> int | None:
        named = [text(row.obj.get("parentUuid"))]
        if row.is_boundary:
            named.insert(0, text(row.obj.get("logicalParentUuid")))
        for uuid in named:
            if uuid is not None and uuid in self._by_uuid:
                found = self._by_uuid[uuid]
                if is_prompt(row) and self._top(found) in self._roots:
                    self._begin(row)
                return found
        self.loose.add(row.index)
        if any(named):
            self._say("parent-missing", row, "its parent is not in the file before it")
        elif self.is_side(row):
            return None
        elif "parentUuid" in row.obj and self._linked and row.type not in STATES:
            self._root(row)
        return self._spine

    def _root(self, row: Row) -> None:
        """A row that says it has no parent, in a file where others have one."""
        if row.is_boundary or self._spine is None:
            return
        self._roots.add(row.index)
        if is_prompt(row):
            self._begin(row)

    def _begin(self, row: Row) -> None:
        self.fresh.add(row.index)
        self._say("second-root", row, "a new tree starts here; its prompt starts empty")

    def _top(self, index: int) -> int:
        """The first row, going up, that is a message or has no parent of its own."""
        while index not in self.loose and not self.rows[index].is_spine:
            parent = self.parent[index]
            if parent is None:
                break
            index = parent
        return index

    def is_side(self, row: Row) -> bool:
        """True for a row of a side chain in a file that has a main chain as well."""
        return row.sidechain and self._mixed

    def _say(self, kind: str, row: Row, what: str) -> None:
        place = row.source
        self._notes.add(kind, "notice", what, file=self._file, line=place.line, byte=place.byte)

    def ancestors(self, index: int | None) -> set[int]:
        found: set[int] = set()
        while index is not None:
            found.add(index)
            index = self.parent[index]
        return found

    def root_of(self) -> list[int]:
        """The root of each row; parents come first, so one pass is enough."""
        roots: list[int] = []
        for index, parent in enumerate(self.parent):
            roots.append(index if parent is None else roots[parent])
        return roots


def plan(rows: Sequence[Row], file: str, notes: Notes) -> Plan:
    """Find the active path of the rows of one file."""
    tree = _Tree(rows, file, notes)
    roots = tree.root_of()
    spine = [row for row in rows if row.is_spine and not tree.is_side(row)]
    path = tree.ancestors(spine[-1].index if spine else None)
    on_path = {roots[index] for index in path}
    # A tree that is marked as side chain and is apart from the path is a subagent's.
    side = {
        root
        for root in set(roots)
        if tree.is_side(rows[root]) and rows[root].type == "user" and root not in on_path
    }
    aside = {index for index, root in enumerate(roots) if root in side}
    kept = _beside(tree, path, aside)
    left = [row for row in rows if row.index not in kept and row.index not in aside]
    branches = _branches(tree, left)
    for branch in branches:
        _say_branch(notes, file, branch)
    return Plan(
        rows=[row for row in rows if row.index in kept],
        branches=branches,
        fresh=frozenset(tree.fresh & kept),
        asides=[[row for row in rows if roots[row.index] == root] for root in sorted(side)],
    )


def _beside(tree: _Tree, path: set[int], aside: set[int]) -> set[int]:
    """The path and what hangs beside it, in one pass because parents come first."""
    kept: set[int] = set()
    messages: set[str] = set()
    called: set[str] = set()
    for index in path:
        row = tree.rows[index]
        if row.message_id:
            messages.add(row.message_id)
        called.update(call_id for call_id, _, _ in calls(row) if call_id)
    for row in tree.rows:
        if row.index in aside:
            continue
        parent = tree.parent[row.index]
        held = parent is None or parent in kept
        if not row.is_spine:
            held = held or row.index in tree.loose
        if row.index in path or (held and _belongs(row, messages, called)):
            kept.add(row.index)
            called.update(call_id for call_id, _, _ in calls(row) if call_id)
    return kept


def _belongs(row: Row, messages: set[str], called: set[str]) -> bool:
    if not row.is_spine:
        return True
    if row.type == "assistant":
        return bool(row.message_id) and row.message_id in messages
    found = [result.id for result in results(row)]
    return bool(found) and all(call_id in called for call_id in found)


def _branches(tree: _Tree, left: Sequence[Row]) -> list[Branch]:
    """The message rows off the path, gathered by the row where they leave it."""
    head: dict[int, int] = {}
    members: dict[int, list[Row]] = {}
    for row in left:
        parent = tree.parent[row.index]
        top = head[parent] if parent is not None and parent in head else row.index
        head[row.index] = top
        if row.is_spine:
            members.setdefault(top, []).append(row)
    branches = []
    for top, rows in members.items():
        if not any(content(row) is not None for row in rows):
            continue
        parent = tree.parent[top]
        branches.append(
            Branch(
                after=None if parent is None else tree.rows[parent].uuid,
                leaf=rows[-1].uuid,
                first_line=rows[0].source.line,
                last_line=rows[-1].source.line,
                rows=len(rows),
            )
        )
    return branches


def _say_branch(notes: Notes, file: str, branch: Branch) -> None:
    notes.add(
        "abandoned-branch",
        "notice",
        f"{branch.rows} message row(s) up to line {branch.last_line} lie on a branch that was left",
        file=file,
        line=branch.first_line,
        remedy="They are kept in the original and are not part of the walk",
    )
