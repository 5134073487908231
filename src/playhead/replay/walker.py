"""A cursor over a run: forward, back, jump, to the next error, turn or text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from playhead.core.canonical import encode_step
from playhead.core.decode import UNREADABLE
from playhead.core.model import JSON, Event
from playhead.replay.run import Run

_NO_ERROR = frozenset(("completed", "ok", "success", "ended", "done", "incomplete", "empty"))
"""Ends of a run that are no error; an imported transcript may simply stop (``incomplete``)."""
_BAD_OUTCOME = frozenset(("failed", "error", "interrupted", "cancelled", "aborted"))


def is_error(event: Event) -> bool:
    """True for what went wrong: failures, errors as results, bad ends, lines that are no row."""
    if event.type == UNREADABLE or event.type.endswith(".failed"):
        return True
    if event.type.startswith("error."):
        return True
    if event.type == "run.ended":
        status = event.payload.get("status")
        return not (isinstance(status, str) and status in _NO_ERROR)
    if event.type == "turn.completed":
        outcome = event.payload.get("outcome")
        return isinstance(outcome, str) and outcome in _BAD_OUTCOME
    if event.type == "tool.completed":
        return event.payload.get("is_error") is True or _says_error(event.payload.get("result"))
    if event.type == "step":
        return _says_error(event.payload.get("tool_result"))
    return False


def _says_error(result: JSON) -> bool:
    if not isinstance(result, Mapping):
        return False
    return (
        result.get("is_error") is True or result.get("isError") is True or bool(result.get("error"))
    )


class Walker:
    """Stands on a step of ``run``; every move returns the step it stands on afterwards.

    A move beyond an end stops there. A search that finds nothing returns None and stays.
    In an empty run the position is -1.
    """

    def __init__(self, run: Run, position: int = 0) -> None:
        self.run = run
        self.position = -1
        self.jump(position)

    def jump(self, number: int) -> int:
        """To step ``number``; a negative one counts from the end."""
        if number < 0:
            number = max(len(self.run) + number, 0)
        if not self.run.has(number):
            number = len(self.run) - 1
        self.position = number
        return number

    def forward(self, count: int = 1) -> int:
        """``count`` steps on."""
        return self.jump(max(self.position + count, 0))

    def back(self, count: int = 1) -> int:
        """``count`` steps back."""
        return self.jump(max(self.position - count, 0))

    def next_error(self) -> int | None:
        """To the next step that is an error, or a call that got no result in a run that is over."""
        return self._to(self._is_bad, 1)

    def previous_error(self) -> int | None:
        """To the error before this step."""
        return self._to(self._is_bad, -1)

    def _is_bad(self, event: Event) -> bool:
        return is_error(event) or self.run.lost(event)

    def next_turn(self) -> int | None:
        """To the next step that starts a turn."""
        return self._to(_starts_turn, 1)

    def previous_turn(self) -> int | None:
        """To the step before this one that starts a turn."""
        return self._to(_starts_turn, -1)

    def search(self, text: str, *, forward: bool = True) -> int | None:
        """To the next (or previous) step whose row holds ``text``, in any case of letters.

        A prompt holds only what is new in it, so a message is found where it was first sent.
        """
        needles = _needles(text)
        if not needles:
            return None
        return self._find(lambda number: _holds(self.run.raw(number), needles), forward)

    def _to(self, wanted: Callable[[Event], bool], way: int) -> int | None:
        return self._find(lambda number: wanted(self.run.event(number)), way > 0)

    def _find(self, wanted: Callable[[int], bool], forward: bool) -> int | None:
        number = self.position + (1 if forward else -1)
        while number >= 0 and self.run.has(number):
            if wanted(number):
                self.position = number
                return number
            number += 1 if forward else -1
        return None


def _starts_turn(event: Event) -> bool:
    return event.type == "turn.started"


def _needles(text: str) -> frozenset[bytes]:
    """The spellings that ``text`` can have in a row, in small letters.

    Raw or escaped, and within a prompt, which is JSON inside JSON, each of them escaped again.
    """
    found: set[bytes] = set()
    for form in (text, text.lower(), text.upper()):
        inner = {form, encode_step(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
        for spelling in inner | {encode_step(one)[1:-1] for one in inner}:
            found.add(spelling.encode("utf-8", "surrogatepass").lower())
    return frozenset(found - {b""})


def _holds(line: bytes, needles: frozenset[bytes]) -> bool:
    lowered = line.lower()
    return any(needle in lowered for needle in needles)
