"""The state directory: the signing key, trusted keys, and one secret per run.

Layout, all owner-only::

    keys/signing.pem           the private key; a comment line above the PEM holds its name
    keys/trusted/*.vkey        public keys of others, and own keys that were replaced
    secrets/<sha256 of run>    32 random bytes: salts of the field commitments of a run

It holds keys and no content (resolution 8), and lies outside the root of the runs, so that
who can rewrite a run cannot sign it again. Creation is safe between processes: a file appears
whole, and the one that comes second reads what the first wrote.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from playhead.core.sign import (
    MAX_KEY_FILE,
    PrivateKey,
    PublicKey,
    load_private_key,
    load_public_key,
)
from playhead.errors import NotFound, Place, PlayheadError, Refused, Unreadable
from playhead.store.durable import (
    create_exclusive,
    ensure_dir,
    open_regular,
    read_bounded,
    reason,
    write_atomic,
)

MAX_TRUSTED: Final = 1000
"""Trusted keys that are read; more is a mistake or an attack."""

_NAME_LINE: Final = re.compile(rb"# playhead key (\S{1,200})\n")


def state_dir() -> Path:
    """``$PLAYHEAD_STATE``, else ``$XDG_STATE_HOME/playhead``, else ``~/.local/state/playhead``.

    Raises:
        Refused: none of the three can be told.
    """
    named = os.environ.get("PLAYHEAD_STATE")
    if named:
        return Path(named).absolute()
    xdg = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(xdg):  # the XDG specification: a relative path is ignored
        return Path(xdg) / "playhead"
    try:
        return Path.home() / ".local" / "state" / "playhead"
    except RuntimeError:
        raise Refused(
            "there is no home directory for keys", remedy="Set PLAYHEAD_STATE to a directory"
        ) from None


def default_name(raw: bytes) -> str:
    """The name of a key nobody named: from its fingerprint, so that two differ."""
    return "playhead-" + sha256(raw).hexdigest()[:8]


def _read_private(path: Path, limit: int) -> bytes:
    """A file that only its owner can read.

    Raises:
        NotFound, Unreadable, TooLarge: as `read_bounded`.
        Refused: others can read or write it.
    """
    fd = open_regular(path)
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise Refused(
            "others can read this secret",
            place=Place(str(path)),
            remedy=f"Run: chmod 600 {path} (and make a new key if others may have read it)",
        )
    return read_bounded(path, limit)


class KeyRing:
    """Keys and secrets under one state directory (default: `state_dir`).

    Nothing is read or made before a method asks for it.
    """

    def __init__(self, state: Path | None = None) -> None:
        self.state = state_dir() if state is None else state
        self._signing = self.state / "keys" / "signing.pem"
        self._trusted = self.state / "keys" / "trusted"
        self._secrets = self.state / "secrets"

    def signing_key(self, create: bool = False) -> PrivateKey | None:
        """The private key; None when there is none and ``create`` is off.

        Raises:
            Refused: others can read the file, or it holds no key.
            WriteFailed: the new key could not be written.
        """
        data = self._private(self._signing, MAX_KEY_FILE, create, lambda: _fresh(None))
        return None if data is None else self._parse(data)

    def _parse(self, data: bytes) -> PrivateKey:
        place = Place(str(self._signing))
        try:
            match = _NAME_LINE.match(data)
            key = load_private_key(data[match.end() :] if match else data)
            name = match[1].decode("utf-8", "replace") if match else default_name(key.public().raw)
            return PrivateKey(name, key.seed)
        except Refused as error:
            raise Refused(error.what, place=place, remedy=error.remedy) from None

    def public_key(self) -> PublicKey | None:
        """The own public key, if there is a signing key."""
        key = self.signing_key()
        return None if key is None else key.public()

    def new_key(self, name: str | None = None, force: bool = False) -> PrivateKey:
        """Make a signing key.

        Args:
            name: C2SP key name; derived from the key when None.
            force: replace an existing key. Its public half stays trusted, so that what it
                signed still verifies.

        Raises:
            Refused: there is a key and ``force`` is off, or the name cannot be.
        """
        data = _fresh(name)
        ensure_dir(self._signing.parent)
        if create_exclusive(self._signing, data):
            return self._parse(data)
        if not force:
            raise Refused(
                "there is a signing key",
                place=Place(str(self._signing)),
                remedy="Use it, or replace it with --force (old signatures stay verifiable)",
            )
        old = self.public_key()
        if old is not None:
            self.trust(old)
        write_atomic(self._signing, data)
        return self._parse(data)

    def trusted(self) -> list[PublicKey]:
        """The own public key, then the trusted ones by file name; each key once.

        Raises:
            Refused: a file among them holds no key: trust is never guessed.
        """
        own = self.public_key()
        keys = [] if own is None else [own]
        try:
            names = sorted(n for n in os.listdir(self._trusted) if n.endswith(".vkey"))
        except FileNotFoundError:
            return keys
        except OSError as error:
            place = Place(str(self._trusted))
            raise Unreadable(reason(error), place=place, remedy="Check its permissions") from None
        if len(names) > MAX_TRUSTED:
            raise Refused(
                f"over {MAX_TRUSTED} trusted keys",
                place=Place(str(self._trusted)),
                remedy="Remove those you do not need",
            )
        keys += (_load_vkey(self._trusted / name) for name in names if not name.startswith("."))
        return list(dict.fromkeys(keys))

    def trust(self, key: PublicKey) -> Path:
        """Trust a public key from now on; returns its file. Doing it twice changes nothing."""
        ensure_dir(self._trusted)
        # The name is part of the C2SP identity: one raw key may be trusted under two names.
        path = self._trusted / f"{key.fingerprint[:32]}-{key.key_hash.hex()}.vkey"
        create_exclusive(path, key.to_vkey().encode() + b"\n")
        return path

    def run_secret(self, run_key: str, create: bool = False) -> bytes | None:
        """The 32 secret bytes of a run; None when there are none and ``create`` is off.

        Args:
            run_key: what names the run among all runs; it is hashed and never becomes a path.
            create: make the secret if it is not there.

        Raises:
            Refused: the file is readable by others, or is not 32 bytes.
        """
        name = sha256(run_key.encode("utf-8", "surrogatepass")).hexdigest()
        path = self._secrets / name
        data = self._private(path, 64, create, lambda: os.urandom(32))
        if data is not None and len(data) != 32:
            raise Refused(
                f"a run secret has 32 bytes, not {len(data)}",
                place=Place(str(path)),
                remedy="Restore it from a backup; without it fields cannot be disclosed",
            )
        return data

    def _private(
        self, path: Path, limit: int, create: bool, fresh: Callable[[], bytes]
    ) -> bytes | None:
        try:
            return _read_private(path, limit)
        except NotFound:
            if not create:
                return None
        ensure_dir(path.parent)
        create_exclusive(path, fresh())
        # Whoever came first, what lies there now is what every process uses.
        return _read_private(path, limit)


def _fresh(name: str | None) -> bytes:
    key = PrivateKey("key", os.urandom(32))
    named = PrivateKey(name or default_name(key.public().raw), key.seed)
    return f"# playhead key {named.name}\n".encode() + named.to_pem()


def _load_vkey(path: Path) -> PublicKey:
    try:
        return load_public_key(read_bounded(path, MAX_KEY_FILE))
    except PlayheadError as error:
        if error.place.file:
            raise
        raise type(error)(error.what, place=Place(str(path)), remedy=error.remedy) from None
