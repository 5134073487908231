"""A fork in memory: a chat up to a row, then events of one's own (contract: "fork(chat_id, at,
events)").

The original is only read. The fork point is inclusive, the rest of the original is dropped, and
the new rows are a real continuation of its chain: numbered, linked and hashed like stored ones.
The same fork has the same ``branch_id`` everywhere.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from playhead.core.canonical import encode_step
from playhead.core.events import Draft
from playhead.core.fold import Projection, start
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS, JSON
from playhead.errors import ReplayArgumentError, ReplayTenantMismatchError
from playhead.replay.arguments import require_flag
from playhead.replay.facet import ReplayEvents, read_rows
from playhead.replay.synthetic import FORK_TAG, drafts_of, rows_behind
from playhead.store.database import Tip

if TYPE_CHECKING:
    from playhead.replay.opening import Opening


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a fork comes from: the last row it shares with its parent, and that row's hash."""

    parent_chat_id: str
    fork_at: int
    parent_row_hash: str


def branch_id(parent_row_hash: str, at: int, rows: Iterable[LogRow]) -> str:
    """The id of a fork: 32 hex digits of a hash over its parent's row hash and its own rows."""
    parts: list[JSON] = [FORK_TAG, parent_row_hash, at, *(row.row_hash for row in rows)]
    return sha256(encode_step(parts).encode()).hexdigest()[:32]


class ForkedEvents:
    """The events facet of a fork: ``iterate``, ``fold`` and ``head``, and no way to write."""

    def __init__(
        self,
        parent: ReplayEvents,
        lineage: Lineage,
        tenant_id: str,
        chat_id: str,
        rows: tuple[LogRow, ...],
    ) -> None:
        self._parent = parent
        self._lineage = lineage
        self._tenant = tenant_id
        self._chat = chat_id
        self._rows = tuple(row._replace(tenant_id=tenant_id, chat_id=chat_id) for row in rows)

    async def iterate(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> AsyncGenerator[LogRow, None]:
        """Rows of the fork; another chat or tenant has none here.

        Raises:
            ReplayTenantMismatchError: the parent gave a row of somebody else.
        """
        if (chat_id, tenant_id) != (self._chat, self._tenant):
            return
        stop = up_to_sequence_number
        upto = self._lineage.fork_at if stop is None else min(self._lineage.fork_at, stop)
        if from_sequence_number < upto:
            shared = _shared(
                self._parent, self._lineage.parent_chat_id, tenant_id, from_sequence_number, upto
            )
            async with aclosing(shared) as rows:
                async for row in rows:
                    yield row._replace(tenant_id=self._tenant, chat_id=self._chat)
        for row in self._rows:
            number = row.sequence_number
            if number > from_sequence_number and (stop is None or number <= stop):
                yield row

    async def fold(
        self,
        projection: Projection,
        *,
        chat_id: str,
        tenant_id: str,
        up_to_sequence_number: int | None = None,
    ) -> object:
        """The state of ``projection`` behind the fork's rows, by the one reducer."""
        folded = start((projection,))
        rows = self.iterate(
            chat_id=chat_id, tenant_id=tenant_id, up_to_sequence_number=up_to_sequence_number
        )
        async with aclosing(rows) as found:
            async for row in found:
                folded = folded.apply(row.event)
        return folded.of(projection.key)

    async def head(self, *, chat_id: str, tenant_id: str) -> Tip | None:
        """Number of rows and last hash; None for another chat or tenant."""
        if (chat_id, tenant_id) != (self._chat, self._tenant):
            return None
        last = self._rows[-1].row_hash if self._rows else self._lineage.parent_row_hash
        return Tip(self._lineage.fork_at + len(self._rows), last)


@dataclass(frozen=True, slots=True)
class ForkedReplay:
    """A fork, ready to be replayed. It is a runtime itself (`events`), so it can be forked again.

    ``mid_turn`` says that a turn of the parent was open at the fork point; ``chat_id`` is the
    ``branch_id``. `open` gives a handle over it, with the options of `ReplayClient`.
    """

    branch_id: str
    tenant_id: str
    lineage: Lineage
    mid_turn: bool
    events: ForkedEvents

    @property
    def chat_id(self) -> str:
        return self.branch_id

    # Any: the options are those of `ReplayClient.from_event_log`, which checks each of them.
    def open(self, **options: Any) -> Opening:
        """A handle over the fork: await it, or use it with ``async with``.

        Nobody signed a fork, so its rows are checked as they are taken (``verify="step"``),
        unless ``options`` say otherwise.
        """
        from playhead.replay.client import ReplayClient

        options = {"verify": "step", **options}
        client = ReplayClient(self)
        return client.from_event_log(self.branch_id, tenant_id=self.tenant_id, **options)

    async def rows(self) -> list[LogRow]:
        """Every row of the fork."""
        rows = self.events.iterate(chat_id=self.branch_id, tenant_id=self.tenant_id)
        async with aclosing(rows) as found:
            return [row async for row in found]


async def make_fork(
    events: ReplayEvents,
    *,
    chat_id: str,
    tenant_id: str,
    at: int,
    synthetic: Iterable[Draft | Mapping[str, object]],
    require_turn_boundary: bool,
) -> ForkedReplay:
    """Fork ``chat_id`` behind row ``at``.

    Raises:
        ReplayArgumentError: there is no row ``at``, an event is off or has the id of a shared
            one, or the row lies inside a turn and ``require_turn_boundary`` is set.
        ReplayTenantMismatchError: the chat holds a row of somebody else.
    """
    require_flag("require_turn_boundary", require_turn_boundary)
    drafts = drafts_of(synthetic, tenant_id=tenant_id, chat_id=chat_id, at=at)
    names = {draft.id for draft, _ in drafts if draft.id is not None}
    last: LogRow | None = None
    turn = ""
    async with aclosing(_shared(events, chat_id, tenant_id, 0, at)) as shared:
        async for row in shared:
            last = row
            if row.event.type in _TURNS:
                turn = row.event.type
            if row.event.id in names:
                raise ReplayArgumentError("events", f"hold the id of event {row.sequence_number}")
    if at and (last is None or last.sequence_number != at):
        raise ReplayArgumentError("at", f"is {at}, and the chat has no such row")
    inside = turn == "turn.started" or (
        last is not None
        and last.event.type != "turn.completed"
        and await _ends_later(events, chat_id, tenant_id, at)
    )
    if inside and require_turn_boundary:
        raise ReplayArgumentError("at", "lies inside a turn", remedy="Fork behind a turn.completed")
    own = tuple(rows_behind(drafts, last, at))
    parent_hash = GENESIS if last is None else last.row_hash
    name = branch_id(parent_hash, at, own)
    lineage = Lineage(chat_id, at, parent_hash)
    facet = ForkedEvents(events, lineage, tenant_id, name, own)
    return ForkedReplay(name, tenant_id, lineage, inside, facet)


_TURNS = ("turn.started", "turn.completed")


async def _ends_later(events: ReplayEvents, chat: str, tenant: str, at: int) -> bool:
    """True when the next word about turns behind row ``at`` is the end of one: a host that never
    says when a turn starts still says when it ends."""
    async with aclosing(_shared(events, chat, tenant, at, None)) as rows:
        async for row in rows:
            if row.event.type in _TURNS:
                return row.event.type == "turn.completed"
    return False


async def _shared(
    events: ReplayEvents, chat: str, tenant: str, after: int, upto: int | None
) -> AsyncGenerator[LogRow, None]:
    """Rows of the parent, each of them its own: a fork must not take over anybody else's.

    Raises:
        ReplayTenantMismatchError: one says that it is of another tenant or chat.
    """
    rows = read_rows(events, chat_id=chat, tenant_id=tenant, after=after, upto=upto)
    async with aclosing(rows) as found:
        async for row in found:
            if row.tenant_id not in (None, tenant) or row.chat_id not in (None, chat):
                raise ReplayTenantMismatchError(
                    f"event {row.sequence_number} is of another tenant or chat",
                    chat_id=chat,
                    tenant_id=tenant,
                )
            yield row
