"""Claude Code records as rows: the few facts that order and meaning hang on.

Every field of a record may be missing or of another type than usual; the getters here give
None then, and nothing in the reader looks into a record without them.
(docs/reference/formats/claude-code.md, "Records")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from playhead.core.model import JSON
from playhead.formats.lines import RecordReader
from playhead.formats.transcript import Notes, Source, SourceFile, SourceInput

MESSAGES = frozenset(("user", "assistant"))
STATES = frozenset(
    "summary queue-operation file-history-snapshot mode permission-mode last-prompt ai-title "
    "custom-title agent-name agent-color tag pr-link worktree-state relocated bridge-session "
    "frame-link atis-latch started result".split()
)
"""Kinds that say something about the session's state, most of them without uuid and time."""
SEEN_ONLY = frozenset(("progress",))
"""Kinds that show on a screen what other rows say again; counted, and kept in the source."""
_KINDS = 200
"""Unknown kinds that are counted one by one."""
KNOWN = MESSAGES | STATES | SEEN_ONLY | {"system", "attachment"}


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a known kind. ``index`` is its place among the rows of its file."""

    index: int
    type: str
    obj: Mapping[str, JSON]
    source: Source
    uuid: str | None
    sidechain: bool

    @property
    def at(self) -> str | None:
        return timestamp(self.obj.get("timestamp"))

    @property
    def message(self) -> Mapping[str, JSON]:
        return mapping(self.obj.get("message"))

    @property
    def message_id(self) -> str | None:
        return text(self.message.get("id")) if self.type == "assistant" else None

    @property
    def is_boundary(self) -> bool:
        return self.type == "system" and self.obj.get("subtype") == "compact_boundary"

    @property
    def is_summary(self) -> bool:
        return self.type == "user" and self.obj.get("isCompactSummary") is True

    @property
    def is_spine(self) -> bool:
        """True for what a conversation is made of: messages and compaction boundaries."""
        return self.type in MESSAGES or self.is_boundary


@dataclass(frozen=True, slots=True)
class Rows:
    """One file, read: rows in file order, and the record kinds that are not known."""

    file: SourceFile
    rows: tuple[Row, ...]
    records: int
    unknown: Mapping[str, int]
    torn: bool


def text(value: JSON) -> str | None:
    """``value`` if it is a text with something in it."""
    return value if isinstance(value, str) and value else None


def mapping(value: JSON) -> Mapping[str, JSON]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def timestamp(value: JSON) -> str | None:
    """RFC 3339 UTC with microseconds; None where the zone is not known (case C49)."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
        elif isinstance(value, int) and 10**11 < value < 10**14:
            moment = datetime.fromtimestamp(value / 1000, UTC)
        else:
            return None
        if moment.tzinfo is None:
            return None
        moment = moment.astimezone(UTC)
        if moment.year < 1970:
            return None
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_rows(index: int, source: SourceInput, notes: Notes) -> Rows:
    """Read one JSONL file; ``index`` is its place in ``Transcript.files``. Never raises for
    what the bytes are."""
    reader = RecordReader(source.name, source.chunks(), notes)
    rows: list[Row] = []
    unknown: Counter[str] = Counter()
    first: dict[str, tuple[int, int]] = {}
    seen: set[tuple[str, str]] = set()
    timeless: list[Row] = []
    records = 0
    for record in reader:
        records += 1
        place = Source(index, record.line, record.byte, record.sha256)
        obj = record.value
        kind = _kind(obj)
        if not isinstance(obj, dict) or kind not in KNOWN:
            if kind not in unknown and len(unknown) >= _KINDS:
                kind = "(other)"
            unknown[kind] += 1
            first.setdefault(kind, (record.line, record.byte))
            continue
        row = Row(
            len(rows), kind, obj, place, text(obj.get("uuid")), obj.get("isSidechain") is True
        )
        if row.uuid is not None:
            if (row.uuid, record.sha256) in seen:
                _say(notes, source.name, place, "duplicate-row", "the same row stands here again")
                continue
            seen.add((row.uuid, record.sha256))
        if obj.get("timestamp") is not None and row.at is None:
            timeless.append(row)
        rows.append(row)
    if timeless:
        shown = str(timeless[0].obj["timestamp"])[:40]
        what = f"{len(timeless)} timestamp(s) without a known zone ({shown!a}); file order counts"
        _say(notes, source.name, timeless[0].source, "unknown-time", what)
    _say_unknown(notes, source.name, unknown, first)
    file = SourceFile(source.name, reader.tally.sha256, reader.tally.size, source.role)
    return Rows(file, tuple(rows), records, dict(unknown), reader.torn)


def _kind(obj: JSON) -> str:
    if not isinstance(obj, dict):
        return "(not an object)"
    kind = obj.get("type")
    return kind if isinstance(kind, str) else "(no type)"


def _say(notes: Notes, file: str, place: Source, kind: str, what: str) -> None:
    notes.add(kind, "notice", what, file=file, line=place.line, byte=place.byte)


def _say_unknown(
    notes: Notes, file: str, unknown: Counter[str], first: Mapping[str, tuple[int, int]]
) -> None:
    for kind, number in unknown.items():
        line, byte = first[kind]
        shown = kind if kind.isprintable() and len(kind) <= 60 else ascii(kind)[:60]
        plural = "record" if number == 1 else "records"
        notes.add(
            "unknown-record",
            "notice",
            f"{number} unknown {plural} ({shown})",
            file=file,
            line=line,
            byte=byte,
            remedy="It is kept in the original and gives no event",
        )


def first_text(rows: Iterable[Row], key: str) -> str | None:
    """The first text that any row has under ``key``."""
    return next((found for row in rows if (found := text(row.obj.get(key)))), None)
