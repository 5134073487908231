"""A head as a signed C2SP checkpoint (docs/reference/formats/checkpoint.md).

playhead/run/<run id>            origin
<number of rows>
<base64 RFC 6962 root over the raw rows>
head <step hash of the last row>
bytes <journal bytes> <sha256 of those bytes>
fields <base64 root over the rows' field commitments>     (when there are any)
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from playhead.core.note import Checkpoint, parse_checkpoint
from playhead.errors import SignatureError

ORIGIN = "playhead/run/"


@dataclass(frozen=True, slots=True)
class Head:
    """What a checkpoint states of a run: ``size`` rows in ``length`` bytes, their root, the
    last step hash."""

    run_id: str
    size: int
    root: bytes
    step_hash: str
    length: int
    bytes_sha256: str
    fields_root: bytes | None = None


def encode_head(head: Head) -> str:
    """The checkpoint body that gets signed."""
    lines = [f"head {head.step_hash}", f"bytes {head.length} {head.bytes_sha256}"]
    if head.fields_root is not None:
        lines.append("fields " + base64.b64encode(head.fields_root).decode("ascii"))
    return Checkpoint(ORIGIN + head.run_id, head.size, head.root, tuple(lines)).to_body()


def decode_head(body: str) -> Head:
    """The head in a checkpoint body; unknown extension lines are ignored.

    Raises:
        SignatureError: not a checkpoint of a playhead run.
    """
    point = parse_checkpoint(body)
    if not point.origin.startswith(ORIGIN):
        raise SignatureError(f"the checkpoint is of {point.origin!r:.80}, not of a run")
    words: dict[str, list[str]] = {}
    for line in point.extensions:
        key, *rest = line.split(" ")
        words.setdefault(key, rest)
    try:
        (step_hash,) = words["head"]
        size, digest = words["bytes"]
        fields = words.get("fields")
        return Head(
            run_id=point.origin[len(ORIGIN) :],
            size=point.size,
            root=point.root,
            step_hash=step_hash,
            length=int(size),
            bytes_sha256=digest,
            fields_root=base64.b64decode(fields[0], validate=True) if fields else None,
        )
    except (KeyError, ValueError, IndexError):
        raise SignatureError("the checkpoint lacks its head or bytes line") from None
