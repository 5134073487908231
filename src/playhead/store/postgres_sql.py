"""The statements of the PostgreSQL store, with the name of their schema in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from playhead.store.database import NewRow

CHUNK_ROWS = 20_000
CHUNK_BYTES = 16 << 20
"""What one COPY carries: bounds the temporary table and the time of a statement."""

_CHAT = "chat_id, run_id, size, step_hash, length, created, written"
_INDEX = "sequence_number, event_type, event_key, row_hash, line"


class Statements:
    """Every statement for one schema (a plain name, checked by `parse_url`)."""

    BULK_TYPES = ("int8", "text", "bytea", "text", "bytea")

    make_bulk = (
        b"CREATE TEMPORARY TABLE playhead_bulk (sequence_number bigint, event_type text,"
        b" event_key bytea, row_hash text, line bytea) ON COMMIT DROP"
    )
    copy_bulk = b"COPY pg_temp.playhead_bulk FROM STDIN (FORMAT binary)"
    empty_bulk = b"TRUNCATE pg_temp.playhead_bulk"
    drop_bulk = b"DROP TABLE pg_temp.playhead_bulk"
    may_copy = b"SELECT has_database_privilege(current_database(), 'TEMP')"

    def __init__(self, schema: str) -> None:
        def sql(text: str) -> bytes:
            return text.replace("@", f'"{schema}".').encode()

        self.chats = sql(
            f"SELECT {_CHAT} FROM @chats WHERE tenant_id = %s ORDER BY created, chat_id"
        )
        self.chat = sql(f"SELECT {_CHAT} FROM @chats WHERE tenant_id = %s AND chat_id = %s")
        self.lock = self.chat + b" FOR UPDATE"
        self.create = sql(
            "INSERT INTO @chats (tenant_id, chat_id, run_id, created, written)"
            " VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING"
        )
        # The sum over lengths needs no line to be read: large ones are left for the next batch.
        self.rows = sql(
            "SELECT sequence_number, line FROM (SELECT sequence_number, line,"
            " sum(octet_length(line)) OVER (ORDER BY sequence_number) - octet_length(line)"
            " AS sofar"
            " FROM @rows WHERE tenant_id = %s AND chat_id = %s"
            " AND sequence_number BETWEEN %s AND %s) AS batch"
            " WHERE sofar < %s ORDER BY sequence_number"
        )
        self.event = sql(
            "SELECT line FROM @rows WHERE tenant_id = %s AND chat_id = %s AND event_key = %s"
            " ORDER BY sequence_number LIMIT 1"
        )
        self.insert = sql(
            f"INSERT INTO @rows (tenant_id, chat_id, {_INDEX}) VALUES (%s, %s, %s, %s, %b, %s, %b)"
        )
        self.take_bulk = sql(
            f"INSERT INTO @rows (tenant_id, chat_id, {_INDEX})"
            f" SELECT %s, %s, {_INDEX} FROM pg_temp.playhead_bulk ORDER BY sequence_number"
        )
        self.move = sql(
            "UPDATE @chats SET size = %s, step_hash = %s, length = %s, written = %s"
            " WHERE tenant_id = %s AND chat_id = %s AND size = %s"
        )
        self.note = sql("SELECT note, resume FROM @notes WHERE tenant_id = %s AND chat_id = %s")
        self.put_note = sql(
            "INSERT INTO @notes (tenant_id, chat_id, note, resume) VALUES (%s, %s, %s, %b)"
            " ON CONFLICT (tenant_id, chat_id)"
            " DO UPDATE SET note = EXCLUDED.note, resume = EXCLUDED.resume"
        )
        self.blob = sql("SELECT data FROM @blobs WHERE tenant_id = %s AND digest = %s")
        self.put_blob = sql(
            "INSERT INTO @blobs (tenant_id, digest, data) VALUES (%s, %s, %b)"
            " ON CONFLICT DO NOTHING"
        )


def chunks(rows: Sequence[NewRow]) -> Iterator[Sequence[NewRow]]:
    """The rows in order, in parts of at most `CHUNK_ROWS` and about `CHUNK_BYTES`."""
    first = size = 0
    for at, row in enumerate(rows):
        if at > first and (at - first >= CHUNK_ROWS or size + len(row.line) > CHUNK_BYTES):
            yield rows[first:at]
            first, size = at, 0
        size += len(row.line)
    if first < len(rows):
        yield rows[first:]
