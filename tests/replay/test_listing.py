"""The list of runs: from outer rows only, whatever lies in between."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from helpers import event_rows, foreign_rows, write_events, write_lines
from playhead.core.events import Draft
from playhead.formats.journal import SEGMENT
from playhead.recorder.writer import RunWriter
from playhead.replay.listing import list_runs, peek
from playhead.replay.run import Run
from playhead.store.root import Root


def started(run_id: str, **more: Any) -> Draft:
    payload = {"uid": "u", "agent": "smith", **more}
    return Draft("run.started", payload, tenant_id="t", chat_id="c", run_id=run_id)


def test_a_recorded_run_is_told_by_its_ends(root: Path) -> None:
    place = Root(root)
    assert list_runs(place) == []
    writer = RunWriter.create(place, agent="smith", run_id="r1", tenant_id="acme", chat_id="c")
    for n in range(5):
        writer.emit(Draft("acme.x", {"n": n}))
    (info,) = list_runs(place)
    assert (info.status, info.ended, info.steps) == ("unfinished", None, 6)
    writer.close("failed")
    (info,) = list_runs(place)
    assert (info.run_id, info.agent, info.tenant_id, info.chat_id) == ("r1", "smith", "acme", "c")
    assert (info.kind, info.status, info.steps, info.parent) == ("native", "failed", 7, None)
    assert info.started is not None
    assert info.ended is not None
    assert info.started <= info.ended
    with Run.open(place.journal_dir("r1")) as run:
        assert run.info == info


def test_the_kinds_of_runs(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    write_events(root.journal_dir("imported"), [started("imported", imported_from="claude-code")])
    write_lines(root.journal_dir("foreign"), foreign_rows([{"prompt": "p"}, {"model": "m"}]))
    write_lines(root.journal_dir("empty"), [])
    write_lines(root.journal_dir("broken"), [b"\xff"])
    found = {info.run_id: info for info in list_runs(root)}
    assert {name: info.kind for name, info in found.items()} == {
        "imported": "imported",
        "foreign": "foreign",
        "empty": "empty",
        "broken": "empty",
    }
    assert (found["foreign"].steps, found["foreign"].status) == (2, "")
    assert found["foreign"].started == "2026-01-01T00:00:00.000000Z"


def test_a_fork_names_its_parent(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    forked = Draft(
        "run.forked", {"parent_run_id": "mother", "parent_step": 1, "parent_step_hash": "h"}
    )
    write_events(root.journal_dir("child"), [started("mother"), Draft("acme.x", {}), forked])
    (info,) = list_runs(root)
    assert info.parent == "mother"
    with Run.open(root.journal_dir("child")) as run:
        assert (run.info.parent, run.info.parent_step) == ("mother", 1)


def test_only_the_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = event_rows([started("big"), *(Draft("acme.x", {"n": "y" * 1000}) for _ in range(5000))])
    folder = write_lines(tmp_path / "big", rows)
    read = 0
    pread = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, size, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    assert peek(folder).steps == 5001
    assert read < (folder / SEGMENT).stat().st_size // 4


def test_a_torn_tail_is_passed_over(tmp_path: Path) -> None:
    rows = event_rows([started("r"), Draft("acme.x", {"t": "z" * 100_000})])
    folder = write_lines(tmp_path / "r", rows)
    with open(folder / SEGMENT, "ab") as file:
        file.write(b'{"blob_refs":[],"inp')
    assert peek(folder).steps == 2


@pytest.mark.parametrize("seq", [b"1e400", b"9" * 4300, b"-5", b'"x"', b"[]"])
def test_a_last_row_may_claim_anything(tmp_path: Path, seq: bytes) -> None:
    folder = write_lines(tmp_path / "r", [*event_rows([started("r")]), b'{"seq":' + seq + b"}"])
    assert 1 <= peek(folder).steps <= 2**53 + 1
    assert str(peek(folder))


def test_a_sealed_run_is_listed_without_unpacking_it(root: Path) -> None:
    from playhead.store.seal import seal_folder

    place = Root(root)
    writer = RunWriter.create(place, agent="smith", run_id="r1")
    writer.emit(Draft("acme.x", {}))
    writer.close()
    (plain,) = list_runs(place)
    seal_folder(place.journal_dir("r1"))
    (sealed,) = list_runs(place)
    assert sealed.sealed
    assert (sealed.steps, sealed.status, sealed.started) == (3, "completed", plain.started)


def test_a_run_that_cannot_be_read_says_why(root: Path) -> None:
    from playhead.formats.journal import SEALED

    place = Root(root)
    folder = place.journal_dir("hurt")
    folder.mkdir(parents=True)
    (folder / SEALED).write_bytes(b"no frames")
    (info,) = list_runs(place)
    assert info.kind == "unreadable"
    assert info.problem is not None
    assert info.problem.startswith("refused: ")
    with Run.open(folder) as run:
        assert [event.type for event in run.events()] == ["unreadable"]
