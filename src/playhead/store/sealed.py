"""Reading a sealed journal in place (docs/reference/formats/sealed.md).

A sealed file is untrusted input: every size is checked against a limit before anything of
that size is made, a frame is unpacked alone and compared with its digest before its bytes
are given out. The digests stand in the same file, so they find damage; that nobody changed
the rows is proven by the chain and the signed head, as for a plain journal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from playhead.errors import CheckFailed, NotFound, Place, Refused, TooLarge
from playhead.formats.journal import SEALED
from playhead.formats.sealed import (
    FOOTER,
    MAX_FRAME,
    REMEDY,
    Frame,
    Index,
    decode_content,
    decode_index,
    index_size,
)
from playhead.store.durable import open_regular
from playhead.store.reader import BLOCK


def frame_index(folder: Path) -> Index:
    """The index of the sealed journal in ``folder``.

    Raises:
        NotFound: it is not sealed. Refused: the index is damaged.
    """
    fd = open_regular(folder / SEALED)
    with open(fd, "rb", buffering=0):
        return read_index(fd, str(folder / SEALED))


def read_index(fd: int, name: str) -> Index:
    """The index of an open sealed file; ``name`` is for messages. Raises: see `decode_index`."""
    end = os.fstat(fd).st_size
    with _place(Place(name)):
        size = index_size(os.pread(fd, FOOTER, max(end - FOOTER, 0)))
        if size > end:
            raise Refused("not a sealed journal, or its beginning is gone", remedy=REMEDY)
        return decode_index(os.pread(fd, size, end - size), end - size)


def read_frame(fd: int, name: str, frame: Frame) -> bytes:
    """The plain journal bytes of one frame, checked against the index.

    Raises:
        Refused, TooLarge: it does not unpack within its limits.
        CheckFailed: it unpacks to other bytes than were sealed.
    """
    with _place(Place(name, byte=frame.offset)):
        content = _decompress(os.pread(fd, frame.length, frame.offset), frame)
        plain = decode_content(content, frame.plain)
        if len(plain) != frame.plain or sha256(plain).hexdigest() != frame.sha256:
            first = f"rows {frame.first_row} to {frame.first_row + frame.rows - 1}"
            raise CheckFailed(
                f"sealed-frame-mismatch: the frame of {first} holds other bytes than were sealed",
                remedy=REMEDY,
            )
        return plain


def _decompress(raw: bytes, frame: Frame) -> bytes:
    """One zstd frame that must declare and give exactly the size that the index names."""
    import zstandard

    try:
        seen = zstandard.get_frame_parameters(raw)
        if seen.content_size != frame.content or seen.window_size > 2 * MAX_FRAME:
            raise TooLarge("a frame declares another size than the index", remedy=REMEDY)
        data = zstandard.ZstdDecompressor(max_window_size=1 << 26).decompress(
            raw, max_output_size=frame.content, read_across_frames=False, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise Refused(f"a frame is damaged: {str(error)[:100]}", remedy=REMEDY) from None
    if len(data) != frame.content:
        raise Refused("a frame is damaged: it is shorter than declared", remedy=REMEDY)
    return data


@contextlib.contextmanager
def _place(place: Place) -> Iterator[None]:
    """Say where a damage was found; the grammar knows only what it is."""
    try:
        yield
    except (Refused, CheckFailed) as error:
        raise type(error)(error.what, place=place, remedy=error.remedy or REMEDY) from None


def unsealed_blocks(fd: int, name: str) -> Iterator[bytes]:
    """The plain bytes of the sealed file ``fd`` in blocks of at most 1 MiB, checked frame by
    frame before they are given out. ``name`` is for messages.

    Raises:
        Refused, TooLarge: the file is damaged or hostile.
        CheckFailed: a frame holds other bytes than were sealed.
    """
    index = read_index(fd, name)
    sha = sha256()
    for frame in index.frames:
        plain = read_frame(fd, name, frame)
        sha.update(plain)
        for at in range(0, len(plain), BLOCK):
            yield plain[at : at + BLOCK]
    if sha.hexdigest() != index.sha256:
        raise CheckFailed(
            "sealed-journal-mismatch: the frames together are not the sealed journal",
            place=Place(name),
            remedy=REMEDY,
        )


def sealed_bytes(path: Path) -> Iterator[bytes]:
    """The plain bytes of a sealed file.

    Raises:
        NotFound: there is none. Else as `unsealed_blocks`.
    """
    try:
        fd = open_regular(path)
    except NotFound:
        raise NotFound("no journal", place=Place(str(path.parent))) from None
    with open(fd, "rb", buffering=0):
        yield from unsealed_blocks(fd, str(path))
