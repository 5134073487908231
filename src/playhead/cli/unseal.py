"""``playhead unseal``: a sealed run as plain rows again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import DONE, common, epilog, find_run, say, show_json, status_table

if TYPE_CHECKING:
    from playhead.store.root import Root


@click.command(
    "unseal",
    epilog=epilog(
        "playhead unseal @last", status=status_table(0, 2, 4, s1="it is damaged, or being written")
    ),
)
@click.argument("run", metavar="RUN")
@common
def command(root: Root, as_json: bool, run: str) -> int:
    """Unpack a sealed run: the same bytes as before 'playhead seal'."""
    from playhead.store.reader import segment_path
    from playhead.store.seal import unseal_run

    folder = find_run(root, run)
    already = segment_path(folder).suffix != ".zst"
    size = unseal_run(folder)
    if as_json:
        show_json({"run_id": folder.name, "plain_bytes": size, "already": already})
    else:
        say(f"{'not sealed' if already else 'unsealed'} {folder.name}  {size} bytes")
    return DONE
