"""``playhead run``: a program under record. Its streams and its status are its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from playhead.cli.faults import show_error
from playhead.cli.shared import epilog, status_table, writing

if TYPE_CHECKING:
    from playhead.errors import PlayheadError
    from playhead.recorder.launch import LaunchResult
    from playhead.store.urls import Where

OWN_FAULT: Final = 125
CANNOT_EXECUTE: Final = 126
NO_PROGRAM: Final = 127

STATUS = status_table(
    s0="the program's own status is handed on; 128 + N when signal N ended it",
    s2="the words are off",
    s125="playhead itself failed",
    s126="the program cannot be executed",
    s127="there is no such program",
)


@click.command(
    "run",
    epilog=epilog("playhead run --agent helper -- python agent.py", status=STATUS),
    context_settings={"allow_interspersed_args": False},
)
@click.argument("argv", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--agent", metavar="ID", help="Who runs (default: the program's name).")
@click.option("--run-id", metavar="ID", help="The run to make, or to go on with.")
@writing
def command(
    root: Where,
    tenant_id: str,
    as_json: bool,
    argv: tuple[str, ...],
    agent: str | None,
    run_id: str | None,
) -> int:
    """Record a program: what it does through the library goes onto one chain.

    Its input and output pass through untouched. What playhead has to say at the end goes to
    stderr; with --json that is one JSON document there, because stdout is the program's.
    """
    from playhead.errors import PlayheadError
    from playhead.recorder.launch import launch

    try:
        result = launch(root, argv, agent=agent, run_id=run_id, tenant_id=tenant_id)
    except PlayheadError as error:
        show_error(error, as_json)
        return _status_of(error)
    _show(result, as_json)
    return result.exit_code


def _status_of(error: PlayheadError) -> int:
    """The statuses of env(1) and of shells, for what kept the program from running."""
    from playhead.errors import NotFound, Unreadable, UsageError

    about_program = error.place.file is None  # what is wrong with the root names its file
    if isinstance(error, NotFound) and about_program:
        return NO_PROGRAM
    if isinstance(error, Unreadable) and about_program:
        return CANNOT_EXECUTE
    return error.exit_code if isinstance(error, UsageError) else OWN_FAULT


def _show(result: LaunchResult, as_json: bool) -> None:
    if as_json:
        document = {
            "run_id": result.run_id,
            "status": result.status,
            "exit_code": result.exit_code,
            "steps": result.steps,
            "head": result.head,
            "events_from_program": result.events_from_program,
        }
        click.echo(json.dumps(document), err=True)
        return
    click.echo(f"playhead: {result.run_id}: {result.status}, {result.steps} steps", err=True)
    if not result.events_from_program:
        click.echo("playhead: the program recorded nothing through the library", err=True)
    click.echo(f"playhead: head {result.head}", err=True)
