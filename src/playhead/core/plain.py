"""A journal line decoded the plain way, as the reference package reads it.

Text, strip, ``json.loads``, ``json.dumps``, SHA-256. Slow and beyond doubt: the quick way of
`playhead.core.rows` falls back to it. It also names the spellings that the reference
tolerates and a strict reader does not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from playhead.core.canonical import encode_step
from playhead.core.model import JSON

_NEEDED = ("seq", "prev_hash", "input_hash", "step_hash")
_NAMED = 3
"""Duplicate keys that are named; more say nothing new."""


@dataclass(slots=True)
class Row:
    """A line that is a JSON object. ``computed`` is the step hash of its own fields.

    ``stored_prev`` and ``stored_hash`` are what the line claims; ``spellings`` names what the
    reference reader tolerates and a strict reader does not. ``standard`` is True for a
    canonical line with exactly the known keys and proper blob digests.
    """

    obj: dict[str, JSON]
    computed: str
    stored_prev: str
    stored_hash: str
    spellings: tuple[str, ...] = ()
    standard: bool = False


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is no row. ``reason`` is a stable word, ``what`` a sentence."""

    reason: str
    what: str


OVER_LIMIT = frozenset({"too-deep", "too-long", "number-too-long"})
"""Reasons that speak of a line's size: such a line is no fragment of a row, and is never
taken for a torn tail and cut off."""


def hashed_fields(obj: dict[str, JSON]) -> dict[str, JSON]:
    """The hashed values as the reference reads them: defaults, and text where it says ``str()``."""
    fields: dict[str, JSON] = {
        "prev_hash": str(obj.get("prev_hash", "")),
        "input_hash": str(obj.get("input_hash", "")),
        "model": obj.get("model"),
        "prompt": obj.get("prompt"),
        "tool_call": obj.get("tool_call"),
        "tool_result": obj.get("tool_result"),
    }
    if obj.get("effort") is not None:
        fields["effort"] = obj["effort"]
    return fields


def compute_step_hash(
    *,
    prev_hash: str,
    input_hash: str,
    model: JSON = None,
    prompt: JSON = None,
    tool_call: JSON = None,
    tool_result: JSON = None,
    effort: JSON = None,
) -> str:
    """The seed's step hash of six fields, plus ``effort`` when it is not null, as hex."""
    fields: dict[str, JSON] = {
        "prev_hash": prev_hash,
        "input_hash": input_hash,
        "model": model,
        "prompt": prompt,
        "tool_call": tool_call,
        "tool_result": tool_result,
    }
    if effort is not None:
        fields["effort"] = effort
    return sha256(encode_step(fields).encode("ascii")).hexdigest()


def make_row(obj: dict[str, JSON], spellings: tuple[str, ...]) -> Row | BadRow:
    """The row of a parsed object; a `BadRow` when it is nested too deeply to be hashed."""
    try:
        fields = hashed_fields(obj)
        computed = sha256(encode_step(fields).encode("ascii")).hexdigest()
        stored = str(obj.get("step_hash", ""))
    except (RecursionError, ValueError):
        return BadRow("too-deep", "the row is nested too deeply to be hashed")
    return Row(obj, computed, str(fields["prev_hash"]), stored, spellings)


def plain_row(line: bytes) -> Row | BadRow | None:
    """The reference's way: text, strip, ``json.loads``; duplicate keys are noticed too."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return BadRow("not-utf8", f"invalid UTF-8 at byte {error.start} of the line")
    stripped = text.strip()
    if not stripped:
        return None
    if stripped.startswith("\ufeff"):
        return BadRow("bom", "a byte order mark stands before the row")
    if not stripped.strip("\0"):
        return BadRow("nul-padding", f"{len(stripped)} NUL bytes instead of a row")
    twice: list[str] = []

    def pairs(items: list[tuple[str, JSON]]) -> dict[str, JSON]:
        found = dict(items)
        if len(found) != len(items) and len(twice) < _NAMED:
            seen: set[str] = set()
            twice.append(next(k for k, _ in items if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
        return found

    constants: list[str] = []

    def constant(word: str) -> float:
        constants[:] = [word]
        return float(word)

    try:
        obj = json.loads(stripped, object_pairs_hook=pairs, parse_constant=constant)
    except RecursionError:
        return BadRow("too-deep", "nested too deeply")
    except json.JSONDecodeError as error:
        return BadRow("invalid-json", f"invalid JSON, character {error.pos}: {error.msg}")
    except ValueError:
        return BadRow("number-too-long", "an integer of more than 4300 digits")
    if not isinstance(obj, dict):
        return BadRow("not-an-object", "the line is JSON but not an object")
    notes = [f"duplicate key {key!r}" for key in twice]
    notes += [f"{word}, which is not JSON" for word in constants]
    return make_row(obj, _spellings(text, stripped, obj, notes))


def _spellings(text: str, stripped: str, obj: dict[str, JSON], found: list[str]) -> tuple[str, ...]:
    if text != stripped:
        found.append("white space around the row")
    if not stripped.isascii():
        found.append("raw UTF-8")
    if list(obj) != sorted(obj):
        found.append("keys out of order")
    if not found:
        try:
            same = encode_step(obj) == stripped
        except (RecursionError, ValueError):
            same = False
        if not same:
            found.append("white space or another spelling of a value")
    return tuple(found)


def to_seq(value: JSON) -> int | None:
    """``int(value)`` as the reference reads ``seq``; None when it is no number."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: JSON, limit: int = 80) -> str:
    """``value`` for a message: at most ``limit`` characters, whatever it is."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    return repr(value)[:limit]


def missing_keys(obj: dict[str, JSON]) -> list[str]:
    """Keys without which the row can be verified but not read as a step."""
    return [key for key in _NEEDED if key not in obj]
