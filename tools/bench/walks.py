"""`verify` beside the plain walk and the reference package; memory of a long walk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import material
from timing import interleaved, line, title

import playhead

_FIELDS = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result")
_PEER = """
import resource, statistics, sys, time
from pathlib import Path
from bernstein.core.persistence.journal import JournalReader
reader, times = JournalReader(Path(sys.argv[1])), []
for _ in range(int(sys.argv[2]) + 1):
    started = time.process_time()
    reader.verify()
    times.append(time.process_time() - started)
print(statistics.median(times[1:]))
"""
_PEAK = """
import sys
{body}
import resource
own = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
_WALK = "import playhead; report = playhead.verify(sys.argv[1]); assert report.steps == {steps}"


def plain(path: Path) -> None:
    """What anybody would write: parse, check the links, encode six fields, hash."""
    prev = "0" * 64
    with path.open("rb") as handle:
        for seq, raw in enumerate(handle):
            obj = json.loads(raw)
            fields = {name: obj[name] for name in _FIELDS}
            body = json.dumps(fields, sort_keys=True, separators=(",", ":"))
            found = sha256(body.encode()).hexdigest()
            if obj["seq"] != seq or obj["prev_hash"] != prev or obj["step_hash"] != found:
                raise SystemExit(f"the plain walk refuses line {seq + 1} of {path}")
            prev = found


def native(root: Path, count: int) -> Path:
    """A run that playhead recorded, with signed heads: model calls and tool calls."""
    messages: list[dict[str, str]] = []
    with playhead.record("bench", root=root, run_id="native", durability="os") as run:

        @run.tool(effects="read")
        def search(query: str) -> str:
            return query[::-1]

        for messages, answer, _ in material.conversation(count // 4, 300, 900):
            with run.model_call("model-1", messages[-20:]) as call:
                call.respond(answer)
            search(answer[:200])
    return root / "runtime" / "journal" / "native"


def peer_seconds(folder: Path, repetitions: int) -> float | None:
    """CPU seconds of the reference package's verify, in its own Python, if there is one."""
    python = os.environ.get("PLAYHEAD_PEER_PYTHON")
    if not python:
        return None
    done = subprocess.run(
        [python, "-c", _PEER, str(folder), str(repetitions)],
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def _fastest_is_ours(
    label: str, path: Path, steps: int, repetitions: int, target: float, peer: bool = True
) -> None:
    file = path if path.is_file() else path / "000000.jsonl"
    times = interleaved(
        {"plain": lambda: plain(file), "ours": lambda: playhead.verify(str(path))}, repetitions
    )
    ours, other = times["ours"], times["plain"]
    parts = [
        f"x{other.wall / ours.wall:.2f} wall",
        f"x{other.cpu / ours.cpu:.2f} CPU",
        f"{ours.cpu / steps * 1e6:5.1f} us CPU/row, plain {other.cpu / steps * 1e6:5.1f}",
    ]
    seconds = peer_seconds(file.parent, max(repetitions // 3, 3)) if peer else None
    if seconds is not None:
        parts.append(f"reference x{seconds / ours.cpu:.2f} CPU")
    line(label, *parts, target=f">= {target}x", met=other.wall / ours.wall >= target)


def verify(folder: Path, quick: bool) -> None:
    """Ratios of `verify`, small files (one process) and, for ASCII, a large one."""
    repetitions = 5 if quick else 11
    count = 4_000 if quick else 10_000
    title(f"1. verify / plain json.loads + json.dumps + sha256 walk ({count} rows of 1 KB prompts)")
    for number, kind in enumerate(material.WORDS):
        path = folder / f"text-{number}" / "000000.jsonl"
        path.parent.mkdir()
        material.write(path, material.rows(count, kind))
        _fastest_is_ours(kind, path, count, repetitions, 2.5 if kind == "ASCII" else 1.0)
    path = folder / "utf8.jsonl"
    french = material.rows(count, "French and German", encode=material.raw_utf8)
    material.write(path, french)
    _fastest_is_ours("raw UTF-8 (tolerated)", path, count, repetitions, 1.0, peer=False)
    run = native(folder / "root", count)
    steps = playhead.verify(str(run / "000000.jsonl")).steps
    _fastest_is_ours("a recorded run, heads compared", run, steps, repetitions, 1.0)
    large = 20_000 if quick else 60_000
    path = folder / "large" / "000000.jsonl"
    path.parent.mkdir()
    material.write(path, material.rows(large, "ASCII"))
    size = path.stat().st_size >> 20
    _fastest_is_ours(f"ASCII, {large} rows ({size} MiB)", path, large, 3, 2.5, peer=False)
    path.unlink()


def memory(path: Path, steps: int) -> None:
    """Peak resident memory of a process that verifies ``steps`` steps."""
    title(f"2. peak memory of verify on {steps} steps ({path.stat().st_size >> 20} MiB)")
    bare, _ = _peak("pass")
    imports, _ = _peak("import playhead; playhead.verify")
    own, helper = _peak(_WALK.format(steps=steps), str(path))
    over = (own - bare) / 1024
    parts = [f"{over:.1f} MiB, {(imports - bare) / 1024:.1f} of it imports"]
    if helper:
        both = (own - bare + helper - bare) / 1024
        parts.append(f"with the helper process, shared pages counted twice: {both:.1f} MiB")
    line("over `python -c pass`", *parts, target="< 64 MiB", met=over < 64)


def _peak(body: str, *arguments: str) -> tuple[int, int]:
    code = _PEAK.format(body=body)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    own, children = done.stdout.split()
    return int(own), int(children)
