"""One chain of a store, as a store: what a command opens when it was told which run.

Two runs may bear one chat name (a copy, a journal outside the root). Who named the run means that
one, so `find` gives it and nothing else of the tenant is seen.
"""

from __future__ import annotations

from pathlib import Path

from playhead.errors import NotFound
from playhead.store.database import Tip
from playhead.store.scope import check_scope, check_tenant, no_chat
from playhead.store.stores import Blobs, ChainRef, Durability, Heads, Lines, OpenChain, Store


class OneChain:
    """The chain ``ref`` of ``store`` and no other. Closing it leaves ``store`` open."""

    def __init__(self, store: Store, ref: ChainRef) -> None:
        self.url = store.url
        self._store = store
        self._ref = ref

    def _mine(self, tenant_id: str) -> bool:
        return check_tenant(tenant_id) == self._ref.tenant_id

    def list_chats(self, tenant_id: str) -> list[ChainRef]:
        """The one chain, for its tenant."""
        return [self._ref] if self._mine(tenant_id) else []

    def find(self, tenant_id: str, chat_id: str) -> ChainRef:
        """The chain under its own tenant and chat.

        Raises:
            NotFound: it is asked under others. UsageError: a blank name.
        """
        check_scope(tenant_id, chat_id)
        if not self._mine(tenant_id) or chat_id != self._ref.chat_id:
            raise no_chat(chat_id, self._ref.where)
        return self._ref

    def find_run(self, tenant_id: str, word: str) -> ChainRef:
        """The chain under its run id or ``@last``.

        Raises:
            NotFound: any other word or tenant.
        """
        if not self._mine(tenant_id) or word not in (self._ref.run_id, "@last"):
            raise NotFound(f"no run {word!r:.80} of this tenant")
        return self._ref

    def run_named(self, tenant_id: str, run_id: str) -> ChainRef | None:
        """The chain when it has this run id and tenant, else None."""
        return self._ref if self._mine(tenant_id) and run_id == self._ref.run_id else None

    def tip(self, ref: ChainRef) -> Tip:
        """Size and last step hash now."""
        return self._store.tip(ref)

    def lines(self, ref: ChainRef) -> Lines:
        """The rows, frozen at this moment."""
        return self._store.lines(ref)

    def folder(self, ref: ChainRef) -> Path | None:
        """The journal's directory where it is one."""
        return self._store.folder(ref)

    def heads(self, ref: ChainRef) -> Heads:
        """The signed heads of the chain."""
        return self._store.heads(ref)

    def blobs(self, tenant_id: str) -> Blobs:
        """The blobs of the tenant."""
        return self._store.blobs(tenant_id)

    def open_chain(
        self,
        tenant_id: str,
        chat_id: str,
        *,
        run_id: str | None = None,
        create: bool = True,
        durability: Durability = "batch",
    ) -> OpenChain:
        """The chain open for appending; it is there, so ``create`` makes none.

        Raises:
            NotFound: another tenant or chat. What the store below raises.
        """
        ref = self.find(tenant_id, chat_id)
        return self._store.open_chain(
            tenant_id, chat_id, run_id=ref.run_id, create=False, durability=durability
        )

    def close(self) -> None:
        """Nothing is held of its own."""
