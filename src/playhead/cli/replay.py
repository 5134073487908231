"""``playhead replay``: what a run's record folds to, and whether it is one state."""

from __future__ import annotations

from typing import Any

import click

from playhead.cli.shared import epilog, json_option, root_option, status_table

STATUS = status_table(
    0, 2, 3, 4, s1="the chain fails, the fold diverges, a cache miss, or no head covers the row"
)
ACTS = ("seek", "turn", "from_step", "verify", "proof", "consistency", "all_chats")
"""What a command line does besides folding to the head; at most one of them."""
_FOLDS = {"state", "cache_mode", "cache", "snapshots", "verify_mode", "unreadable"}
_GOES_WITH: dict[str, set[str]] = {
    "seek": _FOLDS,
    "turn": _FOLDS,
    "from_step": _FOLDS,
    "verify": {"strict"},
    "proof": {"output", "force"},
    "consistency": {"output", "force"},
    "all_chats": {"jobs", "merged"},
    "": _FOLDS,
}


def _name(option: str) -> str:
    return "--all" if option == "all_chats" else "--" + option.replace("_", "-")


@click.command(
    "replay",
    epilog=epilog("playhead replay @last --state turns", status=STATUS),
    context_settings={"ignore_unknown_options": False},
)
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--seek", metavar="N", help="Behind row N, counted from 1 (step N - 1); 0: before any."
)
@click.option(
    "--turn", metavar="ID", help="This turn (its message id or turn id): steps and state."
)
@click.option(
    "--from-step", metavar="N", help="The state before step N (from 0), then a line an event."
)
@click.option(
    "--state",
    metavar="KEY",
    multiple=True,
    help="Show this state whole: core, or a projection, as turns. May be given several times.",
)
@click.option("--cache", metavar="FILE.db", help="Look rows with a cache key up in this cache.")
@click.option(
    "--cache-mode",
    metavar="MODE",
    help="cross-mode-readable (the default: a miss is an error), strict-mode or best-effort.",
)
@click.option(
    "--verify", is_flag=True, help="The chain, and that steps, jump and plain fold give one state."
)
@click.option("--strict", is_flag=True, help="With --verify: unproven is status 3.")
@click.option("--proof", metavar="N", help="The inclusion proof of row N, counted from 1.")
@click.option(
    "--consistency", metavar="NOTE", help="The proof that the chain grew out of this signed head."
)
@click.option("-o", "--output", metavar="FILE", help="Where a proof goes; - is stdout.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option(
    "--snapshots",
    type=click.Choice(["off", "use", "verify"]),
    help="Begin at a kept state: never, if one fits (the default), or compared with a full fold.",
)
@click.option(
    "--verify-mode",
    type=click.Choice(["open", "step", "off"]),
    help="The chain is verified at opening (the default), row by row, or not.",
)
@click.option(
    "--unreadable",
    type=click.Choice(["raise", "count"]),
    help="A line that is no row is an error (the default), or counts without effect.",
)
@click.option("--all", "all_chats", is_flag=True, help="Every chat of each --tenant.")
@click.option("--jobs", metavar="N", help="With --all: processes (default: one a core).")
@click.option("--merged", is_flag=True, help="With --all: one state of all of them besides.")
@click.option(
    "--tenant",
    "tenants",
    metavar="ID",
    multiple=True,
    help="Whose run it is (default: PLAYHEAD_TENANT, else 'local' in a directory; a database "
    "needs one). --all takes several and has no default.",
)
@root_option
@json_option
def command(
    root: str | None, tenants: tuple[str, ...], as_json: bool, run: str | None, **given: Any
) -> int:
    """Fold a run's record and print the state: no agent runs and no model is called.

    Rows count from 1 here (--seek, --proof), as sequence_number does; steps count from 0
    (--from-step), as in show and walk. So row N is step N - 1, and behind row N stands what
    'playhead show RUN N-1' calls the state after it. The digest covers the core state and the
    projections named with --state.
    """
    act = _act(run, given)
    if act == "all_chats":
        from playhead.cli.replay_every import every

        return every(root, tenants, given["jobs"], given["merged"], as_json)
    from playhead.cli import replay_acts

    with replay_acts.chain(root, tenants, run or "") as (store, ref):
        if act == "verify":
            return replay_acts.verified(store, ref, given["strict"], as_json)
        if act in ("proof", "consistency"):
            output, force = given["output"], given["force"]
            return replay_acts.proof(store, ref, act, given[act], output, force, as_json)
        return replay_acts.folded(store, ref, act, given, as_json)


def _act(run: str | None, given: dict[str, Any]) -> str:
    """What is asked for; "" is to fold to the head.

    Raises:
        UsageError: two of them at once, an option that says nothing there, RUN with --all or
            neither.
    """
    from playhead.errors import UsageError

    there = {name for name, value in given.items() if value not in (None, False, ())}
    acts = [name for name in ACTS if name in there]
    if len(acts) > 1:
        words = " and ".join(_name(act) for act in acts[:2])
        raise UsageError(f"{words} are two things", remedy="Ask for them one by one")
    act = acts[0] if acts else ""
    idle = sorted(there - _GOES_WITH[act] - {act})
    if idle:
        with_what = f"with {_name(act)}" if act else "here"
        raise UsageError(
            f"{_name(idle[0])} says nothing {with_what}", remedy="See 'playhead replay --help'"
        )
    if (act == "all_chats") is (run is not None):
        what = "--all takes no RUN" if act else "which run is missing"
        raise UsageError(what, remedy="Name a RUN, or --all with each --tenant")
    return act
