"""The active path of one Claude Code file as entries (docs/reference/formats/claude-code.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playhead.core.model import JSON
from playhead.formats.claude_code_blocks import (
    Call,
    content,
    has_results,
    is_api_error,
    is_interruption,
    is_prompt,
    is_synthetic,
    result_block,
    results,
)
from playhead.formats.claude_code_rows import Row, mapping, text
from playhead.formats.claude_code_states import compaction, event_of
from playhead.formats.claude_code_tree import Plan
from playhead.formats.claude_code_turns import Book
from playhead.formats.claude_code_units import Reply, pair, summaries, units
from playhead.formats.transcript import Entry

Children = Callable[[Row, Call | None], Sequence[Entry]]
"""The entries of the subagents that a row with the result of a call brings in."""


@dataclass(slots=True)
class Totals:
    """Counted over a session and its subagents."""

    model_requests: int = 0
    tool_calls: int = 0


class Mapper:
    """Maps one file. ``book`` keeps entries, turns and prompts; see `Book`."""

    def __init__(self, plan: Plan, book: Book, totals: Totals, children: Children) -> None:
        self._plan = plan
        self._book = book
        self._totals = totals
        self._children = children
        self._units = units(plan.rows)
        self._pairs = pair(self._units)
        self._names: dict[int, str] = {}
        self._summary_of = summaries(plan.rows)
        self._used = {row.index for row in self._summary_of.values()}

    def run(self) -> None:
        """Map every unit in order and end the last turn."""
        for unit in self._units:
            if isinstance(unit, Reply):
                self._failed(unit) if is_api_error(unit.rows[0]) else self._reply(unit)
            else:
                self._row(unit)
        self._book.end_turn()

    @property
    def calls(self) -> Sequence[Call]:
        return [call for unit in self._units if isinstance(unit, Reply) for call in unit.calls]

    def _row(self, row: Row) -> None:
        if row.index in self._plan.fresh:
            self._book.forget()
        if row.is_boundary:
            self._compacted(row)
        elif row.is_summary:
            self._summary(row)
        elif is_synthetic(row):
            self._said(row, {"synthetic": True})
        elif row.type != "user":
            self._other(row)
        elif is_interruption(row):
            if has_results(row):
                self._results(row)
            self._said(row, {"interruption": True}, history=not has_results(row))
            self._book.interrupt(row, "user")
        elif has_results(row):
            self._results(row)
        elif is_prompt(row):
            said = content(row)
            self._book.begin_turn(row, said)
            self._book.history.append({"role": "user", "content": said})
            if row.obj.get("interruptedMessageId") is not None:
                self._book.add(
                    row,
                    "state.changed",
                    {"kind": "interrupted", "value": row.obj["interruptedMessageId"]},
                )
        elif content(row) is None:
            self._book.say("no-content", "warning", row, "a user row without content")
        else:
            self._said(row, {"meta": True})

    def _other(self, row: Row) -> None:
        found = event_of(row)
        if found is not None:
            kind, payload, name = found
            self._book.add(row, kind, payload, name=name)

    def _said(self, row: Row, more: dict[str, JSON], *, history: bool = True) -> None:
        said = content(row)
        if said is None:
            return
        message: dict[str, JSON] = {"role": row.type, "content": said}
        self._book.add(row, "message.received", {"message": message, **more})
        if history:
            self._book.history.append(message)

    # --- compaction ---------------------------------------------------------------------------

    def _compacted(self, row: Row) -> None:
        summary = self._summary_of.get(row.index)
        said = content(summary) if summary is not None else None
        payload = compaction(row, said)
        self._book.add(row, "context.compacted", payload)
        self._book.forget(known=summary is not None)
        if summary is not None:
            self._book.history.append({"role": "user", "content": said})
        else:
            self._book.say(
                "compaction-without-summary",
                "warning",
                row,
                "no summary follows this compaction; what the model saw after it is not known",
            )
        if "preserved" in payload:
            what = "messages that this compaction preserved are missing from the prompts after it"
            self._book.say("preserved-messages", "notice", row, what)

    def _summary(self, row: Row) -> None:
        """A summary: told with its boundary, or, in older files, a compaction by itself."""
        if row.index in self._used:
            return
        said = content(row)
        self._book.add(row, "context.compacted", compaction(row, said))
        self._book.forget(known=said is not None)
        if said is not None:
            self._book.history.append({"role": "user", "content": said})

    # --- replies ------------------------------------------------------------------------------

    def _request(self, reply: Reply) -> tuple[str, str | None]:
        row = reply.rows[0]
        if row.index in self._plan.fresh:
            self._book.forget()
        if not self._book.in_turn:
            self._book.begin_turn(row, None)
        self._totals.model_requests += 1
        call_id = self._book.model_call_id()
        model = reply.last("model")
        payload: dict[str, JSON] = {"call_id": call_id, "prompt": "reconstructed"}
        if not self._book.known:
            payload["unknown_before"] = True
        self._book.request(row, payload, model)
        return call_id, model

    def _failed(self, reply: Reply) -> None:
        call_id, _ = self._request(reply)
        row = reply.rows[0]
        error = {"type": text(row.obj.get("error")) or "api_error", "message": content(row)}
        self._book.add(row, "model.failed", {"call_id": call_id, "error": error})

    def _reply(self, reply: Reply) -> None:
        call_id, model = self._request(reply)
        first, last = reply.rows[0], reply.rows[-1]
        message: dict[str, JSON] = {"role": "assistant", "content": reply.content}
        payload: dict[str, JSON] = {"call_id": call_id, "result": message}
        extra: dict[str, JSON] = {
            "usage": dict(reply.usage) or None,
            "stop_reason": reply.last("stop_reason"),
            "message_id": first.message_id,
            "request_id": text(first.obj.get("requestId")),
            "partial": reply.flag("isAbortedMidStream") or None,
        }
        payload.update((key, value) for key, value in extra.items() if value is not None)
        self._book.add(last, "model.responded", payload, name=model, model=model)
        self._book.history.append(message)
        self._book.answered(None if reply.calls else reply.content)
        for call in reply.calls:
            self._called(call, call_id)
        if reply.flag("isAbortedMidStream"):
            self._book.interrupt(last, "stream aborted")

    def _called(self, call: Call, request: str) -> None:
        self._totals.tool_calls += 1
        name = self._names[call.key] = self._book.tool_call_id(call.id)
        payload: dict[str, JSON] = {
            "call_id": name,
            "arguments": call.arguments,
            "request": request,
        }
        if call.id is not None and call.id != name:
            payload["tool_use_id"] = call.id
        self._book.add(call.row, "tool.called", payload, name=call.name)
        if call.key not in self._pairs.resolved:
            self._book.unresolved(name)
            self._book.say(
                "call-without-result",
                "warning",
                call.row,
                f"call {name[:60]!a} of {call.name[:60]!a} has no result; none is made up",
            )

    def _results(self, row: Row) -> None:
        for place, result in enumerate(results(row)):
            call = self._pairs.call_of.get((row.index, place))
            for entry in self._children(row, call):
                self._book.adopt(entry)
            if call is None:
                what = f"a result for {(result.id or '(no id)')[:60]!a}, which no open call has"
                self._book.say("result-without-call", "warning", row, what)
                message = {"role": "user", "content": [result_block(row, place)]}
                self._book.add(row, "message.received", {"message": message, "orphan": True})
                continue
            payload: dict[str, JSON] = {"call_id": self._names.get(call.key, "unnamed")}
            if (row.index, place) in self._pairs.guessed:
                payload["pairing"] = "positional"
                self._book.say("paired-by-position", "notice", row, "a result without a usable id")
            richer = mapping(row.obj.get("toolUseResult"))
            if richer.get("interrupted") is True:
                payload["interrupted"] = True
            denial = text(row.obj.get("toolDenialKind"))
            if denial:
                payload["denied"] = denial
            key = "error" if result.failed else "result"
            payload[key] = result.content
            kind = "tool.failed" if result.failed else "tool.completed"
            self._book.add(row, kind, payload, name=call.name)
        self._book.history.append({"role": "user", "content": content(row)})
