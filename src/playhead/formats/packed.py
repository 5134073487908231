"""Packed rows: a journal line without what the rows before it already say.

Normative page: docs/reference/formats/sealed.md, "Packed rows". A packed row is a small JSON
object (``meta``) and the JSON values that were moved out of it (``texts``): like stands beside
like, and compresses better. A line is packed only when unpacking gives back its exact bytes,
which is tried for every line; any other line is kept raw.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import orjson

from playhead.core.chain import envelope_of, event_id
from playhead.core.encode import fast_bytes
from playhead.core.model import GENESIS, JSON
from playhead.core.prompts import is_range
from playhead.errors import Refused, ValueRefused
from playhead.formats.journal import encode_row, input_hash_of

RAW = b"0"
"""The ``meta`` of a line that is kept as it is."""

MAX_SEQ = 1 << 53
MAX_UID = 256

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_REMEMBER = 1024
_BAD = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
Take = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Before:
    """What the rows so far fix for the next one: its seq, the hash it follows, the last time
    (microseconds since the epoch) and the run's uid."""

    seq: int = 0
    head: str = GENESIS
    at: int = 0
    uid: str | None = None

    def behind_raw(self, line: bytes) -> Before:
        """After a raw line: its own seq and step hash where it has them, else no change."""
        try:
            obj = orjson.loads(line)
        except ValueError:
            return self
        if type(obj) is not dict:
            return self
        seq, head = obj.get("seq"), obj.get("step_hash")
        if type(seq) is not int or not 0 <= seq < MAX_SEQ or type(head) is not str:
            return self
        if len(head) != 64 or not head.isascii():
            return self
        return replace(self, seq=seq + 1, head=head)


class Packer:
    """Packs the lines of one journal in order. ``before`` is what the next line builds on."""

    def __init__(self) -> None:
        self.before = Before()
        self._recent: OrderedDict[str, int] = OrderedDict()

    def pack(self, line: bytes) -> tuple[bytes, list[bytes]]:
        """``meta`` and ``texts`` of a line without its newline; ``RAW`` and the line itself
        where packing would lose a byte or gain nothing."""
        before = self.before
        try:
            row = orjson.loads(line)
            packed, values = self._strip(row, before)
            meta = orjson.dumps(packed)
            texts = [orjson.dumps(value) for value in values]
            rest = iter(texts)
            again, after = unpack_row(orjson.loads(meta), lambda: next(rest), before)
        except (*_BAD, ValueRefused, Refused):
            again, after = None, before
        if again != line or len(meta) + sum(map(len, texts)) + len(texts) > len(line):
            self.before = before.behind_raw(line)
            return RAW, [line]
        self.before = after
        self._note(row)
        return meta, texts

    def _strip(self, row: dict[str, JSON], before: Before) -> tuple[dict[str, JSON], list[JSON]]:
        """The packed object and the values moved out of it."""
        seq, prompt, result = row["seq"], row["prompt"], row["tool_result"]
        packed: dict[str, JSON] = {}
        values: list[JSON] = []
        usual = {
            "seq": before.seq,
            "prev_hash": before.head,
            "model": None,
            "effort": None,
            "blob_refs": [],
        }
        for key, expected in usual.items():
            if row.get(key, expected) != expected:
                packed[key] = row[key]
        us: int | None = None
        call = envelope_of(row)
        if call is None:
            if row["tool_call"] is not None:
                packed["tool_call"] = row["tool_call"]
            packed["input_hash"] = row["input_hash"]
        else:
            packed["call"], us = self._strip_call(call, seq, before)
            if row["input_hash"] != input_hash_of(prompt, call["payload"]):
                packed["input_hash"] = row["input_hash"]
        if us is None or row["ts"] != us / 1_000_000:
            packed["ts"] = row["ts"]
        if prompt is not None:
            packed["prompt"], values = _split_prompt(prompt, seq)
        if result is not None:
            packed["tool_result"] = 1
            values.append(result)
        return packed, values

    def _strip_call(
        self, call: dict[str, JSON], seq: JSON, before: Before
    ) -> tuple[dict[str, JSON], int]:
        short = {key: value for key, value in call.items() if key not in ("v", "seq")}
        us = _to_us(call["at"])
        short["at"] = us - before.at
        uid = _uid_behind(call, before.uid)
        if uid is not None and call["id"] == event_id(uid, _int(seq)):
            del short["id"]
        cause = self._recent.get(str(call.get("causation_id")))
        if cause is not None:
            short["causation_id"] = _int(seq) - cause
        return short, us

    def _note(self, row: dict[str, JSON]) -> None:
        """Remember an id that is derived from the row's place: later rows may name it."""
        call = envelope_of(row)
        uid, seq = self.before.uid, self.before.seq - 1
        if call is None or uid is None or call.get("id") != event_id(uid, seq):
            return
        self._recent[str(call["id"])] = seq
        if len(self._recent) > _REMEMBER:
            self._recent.popitem(last=False)


def unpack_row(packed: dict[str, JSON], take: Take, before: Before) -> tuple[bytes, Before]:
    """The line of a packed row, and what the next one builds on. ``take`` gives the next text.

    Raises:
        Refused: it is no packed row.
    """
    try:
        return _unpack(packed, take, before)
    except (*_BAD, ValueRefused, StopIteration) as error:
        raise Refused(f"not a packed row: {str(error)[:80] or type(error).__name__}") from None


def _unpack(packed: dict[str, JSON], take: Take, before: Before) -> tuple[bytes, Before]:
    seq = _int(packed.get("seq", before.seq))
    if not 0 <= seq < MAX_SEQ:
        raise ValueError("seq is out of range")
    call, at, uid = packed.get("tool_call"), before.at, before.uid
    payload: JSON = None
    ts = packed.get("ts")
    if "call" in packed:
        short = packed["call"]
        if not isinstance(short, dict):
            raise TypeError("call is not an object")
        full, at, uid = _full_call(short, seq, before)
        call, payload = full, full["payload"]
        ts = at / 1_000_000 if ts is None else ts
    prompt = _join_prompt(packed["prompt"], seq, take) if "prompt" in packed else None
    line, step_hash = encode_row(
        seq=seq,
        prev_hash=packed.get("prev_hash", before.head),  # type: ignore[arg-type]
        input_hash=packed.get("input_hash") or input_hash_of(prompt, payload),  # type: ignore[arg-type]
        model=packed.get("model"),
        prompt=prompt,
        tool_call=call,
        tool_result=orjson.loads(take()) if "tool_result" in packed else None,
        ts=ts,  # type: ignore[arg-type]
        effort=packed.get("effort"),  # type: ignore[arg-type]
        blob_refs=packed.get("blob_refs", ()),  # type: ignore[arg-type]
    )
    return line, Before(seq + 1, step_hash, at, uid)


def _full_call(
    call: dict[str, JSON], seq: int, before: Before
) -> tuple[dict[str, JSON], int, str | None]:
    """The envelope behind its short form, its time and the uid that holds from here on."""
    at = before.at + _int(call["at"])
    uid = _uid_behind(call, before.uid)
    call.update(v=1, seq=seq, at=_to_text(at))
    if "id" not in call:
        call["id"] = event_id(str(uid), seq)
    cause = call.get("causation_id")
    if type(cause) is int:
        call["causation_id"] = event_id(str(uid), seq - cause)
    return call, at, uid


def _split_prompt(prompt: JSON, seq: JSON) -> tuple[JSON, list[JSON]]:
    """Segments of a prompt: ranges stay, counted back from this row; messages move out."""
    if isinstance(prompt, str) and prompt.startswith("["):
        try:
            segments = orjson.loads(prompt)
            same = fast_bytes(segments) == prompt.encode("ascii")
        except (ValueError, ValueRefused):
            same = False
        if same:
            shape = [[_int(seq) - s[0], s[1], s[2]] if is_range(s) else 0 for s in segments]
            return shape, [s for s in segments if not is_range(s)]
    return 1, [prompt]


def _join_prompt(shape: JSON, seq: int, take: Take) -> JSON:
    if not isinstance(shape, list):
        return orjson.loads(take())
    segments = [[seq - s[0], s[1], s[2]] if s else orjson.loads(take()) for s in shape]
    return fast_bytes(segments).decode("ascii")


def _uid_behind(call: dict[str, JSON], uid: str | None) -> str | None:
    if call.get("event") in ("run.started", "run.forked"):
        payload = call.get("payload")
        found = payload.get("uid") if isinstance(payload, dict) else None
        return found if isinstance(found, str) and len(found) <= MAX_UID else uid
    return uid


def _to_us(at: JSON) -> int:
    """Microseconds of ``YYYY-MM-DDTHH:MM:SS.ffffffZ``; another spelling does not come back."""
    if not isinstance(at, str) or len(at) != 27:
        raise ValueError("another spelling of time")
    return (datetime.fromisoformat(at[:-1]) - _EPOCH) // _MICROSECOND


def _to_text(us: int) -> str:
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds") + "Z"


def _int(value: JSON) -> int:
    if type(value) is not int:
        raise TypeError("not an integer")
    return value
