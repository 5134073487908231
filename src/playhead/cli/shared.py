"""What every command has: ``--root``, ``--json``, an example and an exit status section."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.store.root import Root
    from playhead.store.stores import ChainRef, Store

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
    """``--root`` and ``--json``, passed as ``root`` (a `Root`, never a database), ``as_json``."""
    option = click.option(
        "--root",
        metavar="DIR",
        default=None,
        callback=_root,
        help="Where the runs lie (default: PLAYHEAD_ROOT, else .sdd).",
    )
    return option(json_option(function))


def scoped(function: Command) -> Command:
    """``--root``, ``--tenant`` and ``--json`` of a command that reads: passed as ``store`` (an
    open `Store`, closed afterwards), ``tenant_id`` and ``as_json``. It makes no database."""

    @wraps(function)
    def call(*args: Any, root: str | None, tenant: str | None, **more: Any) -> Any:
        from playhead.store.urls import open_store

        tenant_id = tenant_of(root, tenant)
        store = open_store(root, create=False)
        try:
            return function(*args, store=store, tenant_id=tenant_id, **more)
        finally:
            store.close()

    return target_options(call)


def writing(function: Command) -> Command:
    """As `scoped` for a command that writes: ``root`` (the word itself, or None), ``tenant_id``
    and ``as_json``."""

    @wraps(function)
    def call(*args: Any, root: str | None, tenant: str | None, **more: Any) -> Any:
        return function(*args, root=root, tenant_id=tenant_of(root, tenant), **more)

    return target_options(call)


def target_options(function: Command) -> Command:
    """The three options as they are given: ``root``, ``tenant``, ``as_json``."""
    return root_option(tenant_option(json_option(function)))


def tenant_option(function: Command) -> Command:
    """``--tenant``, passed as ``tenant``; None where it is not given."""
    return click.option(
        "--tenant",
        metavar="ID",
        default=None,
        help="Whose run it is (default: PLAYHEAD_TENANT, else 'local' in a directory; a "
        "database needs one).",
    )(function)


def tenant_of(root: str | None, given: str | None) -> str:
    """The tenant that is meant: ``--tenant``, PLAYHEAD_TENANT, or 'local' in a directory.

    Raises:
        UsageError: it is blank, or none is named for a database.
    """
    from playhead.store.urls import tenant_for

    return tenant_for(root, os.environ.get("PLAYHEAD_TENANT") if given is None else given)


def root_option(function: Command) -> Command:
    """``--root`` of a directory or a URL, passed as ``root``; None where it is not given."""
    return click.option(
        "--root",
        metavar="DIR|URL",
        default=None,
        callback=_word,
        help="Where the runs lie: a directory, sqlite:///FILE or postgresql://... (default: "
        "PLAYHEAD_ROOT, else .sdd).",
    )(function)


def _word(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from playhead.errors import UsageError

    if value is not None and (not value or "\0" in value):
        raise UsageError("--root is no path", remedy="Name a directory")
    return value


def _root(ctx: click.Context, param: click.Parameter, value: str | None) -> Root:
    from playhead.errors import UsageError
    from playhead.store.dirstore import DirStore
    from playhead.store.urls import is_directory, open_store

    word = _word(ctx, param, value)
    if is_directory(word):
        store = open_store(word)
        assert isinstance(store, DirStore)  # what `is_directory` says
        return store.root
    raise UsageError(
        f"'{ctx.info_name}' is about directories of journals, and the root is a database",
        remedy="Name a directory with --root",
    )


def find_chain(store: Store, tenant_id: str, word: str) -> ChainRef:
    """The chain of the tenant that RUN means, in any store.

    Raises:
        NotFound, UsageError: nothing fits, or several runs do. Another tenant's run is not there.
    """
    from playhead.errors import NotFound, Place
    from playhead.formats.journal import SEALED, SEGMENT

    try:
        return store.find_run(tenant_id, word)
    except NotFound:
        inside = os.path.basename(word) in (SEGMENT, SEALED)
        lone = "\0" not in word and os.path.isfile(word) and not inside
        if not lone or not store.url.startswith("file:"):
            raise
        raise NotFound(
            "a file, not a run",
            place=Place(word),
            remedy="Give a run id or a journal directory; 'playhead verify' reads a lone file",
        ) from None


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


def require_root(store: Store) -> None:
    """A directory that somebody named must be there; the default one appears with the first run.

    Raises:
        NotFound: it is not.
    """
    from playhead.errors import NotFound, Place
    from playhead.store.dirstore import DirStore
    from playhead.store.root import DEFAULT

    if not isinstance(store, DirStore):
        return
    path = store.root.path
    if str(path) != DEFAULT and not path.is_dir():
        raise NotFound(
            "no such root",
            place=Place(str(path)),
            remedy="Name the directory that holds the runs (--root, or PLAYHEAD_ROOT)",
        )


def no_run(store: Store) -> str:
    """The sentence for a store that holds no run of the tenant."""
    from playhead.replay.text import visible
    from playhead.store.dirstore import DirStore

    where = str(store.root.path) if isinstance(store, DirStore) else store.url
    return f"no run under {visible(where)}"


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
