"""Recorded values as JSON that every reader takes: what JSON cannot say becomes text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

MAX_DEPTH: Final = 200
_MAX_DIGITS: Final = 4000


def plain(value: object, depth: int = 0) -> object:
    """``value`` with NaN, infinities, over-long numbers and other types as text. Never raises."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 3 * _MAX_DIGITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if depth >= MAX_DEPTH:
        return "(nested too deeply to be shown)"
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return f"({type(value).__name__})"
