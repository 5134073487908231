"""What only a head outside the chain can show: cut tails, rollbacks, rewrites, raw bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import playhead
from playhead import Journal, Report, Verdict
from playhead.core.model import GENESIS
from playhead.core.rows import compute_step_hash
from playhead.core.sign import PrivateKey, sign_note
from playhead.errors import JournalBroken, UsageError
from playhead.formats.head import encode_head
from playhead.store.anchor import Anchor
from playhead.store.heads import HeadFiles, Resume
from playhead.store.keys import KeyRing

HASHED = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result")


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "runtime" / "journal" / "run-1"


def grow(folder: Path, words: str) -> None:
    """Append one step a letter and sign the head by closing."""
    with Journal.open(folder, durability="os") as journal:
        for word in words:
            journal.append(input_hash="", prompt=word, tool_result={"word": word})


def grow_unsigned(folder: Path, words: str, scratch: Path) -> None:
    """Append steps whose head nobody here signs, as after a kill."""
    anchor = Anchor(folder, KeyRing(scratch))
    anchor.files = HeadFiles(scratch / "elsewhere", scratch)
    with Journal.open(folder, durability="os", anchor=anchor) as journal:
        for word in words:
            journal.append(input_hash="", prompt=word)


def errors(report: Report) -> list[str]:
    return [finding.kind for finding in report.errors()]


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "000000.jsonl").read_bytes().splitlines(keepends=True)


def put(folder: Path, lines: list[bytes]) -> None:
    (folder / "000000.jsonl").write_bytes(b"".join(lines))


def rewritten(lines: list[bytes], at: int) -> list[bytes]:
    """The whole chain computed anew with another prompt at one step: it verifies by itself."""
    out, prev = [], GENESIS
    for number, line in enumerate(lines):
        row = json.loads(line) | {"prev_hash": prev}
        if number == at:
            row["prompt"] = "something else"
        row["step_hash"] = prev = compute_step_hash(**{key: row[key] for key in HASHED})
        out.append(json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return out


def refused(folder: Path) -> str:
    """Opening refuses and changes nothing."""
    before = lines_of(folder)
    with pytest.raises(JournalBroken) as caught:
        Journal.open(folder)
    assert lines_of(folder) == before
    return str(caught.value)


def drop_inner_heads(root: Path) -> None:
    shutil.rmtree(root / "heads")


def test_a_closed_run_is_verified_to_its_last_byte(folder: Path) -> None:
    grow(folder, "abc")
    report = playhead.verify(folder)
    assert (report.verdict, report.covered, report.findings) == (Verdict.VERIFIED, 3, ())
    assert any("every byte" in sentence for sentence in report.proven)


@pytest.mark.parametrize("inner", [True, False])
def test_a_cut_tail_is_named(folder: Path, root: Path, inner: bool) -> None:
    grow(folder, "abcdef")
    put(folder, lines_of(folder)[:4])
    if not inner:
        drop_inner_heads(root)
    report = playhead.verify(folder)
    assert set(errors(report)) == {"cut-tail"} and report.verdict is Verdict.FAILED
    assert "2 row(s) are missing" in report.errors()[0].what
    assert "cut tail" in refused(folder)


@pytest.mark.parametrize("lines", [[], None])
def test_a_run_that_is_gone_altogether_is_a_cut_tail(
    folder: Path, lines: list[bytes] | None
) -> None:
    grow(folder, "abc")
    if lines is None:
        (folder / "000000.jsonl").unlink()
        with pytest.raises(JournalBroken):
            Journal.open(folder)
        assert not (folder / "000000.jsonl").exists()
    else:
        put(folder, lines)
        assert set(errors(playhead.verify(folder))) == {"cut-tail"}
        refused(folder)


def test_a_rollback_of_everything_under_the_root_is_named(
    folder: Path, root: Path, tmp_path: Path
) -> None:
    grow(folder, "abc")
    shutil.copytree(root, tmp_path / "old")
    grow(folder, "def")
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "old", root)
    report = playhead.verify(folder)
    assert errors(report) == ["rollback"]
    assert "covers 6" in report.errors()[0].what
    assert "cut tail" in refused(folder)


@pytest.mark.parametrize("at", [0, 3, 5])
@pytest.mark.parametrize("inner", [True, False])
def test_a_chain_rewritten_as_a_whole_is_named(
    folder: Path, root: Path, at: int, inner: bool
) -> None:
    grow(folder, "abcdef")
    put(folder, rewritten(lines_of(folder), at))
    if not inner:
        drop_inner_heads(root)
    assert set(errors(playhead.verify(folder))) == {"chain-rewritten"}
    assert "JournalBroken" not in refused(folder)
    shutil.rmtree(folder.parent.parent.parent.parent / "state")
    if not inner:
        report = playhead.verify(folder)
        assert report.verdict is Verdict.UNPROVEN, "by itself the rewritten chain holds"


@pytest.mark.parametrize(
    "change", [{"ts": 9.0}, {"blob_refs": ["a" * 64]}, {"schema_version": 1}, {"hidden": 1}]
)
def test_bytes_outside_the_step_hash_are_under_the_signed_root(
    folder: Path, change: dict[str, object]
) -> None:
    grow(folder, "abc")
    lines = lines_of(folder)
    row = json.loads(lines[1]) | change
    lines[1] = json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    put(folder, lines)
    assert set(errors(playhead.verify(folder))) == {"raw-bytes-changed"}
    refused(folder)


def test_any_flipped_byte_of_a_signed_run_is_found(folder: Path) -> None:
    grow(folder, "ab")
    raw = (folder / "000000.jsonl").read_bytes()
    for at in range(len(raw)):
        for mask in (1, 0x80):
            edited = raw[:at] + bytes([raw[at] ^ mask]) + raw[at + 1 :]
            (folder / "000000.jsonl").write_bytes(edited)
            report = playhead.verify(folder)
            assert report.verdict is Verdict.FAILED and report.errors(), (at, mask)
            with pytest.raises(JournalBroken):
                Journal.open(folder)
            assert (folder / "000000.jsonl").read_bytes() == edited, "nothing was written"
    (folder / "000000.jsonl").write_bytes(raw)
    assert playhead.verify(folder).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("drop", ["newline", "line", "two"])
def test_a_row_put_in_or_taken_out_of_a_signed_run_is_found(folder: Path, drop: str) -> None:
    grow(folder, "abcdef")
    lines = lines_of(folder)
    put(folder, {"newline": [*lines[:2], b"\n", *lines[2:]], "line": lines[:2] + lines[3:],
                 "two": [*lines, lines[-1]]}[drop])  # fmt: skip
    report = playhead.verify(folder)
    assert report.verdict is Verdict.FAILED
    refused(folder)


def test_rows_after_the_last_head_are_unproven(folder: Path, tmp_path: Path) -> None:
    grow(folder, "abc")
    grow_unsigned(folder, "de", tmp_path / "other")
    report = playhead.verify(folder)
    assert (report.verdict, report.steps, report.covered) == (Verdict.UNPROVEN, 5, 3)
    assert any("last 2 row(s)" in sentence for sentence in report.unproven)
    with Journal.open(folder, durability="os") as journal:
        assert journal.next_seq == 5
    assert playhead.verify(folder).verdict is Verdict.VERIFIED


def test_a_head_of_no_rows_at_all_is_no_fault_of_later_rows(folder: Path, state: Path) -> None:
    ring = KeyRing(state)
    anchor = Anchor(folder, ring)
    anchor.publish(*anchor.statement(GENESIS))
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").touch()
    grow_unsigned(folder, "ab", state.parent / "other")
    report = playhead.verify(folder)
    assert (report.verdict, errors(report)) == (Verdict.UNPROVEN, [])
    with Journal.open(folder) as journal:
        assert journal.next_seq == 2


def test_the_expected_head(folder: Path) -> None:
    grow(folder, "abc")
    hashes = [json.loads(line)["step_hash"] for line in lines_of(folder)]
    assert playhead.verify(folder, head=hashes[2]).verdict is Verdict.VERIFIED
    older = playhead.verify(folder, head=hashes[0])
    assert errors(older) == ["head-mismatch"] and "2 row(s) follow it" in older.errors()[0].what
    unknown = playhead.verify(folder, head="f" * 64)
    assert errors(unknown) == ["head-mismatch"] and "nor of any step" in unknown.errors()[0].what
    for word in ("", "f" * 63, "F" * 64, "f" * 65, "f" * 64 + "\n"):
        with pytest.raises(UsageError):
            playhead.verify(folder, head=word)


def test_the_expected_head_alone_proves_order_and_content(folder: Path, tmp_path: Path) -> None:
    grow_unsigned(folder, "abc", tmp_path / "other")
    head = json.loads(lines_of(folder)[-1])["step_hash"]
    report = playhead.verify(folder, head=head)
    assert report.verdict is Verdict.VERIFIED
    assert any("ts, seq" in sentence for sentence in report.unproven)


def test_no_key_and_no_state_is_unproven_and_makes_nothing(
    folder: Path, root: Path, state: Path
) -> None:
    grow(folder, "abc")
    shutil.rmtree(state)
    report = playhead.verify(folder)
    assert (report.verdict, report.covered) == (Verdict.UNPROVEN, 0)
    assert [f.kind for f in report.findings] == ["head-not-usable"]
    drop_inner_heads(root)
    assert [f.kind for f in playhead.verify(folder).findings] == ["no-head"]
    assert not state.exists() and not (root / "heads").exists()


def test_a_key_named_by_the_caller_is_enough(folder: Path, state: Path) -> None:
    grow(folder, "abc")
    key = KeyRing(state).public_key()
    assert key is not None
    shutil.rmtree(state)
    report = playhead.verify(folder, keys=[key])
    assert report.verdict is Verdict.VERIFIED
    assert any("newest state" in sentence for sentence in report.unproven)


def test_a_head_of_a_key_nobody_trusts_proves_nothing(folder: Path, state: Path) -> None:
    grow(folder, "abc")
    put(folder, rewritten(lines_of(folder), 1))
    forger = PrivateKey("forger", b"\1" * 32)
    anchor = Anchor(folder, KeyRing(state))
    for line in lines_of(folder):
        anchor.add(line, line[:-1])
    head, _ = anchor.statement(json.loads(lines_of(folder)[-1])["step_hash"])
    anchor.files.inside.write_text(sign_note(encode_head(head), forger))
    report = playhead.verify(folder)
    assert errors(report) == ["chain-rewritten"], "the head outside still tells"
    assert "head-not-usable" in [f.kind for f in report.findings]
    anchor.files.outside.write_text(sign_note(encode_head(head), forger))
    assert playhead.verify(folder).verdict is Verdict.UNPROVEN


def test_a_head_of_another_run_is_not_taken_for_one_of_this(folder: Path, root: Path) -> None:
    grow(folder, "abc")
    other = folder.with_name("run-2")
    grow(other, "abcdef")
    shutil.copyfile(root / "heads" / "run-2.checkpoint", root / "heads" / "run-1.checkpoint")
    report = playhead.verify(folder)
    assert [f.kind for f in report.findings] == ["head-not-usable"]
    assert report.verdict is Verdict.VERIFIED, "the head outside is the right one"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"\xff\xfe", b"[]", b'{"size": Infinity}', b'{"size": -1, "frontier": []}',
        b'{"v":1,"size":3,"frontier":[],"fields":null,"uid":null}', b"[" * 20_000,
        b'{"v":1,"size":3,"frontier":["AAAA","AAAA"],"fields":null,"uid":null}',
    ],
)  # fmt: skip
def test_a_damaged_resume_file_costs_a_walk_and_nothing_else(folder: Path, content: bytes) -> None:
    grow(folder, "abc")
    files = HeadFiles(folder, KeyRing().state)
    files.resume.write_bytes(content)
    grow(folder, "de")
    report = playhead.verify(folder)
    assert (report.verdict, report.steps) == (Verdict.VERIFIED, 5)


def test_a_resume_file_with_other_commitments_is_not_believed(folder: Path) -> None:
    anchor = Anchor(folder)
    with Journal.open(folder, durability="os", anchor=anchor) as journal:
        anchor.start_commitments()
        journal.append(input_hash="", commitment=b"c")
    files = HeadFiles(folder, KeyRing().state)
    kept = files.read_resume()
    assert kept is not None and kept.fields is not None
    forged = Resume(kept.size, kept.frontier, (b"\0" * 32,), kept.uid, kept.native)
    raw = files.resume.read_bytes()
    assert forged != kept
    files.resume.write_bytes(raw.replace(_b64(kept.fields[0]), _b64(b"\0" * 32)))
    assert files.read_resume() == forged
    again = Anchor(folder)
    with Journal.open(folder, anchor=again):
        assert not again.commits, "what is not proven is given up, never carried on"


def _b64(raw: bytes) -> bytes:
    import base64

    return base64.b64encode(raw)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"\xff", b"x" * 70_000, b"playhead/run/x\n1\n"]
)
def test_a_damaged_head_is_a_warning(folder: Path, root: Path, content: bytes) -> None:
    grow(folder, "abc")
    (root / "heads" / "run-1.checkpoint").write_bytes(content)
    report = playhead.verify(folder)
    assert [f.kind for f in report.findings] == ["head-not-usable"]
    assert report.verdict is Verdict.VERIFIED
    grow(folder, "d")
    assert playhead.verify(folder).findings == ()
