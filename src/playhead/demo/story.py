"""The story that ``playhead demo`` tells: record, verify, walk, tamper, replay.

Every number and every verdict in it is computed while it is told. It writes below one folder
only, and keeps its own key there: whoever deletes the folder has deleted everything.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playhead.core.model import Report, Verdict
from playhead.demo.again import DATABASE, replay_again
from playhead.demo.scene import RUN_ID, play
from playhead.demo.stage import Stage
from playhead.demo.tamper import change_one_byte, copy_root, last_row_cut
from playhead.errors import UsageError
from playhead.formats.journal import SEGMENT
from playhead.replay.run import Run
from playhead.replay.view import Walker, one_line
from playhead.store.durable import ensure_dir
from playhead.store.root import DEFAULT, Root
from playhead.verifier.api import verify
from playhead.verifier.reader import JournalReader

FOLDER = "playhead-demo"
_MAX_SIBLINGS = 1000


def tell(out: Callable[[str], None], folder: Path | None = None, *, color: bool = False) -> int:
    """Tell the story, one line a call of ``out``.

    Args:
        folder: where everything goes; not there yet, or empty. Default: ``playhead-demo``
            here, or the first numbered sibling that is free.

    Returns:
        0 when every chapter came out as it should, else 1.

    Raises:
        UsageError: ``folder`` holds something. WriteFailed: it cannot be made.
    """
    began = time.monotonic()
    place = _place(folder)
    stage = Stage(out, color)
    stage.line("One agent run: recorded, proven, walked, tampered with, caught, replayed.", "bold")
    stage.line(f"Offline; the model is a script on 127.0.0.1; all files go to {place}/")
    root = Root(place / DEFAULT)
    with _state(place / "state"):
        good = [
            _record(stage, root, place),
            _verify(stage, root),
            _walk(stage, root),
            _change(stage, root, place),
            _cut(stage, root),
            replay_again(stage, root, RUN_ID, place),
        ]
    _close(stage, place, time.monotonic() - began)
    if all(good):
        return 0
    stage.line("A chapter did not come out as it should: please report this output.", "red")
    return 1


def _place(folder: Path | None) -> Path:
    """A folder that is there and empty."""
    if folder is not None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is there already", remedy="Name a folder that is not")
        ensure_dir(folder)
        return folder
    for number in range(1, _MAX_SIBLINGS):
        place = Path(FOLDER if number == 1 else f"{FOLDER}-{number}")
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            what = f"cannot make {place.absolute()}: {os.strerror(error.errno or 0).lower()}"
            raise UsageError(what, remedy="Go to a folder that you can write to") from None
        return place
    raise UsageError(f"{FOLDER} and its siblings are there already", remedy="Remove some of them")


@contextmanager
def _state(folder: Path) -> Iterator[None]:
    """Keys and outside heads of the demo in a folder of their own."""
    old = os.environ.get("PLAYHEAD_STATE")
    os.environ["PLAYHEAD_STATE"] = str(folder.absolute())
    try:
        yield
    finally:
        if old is None:
            del os.environ["PLAYHEAD_STATE"]
        else:
            os.environ["PLAYHEAD_STATE"] = old


def _record(stage: Stage, root: Root, place: Path) -> bool:
    stage.chapter("RECORD", "an agent with five tools answers two questions")
    began = time.monotonic()
    head, answers = play(root, place / "orders.txt")
    took = time.monotonic() - began
    path = root.journal_dir(RUN_ID) / SEGMENT
    size = path.stat().st_size
    for answer in answers:
        stage.text(answer, first="   agent: ")
    rows = path.read_bytes().count(b"\n")
    stage.line(f"   {rows} steps, {size:,} bytes, in {took:.2f} s; head {head[:16]}…")
    return rows > 0 and len(answers) == 2


def _verify(stage: Stage, root: Root) -> bool:
    stage.chapter("VERIFY", "every row recomputed, against the signed heads")
    report = verify(RUN_ID, root=root)
    stage.report(report)
    return report.verdict is Verdict.VERIFIED


def _walk(stage: Stage, root: Root) -> bool:
    stage.chapter("WALK", "forward to the first error")
    with Run.open(root.journal_dir(RUN_ID), root.cas) as run:
        walker = Walker(run)
        error = walker.next_error()
        if error is None:
            return False
        for event in run.events(0, error + 1):
            stage.step(one_line(event), ">" if event.seq == error else " ")
        stage.line("   and back to the order, when it was meant but not done yet")
        done = _back_to(walker, "tool.completed", "order")
        meant = _back_to(walker, "tool.called", "order")
        before, after = _pending(run, meant), _pending(run, done)
        stage.step(one_line(run.event(meant)), "<")
        stage.line(f"   state after step {meant}: {', '.join(before) or 'nothing'} pending")
        stage.line(f"   state after step {done}: {', '.join(after) or 'nothing'} pending")
    return before == ["order"] and not after


def _back_to(walker: Walker, kind: str, name: str) -> int:
    """Step back to the last event of that type and name; returns where it stands."""
    while walker.position > 0:
        event = walker.run.event(walker.back())
        if (event.type, event.name) == (kind, name):
            break
    return walker.position


def _pending(run: Run, step: int) -> list[str]:
    """Tools that were called and did not answer yet after ``step``."""
    calls = run.folded(step).view("tool_calls")
    return [
        str(call["name"])
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and call.get("status") == "pending"
    ]


def _change(stage: Stage, root: Root, place: Path) -> bool:
    stage.chapter("CHANGE ONE BYTE", f"in a copy, {place / 'changed'}")
    copy = copy_root(root, RUN_ID, place / "changed")
    change = change_one_byte(copy, RUN_ID, b'"arguments":{"count":', b"9")
    stage.line(f"   line {change.line}, byte {change.byte} of the file")
    stage.line(f"   was: {change.before}")
    stage.line(f"   now: {change.after}")
    report = verify(RUN_ID, root=copy)
    stage.report(report)
    return _caught_at(report, change.line)


def _caught_at(report: Report, line: int) -> bool:
    lines = [f.place.line for f in report.errors() if f.place.line is not None]
    return report.verdict is Verdict.FAILED and lines[:1] == [line]


def _cut(stage: Stage, root: Root) -> bool:
    stage.chapter("CUT THE LAST ROW", "and the signed head beside it, for a moment")
    with last_row_cut(root, RUN_ID) as missing:
        alone = JournalReader(root.journal_dir(RUN_ID)).verify()
        stage.text(
            f"{missing} bytes are gone. The file alone: {alone.steps} steps, "
            f"{len(alone.errors())} errors, {alone.verdict.value}. With the head that was kept "
            "outside the root:"
        )
        report = verify(RUN_ID, root=root)
        stage.report(report)
    again = verify(RUN_ID, root=root)
    stage.line(f"   put back: {again.verdict.value}")
    caught = "cut-tail" in {finding.kind for finding in report.errors()}
    return caught and not alone.errors() and again.verdict is Verdict.VERIFIED


def _close(stage: Stage, place: Path, took: float) -> None:
    stage.line()
    stage.line(f"All of it took {took:.1f} s. In {place}/ there are", "bold")
    for name, what in (
        (DEFAULT, "the root: journal and signed head, plain files"),
        ("state", "the demo's own key, and the heads outside the root"),
        ("changed", "the copy with the changed byte"),
        (DATABASE, "the same run in SQLite"),
        ("orders.txt", "what the agent did to the world"),
    ):
        stage.line(f"   {name:<12} {what}")
    stage.line("Next:", "bold")
    bin_dir = _not_on_path()
    if bin_dir is not None:
        stage.line(f"   export PATH={shlex.quote(bin_dir)}:$PATH")
    stage.line(f"   cd {shlex.quote(str(place))}")
    stage.line(f"   export PLAYHEAD_STATE=$PWD/state PLAYHEAD_ROOT=$PWD/{DEFAULT}")
    stage.line(f"   playhead walk {RUN_ID}                      # forward, back, search, state")
    stage.line(f"   playhead verify {RUN_ID} --root changed     # see it caught again")
    stage.line(f"   playhead replay {RUN_ID} --seek 15          # the state behind a row")
    stage.line("Delete the folder and nothing of it is left.")


def _not_on_path() -> str | None:
    """Where this program lies, when a shell would not find it by its name."""
    program = Path(sys.argv[0])
    if program.name != "playhead" or shutil.which("playhead") is not None:
        return None
    return str(program.absolute().parent)
