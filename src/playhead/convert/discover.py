"""Which files make one session, and what format they are in.

A Claude Code session is one file; its subagents' files lie in ``<session>/subagents/``, or flat
beside it as ``<session>__subagents__agent-<id>.jsonl``, or, in older versions, beside it as
``agent-<id>.jsonl`` with the session's id inside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import NotFound, Place, PlayheadError, Refused, UsageError
from playhead.formats.registry import HEAD, READERS, detect
from playhead.formats.transcript import Role, SourceInput
from playhead.store.durable import open_regular
from playhead.store.reader import blocks_of

MAX_CHILDREN = 10_000
"""Files of subagents that are looked at for one session."""

_AGENT = re.compile(r"(?:^|__)agent-([^/]{1,200}?)(?:\.meta\.json|\.jsonl)\Z")
_ID = re.compile(rb'"(?:sessionId|agentId)"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class Session:
    """Files to be imported as one run: the session file first. ``refused`` are files beside it
    that could not be read."""

    path: Path
    format: str
    files: Sequence[SourceInput]
    refused: Sequence[PlayheadError]


def shown(name: str) -> str:
    """A file name that can be printed and stored, whatever its bytes are."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def sessions(paths: Sequence[str | os.PathLike[str]], format: str | None = None) -> list[Session]:
    """Look at every file before any is imported.

    A subagent's file that belongs to a session among ``paths`` is not a session of its own;
    named without it, it is.

    Raises:
        NotFound, Unreadable: a path is not a regular file that can be read.
        Refused: no reader knows the format. UsageError: no such format.
    """
    if format is not None and format not in READERS:
        known = ", ".join(READERS)
        raise UsageError(f"no format {format!r:.60}", remedy=f"Formats that are read: {known}")
    unique = list(dict.fromkeys(Path(path) for path in paths))
    heads = {path: _head(path) for path in unique}
    found = []
    taken: set[Path] = set()
    for path in unique:
        if path.name.endswith(".meta.json") and _is_child(path) and len(unique) > 1:
            continue
        kind = format or detect(path.name, heads[path])
        if kind is None:
            raise Refused(
                "not a transcript in a known format",
                place=Place(shown(str(path))),
                remedy=f"Name its format with --format; known: {', '.join(READERS)}",
            )
        beside = list(_beside(path, heads[path])) if not _is_child(path) else []
        taken.update(file for file, _ in beside)
        found.append((path, kind, beside))
    return [_session(*one) for one in found if one[0] not in taken]


def _is_child(path: Path) -> bool:
    return _AGENT.search(path.name) is not None


def _head(path: Path) -> bytes:
    with open(open_regular(path), "rb") as handle:
        return handle.read(HEAD)


def _session(path: Path, kind: str, beside: Sequence[tuple[Path, Role]]) -> Session:
    match = _AGENT.search(path.name)
    files = [_input(path, shown(path.name), "session", match[1] if match else None)]
    refused: list[PlayheadError] = []
    for file, role in beside:
        agent = _AGENT.search(file.name)
        name = shown(os.path.relpath(file, path.parent))
        try:
            files.append(_input(file, name, role, shown(agent[1]) if agent else None))
        except PlayheadError as error:
            refused.append(error)
    return Session(path, kind, files, refused)


def _input(path: Path, name: str, role: Role, agent_id: str | None) -> SourceInput:
    """The file as it is now: what is appended later is not read."""
    fd = open_regular(path)
    size = os.fstat(fd).st_size
    os.close(fd)
    return SourceInput(name, _chunks(path, size), role, agent_id)


def _chunks(path: Path, size: int) -> Callable[[], Iterator[bytes]]:
    def chunks() -> Iterator[bytes]:
        with open(open_regular(path), "rb", buffering=0) as handle:
            yield from blocks_of(handle.fileno(), 0, size)

    return chunks


def _beside(path: Path, head: bytes) -> Iterator[tuple[Path, Role]]:
    """The files of the session's subagents, in the order of their names."""
    stem = path.name.removesuffix(".jsonl")
    own = path.parent / stem / "subagents"
    flat = f"{stem}__subagents__agent-"
    yield from _agents(own, _names(own))
    names = _names(path.parent)
    yield from _agents(path.parent, [name for name in names if name.startswith(flat)])
    older = [name for name in names if name.startswith("agent-")]
    ids = set(_ID.findall(head))
    session_ids = ids | {stem.encode("utf-8", "replace")}
    for name in older[:MAX_CHILDREN]:
        file = path.parent / name
        if name.endswith(".jsonl") and _shares_session(file, session_ids):
            yield from _agents(path.parent, [name])


def _agents(folder: Path, names: Sequence[str]) -> Iterator[tuple[Path, Role]]:
    for name in names[:MAX_CHILDREN]:
        if _AGENT.search(name):
            yield folder / name, "meta" if name.endswith(".meta.json") else "subagent"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _shares_session(file: Path, session_ids: set[bytes]) -> bool:
    try:
        head = _head(file)
    except (NotFound, Refused):
        return False
    return bool(session_ids & set(_ID.findall(head)))
