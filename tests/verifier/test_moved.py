"""A root that was moved, and runs that go on there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead.core.model import Verdict
from playhead.errors import NotFound, RecordError
from playhead.store.keys import KeyRing
from playhead.store.root import Root
from playhead.verifier.fsck import fsck


def test_a_moved_run_that_goes_on_keeps_its_commitments(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for place in (old, new):
        with playhead.record("agent", root=place, chat_id="chat-1") as run:
            run.state("step", str(place))
        if place is old:
            old.rename(new)
    (report,) = fsck(Root(new))
    assert report.verdict is Verdict.VERIFIED, report.findings
    assert not report.unproven


def test_a_failed_report_claims_nothing(tmp_path: Path) -> None:
    with playhead.record("agent", root=tmp_path) as run:
        run.state("step", "value")
    journal = Root(tmp_path).journal_dir(run.id) / "000000.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"value"', b'"other"', 1))
    report = playhead.verify(run.id, root=Root(tmp_path))
    assert report.verdict is Verdict.FAILED
    assert (report.proven, report.unproven) == ((), ())
    assert report.findings[0].kind == "step-hash-mismatch"
    assert "raw-bytes-changed" not in [f.kind for f in report.findings]


def test_commitments_outlive_a_crash(tmp_path: Path) -> None:
    """Rows behind the last signed head get their commitments back when the chain goes on."""
    script = """
import os, sys, playhead
run = playhead.record("agent", root=sys.argv[1], chat_id="chat-1", durability="os").open()
for n in range(5):
    run.state("step", n)
os._exit(9)
"""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
        assert done.returncode == 9
    with playhead.record("agent", root=tmp_path, chat_id="chat-1") as run:
        run.state("last", True)
    (report,) = fsck(Root(tmp_path))
    assert report.verdict is Verdict.VERIFIED, report.findings
    assert not report.unproven, report.unproven
    assert report.steps == 6 + 6 + 3


def test_blank_lines_between_signed_rows_are_found(tmp_path: Path) -> None:
    with playhead.record("agent", root=tmp_path) as run:
        run.state("step", "value")
    journal = Root(tmp_path).journal_dir(run.id) / "000000.jsonl"
    rows = journal.read_bytes()
    journal.write_bytes(rows.replace(b"\n", b"\n\n", 1))
    report = playhead.verify(run.id, root=Root(tmp_path))
    assert [finding.kind for finding in report.errors()] == ["raw-bytes-changed"]
    for changed in (rows + b"\n \n", rows.replace(b"\n", b"\r", 1), rows[:-1]):
        journal.write_bytes(changed)
        report = playhead.verify(run.id, root=Root(tmp_path))
        assert [finding.kind for finding in report.errors()] == ["raw-bytes-changed"]
    journal.write_bytes(rows)
    assert playhead.verify(run.id, root=Root(tmp_path)).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("inner", [True, False])
def test_a_run_that_was_taken_away_is_named(tmp_path: Path, inner: bool) -> None:
    root = Root(tmp_path / "root")
    for name in ("kept", "gone"):
        with playhead.record("agent", root=root, run_id=name):
            pass
    shutil.rmtree(root.journal_dir("gone"))
    if not inner:
        shutil.rmtree(root.heads)
    gone = [report for report in fsck(root) if report.target == "gone"]
    assert [finding.kind for report in gone for finding in report.findings] == ["missing-run"]
    assert playhead.verify("gone", root=root).verdict is Verdict.FAILED
    with pytest.raises(NotFound):
        playhead.verify("never", root=root)


def test_an_untrusted_head_is_not_called_missing(tmp_path: Path) -> None:
    with playhead.record("agent", root=tmp_path) as run:
        pass
    ring = KeyRing(tmp_path / "another-state")
    report = playhead.verify(run.id, root=Root(tmp_path), ring=ring)
    assert [finding.kind for finding in report.findings] == ["head-not-usable"]
    assert report.verdict is Verdict.UNPROVEN


def test_opening_does_not_bless_a_run_put_in_from_elsewhere(tmp_path: Path) -> None:
    """The longer run of another root, signed by the same key, does not hide the head outside."""
    mine, other = Root(tmp_path / "mine"), Root(tmp_path / "other")
    for root, steps in ((mine, 3), (other, 9)):
        with playhead.record("agent", root=root, run_id="y") as run:
            for n in range(steps):
                run.state("step", n)
    shutil.rmtree(mine.path)
    shutil.copytree(other.path, mine.path)
    assert playhead.verify("y", root=mine).verdict is Verdict.FAILED
    with (
        pytest.raises(RecordError, match="rewritten"),
        playhead.record("agent", root=mine, run_id="y"),
    ):
        pass
    assert playhead.verify("y", root=mine).verdict is Verdict.FAILED


def test_a_link_below_the_root_does_not_hide_the_head_outside(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    for n in range(2):
        with playhead.record("agent", root=root, run_id="x") as run:
            run.state("step", n)
        if not n:
            shutil.copytree(root.path, tmp_path / "old")
    shutil.rmtree(root.path / "runtime")
    (root.path / "runtime").symlink_to(tmp_path / "old" / "runtime")
    report = playhead.verify("x", root=root)
    assert report.verdict is Verdict.FAILED, report
    assert {finding.kind for finding in report.errors()} <= {"cut-tail", "rollback"}
