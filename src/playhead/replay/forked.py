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
from typing import Any

from playhead.core.canonical import encode_step
from playhead.core.decode import to_step
from playhead.core.events import TYPES, Draft, decode_event, encode_event
from playhead.core.fold import Projection, fold
from playhead.core.logrow import LogRow
from playhead.core.model import GENESIS, JSON, Event
from playhead.core.rows import Row, decode_row
from playhead.core.values import require_plain
from playhead.errors import ReplayArgumentError, ValueRefused
from playhead.formats.journal import encode_row, input_hash_of
from playhead.replay.facet import ReplayEvents, read_rows
from playhead.store.database import Tip

_TAG = "playhead/fork/v1"
_NO_TIME = "1970-01-01T00:00:00.000000Z"


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a fork comes from: the last row it shares with its parent, and that row's hash."""

    parent_chat_id: str
    fork_at: int
    parent_row_hash: str


def synthetic_rows(
    events: Iterable[Draft | Mapping[str, object]], last: LogRow | None, at: int
) -> list[LogRow]:
    """``events`` as the rows that follow ``last``, which is row ``at``.

    Times are what an event's own ``at`` says, else that of the last row: a fork reads no clock.

    Raises:
        ReplayArgumentError: an event has no type, lacks a key its type must have, holds a value
            JSON cannot say, or brings a sequence number of its own.
    """
    prev = GENESIS if last is None else last.row_hash or GENESIS
    when = _NO_TIME if last is None else last.event.at or _NO_TIME
    rows: list[LogRow] = []
    for index, given in enumerate(events):
        draft, own_time = _draft(given, index)
        when = own_time or when
        seq = at + index
        name = sha256(encode_step([_TAG, prev, seq]).encode()).hexdigest()[:16]
        fields = encode_event(draft, seq=seq, at=when, event_id=name)
        envelope = fields["tool_call"]
        assert isinstance(envelope, dict)
        line, step_hash = encode_row(
            seq=seq,
            prev_hash=prev,
            input_hash=input_hash_of(draft.prompt, envelope["payload"]),
            model=fields["model"],
            prompt=fields["prompt"],
            tool_call=envelope,
            tool_result=fields["tool_result"],
            ts=0.0,
        )
        row = decode_row(line)
        assert isinstance(row, Row)
        rows.append(
            LogRow(None, None, seq + 1, decode_event(to_step(row.obj)), step_hash, prev, line)
        )
        prev = step_hash
    return rows


def _draft(given: Draft | Mapping[str, object], index: int) -> tuple[Draft, str | None]:
    field = f"events[{index}]"
    when: object = None
    if isinstance(given, Mapping):
        if "sequence_number" in given or "seq" in given:
            raise ReplayArgumentError(field, "brings a sequence number: a fork numbers its rows")
        kind, payload, when = given.get("event_type"), given.get("payload", {}), given.get("at")
        if not isinstance(kind, str) or not isinstance(payload, Mapping):
            raise ReplayArgumentError(field, "needs an event_type and a payload")
        draft = Draft(
            kind,
            dict(payload),
            name=_text(given.get("name")),
            model=_text(given.get("model")),
            prompt=_text(given.get("prompt")),
            id=_text(given.get("event_id")),
            turn_id=_text(given.get("turn_id")),
            subagent_run_id=_text(given.get("subagent_run_id")),
            causation_id=_text(given.get("causation_id")),
        )
    elif isinstance(given, Draft):
        draft = given
    else:
        raise ReplayArgumentError(field, f"is a {type(given).__name__}, not an event")
    if "." not in draft.type:
        raise ReplayArgumentError(field, "has no type of the form noun.verb_past")
    missing = [key for key in TYPES.get(draft.type, ()) if key not in draft.payload]
    if missing:
        raise ReplayArgumentError(field, f"({draft.type}) lacks {missing[0]}")
    try:
        require_plain(dict(draft.payload), f"/{index}/payload")
    except ValueRefused as error:
        raise ReplayArgumentError(field, f"holds a value JSON cannot say: {error.what}") from None
    return draft, _text(when)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def branch_id(parent_row_hash: str, rows: Iterable[LogRow]) -> str:
    """The id of a fork: 32 hex digits of a hash over its parent's row hash and its own rows."""
    parts: list[JSON] = [_TAG, parent_row_hash, *(row.row_hash for row in rows)]
    return sha256(encode_step(parts).encode()).hexdigest()[:32]


class ForkedEvents:
    """The events facet of a fork: ``iterate``, ``fold`` and ``head``, and no way to write."""

    def __init__(
        self,
        parent: ReplayEvents,
        parent_chat: str,
        tenant_id: str,
        chat_id: str,
        at: int,
        rows: tuple[LogRow, ...],
    ) -> None:
        self._parent = parent
        self._parent_chat = parent_chat
        self._tenant = tenant_id
        self._chat = chat_id
        self._at = at
        self._rows = rows

    async def iterate(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> AsyncGenerator[LogRow, None]:
        """Rows of the fork; another chat or tenant has none here."""
        if (chat_id, tenant_id) != (self._chat, self._tenant):
            return
        upto = self._at if up_to_sequence_number is None else min(self._at, up_to_sequence_number)
        shared = read_rows(
            self._parent,
            chat_id=self._parent_chat,
            tenant_id=tenant_id,
            after=from_sequence_number,
            upto=upto,
        )
        if from_sequence_number < upto:
            async with aclosing(shared) as rows:
                async for row in rows:
                    yield row._replace(tenant_id=self._tenant, chat_id=self._chat)
        for row in self._rows:
            number = row.sequence_number
            if number > from_sequence_number and (
                up_to_sequence_number is None or number <= up_to_sequence_number
            ):
                yield row._replace(tenant_id=self._tenant, chat_id=self._chat)

    async def fold(
        self,
        projection: Projection,
        *,
        chat_id: str,
        tenant_id: str,
        up_to_sequence_number: int | None = None,
    ) -> object:
        """The state of ``projection`` behind the fork's rows, by the one reducer."""
        found: list[Event] = []
        rows = self.iterate(
            chat_id=chat_id, tenant_id=tenant_id, up_to_sequence_number=up_to_sequence_number
        )
        async for row in rows:
            found.append(row.event)
        return fold(found, (projection,)).of(projection.key)

    async def head(self, *, chat_id: str, tenant_id: str) -> Tip | None:
        """Number of rows and last hash."""
        if (chat_id, tenant_id) != (self._chat, self._tenant):
            return None
        last = self._rows[-1].row_hash if self._rows else ""
        return Tip(self._at + len(self._rows), last)


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
    def open(self, **options: Any) -> Any:
        """A handle over the fork: await it, or use it with ``async with``."""
        from playhead.replay.client import ReplayClient

        client = ReplayClient(self)
        return client.from_event_log(self.branch_id, tenant_id=self.tenant_id, **options)

    async def rows(self) -> list[LogRow]:
        """Every row of the fork."""
        rows = self.events.iterate(chat_id=self.branch_id, tenant_id=self.tenant_id)
        return [row async for row in rows]


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
        ReplayArgumentError: there is no row ``at``, an event is off, or the row lies inside a
            turn and ``require_turn_boundary`` is set.
    """
    last: LogRow | None = None
    inside = False
    rows = read_rows(events, chat_id=chat_id, tenant_id=tenant_id, after=0, upto=at)
    async with aclosing(rows) as shared:
        async for row in shared:
            last = row
            if row.event.type.startswith("turn."):
                inside = row.event.type == "turn.started"
    if at and (last is None or last.sequence_number != at):
        raise ReplayArgumentError("at", f"is {at}, and the chat has no such row")
    if inside and require_turn_boundary:
        raise ReplayArgumentError("at", "lies inside a turn", remedy="Fork behind a turn.completed")
    own = tuple(synthetic_rows(synthetic, last, at))
    parent_hash = GENESIS if last is None else last.row_hash
    name = branch_id(parent_hash, own)
    lineage = Lineage(chat_id, at, parent_hash)
    facet = ForkedEvents(events, chat_id, tenant_id, name, at, own)
    return ForkedReplay(name, tenant_id, lineage, inside, facet)
