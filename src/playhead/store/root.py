"""One root: where runs, blobs and heads of a project lie (docs/reference/formats/root.md).

    <root>/runtime/journal/<run id>/000000.jsonl   the chain (the seed's layout)
    <root>/cas/<2 hex>/<sha256>                     blobs
    <root>/heads/<run id>.checkpoint                signed head beside the journal

All path knowledge is here; ids become names only through `check_run_id`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from playhead.errors import InvalidId, NotFound, Place, Unreadable, UsageError
from playhead.formats.journal import SEALED, SEGMENT, check_run_id
from playhead.store.cas import Cas
from playhead.store.durable import reason

DEFAULT = ".sdd"


class Root:
    """A root directory. Making one writes nothing; the first recording makes the folders.

    Raises:
        UsageError: the URL of a store, which is no directory (`playhead.store.urls` opens it).
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        word = path or os.environ.get("PLAYHEAD_ROOT") or DEFAULT
        if "://" in os.fspath(word):
            raise UsageError(
                "a URL where a directory of journals is needed",
                remedy="Name a directory (--root, PLAYHEAD_ROOT)",
            )
        self.path = Path(word)

    @property
    def journals(self) -> Path:
        return self.path / "runtime" / "journal"

    @property
    def heads(self) -> Path:
        return self.path / "heads"

    @property
    def cas(self) -> Cas:
        return Cas(self.path / "cas")

    def journal_dir(self, run_id: str) -> Path:
        """The directory of a run; it need not be there.

        Raises:
            InvalidId: the id may not name a directory.
        """
        return self.journals / check_run_id(run_id)

    def runs(self) -> Iterator[str]:
        """Ids of the runs that are here, oldest first."""
        try:
            names = os.listdir(self.journals)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise Unreadable(
                reason(error),
                place=Place(str(self.journals)),
                remedy="Check its owner and permissions",
            ) from None
        found = []
        for name in names:
            try:
                folder = self.journal_dir(name)
            except InvalidId:
                continue
            for segment in (SEGMENT, SEALED):
                if os.path.isfile(folder / segment):
                    found.append((folder.stat().st_ctime_ns, name))
                    break
        for _, name in sorted(found):
            yield name

    def last(self) -> str:
        """The id of the run written to last.

        Raises:
            NotFound: there is no run.
        """
        newest = max(self.runs(), key=self.written, default=None)
        if newest is None:
            raise NotFound(
                f"no run under {self.path}",
                remedy="Record one (playhead.record), import one (playhead import) or see "
                "'playhead demo'",
            )
        return newest

    def written(self, run_id: str) -> tuple[int, str]:
        """When a run was written to last, in nanoseconds, with its id: a key to sort by."""
        folder = self.journal_dir(run_id)
        for segment in (SEGMENT, SEALED):
            if os.path.exists(folder / segment):
                return (folder / segment).stat().st_mtime_ns, run_id
        return 0, run_id

    def find(self, word: str) -> Path:
        """The journal directory that RUN means: ``@last``, an id, a unique prefix, or a path.

        Raises:
            NotFound: nothing fits. UsageError: several runs start with it.
        """
        if word == "@last":
            return self.journal_dir(self.last())
        if os.sep in word or word in (".", ".."):
            return _as_journal(Path(word), self)
        known = list(self.runs())
        if word in known:
            return self.journal_dir(word)
        fits = [name for name in known if name.startswith(word)]
        if len(fits) == 1:
            return self.journal_dir(fits[0])
        if fits:
            raise UsageError(
                f"{word!r} fits {len(fits)} runs: {', '.join(fits[:3])}",
                remedy="Type more of the id",
            )
        if os.path.exists(word):
            return _as_journal(Path(word), self)
        raise NotFound(f"no run {word!r:.80} under {self.path}")


def _as_journal(path: Path, root: Root) -> Path:
    if os.path.isdir(path):
        for name in (SEGMENT, SEALED):
            if os.path.lexists(path / name):
                return path
        raise NotFound(f"{path} holds no {SEGMENT}")
    if path.name in (SEGMENT, SEALED) and os.path.lexists(path):
        return path.parent
    raise NotFound(f"no run or journal at {path}")
