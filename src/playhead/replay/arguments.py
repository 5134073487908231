"""Arguments of replay, checked where they are given (contract: "validates at once").

Each function returns the value it checked, or raises `ReplayArgumentError`, which names the field
and is both a `TypeError` and a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeGuard

from playhead.core.fold import Projection
from playhead.errors import ReplayArgumentError

Base = Literal["zero", "prefix"]
Verify = Literal["open", "step", "off"]
Snapshots = Literal["off", "use", "verify"]

_MAX_ID = 512
MAX_NUMBER = (1 << 53) - 1
"""The largest sequence number that every reader of JSON agrees on."""


def require_id(field: str, value: object) -> str:
    """A tenant, chat, turn or message id: text that is not blank."""
    if not isinstance(value, str):
        raise ReplayArgumentError(field, f"must be a string, not {type(value).__name__}")
    if not value.strip():
        raise ReplayArgumentError(field, "is blank", remedy="It has no default: name it")
    if len(value) > _MAX_ID or "\0" in value or not _encodable(value):
        raise ReplayArgumentError(
            field, f"is over {_MAX_ID} characters or holds what no store can keep"
        )
    return value


def _encodable(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def require_number(field: str, value: object, low: int = 0, high: int | None = None) -> int:
    """A sequence number; ``low`` and ``high`` are inclusive."""
    if not _is_number(value):
        raise ReplayArgumentError(field, f"must be an int, not {type(value).__name__}")
    top = MAX_NUMBER if high is None else high
    if not low <= value <= top:
        raise ReplayArgumentError(field, f"is {value:.0f}, outside {low}..{top}")
    return value


def require_bounds(start: object, stop: object) -> tuple[int, int | None]:
    """The window ``(start, stop]``; ``stop`` None is the head at opening."""
    low = require_number("from_sequence_number", start)
    if stop is None:
        return low, None
    return low, require_number("up_to_sequence_number", stop, low)


def require_choice(field: str, value: object, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ReplayArgumentError(field, f"must be one of {', '.join(choices)}")
    return value


def require_flag(field: str, value: object) -> bool:
    """True or False, and nothing that is only like it."""
    if not isinstance(value, bool):
        raise ReplayArgumentError(field, f"must be True or False, not {type(value).__name__}")
    return value


def require_projections(value: object) -> tuple[Projection, ...]:
    """A set of projections; None is none.

    Every member must have ``key``, ``version``, ``init``, ``apply`` and ``view``.
    """
    if value is None:
        return ()
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise ReplayArgumentError("projections", "must be a collection of projections")
    found = tuple(value)
    for projection in found:
        missing = [name for name in ("key", "version") if not hasattr(projection, name)]
        missing += [
            name
            for name in ("init", "apply", "view")
            if not callable(getattr(projection, name, None))
        ]
        if missing:
            kind = type(projection).__name__
            raise ReplayArgumentError("projections", f"holds a {kind} without {missing[0]}")
    return found
