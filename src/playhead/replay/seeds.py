"""The gate over processes with different hash seeds (study, item 68).

Within one process a set gives its members in one order, so handles beside one another agree on
it; only another process, whose texts hash otherwise, shows that a state depends on it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from playhead.core.fold import Projection
from playhead.errors import PlayheadError, ReplayArgumentError, ReplayDivergenceError, ValueRefused
from playhead.replay.arguments import require_id, require_projections
from playhead.replay.strictness import (
    BY_FAULT,
    BY_LENGTH,
    BY_STATE,
    StrictVerdict,
    all_equal,
    require_projection_fault,
)

_CHILD: Final = "import sys; sys.path[:] = {path!r}; import playhead.replay.seeds as s; s.child()"
_FAULT: Final = "the walk under another hash seed did not end: its process was stopped"


def strict_processes(
    url: str,
    chat_id: str,
    *,
    tenant_id: str,
    projections: Sequence[str] = (),
    seeds: Sequence[str] = ("0", "1"),
) -> StrictVerdict:
    """Walk a chat in one process for each hash seed, and compare the states at each step.

    Args:
        url: a store that another process can open; ``memory://`` holds nothing there.
        projections: keys of built-in projections, or ``package.module:name`` of one's own, which
            every process imports.
        seeds: values of ``PYTHONHASHSEED``, at least two different ones.

    Raises:
        ReplayArgumentError: a bad argument, or a projection that is not to be imported.
        PlayheadError: what every walk raises alike, such as `NotFound`, or a walk that was killed.
    """
    require_id("chat_id", chat_id)
    require_id("tenant_id", tenant_id)
    place: object = url
    if not isinstance(place, str) or place.lower().startswith("memory:"):
        raise ReplayArgumentError("url", "must name a store that another process can open")
    chosen = _require_seeds(seeds)
    named_projections(projections)
    asked = json.dumps([url, chat_id, tenant_id, list(projections)])
    children: list[subprocess.Popen[bytes]] = []
    try:
        for seed in chosen:  # all of them are at work before the first is waited for
            children.append(_started(seed))
        for process in children:
            _ask(process, asked.encode("ascii"))
        walks = [_answer(process) for process in children]
    finally:
        for process in children:
            process.kill()
            with process:
                pass  # its pipe is closed and its end taken note of
    return _compared(walks)


def _require_seeds(seeds: object) -> list[str]:
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Sequence):
        raise ReplayArgumentError("seeds", "must be a list of hash seeds")
    for seed in seeds:
        plain = isinstance(seed, str) and seed.isascii() and seed.isdigit() and len(seed) <= 10
        if not plain or int(seed) >= 1 << 32:
            raise ReplayArgumentError("seeds", "hold one that is no number from 0 to 4294967295")
    if not 2 <= len({int(seed) for seed in seeds}) == len(seeds) <= 16:
        raise ReplayArgumentError("seeds", "must be 2 to 16 different ones")
    return list(seeds)


def named_projections(names: Sequence[str]) -> tuple[Projection, ...]:
    """Projections by built-in key, or by ``package.module:name``.

    Raises:
        ReplayArgumentError: there is none of that name.
    """
    from playhead.replay.source import projections_of

    if isinstance(names, (str, bytes)) or not all(isinstance(name, str) for name in names):
        raise ReplayArgumentError("projections", "must be a list of names")
    found: list[Projection] = []
    for name in names:
        module, colon, attribute = name.partition(":")
        if not colon:
            found += projections_of((name,))
            continue
        try:
            found.append(getattr(importlib.import_module(module), attribute))
        except (ImportError, AttributeError, ValueError):
            raise ReplayArgumentError("projections", f"cannot import {name!r:.80}") from None
    return require_projections(found)


def _started(seed: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD.format(path=sys.path)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _ask(process: subprocess.Popen[bytes], asked: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # one that died is told of below
        stdin.write(asked)
    process.stdin = None


Walk = tuple[list[str], PlayheadError | None]
"""The digest behind each row, and what ended the walk before its end."""


def _answer(process: subprocess.Popen[bytes]) -> Walk:
    said, _ = process.communicate()
    if process.returncode:
        raise PlayheadError(_FAULT, remedy="Walk it in this process to see what it raises")
    digests, fault = pickle.loads(said)  # our own child wrote it
    return digests, fault


def child() -> None:
    """In the other process: walk what standard input names, and answer on standard output."""
    out, sys.stdout = sys.stdout, sys.stderr  # what a projection prints is no part of the answer
    answer = asyncio.run(_walk(*json.load(sys.stdin)))
    out.buffer.write(pickle.dumps(answer))
    out.flush()


async def _walk(url: str, chat_id: str, tenant_id: str, names: list[str]) -> Walk:
    from playhead.replay.client import ReplayClient
    from playhead.replay.source import StoreRuntime

    digests: list[str] = []
    try:
        with StoreRuntime.open(url) as runtime:
            opening = ReplayClient(runtime).from_event_log(
                chat_id, tenant_id=tenant_id, projections=named_projections(names)
            )
            async with opening as handle:
                digests.append(handle.state_digest())
                async for _ in handle:
                    digests.append(handle.state_digest())
    except PlayheadError as error:
        return digests, error
    return digests, None


def _compared(walks: list[Walk]) -> StrictVerdict:
    """The first place at which walks differ. Index 0 of a walk is the state before any row.

    Raises:
        PlayheadError: what every walk raised at the same place, or what is no projection's fault.
    """
    faults = [fault for _, fault in walks if fault is not None]
    for fault in faults:
        if not isinstance(fault, (ReplayDivergenceError, ValueRefused)):
            raise fault
        require_projection_fault(fault)
    longest = max(len(digests) for digests, _ in walks)
    for index in range(longest):
        here = tuple(digests[index] if index < len(digests) else "" for digests, _ in walks)
        if not all_equal(here):
            reason = BY_STATE if "" not in here else BY_FAULT if faults else BY_LENGTH
            step = max(index - 1, 0)
            return StrictVerdict(False, step, step, index, here, reason)
    if faults:
        if len(faults) == len(walks) and all_equal(fault.what for fault in faults):
            raise faults[0]
        digests = tuple("" for _ in walks)
        return StrictVerdict(False, longest - 1, longest - 1, longest, digests, BY_FAULT)
    return StrictVerdict(True, longest - 1)
