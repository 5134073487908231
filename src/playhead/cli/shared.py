"""What every command has: ``--root``, ``--json``, an example and an exit status section."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.store.root import Root

# Any: a decorator must take and give back functions of every signature.
Command = Callable[..., Any]
Progress = Callable[[int, int], None]

DONE: Final = 0
FAILED: Final = 1
UNPROVEN: Final = 3

STATUS: Final = {
    0: "done",
    1: "a check failed",
    2: "the words are off, or the thing is not there",
    3: "unproven under --strict",
    4: "refused: hostile or unreadable input",
}


def status_table(*codes: int, **said: str) -> str:
    """The EXIT STATUS section: ``codes`` in the common words, ``s0="..."`` in others."""
    words = {code: STATUS[code] for code in codes}
    words |= {int(key[1:]): text for key, text in said.items()}
    lines = [f"  {code:<4} {text}" for code, text in sorted(words.items())]
    return "\n".join(["\b", "EXIT STATUS", *lines])


def epilog(*example: str, status: str) -> str:
    """The end of a help text: one example, then the exit statuses."""
    return "\n".join(["\b", "EXAMPLE", *(f"  {line}" for line in example), "", status])


def json_option(function: Command) -> Command:
    """``--json``, passed as ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing else."
    )(function)


def common(function: Command) -> Command:
    """``--root`` and ``--json``, passed as ``root`` (a `Root`) and ``as_json``."""
    option = click.option(
        "--root",
        metavar="DIR",
        default=None,
        callback=_root,
        help="Where the runs lie (default: PLAYHEAD_ROOT, else .sdd).",
    )
    return option(json_option(function))


def common_store(function: Command) -> Command:
    """As `common`, for a command that writes into any store: ``root`` is a directory or a URL
    (`playhead.store.urls.Where`)."""
    option = click.option(
        "--root",
        metavar="DIR|URL",
        default=None,
        callback=_where,
        help="Where the runs lie: a directory, sqlite:///FILE or postgresql://... (default: "
        "PLAYHEAD_ROOT, else .sdd).",
    )
    return option(json_option(function))


def _where(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        _root_word(value)
    return value


def _root_word(value: str) -> None:
    from playhead.errors import UsageError

    if not value or "\0" in value:
        raise UsageError("--root is no path", remedy="Name a directory")


def _root(ctx: click.Context, param: click.Parameter, value: str | None) -> Root:
    from playhead.store.root import Root

    if value is not None:
        _root_word(value)
    return Root(value)


def find_run(root: Root, word: str) -> Path:
    """The journal directory that RUN means.

    Raises:
        NotFound, UsageError: nothing fits, or several runs do.
    """
    from playhead.errors import NotFound, Place

    if not word or "\0" in word:
        raise NotFound(f"no run {word!r:.80} under {root.path}")
    try:
        return root.find(word)
    except NotFound:
        if not os.path.isfile(word):
            raise
        raise NotFound(
            "a file, not a run",
            place=Place(word),
            remedy="Give a run id or a journal directory; 'playhead verify' reads a lone file",
        ) from None


def require_root(root: Root) -> None:
    """A root that somebody named must be there; the default one appears with the first run.

    Raises:
        NotFound: it is not.
    """
    from playhead.errors import NotFound, Place
    from playhead.store.root import DEFAULT

    if str(root.path) != DEFAULT and not root.path.is_dir():
        raise NotFound(
            "no such root",
            place=Place(str(root.path)),
            remedy="Name the directory that holds the runs (--root, or PLAYHEAD_ROOT)",
        )


def no_run(root: Root) -> str:
    """The sentence for an empty root."""
    from playhead.replay.text import visible

    return f"no run under {visible(str(root.path))}"


def show_json(value: object) -> None:
    """One JSON document; ASCII, so that no terminal can be driven by it."""
    click.echo(json.dumps(value, indent=2, sort_keys=False))


def say(text: str = "") -> None:
    """One line of a report to stdout. Text from a recording comes through `visible` before."""
    click.echo(text)


@contextmanager
def progress(label: str, off: bool = False) -> Iterator[Progress | None]:
    """A bar on a terminal's stderr, for work that reports ``(done, total)``; else None."""
    if off or not sys.stderr.isatty():
        yield None
        return
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // total if total else 100
        if percent != shown:
            shown = percent
            bar = "#" * (percent // 4)
            click.echo(f"\r{label} [{bar:<25}] {percent:3d}%", nl=False, err=True)

    try:
        yield show
    finally:
        if shown >= 0:
            click.echo("\r" + " " * (len(label) + 33) + "\r", nl=False, err=True)
