"""What goes wrong, as one line on stderr or, with ``--json``, one object on stdout.

Statuses that are no `PlayheadError`: a fault of playhead itself, an interrupt, and a reader
that closed the pipe (as a program ends that SIGPIPE stops).
"""

from __future__ import annotations

import json
import os
import re
import traceback
from typing import Final

import click

from playhead.errors import PlayheadError, UsageError

_PASSWORD: Final = re.compile(r"(?<=://)([^\s/?#@:]*):\S*@")
BUG: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


def show_error(error: PlayheadError, as_json: bool) -> int:
    """Show an error; returns its exit status."""
    if as_json:
        click.echo(json.dumps(_without(error.to_dict())))
    else:
        _line(without_passwords(str(error)))
    return error.exit_code


def without_passwords(text: str) -> str:
    """``text`` with no password of a URL in it, however wrongly the URL is spelled."""
    from playhead.store.scope import shown_url

    return shown_url(_PASSWORD.sub(r"\1@", text))


def _without(value: object) -> object:
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items()}
    return value


def show_usage(error: click.ClickException, as_json: bool, named: str = "playhead") -> int:
    """A command line that click does not accept, in our words; ``named`` is its command."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if isinstance(ctx, click.Context) else named
    what = " ".join(error.format_message().split()).rstrip(".")
    return show_error(UsageError(what, remedy=f"See '{path} --help'"), as_json)


def show_bug(bug: Exception, as_json: bool) -> None:
    """An exception nobody meant: say so, and where to look."""
    frames = traceback.extract_tb(bug.__traceback__)
    where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "?"
    what = f"a fault in playhead itself: {type(bug).__name__} at {where}"
    remedy = "Run it again with PLAYHEAD_DEBUG=1 and report what it prints"
    if as_json:
        fault = {"error": True, "code": "bug", "what": what, "where": {}, "remedy": remedy}
        click.echo(json.dumps(fault))
    else:
        _line(f"{what}. {remedy}")


def _line(text: str) -> None:
    from playhead.replay.text import visible

    click.echo(f"playhead: {visible(' '.join(text.splitlines()))}", err=True)
