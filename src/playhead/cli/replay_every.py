"""`playhead replay --all`: every chat of some tenants in one table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from playhead.cli.replay_acts import number
from playhead.cli.replay_show import show_state
from playhead.cli.reports import verdict_word
from playhead.cli.shared import DONE, FAILED, progress, say, show_json, tenant_of
from playhead.replay.text import visible

if TYPE_CHECKING:
    from playhead.replay.outcomes import AggregateResult, ChatOutcome


def every(
    root: str | None, tenants: tuple[str, ...], jobs: str | None, merged: bool, as_json: bool
) -> int:
    """``--all``: every chat of the tenants, in processes."""
    from playhead.errors import UsageError
    from playhead.replay.spread import replay_spread
    from playhead.store.root import DEFAULT

    if not tenants:
        raise UsageError(
            "--all reads across tenants, and none is named", remedy="Name each with --tenant ID"
        )
    count = _cores() if jobs is None else number("--jobs", jobs)
    place = root or os.environ.get("PLAYHEAD_ROOT") or DEFAULT
    with progress("replaying", off=as_json) as watch:
        result = replay_spread(
            place,
            [tenant_of(place, tenant) for tenant in tenants],
            jobs=count,
            aggregation="merged" if merged else "per-tenant",
            progress=watch,
        )
    status = FAILED if result.failed else DONE
    if as_json:
        show_json({**result.to_dict(), "status": status})
    else:
        _show_every(result)
    return status


def _cores() -> int:
    return max(1, min(os.cpu_count() or 1, 64))


def _show_every(result: AggregateResult) -> None:
    rows = [("TENANT", "CHAT", "ROWS", "HEAD", "STATE", "VERDICT")]
    rows += [_row(one) for tenant in result.tenants for one in tenant.chats]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for place, row in enumerate(rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        say("  ".join([*cells, verdict_word(row[5]) if place else row[5]]))
    for tenant in result.tenants:
        if not tenant.chats:
            say(visible(f"no chat of tenant {tenant.tenant_id}"))
    for one in result.failed:
        error = one.error or {}
        say(visible(f"failed  {one.tenant_id}  {one.chat_id}: {error.get('what')}"))
    if result.merged is not None:
        show_state("merged", dict(result.merged), whole=True)


def _row(one: ChatOutcome) -> tuple[str, str, str, str, str, str]:
    return (
        visible(one.tenant_id),
        visible(one.chat_id),
        "-" if one.error else str(one.event_count),
        one.head[:16] or "-",
        one.state_digest[:16] or "-",
        "failed" if one.error else one.verdict,
    )
