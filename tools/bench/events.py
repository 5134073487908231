"""A long chat of an agent with every kind of event, the same rows in every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import material

from playhead.core.chain import event_id
from playhead.core.events import Draft, encode_event
from playhead.core.model import GENESIS
from playhead.formats.journal import SEGMENT, encode_row
from playhead.store.clock import format_us

TENANT, CHAT = "bench", "chat"
_UID = "5e" * 16
_BEGAN = 1_700_000_000_000_000
_WINDOW = 12
"""Model calls until the conversation is compacted and begins anew."""


class _Talk:
    """The events one after another; ``seq`` is the number of the next one."""

    def __init__(self) -> None:
        self.seq = 0
        self._rng = random.Random(13)
        words = material.vocabulary(self._rng)
        self._texts = [material.prose(self._rng, words, 120) for _ in range(512)]
        self._asked: tuple[int, int] | None = None
        self._answered = 0
        self._calls = 0

    def _text(self) -> str:
        return self._texts[self._rng.randrange(512)]

    def events(self) -> Iterator[Draft]:
        """Turns without an end. Whoever takes one counts ``seq`` up."""
        yield Draft(
            "run.started",
            {"uid": _UID, "agent": "bench", "versions": {"playhead": "0"}},
            name="bench",
            tenant_id=TENANT,
            chat_id=CHAT,
            run_id=CHAT,
        )
        turn = 0
        while True:
            turn += 1
            name = f"turn-{turn}"
            yield Draft("turn.started", {"message_id": name}, turn_id=name)
            for call in range(3):
                yield from self._model(name)
                for number in range(3):
                    yield from self._tool(name, f"{turn}-{call}-{number}")
                key = f"files/{self._rng.randrange(200)}"
                yield Draft("state.changed", {"key": key, "value": self._text()}, turn_id=name)
            yield from self._sometimes(turn, name)
            yield Draft("turn.completed", {"message_id": name}, turn_id=name)

    def _model(self, turn: str) -> Iterator[Draft]:
        """A call whose prompt names the messages before it, as the recorder writes them."""
        self._calls += 1
        known: list[object] = []
        count = 0
        if self._asked is not None and self._calls % _WINDOW:
            seq, count = self._asked
            known = [[seq, 0, count], [self._answered, 0, 1]]
            count += 1
        message = {"role": "user", "content": self._text()}
        prompt = json.dumps([*known, message], separators=(",", ":"))
        self._asked = (self.seq, count + 1)
        body = {"call_id": f"m-{self._calls}"}
        yield Draft("model.requested", dict(body), model="model-1", prompt=prompt, turn_id=turn)
        self._answered = self.seq
        usage = {"input_tokens": self._rng.randrange(4000), "output_tokens": 120}
        body |= {"usage": usage, "result": self._text()}
        yield Draft("model.responded", body, model="model-1", turn_id=turn)

    def _tool(self, turn: str, call_id: str) -> Iterator[Draft]:
        ids = {"call_id": call_id}
        arguments = {"path": f"src/{self._rng.randrange(900)}.py", "limit": 20}
        yield Draft("tool.called", ids | {"arguments": arguments}, name="read", turn_id=turn)
        yield Draft("tool.completed", ids | {"result": self._text()}, name="read", turn_id=turn)

    def _sometimes(self, turn: int, name: str) -> Iterator[Draft]:
        """What the core state counts: a question now and then, a helper, a card, an export."""
        about = {"title": self._text()}
        if turn % 2 == 0:
            one = {"interrupt_id": f"i-{turn}"}
            yield Draft("interrupt.raised", one | about, turn_id=name)
            yield Draft("interrupt.resolved", one | {"answer": "yes"}, turn_id=name)
        if turn % 3 == 0:
            who = f"sub-{turn}"
            yield Draft("subagent.started", {"goal": self._text()}, subagent_run_id=who)
            yield Draft("subagent.completed", {"status": "done"}, subagent_run_id=who)
        if turn % 5 == 0:
            card = {"card_id": f"c-{turn // 10}"}
            yield Draft("user_card.shown", card | {"card_type": "form"} | about, turn_id=name)
            yield Draft("user_card.answered", card | {"answer": 4}, turn_id=name)
        if turn % 20 == 0:
            yield Draft("export.created", {"export_id": f"e-{turn // 40}", "version": turn})


def lines(count: int) -> Iterator[bytes]:
    """``count`` linked rows, without their newlines."""
    talk = _Talk()
    prev = GENESIS
    for seq, draft in zip(range(count), talk.events(), strict=False):
        us = _BEGAN + seq * 250_000
        fields = encode_event(draft, seq=seq, at=format_us(us), event_id=event_id(_UID, seq))
        line, prev = encode_row(
            seq=seq,
            prev_hash=prev,
            input_hash=sha256(b"%d" % seq).hexdigest(),
            model=fields["model"],
            prompt=fields["prompt"],
            tool_call=fields["tool_call"],
            tool_result=fields["tool_result"],
            ts=us / 1_000_000,
        )
        talk.seq = seq + 1
        yield line


def write(root: Path, count: int) -> Path:
    """A root with the one journal; returns the journal's file."""
    file = root / "runtime" / "journal" / CHAT / SEGMENT
    file.parent.mkdir(parents=True)
    return material.write(file, (line + b"\n" for line in lines(count)))
