"""Journals of the reference package: read, judged, opened and extended as EXPECT.json says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import Journal, JournalError, JournalReader, Report, Verdict
from playhead.core.model import GENESIS
from playhead.core.rows import Row, compute_step_hash, decode_row

VECTORS = Path(__file__).parent.parent / "vectors" / "journal"
EXPECT: dict[str, dict[str, Any]] = json.loads((VECTORS / "EXPECT.json").read_text("utf-8"))[
    "files"
]
HASHED = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result", "effort")

Laid = Callable[[Path], Path]


@pytest.fixture
def laid(tmp_path: Path) -> Laid:
    """Puts a copy of a journal file into a journal directory of its own."""

    def lay(source: Path) -> Path:
        folder = tmp_path / "root" / "runtime" / "journal" / "agent-golden"
        folder.mkdir(parents=True)
        shutil.copyfile(source, folder / "000000.jsonl")
        return folder

    return lay


def kinds(report: Report, severity: str) -> list[str]:
    return sorted({f.kind for f in report.findings if f.severity == severity})


def open_and_extend(folder: Path, next_seq: int) -> None:
    """Two appends behind what is there: the whole verifies and opens again."""
    with Journal.open(folder, durability="os") as journal:
        assert journal.next_seq == next_seq
        for word in ("one", "two"):
            step = journal.append(input_hash="", prompt=word)
        assert step.seq == next_seq + 1
    report = JournalReader(folder).verify(expected_head=step.step_hash)
    assert (report.errors(), report.steps, report.head) == ([], next_seq + 2, step.step_hash)
    with Journal.open(folder, durability="os") as journal:
        assert (journal.next_seq, journal.head) == (next_seq + 2, step.step_hash)
    assert playhead.verify(folder).verdict is Verdict.VERIFIED


def refuse_to_open(folder: Path) -> None:
    before = (folder / "000000.jsonl").read_bytes()
    with pytest.raises(JournalError) as caught:
        Journal.open(folder)
    assert caught.value.place.line and "Traceback" not in str(caught.value)
    assert (folder / "000000.jsonl").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "000000.jsonl"]


def test_every_vector_has_an_expectation_and_every_difference_a_reason() -> None:
    files = {path.stem for path in VECTORS.glob("*.jsonl")} - {"canonical_payloads"}
    assert files == set(EXPECT)
    for name, want in EXPECT.items():
        ours = (want["verdict"], want["opens"], want["opens"])
        theirs = want["reference"]
        same = ours == (theirs["verify"], theirs["opens"], theirs.get("two appends verify", False))
        assert same or want["why"], name


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_a_golden_journal_gets_its_verdict(name: str, laid: Laid) -> None:
    want = EXPECT[name]
    folder = laid(VECTORS / f"{name}.jsonl")
    head = want.get("expected_head")
    for report in (
        JournalReader(folder).verify(expected_head=head),
        playhead.verify(folder, head=head),
        playhead.verify(VECTORS / f"{name}.jsonl", head=head),
    ):
        assert kinds(report, "error") == want["errors"]
        assert kinds(report, "warning") == want["warnings"]
        assert (report.steps, report.head) == (want["steps"], want["head"])
        assert report.verdict is (
            Verdict.UNPROVEN if want["verdict"] == "accept" else Verdict.FAILED
        )
        assert all(
            f.place.line for f in report.findings if f.kind not in ("head-mismatch", "no-head")
        )
    strict = JournalReader(folder).verify(strict=True, expected_head=head)
    assert kinds(strict, "error") == sorted({*want["errors"], *want["warnings"]})


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_a_golden_journal_is_opened_and_extended_or_refused(name: str, laid: Laid) -> None:
    want = EXPECT[name]
    folder = laid(VECTORS / f"{name}.jsonl")
    if want["opens"]:
        open_and_extend(folder, want["next_seq"])
    else:
        refuse_to_open(folder)


def test_a_torn_tail_lies_in_a_file_of_its_own_byte_for_byte(laid: Laid) -> None:
    raw = (VECTORS / "torn_tail_no_newline.jsonl").read_bytes()
    folder = laid(VECTORS / "torn_tail_no_newline.jsonl")
    with Journal.open(folder) as journal:
        assert journal.torn is not None
        end = raw.rindex(b"\n") + 1
        assert journal.torn.read_bytes() == raw[end:]
        assert (folder / "000000.jsonl").read_bytes() == raw[:end]


def test_every_golden_hash_is_derived_again() -> None:
    payloads = (VECTORS / "canonical_payloads.jsonl").read_bytes().splitlines()
    rows = [json.loads(line) for line in (VECTORS / "good.jsonl").read_bytes().splitlines()]
    prev = GENESIS
    for payload, row in zip(payloads, rows, strict=True):
        fields = {key: row[key] for key in HASHED if key in row}
        derived = compute_step_hash(**fields)
        assert derived == row["step_hash"] == sha256(payload).hexdigest()
        assert row["prev_hash"] == prev
        prev = derived
    assert prev == EXPECT["good"]["head"]


def test_golden_rows_are_written_again_byte_for_byte(tmp_path: Path) -> None:
    raw = (VECTORS / "good.jsonl").read_bytes()
    folder = tmp_path / "again"
    with Journal.open(folder, durability="os") as journal:
        for step in JournalReader(as_run(tmp_path, raw)).entries():
            # the raw append refuses lone surrogates; what the recorder normalised it does not
            journal.append_normal(
                input_hash=step.input_hash,
                model=step.model,  # type: ignore[arg-type]
                prompt=step.prompt,  # type: ignore[arg-type]
                tool_call=step.tool_call,
                tool_result=step.tool_result,
                effort=step.effort,  # type: ignore[arg-type]
                blob_refs=step.blob_refs,  # type: ignore[arg-type]
                ts=step.ts,
            )
    assert (folder / "000000.jsonl").read_bytes() == raw


def as_run(tmp_path: Path, raw: bytes) -> Path:
    folder = tmp_path / "as-run"
    folder.mkdir()
    (folder / "000000.jsonl").write_bytes(raw)
    return folder


def shared_entries(shared: Path) -> list[dict[str, Any]]:
    index = json.loads((shared / "golden" / "bernstein" / "INDEX.json").read_text("utf-8"))
    return [e for e in index["entries"] if e["kind"].startswith("journal") and e["verdict"]]


def test_the_whole_shared_golden_set_agrees_with_its_index(shared: Path, tmp_path: Path) -> None:
    seen = 0
    for entry in shared_entries(shared):
        verify = entry["verdict"].get("verify")
        path = shared / "golden" / "bernstein" / entry["file"]
        if verify is None or not path.exists():
            continue
        name = path.parent.parent.name if "variants" in path.parts else "good"
        want = EXPECT[name]
        report = JournalReader(path.parent).verify(expected_head=want.get("expected_head"))
        seen += 1
        if "raised" in verify:
            assert report.errors(), f"{name}: where the reference ends in an exception"
        else:
            assert verify["ok"] is (not report.errors()), name
            assert (verify["steps"], verify["head_hash"]) == (report.steps, report.head), name
        if not want.get("why"):
            opened = "raised" not in entry["verdict"]["open"]
            assert want["opens"] is opened, name
    assert seen == len(EXPECT) - 1  # w_traversal_blob_ref has no verdict of its own


def test_journals_of_forks_keep_the_parents_rows_and_verify(shared: Path, tmp_path: Path) -> None:
    golden = shared / "golden" / "bernstein"
    parent = (golden / "journal" / "good" / "agent-golden" / "000000.jsonl").read_bytes()
    forks = sorted(golden.glob("fork/*/fork_journal_after_one_append.jsonl"))
    assert len(forks) >= 4
    for number, fork in enumerate(forks):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copyfile(fork, folder / "000000.jsonl")
        lines = fork.read_bytes().splitlines()
        assert b"\n".join(lines[:-1]) + b"\n" == parent[: len(b"\n".join(lines[:-1])) + 1]
        report = JournalReader(folder).verify()
        assert (report.errors(), report.steps) == ([], len(lines)), fork
        last = decode_row(lines[-1])
        assert isinstance(last, Row) and report.head == last.computed
        open_and_extend(folder, len(lines))
