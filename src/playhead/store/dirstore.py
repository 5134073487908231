"""The `Store` over a root directory of journals (docs/reference/formats/root.md).

Whose a journal is, its first row says: tenant and chat stand there under the step hash. A
journal that names no tenant was not written by playhead; it belongs to ``local`` and its chat is
the directory's name.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from playhead.core.rows import BadRow, Row, decode_row
from playhead.errors import InvalidId, PlayheadError, UsageError
from playhead.formats.journal import SEALED, SEGMENT, check_run_id
from playhead.store.anchor import Anchor
from playhead.store.cas import Cas
from playhead.store.database import Tip
from playhead.store.first import first_event
from playhead.store.heads import HeadFiles
from playhead.store.journal import Durability, Journal
from playhead.store.keys import KeyRing, state_dir
from playhead.store.lines import Places, open_lines
from playhead.store.reader import segment_path
from playhead.store.root import Root
from playhead.store.scope import (
    LOCAL,
    check_scope,
    check_tenant,
    column_text,
    no_chat,
    no_run,
    run_id_for,
)
from playhead.store.stores import ChainRef, Lines

_REMEMBERED = 64


class DirStore:
    """Chains of tenants as journals below ``root``. Making one writes nothing."""

    def __init__(self, root: Root, ring: KeyRing | None = None) -> None:
        self.root = root
        self.url = f"file://{os.path.abspath(root.path)}"
        self._given_ring = ring
        self._places: OrderedDict[str, Places] = OrderedDict()

    def _ring(self) -> KeyRing:
        return self._given_ring or KeyRing(state_dir())

    # -- whose a journal is

    def _owner(self, folder: Path) -> tuple[str | None, str]:
        """Tenant and chat of a journal; no tenant for one that names what can be none."""
        try:
            first = first_event(folder)
        except PlayheadError:  # unreadable: it is there, and a reader will say what is wrong
            first = None
        ids = {} if first is None else first.ids
        tenant = column_text(ids["tenant_id"]) if "tenant_id" in ids else LOCAL
        return tenant if tenant and tenant.strip() else None, (
            column_text(ids.get("chat_id")) or folder.name
        )

    def _there(self, folder: Path) -> bool:
        return any(os.path.lexists(folder / name) for name in (SEGMENT, SEALED))

    def _own(self, tenant_id: str, names: Iterator[str]) -> Iterator[ChainRef]:
        for name in names:
            folder = self.root.journal_dir(name)
            owner, chat_id = self._owner(folder)
            if owner == tenant_id:
                yield _ref(tenant_id, chat_id, folder)

    def list_chats(self, tenant_id: str) -> list[ChainRef]:
        """The tenant's chains, oldest first."""
        check_tenant(tenant_id)
        return list(self._own(tenant_id, self.root.runs()))

    def run_named(self, tenant_id: str, run_id: str) -> ChainRef | None:
        """The chain of a run id; None when it is not there or another tenant's."""
        check_tenant(tenant_id)
        folder = self.root.journal_dir(run_id)
        if not self._there(folder):
            return None
        return next(self._own(tenant_id, iter([run_id])), None)

    def find(self, tenant_id: str, chat_id: str) -> ChainRef:
        """The chain of a chat; of several the one whose directory bears its name, else the
        oldest.

        Raises:
            NotFound: there is none, or it is another tenant's. UsageError: a blank name.
        """
        check_scope(tenant_id, chat_id)
        found = self._find(tenant_id, chat_id)
        if found is None:
            raise no_chat(chat_id, str(self.root.path))
        return found

    def _find(self, tenant_id: str, chat_id: str) -> ChainRef | None:
        try:
            named = self.run_named(tenant_id, chat_id)
        except InvalidId:
            named = None
        if named is not None and named.chat_id == chat_id:
            return named
        every = self._own(tenant_id, self.root.runs())
        return next((ref for ref in every if ref.chat_id == chat_id), None)

    def find_run(self, tenant_id: str, word: str) -> ChainRef:
        """What RUN means: ``@last``, a run id, a unique prefix of one, or a path.

        Raises:
            NotFound, UsageError: nothing of this tenant fits, several do.
        """
        check_tenant(tenant_id)
        names = list(self.root.runs())
        if word == "@last":
            names.sort(key=self.root.written, reverse=True)
            found = list(_first(self._own(tenant_id, iter(names))))
        elif word in names:
            found = list(self._own(tenant_id, iter([word])))
        else:
            fits = (name for name in names if word and name.startswith(word))
            found = list(self._own(tenant_id, fits))
            if not found and "\0" not in word and os.path.exists(word):
                folder = self.root.find(os.path.join(os.curdir, word))
                owner, chat_id = self._owner(folder)
                found = [_ref(tenant_id, chat_id, folder)] if owner == tenant_id else []
        if len(found) > 1:
            shown = ", ".join(ref.run_id for ref in found[:3])
            raise UsageError(
                f"{word!r:.80} fits {len(found)} runs: {shown}", remedy="Type more of the id"
            )
        if not found:
            raise no_run(word, str(self.root.path))
        return found[0]

    # -- reading

    def tip(self, ref: ChainRef) -> Tip:
        """Size and last step hash now. Counts the rows that were not counted before."""
        lines = self.lines(ref)
        try:
            size = lines.count()
            if not size:
                return Tip()
            _, offset, line = lines.get(size - 1)
            if isinstance(line, BadRow):
                return Tip(size, "", max(offset, 0))
            row = decode_row(line)
            head = row.stored_hash if isinstance(row, Row) else ""
            return Tip(size, head, offset + len(line) + 1)
        finally:
            lines.close()

    def lines(self, ref: ChainRef) -> Lines:
        """The rows, frozen at this moment. Half a row of a writer at work does not count."""
        places = self._places.setdefault(ref.where, Places())
        self._places.move_to_end(ref.where)
        while len(self._places) > _REMEMBERED:
            self._places.popitem(last=False)
        return open_lines(self.folder(ref), torn=False, places=places)

    def folder(self, ref: ChainRef) -> Path:
        """The journal's directory."""
        return Path(ref.where).parent

    def heads(self, ref: ChainRef) -> HeadFiles:
        """The signed heads of a chain."""
        return HeadFiles(self.folder(ref), self._ring().state)

    def blobs(self, tenant_id: str) -> Cas:
        """The root's blobs. A blob is found by its digest alone; tenants share the directory."""
        check_tenant(tenant_id)
        return self.root.cas

    # -- appending

    def open_chain(
        self,
        tenant_id: str,
        chat_id: str,
        *,
        run_id: str | None = None,
        create: bool = True,
        durability: Durability = "batch",
    ) -> Journal:
        """Open a chat's journal for appending.

        Raises:
            NotFound: it is missing and ``create`` is off.
            UsageError, InvalidId: a bad name, or the run id belongs to another chat or tenant.
            JournalLocked, JournalBroken: see `Journal.open`.
        """
        check_scope(tenant_id, chat_id)
        name = check_run_id(run_id) if run_id else self._name_for(tenant_id, chat_id)
        folder = self.root.journal_dir(name)
        if not create and not self._there(folder):
            raise no_chat(chat_id, str(self.root.path))
        if self._there(folder):
            self._check_owner(folder, tenant_id, chat_id)
        ring = self._ring()
        journal = Journal.open(folder, durability=durability, anchor=Anchor(folder, ring))
        try:
            if journal.next_seq:  # another writer may have been first
                self._check_owner(folder, tenant_id, chat_id)
        except BaseException:
            journal.close()
            raise
        return journal

    def _check_owner(self, folder: Path, tenant_id: str, chat_id: str) -> None:
        if first_event(folder) is None:
            return  # no row yet, or one that opening it will refuse
        owner, chat = self._owner(folder)
        if owner != tenant_id:
            raise UsageError(
                f"the chain {folder.name} is not one of this tenant's runs",
                remedy="Record under another run id",
            )
        if chat != chat_id:
            raise UsageError(
                f"the chain {folder.name} holds another chat", remedy="Record under another run id"
            )

    def _name_for(self, tenant_id: str, chat_id: str) -> str:
        """The directory of a chat; one whose name another chain took gets a name of its own."""
        found = self._find(tenant_id, chat_id)
        if found is not None:
            return found.run_id
        name = run_id_for(chat_id)
        folder = self.root.journal_dir(name)
        if not self._there(folder) or first_event(folder) is None:
            return name
        digest = sha256(f"{tenant_id}\0{chat_id}".encode()).hexdigest()
        return f"{name[:100]}-{digest[:16]}"

    def close(self) -> None:
        """Nothing is held between calls."""


def _ref(tenant_id: str, chat_id: str, folder: Path) -> ChainRef:
    return ChainRef(tenant_id, chat_id, folder.name, str(segment_path(folder)))


def _first(refs: Iterator[ChainRef]) -> Iterator[ChainRef]:
    found = next(refs, None)
    if found is not None:
        yield found
