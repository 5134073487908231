"""Journals both ways between playhead and the reference package (by hand, not in CI).

It needs Python 3.12 with ``bernstein==3.23.0``: the one that PLAYHEAD_PEER_PYTHON names, else
a virtual environment made in a temporary directory (a ``python3.12`` on the PATH, and a
package registry). Exit status 1 when a check fails, 2 when there is no such Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import playhead
from playhead import Journal, JournalReader, Root, Verdict

PEER = "bernstein==3.23.0"
HERE = Path(__file__).resolve().parent
PROBE = "import importlib.metadata as m; print(m.version('bernstein'))"


@dataclass
class Table:
    """Checks as they are made: printed at once, counted at the end."""

    failed: list[str] = field(default_factory=list)
    count: int = 0

    def check(self, what: str, holds: bool, detail: object = "") -> None:
        self.count += 1
        note = f"  {detail}" if detail != "" else ""
        print(f"  {'ok    ' if holds else 'FAILED'}  {what}{note}")
        if not holds:
            self.failed.append(what)


def peer_python(scratch: Path) -> str:
    """A Python in which the reference package can be imported."""
    named = os.environ.get("PLAYHEAD_PEER_PYTHON")
    if named:
        return named
    base = shutil.which("python3.12")
    if base is None:
        print("no python3.12 on the PATH: set PLAYHEAD_PEER_PYTHON", file=sys.stderr)
        raise SystemExit(2)
    print(f"making an environment with {PEER} ...")
    subprocess.run([base, "-m", "venv", str(scratch / "peer")], check=True)
    python = str(scratch / "peer" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
    return python


class Peer:
    """The reference package behind a process of its own."""

    def __init__(self, python: str) -> None:
        self.python = python
        try:
            done = self._run("-c", PROBE)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"the peer does not start: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        self.version = done.stdout.strip()

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        command = [self.python, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env)

    def ask(self, command: str, folder: Path) -> dict[str, Any]:
        try:
            done = self._run(str(HERE / "peer.py"), command, str(folder))
        except subprocess.CalledProcessError as error:
            return {"raised": error.stderr.strip().splitlines()[-1:]}
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer


def record(root: Path, prompts: Any) -> Path:
    """A run with turns, tools, a failing tool, streamed text, state, deltas and a subagent."""
    with playhead.record("interop", root=root, prompts=prompts) as run:

        @run.tool(effects="read")
        def look(place: str) -> dict[str, object]:
            if place == "nowhere":
                raise LookupError(place)
            return {"place": place, "degrees": [21.5, -0.0, 1e-7, 2**60], "note": "Zürich 🏔"}

        messages: list[dict[str, object]] = [{"role": "system", "content": "You help."}]
        for question in ("Zürich?", "nowhere?", "and again?"):
            with run.turn(question):
                messages.append({"role": "user", "content": question})
                with run.model_call("model-1", messages, temperature=0.1) as call:
                    call.respond({"role": "assistant", "content": "Let me look."})
                try:
                    look(question.rstrip("?"))
                except LookupError:
                    run.state("lost", True)
                with run.model_call("model-1", messages) as call:
                    for piece in ("It is ", "fine \ud83c", "\udfd4."):
                        call.chunk(piece)
                messages.append({"role": "assistant", "content": "It is fine 🏔."})
        with run.subagent("helper", prompt="dig"):
            run.event("custom.noted", {"nan": float("nan"), "bytes": b"\xff"})
        run_id = run.id
    return Root(root).journal_dir(run_id)


def ours_is_read(peer: Peer, table: Table, folder: Path) -> None:
    """The reference reads, verifies and extends a journal of ours; we go on behind it."""
    raw = (folder / "000000.jsonl").read_bytes()
    ours = playhead.verify(folder)
    table.check("playhead verifies its own run", ours.verdict is Verdict.VERIFIED, ours.steps)
    theirs = peer.ask("read", folder)
    table.check("the reference verifies it", theirs.get("ok") is True, theirs.get("errors", theirs))
    table.check("same head", theirs.get("head") == ours.head, ours.head[:16])
    table.check("same number of steps", theirs.get("steps") == ours.steps, ours.steps)
    again = "".join(row + "\n" for row in theirs.get("rows", ())).encode()
    table.check("its re-serialisation gives our bytes", again == raw, f"{len(raw)} bytes")
    extended = peer.ask("extend", folder)
    table.check("the reference extends it", extended.get("first") == ours.steps, extended)
    longer(peer, table, folder, extended)
    table.check(
        "our rows kept their bytes", (folder / "000000.jsonl").read_bytes()[: len(raw)] == raw
    )


def longer(peer: Peer, table: Table, folder: Path, extended: dict[str, Any]) -> None:
    """Behind what the reference appended: verify, append, and let it verify again."""
    report = playhead.verify(folder)
    sound = not report.errors() and report.head == extended.get("head")
    table.check("playhead verifies what was added", sound, f"{report.verdict.value} {report.steps}")
    given = playhead.verify(folder, head=extended.get("head"))
    table.check("against the reference's head", given.verdict is Verdict.VERIFIED)
    with Journal.open(folder, durability="os") as journal:
        at = journal.next_seq == extended.get("next_seq")
        journal.append(input_hash="", prompt="ours again", tool_result={"é": [1e22, 2**65]})
        head = journal.head
    table.check("playhead extends it in turn", at, journal.next_seq)
    table.check("and verifies the whole", playhead.verify(folder).verdict is Verdict.VERIFIED)
    theirs = peer.ask("read", folder)
    same = theirs.get("ok") is True and theirs.get("head") == head
    table.check("the reference verifies the whole", same, theirs.get("steps", theirs))
    raw = (folder / "000000.jsonl").read_bytes()
    again = "".join(row + "\n" for row in theirs.get("rows", ())).encode()
    table.check("every byte is as the reference writes it", again == raw, f"{len(raw)} bytes")


def theirs_is_read(peer: Peer, table: Table, folder: Path) -> None:
    """A journal of the reference: read, verified, rows equal, extended by both."""
    written = peer.ask("extend", folder)
    table.check("the reference writes a journal", written.get("first") == 0, written)
    report = JournalReader(folder).verify(expected_head=written.get("head"))
    table.check("playhead verifies it", report.verdict is Verdict.VERIFIED, report.steps)
    strict = JournalReader(folder).verify(strict=True)
    table.check("strictly, too", not strict.errors(), [f.kind for f in strict.errors()])
    hashes = [json.loads(row)["step_hash"] for row in peer.ask("read", folder).get("rows", ())]
    ours = [step.step_hash for step in JournalReader(folder).entries()]
    table.check("the same steps", hashes == ours and len(ours) > 0, len(ours))
    longer(peer, table, folder, written)
    extended = peer.ask("extend", folder)
    table.check("the reference extends what we extended", extended.get("first") == len(ours) + 1)
    longer(peer, table, folder, extended)


def main() -> int:
    scratch = Path(tempfile.mkdtemp(prefix="playhead-interop-"))
    os.environ["PLAYHEAD_STATE"] = str(scratch / "state")
    table = Table()
    try:
        peer = Peer(peer_python(scratch))
        print(f"playhead {playhead.__version__} and bernstein {peer.version}")
        table.check(f"the peer is {PEER}", f"bernstein=={peer.version}" == PEER)
        for prompts in ("delta", "full"):
            print(f"\na run of playhead (prompts={prompts!r}), read by the reference")
            ours_is_read(peer, table, record(scratch / prompts, prompts))
        print("\na journal of the reference, read by playhead")
        theirs_is_read(peer, table, scratch / "theirs" / "runtime" / "journal" / "agent")
    finally:
        shutil.rmtree(scratch)
    print(f"\n{table.count - len(table.failed)} of {table.count} checks hold")
    return 1 if table.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
