"""Export: the journal and the original, byte for byte, only where the user says."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from commands import Cli
from playhead.convert import exporter
from playhead.convert.originals import Original
from playhead.errors import CheckFailed, Refused
from playhead.store.durable import write_atomic
from story import a_run, journal, tree

TAG = "<img src=x onerror=alert(1)>"

SESSION = [
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "S",
        "cwd": "/w",
        "version": "2.1.0",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "hello"},
    },
    {
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "isSidechain": False,
        "sessionId": "S",
        "cwd": "/w",
        "version": "2.1.0",
        "timestamp": "2026-01-01T00:00:01.000Z",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "m",
            "content": [
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "<img src=x onerror=alert(1)>",
                    "input": {},
                }
            ],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
    },
]


def session(folder: Path) -> Path:
    """A small transcript, not spelled as anything would write it again."""
    path = folder / "S.jsonl"
    path.write_text("".join(json.dumps(row, indent=None) + " \n" for row in SESSION))
    return path


def test_the_journal_comes_out_as_it_lies_owner_only(cli: Cli, here: Path) -> None:
    a_run()
    assert cli("export", "first", "-o", "x.jsonl").status == 0
    assert (here / "x.jsonl").read_bytes() == journal().read_bytes()
    assert stat.S_IMODE((here / "x.jsonl").stat().st_mode) == 0o600
    assert [path.name for path in here.iterdir()] == ["x.jsonl"]


def test_a_sealed_run_comes_out_plain(cli: Cli, here: Path) -> None:
    a_run()
    plain = journal().read_bytes()
    assert cli("seal", "first").status == 0
    assert cli("export", "first", "-o", "x.jsonl").status == 0
    assert (here / "x.jsonl").read_bytes() == plain


def test_an_import_gives_its_original_back_byte_for_byte(cli: Cli, here: Path) -> None:
    path = session(here)
    done = cli("import", "S.jsonl", "--json")
    assert done.status == 0, done
    run_id = json.loads(done.out)["imported"][0]["run_id"]
    assert cli("export", run_id, "--original", "-o", "back.jsonl").status == 0
    assert (here / "back.jsonl").read_bytes() == path.read_bytes()
    assert cli("import", "S.jsonl").out.startswith("already there")
    # the tool's hostile name is shown as it is (case C44)
    assert TAG in cli("log", run_id).out


def test_several_originals_go_below_a_directory(cli: Cli, here: Path) -> None:
    path = session(here)
    child = here / "S" / "subagents" / "agent-x1.jsonl"
    child.parent.mkdir(parents=True)
    row = {**SESSION[0], "uuid": "c1", "isSidechain": True, "agentId": "x1"}
    child.write_text(json.dumps(row) + "\n")
    done = cli("import", "S.jsonl", "--json")
    assert done.status == 0, done
    run_id = json.loads(done.out)["imported"][0]["run_id"]
    assert cli("export", run_id, "--original", "-o", "back").status == 0
    assert (here / "back" / "S.jsonl").read_bytes() == path.read_bytes()
    assert (here / "back" / "S/subagents/agent-x1.jsonl").read_bytes() == child.read_bytes()
    again = cli("export", run_id, "--original", "-o", "back")
    assert again.status == 2
    assert "it is there already" in again.err
    assert cli("export", run_id, "--original", "-o", "S.jsonl").status == 2
    assert path.read_text().startswith('{"type": "user"')


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/../../x", "", ".", "a//b", "a\\b", "C:x", "a\0b", "x" * 256, "\u202ex"],
)
def test_a_recorded_name_that_could_lead_elsewhere_is_refused(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    a_run()
    files = [Original("ok.jsonl", "0" * 64, 1, "0" * 64), Original(name, "0" * 64, 1, "0" * 64)]
    monkeypatch.setattr(exporter, "originals_of", lambda lines, where: files)
    before = tree(here.parent)
    done = cli("export", "first", "--original", "-o", "back")
    assert done.status == 4
    assert "could lead elsewhere" in done.err
    assert tree(here.parent) == before


def test_a_link_below_the_directory_is_not_followed(here: Path) -> None:
    (here / "back").mkdir()
    (here / "back" / "S").symlink_to(here)
    with pytest.raises(Refused, match="symbolic link"):
        exporter._below(here / "back", Original("S/x.jsonl", "", 0, ""))


def test_what_was_written_is_read_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lying(path: Path, data: object) -> None:
        assert not isinstance(data, bytes)
        write_atomic(path, b"".join(data)[:-1])  # type: ignore[call-overload]

    monkeypatch.setattr(exporter, "write_atomic", lying)
    with pytest.raises(CheckFailed, match="does not hold what was written"):
        exporter._copy([b"abc", b"def"], here / "x")
