"""Helpers that confirm pieces never change what a walk finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import foreign_rows
from playhead.store.reader import blocks_of, split_batches
from playhead.verifier.pieces import helpers_for, pieces
from playhead.verifier.walk import Gathered, gather

ROWS = [
    row.rstrip(b"\n")
    for row in foreign_rows(
        {"prompt": f"p\u00e9 {n}" if n % 7 == 0 else f"p {n}"} for n in range(60)
    )
]


def walked(path: Path, helpers: int, piece: int, sizes: tuple[int, ...]) -> Gathered:
    fd = os.open(path, os.O_RDONLY)
    try:
        if helpers:
            batches = pieces(fd, leaves=bool(sizes), helpers=helpers, piece=piece)
        else:
            batches = split_batches(blocks_of(fd))
        return gather(batches, file="j", sizes=sizes, expected_head="0" * 64)
    finally:
        os.close(fd)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    lines = list(ROWS[: draw(st.integers(1, len(ROWS)))])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["flip", "drop", "twice", "blank", "swap", "junk", "crlf"])):
            case "flip":
                row = bytearray(lines[at])
                if row:
                    row[draw(st.integers(0, len(row) - 1))] ^= 1
                lines[at] = bytes(row).replace(b"\n", b" ")
            case "drop" if len(lines) > 1:
                del lines[at]
            case "twice":
                lines.insert(at, lines[at])
            case "blank":
                lines.insert(at, b"")
            case "swap":
                lines[at], lines[0] = lines[0], lines[at]
            case "junk":
                lines.insert(at, b"{torn")
            case "crlf":
                lines[at] += b"\r"
    end = draw(st.sampled_from([b"\n", b"", b"\n\n", b"\n{"]))
    return b"\n".join(lines) + end


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(damaged(), st.integers(1, 3), st.integers(300, 9000), st.sets(st.integers(1, 60)))
def test_pieces_and_one_walk_agree(
    tmp_path: Path, data: bytes, helpers: int, piece: int, sizes: set[int]
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(data)
    wanted = tuple(sorted(sizes))
    assert walked(path, helpers, piece, wanted) == walked(path, 0, piece, wanted)


def test_a_helper_that_dies_is_replaced_by_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.verifier import pieces as module

    path = tmp_path / "journal"
    path.write_bytes(b"\n".join(ROWS) + b"\n")

    def die(*_: object) -> None:
        os._exit(9)

    monkeypatch.setattr(module, "_confirm", die)
    assert walked(path, 2, 2000, (5,)) == walked(path, 0, 2000, (5,))


def test_a_helper_that_lies_changes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A confirmed piece counts only where it follows: one that does not is walked again."""
    from playhead.verifier import pieces as module

    path = tmp_path / "journal"
    path.write_bytes(b"\n".join(ROWS) + b"\n")
    honest = module._link
    monkeypatch.setattr(module, "_link", lambda line: ("f" * 64, honest(line)[1]))
    assert walked(path, 1, 2000, (5,)) == walked(path, 0, 2000, (5,))


def test_a_small_file_is_not_worth_a_helper() -> None:
    assert helpers_for(1 << 20) == 0


def test_lines_are_counted_by_newlines_where_a_piece_ends_in_returns(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    damaged = ROWS[4].replace(b"p 4", b"p 5")
    data = b"\n".join([*ROWS[:2], b"\r\r", *ROWS[2:4], damaged, *ROWS[5:], b""])
    path.write_bytes(data)
    piece = data.index(b"\r\r") + 1
    assert walked(path, 1, piece, ()) == walked(path, 0, piece, ())


def test_a_piece_of_one_enormous_line_is_left_to_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.verifier import pieces as module

    path = tmp_path / "journal"
    path.write_bytes(b"\n".join(ROWS) + b"\n")
    monkeypatch.setattr(module, "_WIDEST", 1000)
    fd = os.open(path, os.O_RDONLY)
    found = list(pieces(fd, leaves=False, helpers=1, piece=2000))
    os.close(fd)
    assert not any(isinstance(part, module.Confirmed) for part in found)
