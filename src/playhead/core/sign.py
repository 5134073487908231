"""Ed25519 keys as values, and signing C2SP notes with them.

``cryptography`` is imported inside the functions: only a run that is signed or checked pays
for it. The caller brings the randomness (`playhead.store.keys`), so core stays pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from playhead.core.note import SignedNote, decode_base64, format_note, is_key_name, parse_note
from playhead.errors import Refused, SignatureError

ALGORITHM: Final = b"\x01"
"""C2SP signature type of Ed25519."""
MAX_KEY_FILE: Final = 16 * 1024
"""Bytes of the largest key file that is read."""

_VKEY: Final = re.compile(r"([^+\n]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)")
_PUBLIC_REMEDY: Final = "Give an Ed25519 public key as a vkey, as PEM or as 32 raw bytes"
_PRIVATE_REMEDY: Final = "Give an unencrypted Ed25519 key as PKCS#8 PEM or as 32 raw bytes"


def _check_key(name: str, raw: bytes) -> None:
    if not is_key_name(name):
        raise Refused(
            f"{name!r} cannot be a key name",
            remedy="Use a name that is not empty and has no spaces and no '+'",
        )
    if len(raw) != 32:
        raise Refused(f"an Ed25519 key has 32 bytes, not {len(raw)}", remedy=_PUBLIC_REMEDY)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A named Ed25519 public key (32 raw bytes).

    Raises:
        Refused: the name or the length cannot be.
    """

    name: str
    raw: bytes

    def __post_init__(self) -> None:
        _check_key(self.name, self.raw)

    @property
    def key_hash(self) -> bytes:
        """The 4-byte C2SP key ID, over name and key."""
        return sha256(self.name.encode("utf-8") + b"\n" + ALGORITHM + self.raw).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex of the raw key: what two people compare over the phone."""
        return sha256(self.raw).hexdigest()

    def to_vkey(self) -> str:
        """One line, ``name+hash+base64``, as Go's ``sumdb/note`` writes verifier keys."""
        encoded = base64.b64encode(ALGORITHM + self.raw).decode("ascii")
        return f"{self.name}+{self.key_hash.hex()}+{encoded}"

    def to_pem(self) -> bytes:
        """SubjectPublicKeyInfo PEM, for openssl and other tools."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether ``signature`` is this key's over ``message`` (RFC 8032)."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A named Ed25519 private key (32-byte seed). The seed is never in its ``repr``.

    Raises:
        Refused: the name or the length cannot be.
    """

    name: str
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_key(self.name, self.seed)

    def public(self) -> PublicKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(self.seed)
        return PublicKey(self.name, key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature over ``message``."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def to_pem(self) -> bytes:
        """Unencrypted PKCS#8 PEM; the file that holds it must be owner-only."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        key = Ed25519PrivateKey.from_private_bytes(self.seed)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def parse_vkey(text: str) -> PublicKey:
    """Read a verifier key line.

    Raises:
        Refused: not a vkey, not Ed25519, or its hash is not that of its name and key.
    """
    match = _VKEY.fullmatch(text)
    data = decode_base64(match[3]) if match else None
    if match is None or data is None or data[:1] != ALGORITHM:
        raise Refused("not an Ed25519 vkey", remedy=_PUBLIC_REMEDY)
    key = PublicKey(match[1], data[1:])
    if key.key_hash.hex() != match[2]:
        raise Refused("the hash in the vkey is not that of its key", remedy="Copy it again whole")
    return key


def load_public_key(data: bytes, name: str = "key") -> PublicKey:
    """A public key from 32 raw bytes, PEM SubjectPublicKeyInfo or a vkey, told apart by form.

    Args:
        data: the content of a key file.
        name: the key's name where the form carries none.

    Raises:
        Refused: none of the three.
    """
    if len(data) == 32:
        return PublicKey(name, data)
    if len(data) <= MAX_KEY_FILE and b"-----BEGIN " in data:
        return PublicKey(name, _public_from_pem(data))
    try:
        text = data[:MAX_KEY_FILE].decode("utf-8").strip()
    except UnicodeDecodeError:
        raise Refused("not an Ed25519 public key", remedy=_PUBLIC_REMEDY) from None
    return parse_vkey(text)


def _public_from_pem(data: bytes) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("not an Ed25519 public key", remedy=_PUBLIC_REMEDY)
    return key.public_bytes_raw()


def load_private_key(data: bytes, name: str = "key") -> PrivateKey:
    """A private key from a 32-byte seed or unencrypted PKCS#8 PEM.

    Raises:
        Refused: neither; the message never quotes the content.
    """
    if len(data) == 32:
        return PrivateKey(name, data)
    if len(data) > MAX_KEY_FILE:
        raise Refused("not an Ed25519 private key", remedy=_PRIVATE_REMEDY)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise Refused("not an Ed25519 private key", remedy=_PRIVATE_REMEDY)
    return PrivateKey(name, key.private_bytes_raw())


def sign_note(text: str, key: PrivateKey) -> str:
    """A note with one signature over ``text``, which ends in a newline.

    Raises:
        SignatureError: the text has no note form.
    """
    return format_note(
        text, [(key.name, key.public().key_hash, key.sign(text.encode("utf-8", "surrogatepass")))]
    )


def verify_note(
    note: str | bytes, trusted: Iterable[PublicKey]
) -> tuple[SignedNote, list[PublicKey]]:
    """Read a note and check it against trusted keys.

    Signatures of unknown keys are passed over. A key counts as known when name and key hash
    agree; one bad signature of a known key rejects the whole note (C2SP signed-note).

    Returns:
        The note, and the trusted keys that signed it, each once, in the order of its lines.

    Raises:
        SignatureError: malformed, a known key's signature is wrong, or no trusted key signed.
    """
    signed = parse_note(note)
    message = signed.text.encode("utf-8")
    keys = list(dict.fromkeys(trusted))
    signers: dict[PublicKey, None] = {}
    for line in signed.signatures:
        known = [k for k in keys if (k.name, k.key_hash) == (line.name, line.key_hash)]
        good = [k for k in known if k.verify(message, line.signature)]
        if known and not good:
            raise SignatureError(
                f"the signature of {line.name} does not fit the text",
                remedy="The note was changed after it was signed; fetch it again from its source",
            )
        signers.update(dict.fromkeys(good))
    if not signers:
        raise SignatureError(
            "no trusted key signed this note",
            remedy="Get the signer's public key from the signer and trust it with --key",
        )
    return signed, list(signers)
