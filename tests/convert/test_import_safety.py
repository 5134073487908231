"""``import_files`` on hostile input: ids, links, secrets, sizes, files of another kind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from claude_rows import rows
from claude_sessions import answer, lines, result, use, user
from importing import FOLDER, SECRET, files_below, one
from playhead.convert.importer import import_files
from playhead.convert.originals import originals
from playhead.core.model import Verdict
from playhead.errors import InvalidId, NotFound, PlayheadError, Refused, UsageError
from playhead.store.reader import journal_lines
from playhead.store.recipes import restore
from playhead.store.root import Root
from playhead.verifier.api import verify


@pytest.fixture
def place(root: Path) -> Root:
    return Root(root)


@pytest.mark.parametrize(
    "session", ["../../x", "CON", "a\\b", "/etc/passwd", "", "\ud800", "ü" * 500]
)
def test_no_foreign_id_becomes_a_path(place: Root, tmp_path: Path, session: str) -> None:
    """C62b."""
    file = tmp_path / "in" / "x.jsonl"
    file.parent.mkdir()
    row = {**user("u1", "hi"), "sessionId": session, "agentId": session}
    file.write_bytes(lines(row))
    done = one(place, file)
    assert place.journal_dir(done.run_id).is_dir()
    assert set(os.listdir(tmp_path)) <= {"in", "root", "state"}


@pytest.mark.parametrize("bad", ["../x", "CON", "a/b", ""])
def test_a_bad_run_id_is_refused_before_anything_is_written(place: Root, bad: str) -> None:
    with pytest.raises(InvalidId):
        one(place, FOLDER / "C05_u2028_nel.jsonl", run_id=bad)
    assert not place.path.exists()


def test_redact_leaves_no_secret_anywhere(place: Root, state: Path) -> None:
    """C41."""
    done = one(place, FOLDER / "C41_secret_in_tool_output.jsonl", redact=True)
    for folder in (place.path, state):
        assert [name for name, data in files_below(folder).items() if SECRET in data] == []
    assert done.run_id.endswith("-redacted")
    with pytest.raises(NotFound, match="keeps no original"):
        originals(place.journal_dir(done.run_id))
    assert one(place, FOLDER / "C41_secret_in_tool_output.jsonl", redact=True).already


def test_redact_reaches_large_values_names_and_prompts(place: Root, tmp_path: Path) -> None:
    secret = SECRET.decode()
    rows = [
        user("u1", "word " * 8000 + secret),
        answer("a2", [use("t1", f"tool-{secret}", env=secret)], "u1", model=secret),
        user("u3", [result("t1", secret)], "a2"),
        answer("a4", secret, "u3"),
        {"type": f"new {secret}"},
        {**user("u5", "x", "a4"), "sessionId": secret},
    ]
    file = tmp_path / "S.jsonl"
    file.write_bytes(lines(*rows))
    done = one(place, file, redact=True)
    held = files_below(place.path)
    assert [name for name, data in held.items() if SECRET in data] == []
    assert secret not in done.run_id and all(secret not in f.what for f in done.findings)
    assert verify(place.journal_dir(done.run_id), root=place).verdict is not Verdict.FAILED


def test_without_redact_the_source_is_kept_for_its_owner_only(place: Root) -> None:
    one(place, FOLDER / "C41_secret_in_tool_output.jsonl")
    holders = [
        place.path / name for name, data in files_below(place.path).items() if SECRET in data
    ]
    assert holders
    for path in place.path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.is_dir()
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holders)


def test_c56_a_repeated_image_is_stored_once(place: Root, tmp_path: Path) -> None:
    image = "QUJDRA+/" * 12_000
    block = {"type": "image", "source": {"type": "base64", "data": image}}
    rows, parent = [], None
    for n in range(3):
        rows += [user(f"u{n}", [block], parent), answer(f"a{n}", "seen", f"u{n}", id=f"m{n}")]
        parent = f"a{n}"
    file = tmp_path / "S.jsonl"
    file.write_bytes(lines(*rows))
    done = one(place, file)
    assert sum(map(len, files_below(place.path).values())) < len(image) * 1.4
    [original] = originals(place.journal_dir(done.run_id))
    assert b"".join(restore(place.cas, original.recipe)) == file.read_bytes()


def test_a_value_that_is_too_large_for_a_row_leaves_it(place: Root, tmp_path: Path) -> None:
    many = [{"type": "text", "text": f"{n} " + "y" * 9000} for n in range(4000)]
    file = tmp_path / "S.jsonl"
    file.write_bytes(lines(user("u1", many), answer("a2", "ok", "u1")))
    done = one(place, file)
    assert max(len(line) for _, _, line in journal_lines(place.journal_dir(done.run_id))) < 2**20  # type: ignore[arg-type]
    assert verify(place.journal_dir(done.run_id), root=place).verdict is not Verdict.FAILED


HOSTILE = {
    "deep": b"[" * 20_000 + b"]" * 20_000,
    "C16": (FOLDER / "foreign_C16_reused_call_id.json").read_bytes(),
    "C07": (FOLDER / "foreign_C07_nan.jsonl").read_bytes(),
    "zeros": b"\0" * 5000,
    "latin": b"\xff\xfe\xfd" * 100,
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_other_files_are_refused_in_one_line_and_nothing_is_written(
    place: Root, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(HOSTILE[name])
    with pytest.raises(Refused, match="not a transcript") as caught:
        one(place, file)
    assert "\n" not in str(caught.value) and not place.path.exists()


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_other_files_read_by_force_are_kept_and_not_understood(
    place: Root, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(HOSTILE[name])
    done = one(place, file, format="claude-code")
    assert not done.ok and done.status == "empty"
    [original] = originals(place.journal_dir(done.run_id))
    assert b"".join(restore(place.cas, original.recipe)) == HOSTILE[name]


def test_paths_that_are_no_readable_file_are_refused(place: Root, tmp_path: Path) -> None:
    good = FOLDER / "C05_u2028_nel.jsonl"
    (tmp_path / "link.jsonl").symlink_to(good)
    for path in (tmp_path, tmp_path / "none.jsonl", tmp_path / "link.jsonl", Path("/dev/null")):
        with pytest.raises(PlayheadError) as caught:
            import_files(place, [good, path])
        assert "\n" not in str(caught.value)
    for call in (lambda: import_files(place, []), lambda: one(place, good, format="x")):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(UsageError, match="one run id for 2"):
        import_files(place, [good, FOLDER / "C09_unknown_type.jsonl"], run_id="x")
    assert not place.path.exists()


def test_a_link_beside_the_session_is_a_finding(place: Root, tmp_path: Path) -> None:
    (tmp_path / "S.jsonl").write_bytes(lines(user("u1", "hi"), answer("a2", "ok", "u1")))
    (tmp_path / "S" / "subagents").mkdir(parents=True)
    (tmp_path / "S/subagents/agent-a.jsonl").symlink_to(FOLDER / "C05_u2028_nel.jsonl")
    done = one(place, tmp_path / "S.jsonl")
    assert [f.kind for f in done.findings] == ["file-refused"] and done.counts["subagents"] == 0


@given(rows())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_a_session_holds_its_run_verifies(
    place: Root, tmp_path: Path, data: bytes
) -> None:
    file = tmp_path / "fuzz.jsonl"
    file.write_bytes(data)
    done = one(place, file, format="claude-code")
    assert verify(place.journal_dir(done.run_id), root=place).verdict is not Verdict.FAILED
