"""A public key as people give it on a command line: the line itself, or a file that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.core.sign import PublicKey


def public_key(word: str) -> PublicKey:
    """The key that ``word`` is (a vkey), or that the file ``word`` holds.

    Raises:
        NotFound, Unreadable, TooLarge: no such file, or not one to read.
        Refused: the file or the line holds no Ed25519 public key.
    """
    from playhead.core.sign import MAX_KEY_FILE, load_public_key, parse_vkey
    from playhead.errors import NotFound, Place, Refused
    from playhead.store.durable import read_bounded

    path = Path(word)
    if word.count("+") >= 2 and not path.exists():
        return parse_vkey(word)
    place = Place(word)
    if "\0" in word:
        raise Refused("not a public key", remedy="Name a file or give a vkey")
    try:
        data = read_bounded(path, MAX_KEY_FILE)
    except NotFound:
        raise NotFound(
            "no such key file", place=place, remedy="Name a file, or give the vkey line itself"
        ) from None
    try:
        return load_public_key(data, name=path.stem.replace("+", "-").replace(" ", "-") or "key")
    except Refused as error:
        raise Refused(error.what, place=place, remedy=error.remedy) from None
