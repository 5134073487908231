"""The event log for asynchronous hosts: ``runtime.events`` of a replay.

Everything blocking runs in a thread. Rows come in batches of a bounded number and size, so an
event loop waits seldom and memory stays flat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from types import TracebackType
from typing import Self

from playhead.core.events import Draft
from playhead.core.fold import Projection
from playhead.core.logrow import LogRow
from playhead.store.eventlog import BlockingLog, LogHead
from playhead.store.scope import check_scope

BATCH_ROWS = 512
BATCH_BYTES = 1024 * 1024


class EventLog:
    """`BlockingLog` without blocking: the same methods, to be awaited.

    ``blocking`` is the log below, for code that runs in a thread of its own.
    """

    def __init__(self, log: BlockingLog) -> None:
        self.blocking = log

    def iterate(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> AsyncGenerator[LogRow, None]:
        """As `BlockingLog.iterate`; the head is frozen when the first row is asked for.

        Raises:
            UsageError: a blank tenant or chat, at the call; all else with the first row.
        """
        check_scope(tenant_id, chat_id)
        return self._rows(chat_id, tenant_id, from_sequence_number, up_to_sequence_number)

    def batches(
        self,
        *,
        chat_id: str,
        tenant_id: str,
        from_sequence_number: int = 0,
        up_to_sequence_number: int | None = None,
    ) -> AsyncGenerator[list[LogRow], None]:
        """The rows of `iterate`, many at a time: the hot path of a replay.

        Raises:
            UsageError: as `iterate`.
        """
        check_scope(tenant_id, chat_id)
        return self._batches(chat_id, tenant_id, from_sequence_number, up_to_sequence_number)

    async def _rows(
        self, chat_id: str, tenant_id: str, after: int, upto: int | None
    ) -> AsyncGenerator[LogRow, None]:
        async with aclosing(self._batches(chat_id, tenant_id, after, upto)) as batches:
            async for batch in batches:
                for row in batch:
                    yield row

    async def _batches(
        self, chat_id: str, tenant_id: str, after: int, upto: int | None
    ) -> AsyncGenerator[list[LogRow], None]:
        rows = await asyncio.to_thread(self._open_rows, chat_id, tenant_id, after, upto)
        batch = await asyncio.to_thread(_batch, rows)
        while batch:
            yield batch
            batch = await asyncio.to_thread(_batch, rows)

    def _open_rows(
        self, chat_id: str, tenant_id: str, after: int, upto: int | None
    ) -> Iterator[LogRow]:
        return self.blocking.iterate(
            chat_id=chat_id,
            tenant_id=tenant_id,
            from_sequence_number=after,
            up_to_sequence_number=upto,
        )

    async def fold(
        self,
        projection: Projection,
        *,
        chat_id: str,
        tenant_id: str,
        up_to_sequence_number: int | None = None,
    ) -> object:
        """As `BlockingLog.fold`."""
        return await asyncio.to_thread(
            self.blocking.fold,
            projection,
            chat_id=chat_id,
            tenant_id=tenant_id,
            up_to_sequence_number=up_to_sequence_number,
        )

    async def head(self, chat_id: str, tenant_id: str) -> LogHead | None:
        """As `BlockingLog.head`."""
        return await asyncio.to_thread(self.blocking.head, chat_id, tenant_id)

    async def append(
        self,
        event: Draft,
        *,
        chat_id: str,
        tenant_id: str,
        expected_head: str | LogHead | None = None,
    ) -> LogRow:
        """As `BlockingLog.append`. A cancelled append may still be written: repeat it by id."""
        return await asyncio.to_thread(
            self.blocking.append,
            event,
            chat_id=chat_id,
            tenant_id=tenant_id,
            expected_head=expected_head,
        )

    async def list_chats(self, tenant_id: str) -> list[str]:
        """As `BlockingLog.list_chats`."""
        return await asyncio.to_thread(self.blocking.list_chats, tenant_id)

    async def close(self) -> None:
        """As `BlockingLog.close`."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _batch(rows: Iterator[LogRow]) -> list[LogRow]:
    """The next rows, no more than a batch of either measure."""
    batch: list[LogRow] = []
    held = 0
    for row in rows:
        batch.append(row)
        held += len(row.line)
        if len(batch) >= BATCH_ROWS or held >= BATCH_BYTES:
            break
    return batch
