"""``playhead copy``: a run into other stores, and the proof that it is the same there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli.shared import (
    DONE,
    FAILED,
    epilog,
    find_chain,
    progress,
    say,
    scoped,
    show_json,
    status_table,
)

if TYPE_CHECKING:
    from playhead.convert.copying import Copied
    from playhead.replay.facts import Facts
    from playhead.store.stores import Store

_SHOWN = 16
"""Hex digits of a hash in the table; the whole ones stand below it."""


@click.command(
    "copy",
    epilog=epilog(
        "playhead copy @last --to sqlite:///runs.db",
        status=status_table(0, 2, 4, s1="it does not verify, a copy differs, or a store refused"),
    ),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--to",
    "targets",
    metavar="DIR|URL",
    multiple=True,
    required=True,
    help="The store to copy into. May be given several times.",
)
@click.option("--unverified", is_flag=True, help="Also a run that a signed head contradicts.")
@scoped
def command(
    store: Store,
    tenant_id: str,
    as_json: bool,
    run: str,
    targets: tuple[str, ...],
    unverified: bool,
) -> int:
    """Copy a run into other stores, byte for byte, and show that it is the same there.

    The run is verified first, and each copy is read back: rows, head, root over the raw rows,
    and the state that it replays to. A copy that was cut short is continued; the same run is
    found again; another run under the same name is left alone, and nothing is written.
    """
    from playhead.convert.copying import copy_run
    from playhead.store.urls import open_store

    ref = find_chain(store, tenant_id, run)
    done: list[Copied] = []
    for word in targets:
        target = open_store(word)
        try:
            with progress("copying", off=as_json) as bar:
                done.append(copy_run(store, ref, target, unverified=unverified, progress=bar))
        finally:
            target.close()
    same = all(one.same for one in done)
    if as_json:
        show_json({"copies": [one.to_dict() for one in done]})
    else:
        _show(done)
    return DONE if same else FAILED


def _show(done: list[Copied]) -> None:
    from playhead.replay.text import visible

    source = done[0].source
    rows = [["STORE", "ROWS", "HEAD", "ROOT", "STATE", "VERDICT"], [*_cells(source), "source"]]
    rows += [[*_cells(one.target), _verdict(one)] for one in done]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())
    say(visible(f"run    {done[0].run_id}"))
    for name, value in (("head", source.head), ("root", source.root), ("state", source.state)):
        say(f"{name:<6} {value}")
    missing = max(one.missing_blobs for one in done)
    if missing:
        say(f"{missing} blobs that its rows refer to are not in the source ('playhead fsck')")


def _cells(one: Facts) -> list[str]:
    from playhead.replay.text import visible

    hashes = [value[:_SHOWN] for value in (one.head, one.root, one.state)]
    return [visible(one.store), str(one.rows), *map(visible, hashes)]


def _verdict(one: Copied) -> str:
    word = "same" if one.same else "DIFFERENT"
    return word if one.outcome == "copied" else f"{word} ({one.outcome})"
