"""Appending beside the reference package, recording at the function seam, opening."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import material
from timing import interleaved, line, title

import playhead
from playhead.store.journal import Durability, Journal

_PEER = """
import sys, time
from pathlib import Path
from bernstein.core.persistence.journal import Journal
prompt, count = sys.stdin.read(), int(sys.argv[2])
with Journal.open(Path(sys.argv[1])) as journal:
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(count):
        journal.append(input_hash="a" * 64, model="model-1", prompt=prompt, tool_result="done")
    print((time.process_time() - cpu) / count, (time.perf_counter() - wall) / count)
"""


def _ours(folder: Path, level: Durability, prompt: str, count: int) -> tuple[float, float]:
    with Journal.open(folder, durability=level) as journal:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(count):
            journal.append(input_hash="a" * 64, model="model-1", prompt=prompt, tool_result="done")
        return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


def _peer(folder: Path, prompt: str, count: int) -> tuple[float, float] | None:
    python = os.environ.get("PLAYHEAD_PEER_PYTHON")
    if not python:
        return None
    command = [python, "-c", _PEER, str(folder), str(count)]
    done = subprocess.run(command, input=prompt, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    cpu, wall = map(float, done.stdout.split())
    return cpu, wall


def append(folder: Path, quick: bool) -> None:
    """Rows of 1 KB prompts, one journal a repetition, contenders in turn."""
    repetitions, count = (5, 2_000) if quick else (9, 5_000)
    title(f"3. append of 1 KB prompts, {count} at a time, us a step")
    prompt = material.text(random.Random(3), "ASCII", 1000)
    seen: dict[str, list[tuple[float, float]]] = {}
    for number in range(repetitions):
        for level in ("os", "batch", "step"):
            few = count if level != "step" else 200
            where = folder / f"append-{level}-{number}"
            seen.setdefault(level, []).append(_ours(where, level, prompt, few))
        theirs = _peer(folder / f"append-peer-{number}", prompt, count)
        if theirs:
            seen.setdefault("reference", []).append(theirs)
    middle = {
        name: (_median([t[0] for t in times]), _median([t[1] for t in times]))
        for name, times in seen.items()
    }
    peer = middle.get("reference")
    for name, (cpu, wall) in middle.items():
        parts = [f"{wall * 1e6:7.1f} wall", f"{cpu * 1e6:6.1f} CPU"]
        if peer and name == "os":
            ratio = peer[1] / wall
            parts.append(f"x{ratio:.2f} of the reference (wall)")
            line(name, *parts, target=">= 2x", met=ratio >= 2)
        else:
            line(name, *parts)
    if not peer:
        line("reference", "not measured: PLAYHEAD_PEER_PYTHON names no Python that has it")


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def seam(folder: Path, quick: bool) -> None:
    """A model call of 4 KB (3 KB of messages, 1 KB of answer) at the function seam."""
    count = 300 if quick else 1_000
    rng = random.Random(5)
    words = material.vocabulary(rng)
    calls = [
        ([{"role": "user", "content": material.prose(rng, words, 3000)}],
         material.prose(rng, words, 1000))
        for _ in range(count)
    ]  # fmt: skip
    seen: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(3 if quick else 5):
        for stamped, times in seen.items():
            times.append(_recorded(folder / f"seam-{stamped}-{number}", calls, stamped))
    for stamped, times in seen.items():
        wall, cpu = (_median([pair[at] for pair in times]) / count * 1e6 for at in (0, 1))
        line(
            f"recording a 4 KB model call, {'with' if stamped else 'without'} its cache key",
            f"{wall:.0f} us wall, {cpu:.0f} us CPU: request and answer, redacted and committed, "
            "level os",
        )


def _recorded(
    root: Path, calls: list[tuple[list[dict[str, str]], str]], stamped: bool
) -> tuple[float, float]:
    """Seconds, wall and CPU, of recording these calls in a run of its own."""
    with playhead.record("bench", root=root, durability="os", stamp_cache_keys=stamped) as run:
        cpu, wall = time.process_time(), time.perf_counter()
        for messages, answer in calls:
            with run.model_call("model-1", messages) as call:
                call.respond(answer)
        return time.perf_counter() - wall, time.process_time() - cpu


def _hash_once(file: Path) -> None:
    sha = sha256()
    with file.open("rb", buffering=0) as handle:
        while block := handle.read(1 << 20):
            sha.update(block)


def opening(file: Path, steps: int, quick: bool) -> None:
    """Opening after a clean close, beside hashing the file's bytes once."""
    title(f"4. opening a journal of {steps} steps ({file.stat().st_size >> 20} MiB)")
    folder = file.parent
    Journal.open(folder, durability="os").close()  # walked in full: nothing was signed yet
    times = interleaved(
        {
            "hash": lambda: _hash_once(file),
            "open": lambda: Journal.open(folder, durability="os").close(),
        },
        5 if quick else 7,
    )
    ratio = times["open"].wall / times["hash"].wall
    line(
        "after a clean close",
        f"x{ratio:.2f} wall",
        f"x{times['open'].cpu / times['hash'].cpu:.2f} CPU",
        f"({times['open'].wall * 1e3:.0f} ms; sha256 in 1 MiB blocks {times['hash'].wall * 1e3:.0f}"
        " ms)",
        target="<= 1.3x",
        met=ratio <= 1.3,
    )
    line("one byte changed in the middle", _refusal(file, folder))


def _refusal(file: Path, folder: Path) -> str:
    """Fail-closed, shown: the byte is changed, opening refuses, the byte is put back."""
    middle = file.stat().st_size // 2
    with file.open("r+b", buffering=0) as handle:
        before = os.pread(handle.fileno(), 1, middle)
        os.pwrite(handle.fileno(), bytes([before[0] ^ 1]), middle)
        try:
            Journal.open(folder, durability="os").close()
        except playhead.JournalError as error:
            return f"refused: {type(error).__name__}"
        finally:
            os.pwrite(handle.fileno(), before, middle)
    sys.exit("a changed byte was not found at open")
