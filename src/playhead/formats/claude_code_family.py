"""The subagents of a session: whose child each is, and its entries at the right place.

A child is known by its ``agentId``. What links it to a call is the ``toolUseResult.agentId``
beside the call's result, never the text of its prompt: two children may have the same (C22).
A child that nothing names is attached to the root with a finding, and never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from playhead.core.model import JSON
from playhead.formats.claude_code_blocks import Call
from playhead.formats.claude_code_map import Mapper, Totals
from playhead.formats.claude_code_rows import Row, Rows, first_text, mapping, text
from playhead.formats.claude_code_tree import Plan, plan
from playhead.formats.claude_code_turns import Book, Ids
from playhead.formats.transcript import Branch, Entry, Notes, Source, SourceInput

_SPAWNERS = frozenset(("Task", "Agent"))
_MAX_DEPTH = 16


@dataclass(slots=True)
class _Child:
    agent_id: str
    file: str
    plan: Plan
    inline: bool
    told: bool = False


class Family:
    """All children of one session, those in files of their own and those inside its file."""

    def __init__(self, notes: Notes, totals: Totals, ids: Ids) -> None:
        self._notes = notes
        self._totals = totals
        self._ids = ids
        self._children: dict[str, _Child] = {}
        self._meta: dict[str, Mapping[str, JSON]] = {}
        self._spawns: Sequence[Call] = ()
        self._depth = 0
        self.branches: list[Branch] = []

    @property
    def size(self) -> int:
        return len(self._children)

    def add_file(self, source: SourceInput, rows: Rows) -> None:
        """A child's file; its rows say who it is, else the file's name."""
        agent_id = first_text(rows.rows, "agentId") or source.agent_id or source.name
        made = plan(rows.rows, source.name, self._notes)
        self.branches.extend(made.branches)
        self._add(_Child(self._free(agent_id), source.name, made, inline=False))

    def describe(self, agent_id: str, meta: Mapping[str, JSON]) -> None:
        """What a child's meta.json says about it."""
        self._meta[agent_id] = meta

    def add_asides(self, made: Plan, file: str) -> None:
        """Side chains inside the session file, as older versions write them."""
        for rows in made.asides:
            agent_id = first_text(rows, "agentId") or rows[0].uuid or f"line-{rows[0].source.line}"
            aside = Plan(rows, (), frozenset(), ())
            self._add(_Child(self._free(agent_id), file, aside, inline=True))

    def _free(self, agent_id: str) -> str:
        name, number = agent_id, 1
        while name in self._children:
            number += 1
            name = f"{agent_id}#{number}"
        return name

    def _add(self, child: _Child) -> None:
        self._children[child.agent_id] = child

    def expect(self, calls: Sequence[Call]) -> None:
        """The calls of the session itself, for children that only their place links."""
        self._spawns = [call for call in calls if call.name in _SPAWNERS]

    def children(self, row: Row, call: Call | None) -> list[Entry]:
        """The entries of the children that the result in ``row`` names, told once."""
        named = text(mapping(row.obj.get("toolUseResult")).get("agentId"))
        child = self._children.get(named) if named else None
        link = "agent-id"
        if child is None and call is not None and self._depth == 0:
            child, link = self._between(call, row), "position"
        if child is None or child.told:
            return []
        return self._tell(child, call, link, row.source)

    def _between(self, call: Call, row: Row) -> _Child | None:
        """The one side chain that starts between a call and its result, when no other call
        that could have started it is open there."""
        low, high = call.row.index, row.index
        found = [
            child
            for child in self._children.values()
            if child.inline and not child.told and low < child.plan.rows[0].index < high
        ]
        rivals = [c for c in self._spawns if low <= c.row.index < high and c.key != call.key]
        return found[0] if len(found) == 1 and call.name in _SPAWNERS and not rivals else None

    def left_over(self) -> list[Entry]:
        """The children that no result named, attached to the root."""
        entries: list[Entry] = []
        for child in list(self._children.values()):
            if child.told:
                continue
            rows = child.plan.rows
            source = rows[0].source if rows else Source(0, 1, 0, "")
            self._notes.add(
                "subagent-unlinked",
                "warning",
                f"no result names subagent {child.agent_id[:60]!a}; it is attached to the root",
                file=child.file,
                line=source.line if rows else None,
                byte=source.byte if rows else None,
            )
            entries += self._tell(child, None, "root", source)
        return entries

    def _tell(self, child: _Child, call: Call | None, link: str, source: Source) -> list[Entry]:
        child.told = True
        rows = child.plan.rows
        meta = self._meta.get(child.agent_id, {})
        kind = text(meta.get("agentType")) or _asked(call, "subagent_type")
        payload: dict[str, JSON] = {"agent_id": child.agent_id, "link": link, "meta": dict(meta)}
        if call is not None and call.id is not None:
            payload["tool_use_id"] = call.id
        if link == "position":
            self._notes.add(
                "subagent-by-position",
                "notice",
                f"subagent {child.agent_id[:60]!a} is linked by its place between call and result",
                file=child.file,
                line=source.line,
                byte=source.byte,
            )
        book = Book(child.file, self._notes, self._ids, child.agent_id)
        if rows and self._depth < _MAX_DEPTH:
            self._depth += 1
            Mapper(child.plan, book, self._totals, self.children).run()
            self._depth -= 1
        first = rows[0] if rows else None
        last = rows[-1] if rows else None
        ended: dict[str, JSON] = {"agent_id": child.agent_id, "outcome": book.last_outcome}
        output = _output(book.entries)
        if output is not None:
            ended["output"] = output
        begin = self._mark("subagent.started", payload, kind, first, source, child.agent_id)
        end = self._mark("subagent.completed", ended, kind, last, source, child.agent_id)
        return [begin, *book.entries, end]

    @staticmethod
    def _mark(
        event: str,
        payload: Mapping[str, JSON],
        name: str | None,
        row: Row | None,
        source: Source,
        agent_id: str,
    ) -> Entry:
        return Entry(
            type=event,
            payload=payload,
            source=row.source if row is not None else source,
            at=row.at if row is not None else None,
            name=name,
            subagent_run_id=agent_id,
        )


def _asked(call: Call | None, key: str) -> str | None:
    """A text among the arguments of a call."""
    return text(mapping(call.arguments).get(key)) if call is not None else None


def _output(entries: Sequence[Entry]) -> JSON:
    """What the last reply says."""
    for entry in reversed(entries):
        if entry.type == "model.responded":
            return mapping(entry.payload.get("result")).get("content")
    return None
