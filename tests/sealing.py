"""Journals to seal: a conversation as playhead writes it, foreign rows, and what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from playhead.core.chain import event_id
from playhead.core.events import Draft, encode_event
from playhead.core.model import GENESIS, JSON
from playhead.core.prompts import PromptIndex
from playhead.formats.journal import encode_row, input_hash_of

UID = "0f" * 16
MODEL = "model-1"


class Chain:
    """Writes rows of one chain, as the recorder does, with a clock that steps at random."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        self.seq = 0
        self.head = GENESIS
        self.us = 1_780_000_000_000_000
        self.index = PromptIndex()
        self._words: list[str] = []

    def event(
        self,
        kind: str,
        payload: Mapping[str, JSON],
        *,
        messages: list[JSON] | None = None,
        **more: str,
    ) -> bytes:
        self.us += self.random.randint(200, 3_000_000)
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.us)
        prompt = None if messages is None else self.index.encode(self.seq, messages)
        draft = Draft(kind, payload, prompt=prompt, **more)  # type: ignore[arg-type]
        text = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        own = event_id(UID, self.seq)
        fields = encode_event(draft, seq=self.seq, at=text, event_id=own)
        call = fields["tool_call"]
        assert isinstance(call, dict)
        digest = input_hash_of(prompt, call["payload"])
        return self.row(input_hash=digest, ts=self.us / 1_000_000, **fields)

    def row(self, *, ts: float = 1.5, input_hash: str = "ab" * 32, **fields: JSON) -> bytes:
        filled = {"model": None, "prompt": None, "tool_call": None, "tool_result": None, **fields}
        line, step_hash = encode_row(
            seq=self.seq,
            prev_hash=self.head,
            input_hash=input_hash,
            ts=ts,
            **filled,  # type: ignore[arg-type]
        )
        self.seq += 1
        self.head = step_hash
        return line

    def words(self, size: int) -> str:
        """Text of ``size`` bytes, words drawn from a vocabulary of 5,000."""
        return " ".join(self.random.choices(self._vocabulary(), k=size))[:size]

    def _vocabulary(self) -> list[str]:
        if not self._words:
            draw = random.Random(3)
            letters = "etaoinshrdlucmfwypvbgk"
            self._words = ["".join(draw.choices(letters, k=2 + n % 8)) for n in range(5000)]
        return self._words


def conversation(turns: int, chain: Chain | None = None, *, ended: bool = True) -> Iterator[bytes]:
    """The lines of a run of ``turns``: 400 bytes said, 600 answered, all of it sent each time."""
    chain = chain or Chain()
    said: list[JSON] = []
    yield chain.event("run.started", {"uid": UID, "agent": "talk"}, tenant_id="local")
    for turn in range(turns):
        at = {"turn_id": f"t{turn + 1}"}
        yield chain.event("turn.started", {}, **at)
        said.append({"role": "user", "content": chain.words(400)})
        call = {"call_id": f"c{turn + 1}"}
        cause = event_id(UID, chain.seq - 1)
        yield chain.event(
            "model.requested", call, messages=said, model=MODEL, causation_id=cause, **at
        )
        answer = chain.words(600)
        said.append({"role": "assistant", "content": answer})
        yield chain.event("model.responded", {**call, "result": answer}, model=MODEL, **at)
        chain.index.answered(chain.seq - 1, answer)
        yield chain.event("turn.completed", {}, **at)
    if ended:
        yield chain.event("run.ended", {"status": "completed"})


def journal(turns: int) -> bytes:
    """A whole ended run as its journal bytes."""
    return b"".join(line + b"\n" for line in conversation(turns))


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
).filter(lambda value: "\\ud" not in ascii(value))
_times = st.sampled_from(["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05Z", "soon", ""])


@st.composite
def lines(draw: st.DrawFn) -> list[bytes]:
    """Lines in any mixture: rows of playhead and of others, damaged rows, garbage, blanks."""
    chain = Chain(draw(st.integers(0, 99)))
    out: list[bytes] = []
    for kind in draw(st.lists(st.sampled_from("nnnnfecdgbr"), max_size=12)):
        value = draw(_values)
        if kind == "n":
            line = chain.event("note.made", {"value": value}, messages=[value, [value]])
        elif kind == "f":
            line = chain.row(tool_call=value, tool_result=value, ts=draw(st.floats(0, 2e9)))
        elif kind == "e":
            envelope = {"v": 1, "event": "x", "at": draw(_times), "seq": value, "payload": value}
            line = chain.row(tool_call=envelope, prompt=draw(st.sampled_from(["[", "[1,2]", "a"])))
        elif kind == "c":
            line = chain.row(tool_result=value) + b"\r"
        elif kind == "d":
            line = chain.event("note.made", {"value": value})
            at = draw(st.integers(0, len(line) - 1))
            line = line[:at] + draw(st.binary(max_size=2)).replace(b"\n", b"") + line[at + 1 :]
        elif kind == "g":
            line = draw(st.binary(max_size=40)).replace(b"\n", b"")
        elif kind == "r":
            line = out[-1] if out else b""
        else:
            line = draw(st.sampled_from([b"", b" ", b"\t", b"\r", b"0", b"{}", b"[]", b"null"]))
        out.append(line)
    return out
