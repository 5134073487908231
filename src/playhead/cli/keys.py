"""``playhead keys``: the signing key, its public half, and whom to trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, common, epilog, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.core.sign import PublicKey
    from playhead.store.root import Root

NONE_YET = "no signing key yet (the first recording makes one, or 'playhead keys new')"


@click.group(
    name="keys",
    epilog=epilog("playhead keys show", status=status_table(0, 2, 4)),
)
def command() -> None:
    """Make, show and trust signing keys.

    The private key lies in the state directory (PLAYHEAD_STATE, else the user's), never under
    the root of the runs: who can rewrite a run cannot sign it again.
    """


@command.command(
    "new",
    epilog=epilog("playhead keys new --name ci", status=status_table(0, s4="there is a key")),
)
@click.option("--name", metavar="NAME", help="Its name in signatures (default: derived from it).")
@click.option("--force", is_flag=True, help="Replace a key; what it signed still verifies.")
@common
def new(root: Root, as_json: bool, name: str | None, force: bool) -> int:
    """Make a signing key."""
    from playhead.store.keys import KeyRing

    ring = KeyRing()
    _show([ring.new_key(name, force).public()], str(ring.state / "keys"), as_json)
    return DONE


@command.command(
    "show",
    short_help="Show the public keys that count here.",
    epilog=epilog("playhead keys show", status=status_table(0, 4)),
)
@common
def show(root: Root, as_json: bool) -> int:
    """Show the public keys that count here: the own one first, then the trusted ones."""
    from playhead.store.keys import KeyRing

    ring = KeyRing()
    _show(ring.trusted(), str(ring.state / "keys"), as_json, own=ring.public_key())
    return DONE


@command.command(
    "trust",
    short_help="Trust a public key from now on.",
    epilog=epilog("playhead keys trust colleague.vkey", status=status_table(0, 2, 4)),
)
@click.argument("key", metavar="FILE|VKEY")
@common
def trust(root: Root, as_json: bool, key: str) -> int:
    """Trust a public key from now on: a vkey line, or a file with a vkey or PEM."""
    from playhead.cli.pubkeys import public_key
    from playhead.store.keys import KeyRing

    known = public_key(key)
    _show([known], str(KeyRing().trust(known)), as_json)
    return DONE


def _show(keys: list[PublicKey], where: str, as_json: bool, own: PublicKey | None = None) -> None:
    if as_json:
        rows = [
            {"name": k.name, "vkey": k.to_vkey(), "fingerprint": k.fingerprint, "own": k == own}
            for k in keys
        ]
        show_json({"keys": rows, "where": where})
        return
    from playhead.replay.text import visible

    for key in keys:
        say(visible(key.to_vkey()))
        say(f"  fingerprint {key.fingerprint}" + ("  (own)" if key == own else ""))
    if not keys:
        say(NONE_YET)
    say(f"  in {visible(where)}")
