"""``make bench``: the hot paths beside a plain walk and, where installed, the reference.

Every ratio is of medians of interleaved repetitions in this one run; absolute times are of
this machine and its load. CPU is user and system time of the process and its helpers
(``time.process_time``, ``getrusage``), wall is ``time.perf_counter``. A target that is missed is
printed as missed; the exit status says only whether the run came to its end.

    python tools/bench/run.py [--quick] [verify memory append opening size start
                                replay stores]

``--quick`` uses 100,000 steps instead of a million, and fewer repetitions. The reference
package is used when PLAYHEAD_PEER_PYTHON names a Python that has it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

PARTS = ("verify", "memory", "append", "opening", "size", "start", "replay", "stores")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", help=" ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="100,000 steps, fewer repetitions")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {' '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="playhead-bench-") as name:
        folder = Path(name)
        os.environ["PLAYHEAD_STATE"] = str(folder / "state")
        bench(folder, given.parts or PARTS, given.quick)


def bench(folder: Path, parts: tuple[str, ...] | list[str], quick: bool) -> None:
    # These import playhead, which must see the state directory above and not the user's.
    import events
    import material
    import replays
    import sizes
    import starts
    import stores
    import walks
    import writes

    steps = 100_000 if quick else 1_000_000
    if "verify" in parts:
        walks.verify(folder, quick)
    if {"memory", "opening"} & set(parts):
        file = folder / "long" / "000000.jsonl"
        file.parent.mkdir()
        material.write(file, material.rows(steps, "ASCII", 600))
        if "memory" in parts:
            walks.memory(file, steps)
    if "append" in parts:
        writes.append(folder, quick)
        writes.seam(folder, quick)
    if "opening" in parts:
        writes.opening(file, steps, quick)
    if "size" in parts:
        sizes.sizes(folder)
    if "start" in parts:
        starts.starts(quick)
    if "replay" in parts:
        short, long = folder / "chat-short", folder / "chat-long"
        events.write(short, steps // 10)
        events.write(long, steps)
        replays.seeks(long, steps)
        replays.steps(short, steps // 10, 5 if quick else 3)
        replays.memory(short, long, (steps // 10, steps))
    if "stores" in parts:
        stores.stores(folder, quick)


if __name__ == "__main__":
    main()
