"""An answer as a replay cache keeps it, and the bytes that it is kept as.

The value is kept as ``step`` canonical JSON beside a digest over it, the tenant, the key and the
rest of the entry, so a value that was changed, or moved to another tenant or key, is seen when it
is read. The digest is not a signature: whoever can write the cache can make a matching one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, NamedTuple, get_args

from playhead.core.cachekey import KEY_VERSION
from playhead.core.encode import fast_bytes
from playhead.core.model import JSON
from playhead.core.values import require_plain
from playhead.errors import ReplayArgumentError, StoreError, TooLarge, ValueRefused

RuntimeMode = Literal["prod", "test"]
RUNTIME_MODES: Final[tuple[str, ...]] = get_args(RuntimeMode)
MAX_VALUE: Final = 16 * 1024 * 1024
"""Bytes of one value's canonical JSON."""
MAX_KEY: Final = 1024
"""Characters of a key; a `ck1` key has 68."""
MAX_TENANT: Final = 512
_TAG: Final = b"playhead/cache/entry/v1\n"
_MAX_MS: Final = (1 << 53) - 1
_CHANGED = "Delete the cache: it is filled again, and nothing else is kept in it"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A recorded answer.

    Args:
        value: the answer, any plain JSON value (None is one).
        recorded_mode: "prod" or "test": the runtime that it was recorded in.
        recorded_at_ms: milliseconds since 1970 (UTC); told, never compared.
        key_version: the recipe of its key.

    Raises:
        ReplayArgumentError: another mode, a time that is no such number, a version that is no text.
    """

    value: JSON
    recorded_mode: RuntimeMode = "prod"
    recorded_at_ms: int = 0
    key_version: str = KEY_VERSION

    def __post_init__(self) -> None:
        check_runtime_mode("recorded_mode", self.recorded_mode)
        at = self.recorded_at_ms
        if type(at) is not int or not 0 <= at <= _MAX_MS:
            raise ReplayArgumentError("recorded_at_ms", "must be milliseconds since 1970")
        if type(self.key_version) is not str or not self.key_version.strip():
            raise ReplayArgumentError("key_version", "must be a text such as 'ck1'")


class Kept(NamedTuple):
    """An entry as a backend keeps it; whatever a backend gives back, `taken` checks it."""

    value: object
    digest: object
    recorded_mode: object
    recorded_at_ms: object
    key_version: object


def check_runtime_mode(field: str, mode: object) -> None:
    """Check a runtime mode.

    Raises:
        ReplayArgumentError: not "prod" or "test".
    """
    if not isinstance(mode, str) or mode not in RUNTIME_MODES:
        raise ReplayArgumentError(field, f"must be one of {', '.join(RUNTIME_MODES)}")


def check_owner(key: object, tenant_id: object) -> tuple[str, str]:
    """Key and tenant as a backend may use them.

    Raises:
        ReplayArgumentError: no text, blank, too long, or characters that no store can keep.
    """
    return _name("key", key, MAX_KEY), _name("tenant_id", tenant_id, MAX_TENANT)


def _name(field: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise ReplayArgumentError(field, f"must be a string, not {type(value).__name__}")
    if not value.strip():
        raise ReplayArgumentError(field, "is blank", remedy="It has no default: name it")
    if len(value) > most or "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ReplayArgumentError(
            field, f"is over {most} characters or holds what no store can keep"
        )
    return value


def _sealed(value: bytes, tenant_id: str, key: str, mode: object, at: int, version: str) -> bytes:
    about = fast_bytes([tenant_id, key, mode, at, version, sha256(value).hexdigest()])
    return sha256(_TAG + about).digest()


def keep(entry: CacheEntry, *, key: str, tenant_id: str) -> Kept:
    """The bytes to keep for an entry.

    Raises:
        ReplayArgumentError: a bad key or tenant. ValueRefused: no plain JSON value.
        TooLarge: the value is over `MAX_VALUE` bytes.
    """
    check_owner(key, tenant_id)
    require_plain(entry.value)
    value = fast_bytes(entry.value)
    if len(value) > MAX_VALUE:
        raise TooLarge(
            f"a cache value of {len(value)} bytes, over {MAX_VALUE}",
            remedy="Keep large parts elsewhere and put their digest into the answer",
        )
    mode, at, version = entry.recorded_mode, entry.recorded_at_ms, entry.key_version
    return Kept(value, _sealed(value, tenant_id, key, mode, at, version), mode, at, version)


def taken(kept: Kept, *, key: str, tenant_id: str, where: str) -> CacheEntry:
    """The entry behind kept bytes; a fresh value each time. ``where`` names the cache.

    Raises:
        StoreError: they are not what was put under this key of this tenant.
    """
    value, digest, mode, at, version = kept
    if (
        isinstance(value, bytes)
        and (mode == "prod" or mode == "test")
        and isinstance(at, int)
        and isinstance(version, str)
    ):
        try:
            if digest == _sealed(value, tenant_id, key, mode, at, version):
                return CacheEntry(json.loads(value), mode, at, version)
        except (ValueError, RecursionError, ValueRefused):
            pass  # as wrong as a digest that differs: said below
    raise StoreError(f"{where}: the entry of key {key[:24]!r} was changed", remedy=_CHANGED)
