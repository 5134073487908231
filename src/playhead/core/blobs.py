"""Large parts of a normalised value as blobs (decision 3; docs/reference/formats/values.md)."""

from __future__ import annotations

import base64
import json
from hashlib import sha256

import orjson

from playhead.core.model import JSON
from playhead.core.values import BLOB_AT, MARK, PutBlob
from playhead.errors import BlobError


def externalise(value: JSON, put: PutBlob, blobs: list[str]) -> JSON:
    """``value`` with every long text and bytes in it moved to a blob.

    For a value that was normalised without a blob store, so that it could be redacted first.
    ``blobs`` collects the digests.
    """
    if isinstance(value, str):
        if len(value) * 4 < BLOB_AT:
            return value
        raw = value.encode("utf-8")
        return value if len(raw) < BLOB_AT else _put_blob(raw, "text", put, blobs)
    if isinstance(value, list):
        return [externalise(item, put, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(MARK)
    if kind == "bytes":
        raw = base64.b64decode(str(value.get("base64")))
        return value if len(raw) < BLOB_AT else _put_blob(raw, "bytes", put, blobs)
    if kind in ("blob", "float", "int", "time", "same"):
        return value
    return {key: externalise(item, put, blobs) for key, item in value.items()}


def is_small(value: JSON) -> bool:
    """True when all of a normalised value is too short for `externalise` to find a part."""
    try:
        return len(orjson.dumps(value)) < BLOB_AT
    except TypeError:
        return False


def in_one_blob(value: JSON, put: PutBlob, blobs: list[str]) -> JSON:
    """A normalised value whose JSON text is one blob."""
    return _put_blob(json.dumps(value).encode("ascii"), "json", put, blobs)


def _put_blob(raw: bytes, form: str, put: PutBlob, blobs: list[str]) -> JSON:
    digest = put(raw)
    blobs.append(digest)
    return {MARK: "blob", "form": form, "sha256": digest, "size": len(raw)}


def blob_checked(digest: str, raw: bytes) -> bytes:
    """``raw`` if it hashes to ``digest``.

    Raises:
        BlobError: it does not.
    """
    if sha256(raw).hexdigest() != digest:
        raise BlobError(f"blob {digest[:16]}... does not hash to its name")
    return raw
