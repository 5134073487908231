"""Many tenants and chats at once (contract: "aggregate_multi_tenant").

`aggregate` works over any facet, in one process; `replay_all` spreads the chats of a store over
any ``concurrent.futures.Executor``: threads, processes, or another package's cluster. Both fold
each chat with the one handle and put the outcomes together in one order.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Literal

from playhead.core.fold import Projection
from playhead.errors import PlayheadError, ReplayArgumentError, ReplayTenantMismatchError
from playhead.replay.arguments import MAX_NUMBER, require_choice, require_id, require_number
from playhead.replay.client import ReplayClient
from playhead.replay.facet import ReplayEvents
from playhead.replay.handle import ReplayHandle
from playhead.replay.outcomes import AggregateResult, ChatOutcome, arrange

Aggregation = Literal["per-tenant", "merged"]
OnError = Literal["raise", "collect"]
Authorize = Callable[[str], "bool | Awaitable[bool]"]
Chats = Mapping[str, Sequence[str]]

_PIECES = 64
_MOST_AT_ONCE = 32
"""Chats that a worker takes at once: many small ones would cost more to hand over than to fold."""


def require_tenants(tenant_ids: object) -> list[str]:
    """A list of tenants: not empty, none blank, none twice.

    Raises:
        ReplayArgumentError: it is not.
    """
    if isinstance(tenant_ids, (str, bytes)) or not isinstance(tenant_ids, Iterable):
        raise ReplayArgumentError("tenant_ids", "must be a list of tenants")
    found = [require_id("tenant_ids", tenant) for tenant in tenant_ids]
    if not found:
        raise ReplayArgumentError("tenant_ids", "is empty")
    if len(set(found)) != len(found):
        raise ReplayArgumentError("tenant_ids", "names a tenant twice")
    return found


def require_chats(chats: object, tenants: Sequence[str]) -> dict[str, list[str]] | None:
    """Chats by tenant: lists of names, none twice, of these tenants only; None is every chat.

    Raises:
        ReplayArgumentError: they are not.
    """
    if chats is None:
        return None
    if not isinstance(chats, Mapping):
        raise ReplayArgumentError("chats", "must be lists of chats by tenant")
    if not chats.keys() <= set(tenants):
        raise ReplayArgumentError("chats", "name a tenant that is not among tenant_ids")
    found: dict[str, list[str]] = {}
    for tenant in tenants:
        given = chats.get(tenant, ())
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise ReplayArgumentError("chats", "must be lists of chats by tenant")
        found[tenant] = [require_id("chats", chat) for chat in given]
        if len(set(found[tenant])) != len(found[tenant]):
            raise ReplayArgumentError("chats", "name a chat twice")
    return found


async def require_allowed(tenants: Iterable[str], authorize: Authorize | None) -> None:
    """Ask the host for every tenant: a list of tenants is no right to read them.

    Raises:
        ReplayTenantMismatchError: one is not allowed, or there is nobody to ask.
        ReplayArgumentError: what is to be asked is no function. Whatever it raises itself.
    """
    if authorize is not None and not callable(authorize):
        raise ReplayArgumentError("authorize", f"is a {type(authorize).__name__}, not a function")
    for tenant in tenants:
        answer: object = False
        if authorize is not None:
            answer = authorize(tenant)
            if inspect.isawaitable(answer):
                answer = await answer
        if answer is not True:
            raise ReplayTenantMismatchError(
                "reading this tenant is not allowed",
                chat_id="",
                tenant_id=tenant,
                remedy="Give authorize= a function that returns True for it",
            )


async def aggregate(
    client: ReplayClient,
    events: ReplayEvents,
    tenant_ids: Sequence[str],
    *,
    aggregation: Aggregation,
    authorize: Authorize | None,
    chats: Chats | None,
    projections: Sequence[Projection],
    on_error: OnError,
    max_concurrency: int,
) -> AggregateResult:
    """See `ReplayRuntime.aggregate_multi_tenant`."""
    tenants = require_tenants(tenant_ids)
    require_choice("aggregation", aggregation, ("per-tenant", "merged"))
    require_choice("on_error", on_error, ("raise", "collect"))
    require_number("max_concurrency", max_concurrency, 1, 1024)
    named = require_chats(chats, tenants)
    await require_allowed(tenants, authorize)
    turns = asyncio.Semaphore(max_concurrency)

    async def one(tenant: str, chat: str) -> ChatOutcome:
        async with turns:
            try:
                opening = client.from_event_log(chat, tenant_id=tenant, projections=projections)
                async with opening as handle:
                    return await outcome_of(handle)
            except PlayheadError as error:
                if on_error == "raise":
                    raise
                return failed(tenant, chat, error)

    if named is None:
        named = {tenant: await _chats(events, tenant) for tenant in tenants}
    wanted = [(tenant, chat) for tenant, found in named.items() for chat in found]
    tasks = [asyncio.ensure_future(one(tenant, chat)) for tenant, chat in wanted]
    try:
        outcomes = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # every handle is closed behind us
    return arrange(tenants, outcomes, merged=aggregation == "merged")


async def _chats(events: ReplayEvents, tenant: str) -> list[str]:
    known = getattr(events, "list_chats", None)
    if known is None:
        raise ReplayArgumentError("chats", "is missing, and the runtime cannot list chats")
    found = known(tenant_id=tenant)
    if inspect.isawaitable(found):
        found = await found
    return list(found)


async def outcome_of(handle: ReplayHandle) -> ChatOutcome:
    """The outcome of folding the handle's window to its end; the cache is never asked."""
    window = handle.window
    await handle.seek(MAX_NUMBER if window.stop is None else window.stop)
    state = handle.current_state()
    return ChatOutcome(
        window.tenant_id,
        window.chat_id,
        state.to_wire(),
        {projection.key: handle.view(projection.key) for projection in handle.folded.projections},
        state.event_count,
        handle.row_hash,
        handle.state_digest(),
        "" if handle.report is None else handle.report.verdict.value,
    )


def failed(tenant: str, chat: str, error: PlayheadError) -> ChatOutcome:
    """The outcome of a chat that could not be folded."""
    return ChatOutcome(tenant, chat, error=error.to_dict())


def fold_chats(
    url: str, chats: Sequence[tuple[str, str]], keys: tuple[str, ...]
) -> list[ChatOutcome]:
    """Fold some chats, given as tenant and chat, of the store at ``url``.

    Runs in a worker, so everything about it pickles. ``keys`` name built-in projections. A fault
    of a chat is an outcome with an error.
    """
    return asyncio.run(_fold_chats(url, chats, keys))


async def _fold_chats(
    url: str, chats: Sequence[tuple[str, str]], keys: tuple[str, ...]
) -> list[ChatOutcome]:
    from playhead.replay.source import StoreRuntime, projections_of

    found: list[ChatOutcome] = []
    with StoreRuntime.open(url) as runtime:
        client = ReplayClient(runtime)
        for tenant, chat in chats:
            try:
                opening = client.from_event_log(
                    chat, tenant_id=tenant, projections=projections_of(keys)
                )
                async with opening as handle:
                    found.append(await outcome_of(handle))
            except PlayheadError as error:
                found.append(failed(tenant, chat, error))
    return found


def replay_all(
    url: str,
    tenant_ids: Sequence[str],
    *,
    executor: Executor,
    aggregation: Aggregation = "per-tenant",
    chats: Chats | None = None,
    projections: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AggregateResult:
    """Fold every chat of the tenants in the store at ``url``, spread over ``executor``.

    Args:
        url: a store that the workers can open too (so not ``memory://`` with processes).
        executor: any ``concurrent.futures.Executor``; it is not shut down.
        chats: chat ids by tenant; None is every chat of each.
        projections: keys of built-in projections whose views are wanted.
        progress: called with chats done and chats in all.

    A chat that cannot be folded is an outcome with an error; Ctrl-C cancels what has not begun.
    Nobody is asked for leave here: who can open the store can read each of its tenants.

    Raises:
        ReplayArgumentError: a bad argument. StoreError, UsageError: the store.
    """
    from playhead.replay.source import StoreRuntime, projections_of

    place: object = url
    if not isinstance(place, str) or place.lower().startswith("memory:"):
        raise ReplayArgumentError("url", "must name a store that a worker can open by itself")
    tenants = require_tenants(tenant_ids)
    require_choice("aggregation", aggregation, ("per-tenant", "merged"))
    named = require_chats(chats, tenants)
    keys = tuple(projections)
    projections_of(keys)
    if named is None:
        with StoreRuntime.open(url) as runtime:
            named = {tenant: runtime.list_chats(tenant) for tenant in tenants}
    wanted = [(tenant, chat) for tenant, found in named.items() for chat in found]
    size = max(1, min(_MOST_AT_ONCE, len(wanted) // _PIECES))
    pieces = [wanted[at : at + size] for at in range(0, len(wanted), size)]
    outcomes: list[ChatOutcome] = []
    futures: list[Future[list[ChatOutcome]]] = []
    try:
        for piece in pieces:
            futures.append(executor.submit(fold_chats, url, piece, keys))
        for future in futures:
            outcomes += future.result()
            if progress is not None:
                progress(len(outcomes), len(wanted))
    finally:  # Ctrl-C, a worker that died, a fault in progress(): what has not begun never will
        for future in futures:
            future.cancel()
    return arrange(tenants, outcomes, merged=aggregation == "merged")
