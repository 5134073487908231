"""C2SP signed notes and checkpoint bodies: text in, text out, no keys.

Grammar: https://c2sp.org/signed-note and https://c2sp.org/tlog-checkpoint. Reading is strict:
what another reader could take differently is refused. Signature lines of unknown kinds are
kept, so that a witness may add one. Signing and verifying are in `playhead.core.sign`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from playhead.errors import SignatureError

MAX_NOTE: Final = 64 * 1024
"""Bytes of the largest note that is read."""
MAX_SIGNATURES: Final = 100

_DASH: Final = "\u2014 "
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_REMEDY: Final = "Write the note again from its source; a note is never edited by hand"


def _bad(what: str) -> SignatureError:
    return SignatureError(f"malformed note: {what}", remedy=_REMEDY)


def is_key_name(name: str) -> bool:
    """Whether C2SP allows the key name: not empty, no Unicode space, no plus, no control."""
    return bool(name) and not any(c.isspace() or c == "+" or c < " " for c in name)


def decode_base64(text: str) -> bytes | None:
    """Standard base64 in its one canonical spelling, else None."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: who (name and 4-byte key hash) and the raw signature."""

    name: str
    key_hash: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A note as read: ``text`` ends in a newline and is what the signatures cover."""

    text: str
    signatures: tuple[NoteSignature, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log: origin, number of leaves, RFC 6962 root, extension lines.

    Raises:
        SignatureError: the values have no checkpoint form.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lines = (self.origin, *self.extensions)
        if not all(lines):
            raise _bad("a checkpoint has an empty line")
        if any("\n" in line or _CONTROL.search(line) for line in lines):
            raise _bad("a checkpoint line holds a control character")
        if _SIZE.fullmatch(str(self.size)) is None:
            raise _bad(f"a checkpoint cannot have the size {self.size}")
        if len(self.root) != 32:
            raise _bad(f"a checkpoint root has 32 bytes, not {len(self.root)}")

    def to_body(self) -> str:
        """The note text: origin, size, root in base64, extension lines."""
        lines = (self.origin, str(self.size), _encode_base64(self.root), *self.extensions)
        return "\n".join(lines) + "\n"


def parse_checkpoint(body: str) -> Checkpoint:
    """Read a checkpoint body (the text of its note).

    Raises:
        SignatureError: it is not exactly what `Checkpoint.to_body` writes.
    """
    lines = body.split("\n")
    if len(lines) < 4 or lines[-1]:
        raise _bad("a checkpoint has at least three lines, each ended by a newline")
    origin, size, root, *extensions = lines[:-1]
    if _SIZE.fullmatch(size) is None:
        raise _bad("the checkpoint size is not a plain decimal number")
    decoded = decode_base64(root)
    if decoded is None:
        raise _bad("the checkpoint root is not base64")
    return Checkpoint(origin, int(size), decoded, tuple(extensions))


def parse_note(text: str | bytes) -> SignedNote:
    """Read a signed note; says nothing about who signed it.

    Raises:
        SignatureError: not a note, over `MAX_NOTE` bytes or over `MAX_SIGNATURES` signatures.
    """
    plain = _checked_text(text)
    body, blank, tail = plain.rpartition("\n\n")
    if not blank or not tail.endswith("\n"):
        raise _bad("no blank line before the signatures, or no newline at the end")
    lines = tail[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise _bad(f"over {MAX_SIGNATURES} signatures")
    return SignedNote(body + "\n", tuple(_signature(line) for line in lines))


def _checked_text(text: str | bytes) -> str:
    try:
        raw = text if isinstance(text, bytes) else text.encode("utf-8")
        if len(raw) > MAX_NOTE:
            raise _bad(f"over {MAX_NOTE} bytes")
        plain = raw.decode("utf-8")
    except UnicodeError:
        raise _bad("not UTF-8") from None
    if _CONTROL.search(plain):
        raise _bad("a control character")
    return plain


def _signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not is_key_name(name):
        raise _bad("a signature line is not a dash, a key name and base64")
    data = decode_base64(encoded)
    if data is None or len(data) < 5:
        raise _bad("a signature is not base64 of a key hash and a signature")
    return NoteSignature(name, data[:4], data[4:])


def format_note(text: str, signatures: Iterable[tuple[str, bytes, bytes]]) -> str:
    """Write a note from its text and ``(name, 4-byte key hash, signature)`` triples.

    Raises:
        SignatureError: the result would not read back as the same note.
    """
    given = tuple(NoteSignature(*triple) for triple in signatures)
    lines = "".join(f"{_DASH}{s.name} {_encode_base64(s.key_hash + s.signature)}\n" for s in given)
    note = f"{text}\n{lines}"
    if parse_note(note) != SignedNote(text, given):
        raise _bad("the text does not end in a newline, or a key hash is not 4 bytes")
    return note
