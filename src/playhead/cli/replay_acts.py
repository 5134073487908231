"""What `playhead replay` does, one function an act: words into values, results into lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.replay_show import cache_line, show_event, show_replayed
from playhead.cli.reports import exit_status, show_report
from playhead.cli.shared import DONE, FAILED, find_chain, progress, say, show_json, tenant_of
from playhead.replay.text import visible

if TYPE_CHECKING:
    from playhead.replay.gate import Gate
    from playhead.replay.report import Asked, Replay, Replayed
    from playhead.store.stores import ChainRef, Store


def number(option: str, word: str) -> int:
    """A number from 0 on a command line.

    Raises:
        UsageError: it is none.
    """
    from playhead.errors import UsageError

    if not word.isdecimal() or not word.isascii() or len(word) > 15:
        raise UsageError(f"{option} {word!r:.40} is no number", remedy="Give a number from 0 on")
    return int(word)


@contextmanager
def chain(root: str | None, tenants: tuple[str, ...], run: str) -> Iterator[tuple[Store, ChainRef]]:
    """The store that is meant and the one run in it; the store is closed afterwards.

    Raises:
        UsageError, NotFound: several tenants, or none where one is needed; no such run.
    """
    from playhead.errors import UsageError
    from playhead.store.urls import open_store

    if len(tenants) > 1:
        raise UsageError("a run has one tenant", remedy="Name one --tenant; --all takes several")
    tenant_id = tenant_of(root, tenants[0] if tenants else None)
    store = open_store(root, create=False)
    try:
        yield store, find_chain(store, tenant_id, run)
    finally:
        store.close()


# -- folding to a place


def folded(store: Store, ref: ChainRef, act: str, given: Mapping[str, Any], as_json: bool) -> int:
    """The head, ``--seek``, ``--turn`` or ``--from-step``."""
    from playhead.replay.report import opened_replay

    asked = _asked(given)
    wanted = None
    if act in ("seek", "from_step"):
        wanted = number("--" + act.replace("_", "-"), given[act])
    with (
        progress("replaying", off=as_json) as watch,
        opened_replay(store, ref, asked, watch) as replay,
    ):
        if act == "from_step":
            return _from_step(replay, wanted or 0, asked, given, as_json)
        found = replay.to_turn(given["turn"]) if act == "turn" else replay.to_row(wanted)
    if as_json:
        show_json(_document(found, given))
        return DONE
    show_replayed(found, asked, given)
    return DONE


def _asked(given: Mapping[str, Any]) -> Asked:
    from playhead.errors import UsageError
    from playhead.replay.cache import CacheReadMode, read_mode
    from playhead.replay.report import Asked

    mode = given["cache_mode"] or CacheReadMode.CROSS_MODE_READABLE.value
    read_mode(mode)
    cache = given["cache"]
    if cache is not None and (not cache or "\0" in cache):
        raise UsageError("--cache is no path", remedy="Name the file of a replay cache")
    return Asked(
        states=given["state"],
        cache_mode=mode,
        cache=None if cache is None else Path(cache),
        snapshots=given["snapshots"] or "use",
        verify=given["verify_mode"] or "open",
        unreadable=given["unreadable"] or "raise",
    )


def _from_step(
    replay: Replay, step: int, asked: Asked, given: Mapping[str, Any], as_json: bool
) -> int:
    from playhead.errors import NotFound
    from playhead.replay.view import one_line

    if step >= replay.size:
        there = f"steps are 0 to {replay.size - 1}" if replay.size else "the run has no steps"
        raise NotFound(f"no step {step}: {there}", remedy="'playhead log' lists the steps")
    before = replay.to_row(step)
    if as_json:
        events: list[object] = [asdict(one_line(event)) for event in replay.events()]
        show_json({**_document(before, given), "from_step": step, "events": events})
        return DONE
    show_replayed(before, asked, given, cache=False)
    say(f"from step {step}")
    for event in replay.events():
        show_event(event)
    if asked.cache is not None or given["cache_mode"]:
        say(cache_line(replay.stats() if asked.cache is not None else None))
    return DONE


def _document(found: Replayed, given: Mapping[str, Any]) -> dict[str, object]:
    from playhead.replay.view import one_line

    report = found.report
    document: dict[str, object] = {
        **found.to_dict(),
        "report": None if report is None else report.to_dict(),
    }
    if found.turn is not None:
        document["turn"] = found.turn
        document["events"] = [asdict(one_line(event)) for event in found.events]
    if given["cache_mode"] and found.cache is None:
        document["cache"] = None
    return document


# -- the gate


def verified(store: Store, ref: ChainRef, strict: bool, as_json: bool) -> int:
    """``--verify``: the chain, then the fold."""
    from playhead.replay.gate import gate_run

    with progress("replaying", off=as_json) as watch:
        gate = gate_run(store, ref, watch)
    status = exit_status(gate.report, strict) if gate.ok else FAILED
    if as_json:
        show_json({"report": gate.report.to_dict(), "replay": gate.to_dict(), "status": status})
        return status
    show_report(gate.report)
    _show_gate(gate)
    return status


def _show_gate(gate: Gate) -> None:
    strict = gate.strict
    if strict is None:
        say("replay  not compared: the chain does not hold")
    elif gate.same:
        rows = "row" if strict.steps == 1 else "rows"
        say(f"replay  deterministic over {strict.steps} {rows}: two handles step by step, a jump")
        say("        to the end and a plain fold give one state")
        say(f"  digest {gate.full}")
    elif not strict.deterministic:
        say(f"replay  diverges at row {strict.sequence_number} (step {strict.first_divergence_at})")
        for digest in strict.digests:
            say(f"  digest {digest or 'none: the fold ended there'}")
    else:
        say("replay  a jump to the end and a plain fold give two states")
        say(f"  digest {gate.seek}")
        say(f"  digest {gate.full}")


# -- proofs


def proof(
    store: Store,
    ref: ChainRef,
    act: str,
    word: str,
    output: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """``--proof`` and ``--consistency``: the bytes to stdout or into a file."""
    from playhead.errors import UsageError
    from playhead.replay.proving import prove_growth, prove_row, write_proof

    if output is not None and (not output or "\0" in output):
        raise UsageError("--output is no path", remedy="Name a file")
    if act == "proof":
        data = prove_row(store, ref, number("--proof", word))
    elif not word or "\0" in word:
        raise UsageError("--consistency is no path", remedy="Name the file of a signed head")
    else:
        data = prove_growth(store, ref, Path(word))
    if output in (None, "-"):
        sys.stdout.buffer.write(data)  # with --json too: a proof is one JSON document
        return DONE
    assert output is not None
    write_proof(Path(output), data, force=force)
    if as_json:
        show_json({"path": output, "size": len(data), "run_id": ref.run_id})
    else:
        say(visible(f"{output}  {len(data)} bytes; 'playhead verify' checks it"))
    return DONE
