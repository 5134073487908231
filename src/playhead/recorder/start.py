"""``playhead.record``: start recording a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from playhead.core.model import JSON
from playhead.core.redact import Policy
from playhead.errors import UsageError
from playhead.recorder.session import OnError, Recording
from playhead.recorder.sink import Sink
from playhead.store.stores import Durability

if TYPE_CHECKING:
    from playhead.recorder.writer import Prompts
    from playhead.store.urls import Where


def record(
    agent: str,
    *,
    root: Where = None,
    run_id: str | None = None,
    chat_id: str | None = None,
    tenant_id: str = "local",
    durability: Durability = "batch",
    prompts: Prompts = "delta",
    policy: Policy | None = None,
    on_error: OnError = "raise",
    meta: Mapping[str, JSON] | None = None,
    stamp_cache_keys: bool = True,
) -> Recording:
    """Record a run of ``agent`` (a label) under ``root``.

    Args:
        agent: who runs; part of the run id when none is given.
        root: the root directory, the URL of a store (``sqlite:///runs.db``,
            ``postgresql://...``), a `Root` or a `Store` (default ``PLAYHEAD_ROOT`` or ``.sdd``).
        run_id: the chain to write; one that exists is continued.
        chat_id: the conversation; a chat continued later appends to the same chain.
        tenant_id: whose run it is.
        durability: "step", "batch" (default) or "os" (docs/reference/durability.md).
        prompts: "delta" (default) or "full", the seed's plain prompt text.
        policy: what is redacted while writing; by default credentials only.
        on_error: "raise" a `RecordError` when the disk fails, or "warn".
        meta: more for the ``run.started`` payload.
        stamp_cache_keys: put the cache key of what was asked into each answer of a model and
            each end of a turn (docs/reference/replay-cache.md).

    Returns:
        A `Recording`; nothing is written before it is entered or opened.
    """
    if on_error not in ("raise", "warn"):
        raise UsageError(f"on_error={on_error!r}", remedy="Use raise or warn")

    def open_sink() -> Sink:
        socket = os.environ.get("PLAYHEAD_SOCKET")
        if socket and root is None and run_id is None and chat_id is None:
            from playhead.recorder.remote import RemoteSink

            return RemoteSink.connect(socket, agent, stamp_cache_keys=stamp_cache_keys)
        from playhead.recorder.writer import RunWriter, WriterOptions

        return RunWriter.create(
            root,
            agent=agent,
            run_id=run_id,
            chat_id=chat_id,
            tenant_id=tenant_id,
            meta=meta,
            options=WriterOptions(
                durability=durability,
                prompts=prompts,
                policy=policy,
                stamp_cache_keys=stamp_cache_keys,
            ),
        )

    return Recording(open_sink, agent, on_error)
