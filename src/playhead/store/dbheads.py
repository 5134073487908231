"""Signed heads of a chain in a database: one beside the rows, one in the user's state directory.

As for journals (`playhead.store.heads`), the copy outside is the one that someone who can
write to the database cannot reach. Two processes may sign one chat: under the chat's lock the
longer head stays.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from playhead.core.sign import PublicKey
from playhead.errors import NotFound, PlayheadError
from playhead.store.database import Database
from playhead.store.durable import ensure_dir, read_bounded, write_atomic
from playhead.store.heads import MAX_NOTE, Resume, SeenHead, decode_resume, encode_resume, read_note
from playhead.store.keys import KeyRing
from playhead.store.stores import ChainRef


class DbHeads:
    """The heads of one chat. A database that ends with the process has none outside."""

    def __init__(self, database: Database, ref: ChainRef, ring: KeyRing) -> None:
        self.run_id = ref.run_id
        self._database = database
        self._ref = ref
        self._ring = ring
        self.outside: Path | None = None
        if not database.url.startswith("memory:"):
            key = "\0".join((database.url, ref.tenant_id, ref.chat_id))
            name = sha256(key.encode("utf-8")).hexdigest()[:40]
            self.outside = ring.state / "heads" / f"{name}.checkpoint"

    def read(self, trusted: list[PublicKey]) -> list[SeenHead]:
        """The heads that are there, checked against the trusted keys; inner one first."""
        found = []
        beside = self._database.note(self._ref.tenant_id, self._ref.chat_id)
        if beside is not None and len(beside[0]) <= MAX_NOTE:
            found.append(self._seen(beside[0], trusted, "inside", Path(self._ref.where)))
        if self.outside is not None:
            try:
                raw = read_bounded(self.outside, MAX_NOTE).decode("utf-8", "strict")
                found.append(self._seen(raw, trusted, "outside", self.outside))
            except NotFound:
                pass
            except (PlayheadError, UnicodeDecodeError) as error:
                problem = f"unreadable: {error}"
                found.append(SeenHead("outside", self.outside, None, problem=problem))
        return found

    def _seen(self, raw: str, trusted: list[PublicKey], where: str, path: Path) -> SeenHead:
        return read_note(raw, trusted, where, path, self.run_id)

    def read_resume(self) -> Resume | None:
        """The resume data, unproven; None when it is missing or not one."""
        found = self._database.note(self._ref.tenant_id, self._ref.chat_id)
        return None if found is None or len(found[1]) > MAX_NOTE else decode_resume(found[1])

    def write(self, note: str, resume: Resume) -> None:
        """Keep a signed note in both places, unless a longer head stands there.

        Raises:
            StoreError, WriteFailed: the database or the disk refused; where it did not, the
                note is kept.
        """
        ref, database = self._ref, self._database
        problem: PlayheadError | None = None
        with database.exclusive(ref.tenant_id, ref.chat_id, ref.run_id, create=False) as record:
            size = {seen.where: seen.head.size for seen in self._own() if seen.head is not None}
            if record is not None and size.get("inside", 0) <= resume.size:
                database.put_note(ref.tenant_id, ref.chat_id, note, encode_resume(resume))
            if self.outside is not None and size.get("outside", 0) <= resume.size:
                try:
                    ensure_dir(self.outside.parent)
                    write_atomic(self.outside, note.encode("utf-8"))
                except PlayheadError as error:  # a full disk costs only the head that lies on it
                    problem = error
        if problem is not None:
            raise problem

    def _own(self) -> list[SeenHead]:
        return self.read(self._ring.trusted())
