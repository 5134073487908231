"""Keeping originals: any bytes into the blob store, and the same bytes out again.

A file is kept as a *recipe* (docs/reference/formats/source.md): a small canonical JSON blob
that says how to put the file together from other blobs. Long runs of base64 characters are
blobs of their own, so that an image that a file repeats is stored once (case C56); all other
bytes follow each other in blocks of at most 8 MiB.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from playhead.core.canonical import step_bytes
from playhead.core.model import JSON
from playhead.errors import BlobError
from playhead.store.stores import Blobs

MIN_TOKEN: Final = 2048
"""Bytes of the shortest run of base64 characters that becomes a blob of its own."""
MAX_TOKEN: Final = 16 * 1024 * 1024
"""Bytes of the longest; a longer run is cut there."""
LITERAL: Final = 8 * 1024 * 1024
"""Bytes of a block of the rest."""
RECIPE_TYPE: Final = "application/vnd.playhead.source+json"
_BLOCK: Final = 1024 * 1024
_MAX_RECIPE: Final = 256 * 1024 * 1024

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_RUN: Final = re.compile(rb"[A-Za-z0-9+/=_-]{%d,}" % MIN_TOKEN)


def keep(cas: Blobs, data: bytes | Iterable[bytes]) -> str:
    """Keep ``data`` (bytes, or pieces of any size); returns the digest of its recipe.

    Raises:
        WriteFailed: the disk refused.
    """
    literals: list[JSON] = []
    parts: list[JSON] = []
    whole = sha256()
    size = 0
    held = io.BytesIO()

    def flush() -> None:
        if held.tell():
            literals.append(cas.put(held.getvalue()))
            held.seek(0)
            held.truncate()

    for token, piece in _pieces([data] if isinstance(data, bytes) else data):
        whole.update(piece)
        size += len(piece)
        if token:
            parts.append({"blob": cas.put(piece), "size": len(piece)})
            continue
        last = parts[-1] if parts else None
        if isinstance(last, int):
            parts[-1] = last + len(piece)
        else:
            parts.append(len(piece))
        held.write(piece)
        if held.tell() >= LITERAL:
            flush()
    flush()
    recipe = {
        "v": 1,
        "kind": "source",
        "size": size,
        "sha256": whole.hexdigest(),
        "literals": literals,
        "parts": parts,
    }
    return cas.put(step_bytes(recipe), RECIPE_TYPE)


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    """(is a token, bytes), in order; the same runs are cut alike wherever they stand."""
    rest = b""
    for block in _blocks(chunks):
        data = rest + block
        cut = len(data.rstrip(_ALPHABET))
        yield from _cut(data[:cut])
        rest = data[cut:]
        while len(rest) >= MAX_TOKEN:
            yield True, rest[:MAX_TOKEN]
            rest = rest[MAX_TOKEN:]
    yield from _cut(rest)


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one block; tiny or huge chunks cost nothing more."""
    held = bytearray()
    for chunk in chunks:
        for at in range(0, len(chunk), _BLOCK):
            held += chunk[at : at + _BLOCK]
            if len(held) >= _BLOCK:
                yield bytes(held)
                held.clear()
    yield bytes(held)


def _cut(data: bytes) -> Iterator[tuple[bool, bytes]]:
    done = 0
    for match in _RUN.finditer(data):
        if match.start() > done:
            yield False, data[done : match.start()]
        yield True, match[0]
        done = match.end()
    if done < len(data):
        yield False, data[done:]


def restore(cas: Blobs, recipe_digest: str) -> Iterator[bytes]:
    """The kept bytes, in pieces, checked: every blob by its digest, and the whole at the end.

    Raises:
        BlobError: a blob is missing or damaged, the recipe is none, or the whole is not what
            it says. Pieces before that were right as far as they went.
    """
    recipe = _recipe(cas, recipe_digest)
    literals = _Literals(cas, recipe)
    whole = sha256()
    size = 0
    for part in _list(recipe, "parts"):
        for piece in literals.take(part) if isinstance(part, int) else [_token(cas, part)]:
            whole.update(piece)
            size += len(piece)
            yield piece
    if size != recipe.get("size") or whole.hexdigest() != recipe.get("sha256"):
        raise BlobError(f"source {recipe_digest[:16]}... does not come out as it went in")


def blobs_of(cas: Blobs, recipe_digest: str) -> list[str]:
    """The digests of the blobs that a recipe needs, its own first."""
    recipe = _recipe(cas, recipe_digest)
    tokens = [part.get("blob") for part in _list(recipe, "parts") if isinstance(part, dict)]
    named = [*_list(recipe, "literals"), *tokens]
    return [recipe_digest, *dict.fromkeys(str(digest) for digest in named)]


def _recipe(cas: Blobs, digest: str) -> dict[str, JSON]:
    try:
        recipe = json.loads(cas.get(digest, _MAX_RECIPE))
    except (ValueError, RecursionError):
        recipe = None
    if not isinstance(recipe, dict) or recipe.get("kind") != "source" or recipe.get("v") != 1:
        raise BlobError(f"blob {digest[:16]}... is no recipe of a source")
    return recipe


def _list(recipe: dict[str, JSON], key: str) -> list[JSON]:
    found = recipe.get(key)
    if not isinstance(found, list):
        raise BlobError(f"the recipe has no list of {key}")
    return found


def _token(cas: Blobs, part: JSON) -> bytes:
    if not isinstance(part, dict):
        raise BlobError("the recipe has a part that is neither a number nor a blob")
    return cas.get(str(part.get("blob")), MAX_TOKEN)


class _Literals:
    """The bytes of the literal blocks, one block in memory at a time."""

    def __init__(self, cas: Blobs, recipe: dict[str, JSON]) -> None:
        self._cas = cas
        self._names = iter(_list(recipe, "literals"))
        self._block = b""
        self._at = 0

    def take(self, size: int) -> Iterator[bytes]:
        while size > 0:
            if self._at == len(self._block):
                name = next(self._names, None)
                if name is None:
                    raise BlobError("the recipe wants more literal bytes than it names")
                self._block, self._at = self._cas.get(str(name), LITERAL + _BLOCK), 0
            piece = self._block[self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            yield piece
