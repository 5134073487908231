"""Salted field commitments: one field of a step can be shown without the others.

Leaf n of a second Merkle tree commits to the fields of step n; the root of that tree is signed
in the same checkpoint as the rows' (resolution 3). Equal values have unrelated digests at two
steps, so nobody can test a guess; a field that is null is committed too, which hides that it
is. Salts come from a per-run secret beside the keys, so none needs to be stored.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from playhead.core import merkle
from playhead.core.encode import fast_bytes
from playhead.core.model import JSON, Step
from playhead.errors import NotFound, ValueRefused

_SALT_TAG: Final = b"playhead/field/v1\0"
_DIGEST_TAG: Final = b"\x00playhead/field\0"
_INNER_PAD: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD: Final = bytes(byte ^ 0x5C for byte in range(256))
_EVENT_KEYS: Final = ("v", "event", "seq", "at")
_OTHER_FIELDS: Final = frozenset((*_EVENT_KEYS, "name", "payload"))


def _pointer_bytes(pointer: str) -> bytes:
    """UTF-8, with NUL as C0 80, which no UTF-8 text holds.

    NUL ends the pointer in the digest; without this a key with a NUL in it could be split
    from its salt at another place and so show another value.
    """
    return pointer.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def escape_pointer(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901, 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def fields_of(step: Step, envelope: Mapping[str, JSON] | None) -> list[tuple[str, JSON]]:
    """The fields of a step as ``(pointer, value)``, in no particular order.

    Args:
        step: the row.
        envelope: its ``tool_call`` when the row is native, None when it is foreign.

    Every hashed byte of a native row is under one of the fields: ``/ids`` takes each key of
    the envelope that is not named elsewhere, and ``/effort`` is there when it is hashed.
    """
    if envelope is None:
        return [
            ("/model", step.model),
            ("/prompt", step.prompt),
            ("/tool_call", step.tool_call),
            ("/tool_result", step.tool_result),
            ("/effort", step.effort),
        ]
    fields: list[tuple[str, JSON]] = [
        ("/event", {key: envelope.get(key) for key in _EVENT_KEYS}),
        ("/ids", {key: envelope[key] for key in envelope if key not in _OTHER_FIELDS}),
        ("/name", envelope.get("name")),
        ("/model", step.model),
        ("/prompt", step.prompt),
        ("/tool_result", step.tool_result),
    ]
    if step.effort is not None:
        fields.append(("/effort", step.effort))
    payload = envelope.get("payload", {})
    if isinstance(payload, Mapping):
        fields += [("/payload/" + escape_pointer(key), payload[key]) for key in payload]
    else:
        fields.append(("/payload", payload))
    return fields


def salt(secret: bytes, seq: int, pointer: str) -> bytes:
    """The 32-byte salt of one field: HMAC-SHA256 under the run's secret."""
    message = _SALT_TAG + seq.to_bytes(8, "big") + _pointer_bytes(pointer)
    return hmac.digest(secret, message, "sha256")


def field_digest(pointer: str, salt: bytes, value: JSON) -> bytes:
    """What is committed of one field: SHA-256 over tag, pointer, salt and canonical value.

    Raises:
        ValueRefused: the value has no ``step`` form.
    """
    return _digest(_pointer_bytes(pointer), salt, fast_bytes(value))


def _digest(name: bytes, salt: bytes, value: bytes) -> bytes:
    return sha256(b"%b%b\0%b%b" % (_DIGEST_TAG, name, salt, value)).digest()


def _leaves(secret: bytes, seq: int, fields: list[tuple[str, JSON]]) -> list[bytes]:
    """Leaf hashes in the order of ``fields``; the loop of the recorder's hot path.

    The salts are those of `salt`: what HMAC (RFC 2104) hashes before and after the pointer is
    the same for every field of a step, and is hashed once.
    """
    key = (secret if len(secret) <= 64 else sha256(secret).digest()).ljust(64, b"\0")
    before = sha256(key.translate(_INNER_PAD) + _SALT_TAG + seq.to_bytes(8, "big"))
    after = sha256(key.translate(_OUTER_PAD))
    sha = sha256
    out = []
    for pointer, value in fields:
        name = _pointer_bytes(pointer)
        inner, outer = before.copy(), after.copy()
        inner.update(name)
        outer.update(inner.digest())
        raw = b"null" if value is None else fast_bytes(value)
        out.append(sha(b"\x00" + _digest(name, outer.digest(), raw)).digest())
    return out


def step_commitment(secret: bytes, step: Step, envelope: Mapping[str, JSON] | None) -> bytes:
    """The RFC 6962 root over the field digests of a step, in pointer order.

    Args:
        secret: the run's secret, 32 bytes.
        step: the row; its ``seq`` goes into every salt.
        envelope: see `fields_of`.

    Raises:
        ValueRefused: a value has no ``step`` form.
    """
    fields = sorted(fields_of(step, envelope), key=_by_pointer)
    return merkle.root(_leaves(secret, step.seq, fields))


def _by_pointer(field: tuple[str, JSON]) -> str:
    return field[0]


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One field shown: its value, its salt and the path to the step's commitment.

    ``index`` and ``size`` place it among the step's fields. They are what the path needs;
    only the pointer and the value are proven, not how many fields the step has.
    """

    pointer: str
    salt: bytes
    value: JSON
    proof: tuple[bytes, ...]
    index: int
    size: int


def disclose(
    secret: bytes, step: Step, envelope: Mapping[str, JSON] | None, pointer: str
) -> Disclosure:
    """Show the field at ``pointer`` and nothing else of the step.

    Raises:
        NotFound: the step has no such field.
        ValueRefused: a value has no ``step`` form.
    """
    fields = sorted(fields_of(step, envelope), key=_by_pointer)
    names = [name for name, _ in fields]
    if pointer not in names:
        raise NotFound(
            f"step {step.seq} has no field {pointer!r}", remedy="It has " + ", ".join(names)
        )
    index = names.index(pointer)
    proof = merkle.inclusion_proof(_leaves(secret, step.seq, fields), index)
    return Disclosure(
        pointer, salt(secret, step.seq, pointer), fields[index][1], tuple(proof), index, len(fields)
    )


def verify_disclosure(disclosure: Disclosure, commitment: bytes) -> bool:
    """Whether the field belongs to the step that ``commitment`` was made for.

    Says nothing about the step's place: that is proven by the commitment's own inclusion.
    """
    if len(disclosure.salt) != 32:
        return False
    try:
        digest = field_digest(disclosure.pointer, disclosure.salt, disclosure.value)
    except ValueRefused:
        return False
    return merkle.verify_inclusion(
        merkle.leaf_hash(digest), disclosure.index, disclosure.size, disclosure.proof, commitment
    )
