"""The readers of foreign transcripts: one line per format.

A format that another one's files could be taken for stands before that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from playhead.formats import claude_code
from playhead.formats.transcript import SourceInput, Transcript

HEAD = 64 * 1024
"""Bytes of a file that `detect` wants to see."""


@dataclass(frozen=True, slots=True)
class Reader:
    """``fits(head)`` looks at a file's first bytes; ``read(files)`` reads session and friends."""

    fits: Callable[[bytes], bool]
    read: Callable[[Sequence[SourceInput]], Transcript]


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        claude_code.NAME: Reader(claude_code.detect, claude_code.read),
    }
)


def detect(name: str, head: bytes) -> str | None:
    """The format of a file by its first bytes, or None. An empty ``.jsonl`` file is taken for
    the first format, whose reader then says that it is empty (case C55)."""
    if not head:
        return next(iter(READERS)) if name.endswith(".jsonl") else None
    return next((kind for kind, reader in READERS.items() if reader.fits(head)), None)
