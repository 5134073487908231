"""Proofs as documents: a row of a run, a head that grew out of another.

Normative: docs/reference/formats/proof.md.
A document is one JSON object in the ``step`` profile and a newline, and has no other spelling.
That makes its grammar regular: it is read with one expression, so that a hostile file costs no
more than its length, whatever it nests or repeats.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from playhead.core.canonical import encode_step
from playhead.core.model import JSON
from playhead.core.note import MAX_NOTE
from playhead.core.paths import MAX_PATH
from playhead.errors import Refused, TooLarge
from playhead.formats.journal import MAX_ROW

INCLUSION: Final = "playhead/inclusion"
CONSISTENCY: Final = "playhead/consistency"
VERSION: Final = 1
MAX_PROOF: Final = 3 * MAX_ROW + 1024 * 1024
"""Bytes of the largest document; any row fits, since ASCII spells no byte in more than three
(a row holds no control characters)."""
TAIL: Final = 128
"""Bytes at the end of a file by which `proof_tail` knows a proof."""

_MAX_ID: Final = 4096
_REMEDY: Final = "Take the document again from who made it; it is never edited or spelled anew"
_TAIL: Final = re.compile(
    rb',\s*"type":\s*"(playhead/inclusion|playhead/consistency)",\s*"v":\s*(\d{1,9})\s*\}\s*\Z'
)
_TEXT = rb'"[ !#-\[\]-~]*+(?:\\[ -~][ !#-\[\]-~]*+)*+"'
_HASH = rb'"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="'
_PATH = rb'"path":(?P<path>\[(?:%b(?:,%b){0,%d})?\])' % (_HASH, _HASH, MAX_PATH - 1)
_NUMBER = rb"[1-9][0-9]{0,18}"


def _member(name: bytes, value: bytes) -> bytes:
    return rb'"%b":(?P<%b>%b)' % (name, name, value)


_INCLUSION: Final = re.compile(
    b"".join(
        (
            rb"\{(?:%b,)?" % _member(b"chat_id", _TEXT),
            _member(b"checkpoint", _TEXT),
            rb",%b,%b" % (_member(b"leaf_hash", _HASH), _PATH),
            rb"(?:,%b)?" % _member(b"row", _TEXT),
            rb",%b" % _member(b"run_id", rb'"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"'),
            rb",%b" % _member(b"sequence_number", _NUMBER),
            rb",%b" % _member(b"size", _NUMBER),
            rb"(?:,%b)?" % _member(b"tenant_id", _TEXT),
            rb',"type":"playhead/inclusion","v":1\}\n',
        )
    )
)
_CONSISTENCY: Final = re.compile(
    rb'\{%b,%b,%b,"type":"playhead/consistency","v":1\}\n'
    % (_member(b"new_checkpoint", _TEXT), _member(b"old_checkpoint", _TEXT), _PATH)
)


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """One row of a chain under a signed checkpoint.

    ``sequence_number`` counts from 1; ``row`` is the exact line without its newline, or None when
    only its leaf hash is shown; ``checkpoint`` is a signed note. ``tenant_id`` and ``chat_id``
    are claims that only a row with these ids in its envelope can support.
    """

    run_id: str
    sequence_number: int
    leaf_hash: bytes
    path: tuple[bytes, ...]
    size: int
    checkpoint: str
    row: str | None = None
    tenant_id: str | None = None
    chat_id: str | None = None

    def to_dict(self) -> dict[str, JSON]:
        """The document, without the members that are None."""
        members: dict[str, JSON] = {
            "v": VERSION,
            "type": INCLUSION,
            "run_id": self.run_id,
            "tenant_id": self.tenant_id,
            "chat_id": self.chat_id,
            "sequence_number": self.sequence_number,
            "row": self.row,
            "leaf_hash": _base64(self.leaf_hash),
            "path": [_base64(node) for node in self.path],
            "size": self.size,
            "checkpoint": self.checkpoint,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """That the chain of the newer signed checkpoint begins with the chain of the older one."""

    old_checkpoint: str
    new_checkpoint: str
    path: tuple[bytes, ...]

    def to_dict(self) -> dict[str, JSON]:
        """The document."""
        return {
            "v": VERSION,
            "type": CONSISTENCY,
            "old_checkpoint": self.old_checkpoint,
            "new_checkpoint": self.new_checkpoint,
            "path": [_base64(node) for node in self.path],
        }


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def encode_proof(document: Mapping[str, JSON]) -> bytes:
    """The bytes of a document.

    Raises:
        Refused, TooLarge: it is none that `decode_proof` would read.
    """
    try:
        data = encode_step(dict(document)).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError):
        raise _bad("it holds a value that is no JSON") from None
    decode_proof(data)
    return data


def proof_tail(tail: bytes) -> bool:
    """Whether a file that ends in ``tail`` (`TAIL` bytes are enough) means to be a proof."""
    return _TAIL.search(tail) is not None


def decode_proof(data: bytes) -> InclusionProof | ConsistencyProof:
    """Read a document; says nothing about whether it proves anything.

    Raises:
        TooLarge: over `MAX_PROOF`, or a member is over its limit.
        Refused: not exactly the bytes of a document.
    """
    if len(data) > MAX_PROOF:
        raise TooLarge(f"a proof of over {MAX_PROOF} bytes", remedy=_REMEDY)
    kind = _TAIL.search(data, max(0, len(data) - TAIL))
    if kind is None:
        raise _bad("it does not end in the type and the version of one")
    if kind[2] != b"%d" % VERSION:
        raise Refused(
            f"a proof of version {int(kind[2])}, not {VERSION}", remedy="Read it with its own tool"
        )
    inclusion = kind[1] == INCLUSION.encode()
    match = (_INCLUSION if inclusion else _CONSISTENCY).fullmatch(data)
    if match is None:
        raise _bad("its members, their order or their spelling are not those of the format")
    path = tuple(b64decode(node) for node in json.loads(match["path"]))
    if not inclusion:
        old, new = _note(match, "old_checkpoint"), _note(match, "new_checkpoint")
        return ConsistencyProof(old, new, path)
    return InclusionProof(
        run_id=match["run_id"][1:-1].decode("ascii"),
        sequence_number=int(match["sequence_number"]),
        leaf_hash=b64decode(match["leaf_hash"]),
        path=path,
        size=int(match["size"]),
        checkpoint=_note(match, "checkpoint"),
        row=None if match["row"] is None else _row(match),
        tenant_id=_id(match, "tenant_id"),
        chat_id=_id(match, "chat_id"),
    )


def _bad(what: str) -> Refused:
    return Refused(f"not a proof: {what}", remedy=_REMEDY)


def _text(match: re.Match[bytes], name: str, limit: int) -> str:
    """A member that is text, in its one spelling and at most ``limit`` bytes of UTF-8."""
    spelled = match[name]
    try:
        text = json.loads(spelled)
        size = len(text.encode("utf-8"))
    except ValueError:
        raise _bad(f"{name} is no Unicode text") from None
    if encode_step(text).encode("ascii") != spelled:
        raise _bad(f"{name} is not in its one spelling")
    if size > limit:
        raise TooLarge(f"not a proof: {name} is over {limit} bytes", remedy=_REMEDY)
    return str(text)


def _note(match: re.Match[bytes], name: str) -> str:
    return _text(match, name, MAX_NOTE)


def _row(match: re.Match[bytes]) -> str:
    row = _text(match, "row", MAX_ROW)
    if "\n" in row:
        raise _bad("row is more than one line")
    return row


def _id(match: re.Match[bytes], name: str) -> str | None:
    if match[name] is None:
        return None
    text = _text(match, name, _MAX_ID)
    if not text.strip():
        raise _bad(f"{name} is blank")
    return text
