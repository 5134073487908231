"""``playhead show``: one step whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from playhead.cli.shared import DONE, epilog, say, scoped, show_json, status_table
from playhead.cli.steps import opened, step_number

if TYPE_CHECKING:
    from playhead.replay.run import Run
    from playhead.store.stores import Store

FAR: Final = 20_000
"""Steps that are folded without being asked for: about a second."""


@click.command(
    "show",
    epilog=epilog("playhead show @last 3", status=status_table(0, 2, 4)),
    context_settings={"ignore_unknown_options": True},  # -1 is a step
)
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="STEP")
@click.option("--full", is_flag=True, help="Every message and every character.")
@click.option("--state", is_flag=True, help="The state too, however far into the run.")
@scoped
def command(
    store: Store, tenant_id: str, as_json: bool, run: str, step: str, full: bool, state: bool
) -> int:
    """Show one step whole: request, result, stamps, its place in the chain, the state after it.

    STEP is a number from 0, 'last', or a negative number from the end. Beyond step 20000 the
    state is left out, since every step before it must be read: --state asks for it.
    """
    from playhead.replay.view import detail
    from playhead.tui.lines import section_text

    with opened(store, tenant_id, run) as found:
        number = step_number(found, step)
        if as_json:
            show_json(_document(found, number, state or number <= FAR))
        elif state or number <= FAR:
            say(section_text(detail(found, number, full=full)))
        else:
            say(section_text(detail(found, number, full=full, state=False)))
            say(f"state after it\n  left out: {number} steps come before; --state computes it")
    return DONE


def _document(run: Run, number: int, state: bool) -> dict[str, object]:
    """The step as it was recorded, its place, its hashes and, if ``state``, the state after it."""
    from playhead.cli.documents import plain
    from playhead.replay.states import state_document
    from playhead.replay.view import detail, is_error

    event, step = run.event(number), run.step(number)
    return {
        "run_id": run.run_id,
        "step": number,
        "type": event.type,
        "name": event.name,
        "at": event.at,
        "id": event.id,
        "turn_id": event.turn_id,
        "subagent_run_id": event.subagent_run_id,
        "causation_id": event.causation_id,
        "ids": plain(event.ids),
        "error": is_error(event),
        "model": plain(event.model),
        "payload": plain(event.payload),
        "step_hash": step.step_hash,
        "prev_hash": step.prev_hash,
        "input_hash": step.input_hash,
        "where": run.place(number).to_dict(),
        "state": plain(state_document(run, number)) if state else None,
        "sections": [
            {"title": part.title, "text": part.text}
            for part in detail(run, number, full=True, state=state)
        ],
    }
