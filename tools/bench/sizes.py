"""Bytes on disk of conversations whose every request repeats the whole history."""

from __future__ import annotations

import os
from pathlib import Path

import material
import zstandard
from timing import line, title

import playhead
from playhead.store.seal import seal_folder


def _on_disk(root: Path) -> int:
    """Length of every file under the root, whatever it is for."""
    return sum(
        os.lstat(os.path.join(place, name)).st_size
        for place, _, names in os.walk(root)
        for name in names
    )


def _run(root: Path, turns: int, user: int, answer: int, **shape: object) -> tuple[Path, int]:
    """Record a conversation; returns the journal's folder and the unique payload in bytes."""
    payload = 0
    with playhead.record("bench", root=root, run_id="talk", durability="os") as run:
        for messages, reply, new in material.conversation(
            turns,
            user,
            answer,
            **shape,  # type: ignore[arg-type]
        ):
            payload += new
            with run.model_call("model-1", messages) as call:
                call.respond(reply)
    return root / "runtime" / "journal" / "talk", payload


def _live(
    folder: Path, label: str, target: float | None, user: int, answer: int, **shape: object
) -> Path:
    root = folder / f"size-{label}".replace(" ", "-")
    run, payload = _run(root, 500, user, answer, **shape)
    size = _on_disk(root)
    ratio = size / payload
    line(
        label,
        f"{ratio:.2f}x: {size / 1000:.0f} KB for {payload / 1000:.0f} KB",
        target=f"<= {target}x" if target else "",
        met=ratio <= target if target else None,
    )
    return run


def sizes(folder: Path) -> None:
    """Live and sealed, with the payload counted once."""
    title(
        "5. size on disk / unique payload (journal, blobs and heads; 500 turns, history repeated)"
    )
    run = _live(folder, "500 turns of 1.2 + 2.8 KB", 1.5, 1200, 2800)
    _live(folder, "500 turns of 0.4 + 0.6 KB", None, 400, 600)
    _live(folder, "a clock in the first message", 2.0, 1200, 2800, clock=True)
    _live(folder, "compacted half-way", 2.0, 1200, 2800, compact_at=250)
    data = (run / "000000.jsonl").read_bytes()
    window = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    stream = len(zstandard.ZstdCompressor(compression_params=window).compress(data))
    seal_folder(run)
    line(
        "500 turns, sealed",
        f"{_on_disk(run) / 1000:.0f} KB; one long-window zstd stream of the same rows "
        f"{stream / 1000:.0f} KB (no access to a single step)",
    )
    root = folder / "size-200"
    run, payload = _run(root, 200, 400, 600)
    live = _on_disk(root)
    seal_folder(run)
    size = _on_disk(root)
    report = playhead.verify(str(run))
    line(
        f"200 turns of {payload / 1000:.0f} KB, sealed",
        f"{size / 1000:.1f} KB (live {live / 1000:.0f}), {report.verdict.value}",
        target="<= 120 KB",
        met=size <= 120_000,
    )
