"""``step`` canonical bytes, by orjson where it is proven to write what Python writes."""

from __future__ import annotations

import orjson

from playhead.core.canonical import step_bytes
from playhead.core.model import JSON
from playhead.core.quick import spelled_alike
from playhead.errors import ValueRefused

_ORJSON = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def fast_bytes(value: JSON) -> bytes:
    """``step`` canonical bytes, by orjson where it is proven to write the same.

    Raises:
        ValueRefused: the value has no canonical form.
    """
    if type(value) is str or spelled_alike(value):
        try:
            raw = orjson.dumps(value, None, _ORJSON)
            if raw.isascii() and b"\x7f" not in raw:
                return raw
        except TypeError:
            pass
    try:
        return step_bytes(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused(f"no canonical form: {error}") from None
