"""The prompts of an imported session as segments, in time linear in the session.

Prompts are parts of one growing history (`formats.transcript.Prompt`), so what a prompt
repeats is known without looking at it: a part of the prompt before, and answers that have rows
of their own. Only what is new is written (docs/reference/formats/prompts.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from playhead.core.blobs import in_one_blob
from playhead.core.canonical import encode_step
from playhead.core.model import JSON
from playhead.core.redact import Redactor
from playhead.core.values import Normaliser, PutBlob
from playhead.formats.transcript import Prompt

MAX_LITERAL = 4 * 1024 * 1024
"""Bytes of new messages in one row; those beyond are kept as blobs."""


@dataclass(frozen=True, slots=True)
class _Told:
    """The last request of a history: its row holds the messages ``[start, end)``."""

    seq: int
    start: int
    end: int


class Deltas:
    """Encodes prompts in the order of their rows. ``put`` keeps large values as blobs."""

    def __init__(self, put: PutBlob, redactor: Redactor) -> None:
        self._put = put
        self._redactor = redactor
        self._last: dict[int, _Told] = {}
        self._answers: dict[int, int] = {}

    def answered(self, seq: int, message: JSON) -> None:
        """The row ``seq`` holds ``message``, an object of the history, as an answer."""
        self._answers[id(message)] = seq

    def encode(self, seq: int, prompt: Prompt) -> tuple[str, tuple[str, ...]]:
        """The ``prompt`` text of the request at ``seq``, and the blobs that it refers to."""
        segments: list[JSON] = []
        normal = Normaliser(self._put)
        told = self._last.get(id(prompt.history))
        at = prompt.start
        size = 0
        if told is not None and told.start <= at < told.end:
            segments.append([told.seq, at - told.start, told.end - told.start])
            at = told.end
        for message in prompt.history[at : prompt.end]:
            answer = self._answers.get(id(message))
            if answer is not None:
                segments.append([answer, 0, 1])
                continue
            literal = normal.value(self._redactor.value(message)[0])
            size += len(encode_step(literal))
            if size > MAX_LITERAL:
                literal = in_one_blob(literal, self._put, normal.blobs)
            segments.append(literal)
        self._last[id(prompt.history)] = _Told(seq, prompt.start, prompt.end)
        return encode_step(segments), tuple(normal.blobs)
