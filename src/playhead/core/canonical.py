"""Canonical JSON in three named profiles (docs/reference/formats/canonical.md).

The three contracts hash the same value differently, so a digest always names its profile:

* ``step``: Python ``json.dumps(sort_keys=True, separators=(",", ":"))``, ASCII output.
  The step hash of the seed; keys sort by code point, floats print as Python ``repr``.
* ``stepfork``: the same with UTF-8 output, no non-finite numbers, no lone surrogates.
* ``jcs``: RFC 8785, for small signed statements only.

Which numbers are equal (``shared/cases`` C34): ``1`` and ``1.0`` are different values, ``1.0``
and ``1e0`` are the same, ``-0.0`` and ``0`` are different.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from playhead.errors import ValueRefused

Profile = Literal["step", "stepfork", "jcs"]

_STEP = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_STEPFORK = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)

encode_step = _STEP.encode
"""``step`` profile as text; the hot paths bind this name."""


def step_bytes(value: object) -> bytes:
    """``step`` profile as ASCII bytes (seed: "Step-hash encoding")."""
    return _STEP.encode(value).encode("ascii")


def canonical(value: object, profile: Profile = "step") -> bytes:
    """Encode a JSON value canonically.

    Raises:
        ValueRefused: the value has no form in this profile.
    """
    try:
        if profile == "step":
            return step_bytes(value)
        if profile == "stepfork":
            _require_string_keys(value)
            return _STEPFORK.encode(value).encode("utf-8")
        return _jcs(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused(f"no {profile} form: {error}") from None


def _jcs(value: object) -> bytes:
    import rfc8785

    # The library's stubs narrow to its own JSON alias; any value it cannot encode raises.
    return rfc8785.dumps(value)  # type: ignore[arg-type]


def _require_string_keys(value: object) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"key {key!r} is not a string")
            _require_string_keys(item)
    elif isinstance(value, list):
        for item in value:
            _require_string_keys(item)
    elif isinstance(value, (tuple, bytes, set)):
        raise TypeError(f"{type(value).__name__} has no JSON form")


def digest(value: object, profile: Profile = "step") -> str:
    """SHA-256 hex of the canonical bytes."""
    return hashlib.sha256(canonical(value, profile)).hexdigest()
