"""Replay: jumping, stepping and memory over a long chat in a journal."""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import orjson
from events import CHAT, TENANT
from timing import line, title

from playhead.core.fold import fold
from playhead.core.projections import BUILT_IN
from playhead.core.quickevent import event_of_line
from playhead.replay import StoreRuntime, SyncReplayClient
from playhead.replay.client import ReplayClient
from playhead.store.lines import open_lines

SEEKS = 200


def seeks(root: Path, rows: int) -> None:
    """Jumps of a handle whose states are kept already, beside a full fold."""
    title(f"seek, {rows:,} events in a journal, states kept on the way")
    for name, projections in (("core state", ()), ("all projections", BUILT_IN)):
        with SyncReplayClient(StoreRuntime.open(str(root))) as client:
            handle = client.from_event_log(
                CHAT, tenant_id=TENANT, projections=projections, verify="off"
            )
            started = time.perf_counter()
            handle.seek(rows)
            whole = time.perf_counter() - started
            rng = random.Random(3)
            places = [rng.randint(1, rows) for _ in range(SEEKS)]
            took = [_one(handle, place) for place in places]
            parts = [
                statistics.median(
                    _one(handle, rng.randint(low, low + rows // 100)) for _ in range(40)
                )
                for low in (1, rows // 2, rows - rows // 100)
            ]
            handle.close()
        median, worst = statistics.median(took), statistics.quantiles(took, n=20)[-1]
        line(f"{name}: full fold", f"{whole:.2f} s", f"{rows / whole:,.0f} events/s")
        line(
            f"{name}: seek",
            f"median {median * 1e3:.2f} ms",
            f"95 % {worst * 1e3:.2f} ms",
            target="<= 10 ms",
            met=median <= 0.010,
        )
        where = " / ".join(f"{part * 1e3:.2f}" for part in parts)
        line(f"{name}: begin / middle / end", f"{where} ms")
        line(
            f"{name}: seek over full fold",
            f"1/{whole / median:,.0f}",
            target="<= 1/100",
            met=median * 100 <= whole,
        )


def _one(handle: object, place: int) -> float:
    started = time.perf_counter()
    handle.seek(place)  # type: ignore[attr-defined]
    return time.perf_counter() - started


def steps(root: Path, rows: int, repetitions: int) -> None:
    """Stepping in each mode beside reading the rows and parsing them, in turn."""
    title(f"step, {rows:,} events in a journal, no states kept")
    folder = next((root / "runtime" / "journal").iterdir())
    contenders = {
        "read the rows": lambda: _read(folder),
        "read and orjson.loads": lambda: _parse(folder),
        "read, decode, fold (no handle)": lambda: _fold(folder),
        'handle, verify="off"': lambda: _sync(root, "off"),
        'handle, verify="step"': lambda: _sync(root, "step"),
        'handle, verify="open"': lambda: _sync(root, "open"),
        'async handle, verify="off"': lambda: asyncio.run(_async(root, "off")),
    }
    took: dict[str, list[float]] = {name: [] for name in contenders}
    opening: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, run in contenders.items():
            started = time.perf_counter()
            opened = run() or 0.0
            took[name].append(time.perf_counter() - started - opened)
            opening[name].append(opened)
    base = statistics.median(took["read the rows"])
    parsed = statistics.median(took["read and orjson.loads"])
    for name, seconds in took.items():
        median = statistics.median(seconds)
        rate = rows / median
        is_target = name == 'handle, verify="off"'
        more = []
        if opening[name][0]:
            more.append(f"opening {statistics.median(opening[name]):.2f} s")
        line(
            name,
            f"{rate:,.0f} events/s",
            f"{median / base:.1f}x of reading",
            f"{median / parsed:.1f}x of parsing",
            *more,
            target=">= 100,000/s" if is_target else "",
            met=rate >= 100_000 if is_target else None,
        )


def _read(folder: Path) -> None:
    lines = open_lines(folder)
    for _ in lines.walk(0, None):
        pass
    lines.close()


def _parse(folder: Path) -> None:
    lines = open_lines(folder)
    for _, _, text in lines.walk(0, None):
        orjson.loads(text)
    lines.close()


def _fold(folder: Path) -> None:
    lines = open_lines(folder)
    fold(event_of_line(n, text) for n, (_, _, text) in enumerate(lines.walk(0, None)))
    lines.close()


def _sync(root: Path, verify: str) -> float:
    with SyncReplayClient(StoreRuntime.open(str(root))) as client:
        started = time.perf_counter()
        handle = client.from_event_log(
            CHAT,
            tenant_id=TENANT,
            verify=verify,
            snapshots="off",  # type: ignore[arg-type]
        )
        opened = time.perf_counter() - started
        while not handle.step().done:
            pass
        handle.close()
    return opened


async def _async(root: Path, verify: str) -> float:
    started = time.perf_counter()
    handle = await ReplayClient(StoreRuntime.open(str(root))).from_event_log(
        CHAT,
        tenant_id=TENANT,
        verify=verify,
        snapshots="off",  # type: ignore[arg-type]
    )
    opened = time.perf_counter() - started
    while not (await handle.step()).done:
        pass
    await handle.close()
    return opened


CHILD = """
import sys
from playhead.replay import StoreRuntime, SyncReplayClient
client = SyncReplayClient(StoreRuntime.open(sys.argv[1]))
handle = client.from_event_log("chat", tenant_id="bench", verify="off", snapshots=sys.argv[2])
while not handle.step().done:
    pass
with open("/proc/self/status") as status:  # ru_maxrss would be that of who started this
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def memory(short: Path, long: Path, sizes: tuple[int, int]) -> None:
    """Peak memory of a process that steps through a chat, short and long."""
    title("memory of stepping through a chat")
    for snapshots in ("off", "use"):
        peaks = []
        for root in (short, long):
            command = [sys.executable, "-c", CHILD, str(root), snapshots]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            peaks.append(int(said) / 1024)
        met = peaks[1] <= 1.5 * peaks[0] if snapshots == "off" else None
        line(
            f'snapshots="{snapshots}"',
            f"{sizes[0]:,}: {peaks[0]:.0f} MB",
            f"{sizes[1]:,}: {peaks[1]:.0f} MB",
            target="flat" if snapshots == "off" else "",
            met=met,
        )
