"""Projections that are no pure folds, for the gate over processes."""

from __future__ import annotations

import os

from playhead.core.model import Event
from playhead.core.projection import projection

print("imported")  # what a host's module prints must not reach the answer


def _one(state: int, event: Event) -> int:
    return next(iter({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}[k] for k in set("abcde")))


def _late(state: int, event: Event) -> int:
    return hash("text") if event.seq == 3 else 0


def _raises(state: int, event: Event) -> int:
    if os.environ["PYTHONHASHSEED"] == "1" and event.seq == 2:
        raise ValueError("odd")
    return 0


def _always(state: int, event: Event) -> int:
    raise KeyError("always")


def _dies(state: int, event: Event) -> int:
    os._exit(3)


PURE = projection("pure", init=lambda: 0, apply=lambda state, event: state + 1)
FIRST_OF_SET = projection("first", init=lambda: 0, apply=_one)
HASHED = projection("hashed", init=lambda: 0, apply=_late)
SOMETIMES = projection("sometimes", init=lambda: 0, apply=_raises)
ALWAYS = projection("always", init=lambda: 0, apply=_always)
DIES = projection("dies", init=lambda: 0, apply=_dies)
NONE = 7
