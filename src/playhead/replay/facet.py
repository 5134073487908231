"""What a replay reads through: ``events.iterate`` and ``events.fold``, and nothing else it needs.

The contract is small enough for a host or a test to build (seed: "Canonical surface"). Rows may
be `LogRow` or mappings with ``event_type``, ``sequence_number`` and ``payload``; iterables may be
plain or asynchronous. Three methods are used when they are there: ``head`` freezes the end of the
window at opening, ``verify`` checks the chain, ``batches`` is ``iterate`` many rows at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from playhead.core.logrow import LogRow
from playhead.core.model import Event
from playhead.errors import ReplayDivergenceError


class ReplayEvents(Protocol):
    """The events facet. Any: a facet may take more than these keywords, and a mock fewer."""

    @property
    def iterate(self) -> Any: ...
    @property
    def fold(self) -> Any: ...


class ReplayRuntimeFacet(Protocol):
    """Any object with such an ``events``: a store's runtime, a host's session, a mock."""

    @property
    def events(self) -> ReplayEvents: ...


def require_events(runtime: object) -> ReplayEvents:
    """The events facet of ``runtime``.

    Raises:
        TypeError: it is missing something; the message says what (seed: "The constructor
            validates that runtime is present").
    """
    if runtime is None:
        raise TypeError("runtime is required: an object with events.iterate and events.fold")
    events = getattr(runtime, "events", None)
    if events is None:
        raise TypeError(f"runtime ({type(runtime).__name__}) has no events")
    for name in ("iterate", "fold"):
        if not callable(getattr(events, name, None)):
            raise TypeError(f"runtime.events ({type(events).__name__}) has no {name}()")
    return events  # type: ignore[no-any-return]  # structural, checked above


def read_rows(
    events: ReplayEvents, *, chat_id: str, tenant_id: str, after: int, upto: int | None
) -> AsyncGenerator[LogRow, None]:
    """Rows with ``after < sequence_number <= upto``, as the facet yields them."""
    words: dict[str, object] = {
        "chat_id": chat_id,
        "tenant_id": tenant_id,
        "from_sequence_number": after,
    }
    if upto is not None and _takes(events.iterate, "up_to_sequence_number"):
        words["up_to_sequence_number"] = upto
    return _bounded(events.iterate(**words), chat_id, tenant_id, after, upto)


async def read_batches(
    events: ReplayEvents, *, chat_id: str, tenant_id: str, after: int, upto: int | None
) -> AsyncGenerator[list[LogRow], None]:
    """The rows of `read_rows`, many at a time where the facet gives them so (``batches``), else
    one by one, so that each row comes before what the facet raises behind it."""
    scope = {"chat_id": chat_id, "tenant_id": tenant_id}
    many = getattr(events, "batches", None)
    if many is None:
        async with aclosing(read_rows(events, **scope, after=after, upto=upto)) as rows:
            async for row in rows:
                yield [row]
        return
    found = many(**scope, from_sequence_number=after, up_to_sequence_number=upto)
    async with aclosing(found) as batches:
        async for batch in batches:
            yield batch


def _takes(function: object, name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    kinds = [parameter.kind for parameter in parameters.values()]
    return name in parameters or inspect.Parameter.VAR_KEYWORD in kinds


async def _bounded(
    rows: object, chat_id: str, tenant_id: str, after: int, upto: int | None
) -> AsyncGenerator[LogRow, None]:
    if inspect.isawaitable(rows):
        rows = await rows
    try:
        async for item in _each(rows):
            row = item if type(item) is LogRow else as_row(item, chat_id, tenant_id)
            if row.sequence_number <= after:
                continue
            if upto is not None and row.sequence_number > upto:
                return
            yield row
    finally:
        close = getattr(rows, "aclose", None)
        if close is not None:
            await close()


async def _each(rows: object) -> AsyncIterator[object]:
    if hasattr(rows, "__aiter__"):
        async for item in rows:
            yield item
    elif hasattr(rows, "__iter__"):
        for item in rows:
            yield item
    else:
        raise TypeError(f"events.iterate() gave {type(rows).__name__}, which is no iterable")


def as_row(item: object, chat_id: str, tenant_id: str) -> LogRow:
    """A facet's row as a `LogRow`.

    Raises:
        ReplayDivergenceError: it has no whole sequence number.
    """
    if isinstance(item, LogRow):
        return item

    def get(name: str) -> object:
        return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)

    number = get("sequence_number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ReplayDivergenceError(
            "a row of the facet has no sequence number from 1 on",
            chat_id=chat_id,
            tenant_id=tenant_id,
            kind="sequence",
        )
    payload = get("payload")
    kind = get("event_type")
    event = Event(
        type=kind if isinstance(kind, str) else "",
        seq=number - 1,
        payload=payload if isinstance(payload, Mapping) else {},
        name=_text(get("name")),
        at=_text(get("at")),
        id=_text(get("event_id")),
        turn_id=_text(get("turn_id")),
        subagent_run_id=_text(get("subagent_run_id")),
        causation_id=_text(get("causation_id")),
    )
    return LogRow(
        _text(get("tenant_id")),
        _text(get("chat_id")),
        number,
        event,
        _text(get("row_hash")) or "",
        _text(get("prev_hash")) or "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
