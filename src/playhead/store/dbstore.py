"""The `Store` of every database: SQLite, PostgreSQL, memory."""

from __future__ import annotations

from playhead.errors import UsageError
from playhead.formats.journal import check_run_id
from playhead.store.anchor import Anchor
from playhead.store.database import ChatRecord, Database, Tip
from playhead.store.dbchain import DbChain
from playhead.store.dbheads import DbHeads
from playhead.store.dblines import DbBlobs, DbLines
from playhead.store.keys import KeyRing, state_dir
from playhead.store.scope import check_scope, check_tenant, no_chat, no_run, run_id_for
from playhead.store.stores import ChainRef, Durability


class DbStore:
    """Chains of tenants in a database, which closes with the store.

    ``ring`` holds the keys that sign and are trusted; by default the user's own.
    """

    def __init__(self, database: Database, ring: KeyRing | None = None) -> None:
        self.database = database
        self.url = database.url
        self._given_ring = ring

    def _ring(self) -> KeyRing:
        return self._given_ring or KeyRing(state_dir())

    def _ref(self, tenant_id: str, record: ChatRecord) -> ChainRef:
        return self._at(tenant_id, record.chat_id, record.run_id)

    def _at(self, tenant_id: str, chat_id: str, run_id: str) -> ChainRef:
        return ChainRef(tenant_id, chat_id, run_id, f"{self.url}#{run_id}")

    def list_chats(self, tenant_id: str) -> list[ChainRef]:
        """The tenant's chains, oldest first."""
        check_tenant(tenant_id)
        return [self._ref(tenant_id, record) for record in self.database.chats(tenant_id)]

    def find(self, tenant_id: str, chat_id: str) -> ChainRef:
        """The chain of a chat.

        Raises:
            NotFound: there is none, or it is another tenant's. UsageError: a blank name.
        """
        check_scope(tenant_id, chat_id)
        record = self.database.chat(tenant_id, chat_id)
        if record is None:
            raise no_chat(chat_id, self.url)
        return self._ref(tenant_id, record)

    def find_run(self, tenant_id: str, word: str) -> ChainRef:
        """What RUN means: ``@last``, a run id, a chat id, or a unique prefix of a run id.

        Raises:
            NotFound, UsageError: nothing of this tenant fits, several do.
        """
        check_tenant(tenant_id)
        records = self.database.chats(tenant_id)
        if word == "@last" and records:
            return self._ref(tenant_id, max(records, key=lambda r: (r.written, r.run_id)))
        exact = [r for r in records if r.run_id == word] or [
            r for r in records if r.chat_id == word
        ]
        fits = exact or [r for r in records if word and r.run_id.startswith(word)]
        if len(fits) > 1:
            names = ", ".join(record.run_id for record in fits[:3])
            raise UsageError(
                f"{word!r:.80} fits {len(fits)} runs: {names}", remedy="Type more of the id"
            )
        if not fits:
            raise no_run(word, self.url)
        return self._ref(tenant_id, fits[0])

    def run_named(self, tenant_id: str, run_id: str) -> ChainRef | None:
        """The chain of a run id; None when it is not there or another tenant's."""
        records = self.database.chats(check_tenant(tenant_id))
        return next((self._ref(tenant_id, r) for r in records if r.run_id == run_id), None)

    def tip(self, ref: ChainRef) -> Tip:
        """Size and last step hash now.

        Raises:
            NotFound: the chat is gone.
        """
        record = self.database.chat(ref.tenant_id, ref.chat_id)
        if record is None:
            raise no_chat(ref.chat_id, self.url)
        return record.tip

    def lines(self, ref: ChainRef) -> DbLines:
        """The rows, frozen at this moment."""
        return DbLines(self.database, ref, self.tip(ref).size)

    def folder(self, ref: ChainRef) -> None:
        """A database has no directory."""
        return None

    def heads(self, ref: ChainRef) -> DbHeads:
        """The signed heads of a chain."""
        return DbHeads(self.database, ref, self._ring())

    def blobs(self, tenant_id: str) -> DbBlobs:
        """The tenant's blobs."""
        return DbBlobs(self.database, check_tenant(tenant_id))

    def open_chain(
        self,
        tenant_id: str,
        chat_id: str,
        *,
        run_id: str | None = None,
        create: bool = True,
        durability: Durability = "batch",
    ) -> DbChain:
        """Open a chat for appending; a new one is made with its first row. Every acknowledged
        row is durable, whatever ``durability`` says.

        Raises:
            NotFound: it is missing and ``create`` is off.
            UsageError, InvalidId: a bad name, or the run id belongs to another chat.
            JournalBroken: what is there does not verify.
        """
        check_scope(tenant_id, chat_id)
        record = self.database.chat(tenant_id, chat_id)
        if record is None:
            if not create:
                raise no_chat(chat_id, self.url)
            name = check_run_id(run_id) if run_id else self._free(tenant_id, run_id_for(chat_id))
            if self.run_named(tenant_id, name) is not None:
                raise UsageError(
                    f"the run {name} holds another chat", remedy="Record under another run id"
                )
        else:
            name = record.run_id
            if run_id is not None and run_id != name:
                raise UsageError(
                    f"the chat is recorded as run {name}", remedy="Leave the run id away"
                )
        ref = self._at(tenant_id, chat_id, name)
        ring = self._ring()
        return DbChain(self.database, ref, Anchor(DbHeads(self.database, ref, ring), ring))

    def _free(self, tenant_id: str, name: str) -> str:
        """``name``, or one that is free of this tenant's runs."""
        taken = {record.run_id for record in self.database.chats(tenant_id)}
        count = 1
        free = name
        while free in taken:
            count += 1
            free = f"{name[:110]}-{count}"
        return free

    def close(self) -> None:
        """Close the database. Idempotent."""
        self.database.close()
