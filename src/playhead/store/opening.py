"""What stands around an append and an opening: values checked, times, whether a head is there."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from playhead.core.model import JSON
from playhead.core.values import require_plain
from playhead.errors import JournalBroken, Place, ValueRefused
from playhead.formats.journal import SEGMENT
from playhead.store.anchor import Anchor
from playhead.store.recovery import Recovered, recover


def require_fields(
    input_hash: str, texts: dict[str, str | None], values: dict[str, JSON], refs: Sequence[str]
) -> None:
    """Check what the raw append takes.

    Raises:
        ValueRefused: with the JSON pointer of the first value that is refused.
    """
    if type(input_hash) is not str:
        raise ValueRefused(f"/input_hash: {type(input_hash).__name__} is not a string")
    for name, value in (*texts.items(), *values.items()):
        require_plain(value, "/" + name)
    require_plain(tuple(refs), "/blob_refs")


def stamp_of(ts: float | None) -> float:
    """Epoch seconds of a row, now by default; JSON has no other numbers than finite ones.

    Raises:
        ValueRefused: ``ts`` is not a finite number.
    """
    if ts is None:
        return time.time()
    try:
        stamp = float(ts)
    except (TypeError, ValueError, OverflowError):
        stamp = math.nan
    if not math.isfinite(stamp):
        raise ValueRefused("/ts: not a finite number")
    return stamp


def recovered(folder: Path, anchor: Anchor) -> Recovered | None:
    """The tip of the chain in ``folder``, revalidated; None when there is no chain yet.

    Raises:
        JournalBroken: it does not verify, or it is gone and a signed head of it is here.
    """
    path = folder / SEGMENT
    if path.exists() and path.stat().st_size:
        return recover(folder, anchor)
    if not any(seen.head for seen in anchor.files.read(anchor.ring.trusted())):
        return None
    if not path.exists():
        raise JournalBroken(
            "the journal is gone, a signed head of it is here",
            place=Place(str(path)),
            remedy="Restore it from a copy, or record under another run id",
        )
    return recover(folder, anchor)
