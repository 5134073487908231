"""Marked values back to Python values, as far as that runs no code (formats/values.md)."""

from __future__ import annotations

import base64
import json

from playhead.core.model import JSON
from playhead.core.values import MARK, GetBlob


def restore(value: JSON, get_blob: GetBlob) -> object:
    """The Python value behind a marked one, as far as one can be made without running code.

    Objects come back as their fields or their repr text.

    Raises:
        BlobError: a blob is missing or does not hash to its name.
    """
    if isinstance(value, list):
        return [restore(item, get_blob) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(MARK)
    if not isinstance(kind, str):
        return {key: restore(item, get_blob) for key, item in value.items()}
    return _restore_mark(kind, value, get_blob)


def _restore_mark(kind: str, value: dict[str, JSON], get_blob: GetBlob) -> object:
    try:
        if kind == "float":
            return float(str(value["value"]))
        if kind == "int":
            return int(str(value["hex"]), 16)
        if kind == "text":
            return json.loads(str(restore(value["json"], get_blob)))
        if kind == "bytes":
            return base64.b64decode(str(value["base64"]), validate=True)
        if kind == "time":
            return str(value["iso"])
        if kind == "set":
            return restore(value["items"], get_blob)
        if kind == "map":
            return {
                _hashable(restore(k, get_blob)): restore(v, get_blob)
                for k, v in value["items"]  # type: ignore[attr-defined]
            }
        if kind == "deep":
            return json.loads(str(restore(value["json"], get_blob)))
        if kind == "object":
            return restore(value.get("value", value.get("repr")), get_blob)
        if kind == "blob":
            return _from_blob(value.get("form"), get_blob(str(value["sha256"])), get_blob)
    except (KeyError, TypeError, ValueError, RecursionError):
        return dict(value)
    return dict(value)


def _from_blob(form: JSON, raw: bytes, get_blob: GetBlob) -> object:
    if form == "text":
        return raw.decode("utf-8")
    return restore(json.loads(raw), get_blob) if form == "json" else raw


def _hashable(key: object) -> object:
    return key if not isinstance(key, (list, dict)) else json.dumps(key, sort_keys=True)
