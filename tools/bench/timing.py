"""Interleaved repetitions, medians and ratios; CPU time and wall time beside one another."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of one contender, in seconds."""

    cpu: float
    wall: float


def interleaved(
    contenders: Mapping[str, Callable[[], object]], repetitions: int
) -> dict[str, Timing]:
    """Run every contender in turn, ``repetitions`` times over, after one round to warm up.

    Load on the machine then falls on all of them alike, so that their ratios hold.
    """
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(repetitions + 1):
        for name, run in contenders.items():
            gc.collect()
            started, used = time.perf_counter(), _cpu()
            run()
            if number:
                cpu[name].append(_cpu() - used)
                wall[name].append(time.perf_counter() - started)
    return {
        name: Timing(statistics.median(cpu[name]), statistics.median(wall[name]))
        for name in contenders
    }


def _cpu() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    import resource

    used = time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used + children.ru_utime + children.ru_stime


def process(code: str, *arguments: str, python: str = sys.executable) -> Callable[[], object]:
    """A whole Python process running ``code``, as a contender."""
    command = [python, "-c", code, *arguments]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def line(label: str, *parts: str, target: str = "", met: bool | None = None) -> None:
    """One figure. ``met`` says whether the target was reached in this very run."""
    mark = "" if met is None else ("  [met]" if met else "  [MISSED]")
    goal = f"  (target {target})" if target else ""
    print(f"  {label:<34} {'  '.join(parts)}{goal}{mark}", flush=True)
