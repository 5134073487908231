"""Claude Code rows that are no message: notices, hidden context, state of the session.

(docs/reference/formats/claude-code.md, "Mapping")
"""

from __future__ import annotations

from collections.abc import Mapping

from playhead.core.model import JSON
from playhead.formats.claude_code_rows import SEEN_ONLY, STATES, Row, mapping, text

_ERRORS = frozenset(("api_error", "error", "api_refusal", "model_refusal_fallback"))
_ENVELOPE = frozenset(
    "type subtype uuid parentUuid logicalParentUuid isSidechain userType entrypoint cwd sessionId "
    "session_id version gitBranch timestamp slug agentId isMeta level".split()
)
"""Keys that say where a row stands, not what it says."""


def body(row: Row) -> dict[str, JSON]:
    """What a row says, without the keys that every row repeats."""
    return {key: value for key, value in row.obj.items() if key not in _ENVELOPE}


def event_of(row: Row) -> tuple[str, dict[str, JSON], str | None] | None:
    """(event type, payload, name) of a row that is no message and no compaction; None for
    one that gives no event."""
    if row.type in SEEN_ONLY:
        return None
    if row.type in STATES:
        return "state.changed", {"kind": row.type, "value": body(row)}, row.type
    if row.type == "attachment":
        attachment = mapping(row.obj.get("attachment"))
        name = text(attachment.get("type")) or "attachment"
        return "message.received", {"kind": "attachment", "message": dict(attachment)}, name
    subtype = text(row.obj.get("subtype")) or "system"
    if subtype in _ERRORS:
        return "error.raised", {"kind": subtype, "error": body(row)}, subtype
    return "state.changed", {"kind": f"system/{subtype}", "value": body(row)}, subtype


def compaction(row: Row, summary: JSON) -> dict[str, JSON]:
    """The payload of ``context.compacted``; ``summary`` is None when the file has none."""
    meta: Mapping[str, JSON] = mapping(row.obj.get("compactMetadata"))
    payload: dict[str, JSON] = {
        "trigger": meta.get("trigger"),
        "tokens_before": meta.get("preTokens"),
        "after": row.obj.get("logicalParentUuid") or row.obj.get("parentUuid"),
        "summary": summary,
    }
    kept = meta.get("preservedSegment") or meta.get("preservedMessages")
    if kept is not None:
        payload["preserved"] = kept
    return payload
