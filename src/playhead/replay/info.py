"""What a list of runs says about each: taken from its first and its last row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from playhead.core.model import JSON, Event

Kind = Literal["native", "imported", "foreign", "empty", "unreadable"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run in a list.

    ``status`` is what ``run.ended`` says, ``unfinished`` while the last row is another one,
    and empty for a foreign run, which has no such word. ``steps`` counts rows. ``started``
    and ``ended`` are RFC 3339 UTC. ``parent`` is the run it was forked from, at
    ``parent_step``. ``size`` is in bytes on disk. ``problem`` says why a run is unreadable.
    """

    run_id: str
    folder: Path | None
    kind: Kind
    steps: int = 0
    agent: str | None = None
    tenant_id: str | None = None
    chat_id: str | None = None
    started: str | None = None
    ended: str | None = None
    status: str = ""
    parent: str | None = None
    parent_step: int | None = None
    size: int = 0
    sealed: bool = False
    problem: str | None = None


def info_of(
    run_id: str,
    steps: int,
    first: tuple[Event, float | None] | None,
    last: tuple[Event, float | None] | None,
    fork: Event | None = None,
    *,
    size: int = 0,
    sealed: bool = False,
    folder: Path | None = None,
) -> RunInfo:
    """The info of a run from its outer events, each with its row's ``ts`` (epoch seconds)."""
    if first is None or last is None:
        return RunInfo(run_id, folder, "empty", size=size, sealed=sealed)
    opening, closing = first[0], last[0]
    kind = kind_of(opening)
    ended = closing.type == "run.ended"
    own = _text(opening.ids.get("run_id"))
    parent = own if own is not None and own != run_id else None
    parent_step = None
    if fork is not None:
        parent = _text(fork.payload.get("parent_run_id")) or parent
        number = fork.payload.get("parent_step")
        parent_step = number if type(number) is int else None
    status = _text(closing.payload.get("status")) if ended else None
    return RunInfo(
        run_id,
        folder,
        kind,
        steps=steps,
        agent=_text(opening.payload.get("agent")) or opening.name,
        tenant_id=_text(opening.ids.get("tenant_id")),
        chat_id=_text(opening.ids.get("chat_id")),
        started=opening.at or when(first[1]),
        ended=(closing.at or when(last[1])) if ended else None,
        status="" if kind == "foreign" else status or ("ended" if ended else "unfinished"),
        parent=parent,
        parent_step=parent_step,
        size=size,
        sealed=sealed,
    )


def kind_of(opening: Event) -> Kind:
    """``imported`` when the first row names the source that the run was made from."""
    if opening.type == "unreadable":
        return "unreadable"
    if opening.type == "step":
        return "foreign"
    return "imported" if opening.payload.get("imported_from") is not None else "native"


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


def when(ts: float | None) -> str | None:
    """Epoch seconds as RFC 3339 UTC; None for a time that no calendar holds."""
    if ts is None:
        return None
    try:
        return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, OverflowError, OSError):
        return None
