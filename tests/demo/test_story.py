"""The story of the demo: every chapter comes out, and what it says is what the files say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from playhead.core.model import Verdict
from playhead.demo.story import tell
from playhead.errors import UsageError
from playhead.store.dbstore import DbStore
from playhead.store.keys import KeyRing
from playhead.store.root import Root
from playhead.store.sqlite import SqliteDatabase
from playhead.verifier.api import verify


def test_it_is_told_twice_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path, root: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    stories = []
    for _ in range(2):
        lines: list[str] = []
        assert tell(lines.append) == 0
        stories.append(lines)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["playhead-demo", "playhead-demo-2"]
    assert dict(os.environ) == before
    assert "playhead-demo-2/" in "\n".join(stories[1])
    for lines in stories:
        assert max(map(len, lines)) <= 80
        assert not any("\x1b" in line or "\n" in line for line in lines)
        print(next(line for line in lines if line.startswith("All of it took")))


def test_what_it_says_is_what_the_files_say(tmp_path: Path) -> None:
    lines: list[str] = []
    place = tmp_path / "here"
    assert tell(lines.append, place) == 0
    said = "\n".join(lines)
    ring = KeyRing(place / "state")
    good = verify("shop", root=Root(place / ".sdd"), ring=ring)
    assert good.verdict is Verdict.VERIFIED
    assert f"{good.steps} steps, head {good.head[:16]}" in said

    changed = verify("shop", root=Root(place / "changed"), ring=ring)
    assert changed.verdict is Verdict.FAILED
    caught = changed.errors()[0].place
    assert f"line {caught.line}, byte {caught.byte}, step {caught.step}" in " ".join(said.split())

    found = re.search(r"line (\d+), byte (\d+) of the file", said)
    assert found is not None
    line, byte = int(found[1]), int(found[2])
    assert line == caught.line
    name = "runtime/journal/shop/000000.jsonl"
    true = (place / ".sdd" / name).read_bytes()
    false = (place / "changed" / name).read_bytes()
    assert [n for n in range(len(true)) if true[n] != false[n]] == [byte]
    assert len(true) == len(false)
    assert true.count(b"\n", 0, byte) + 1 == line

    assert "cut-tail" in said
    assert "put back: verified" in said
    database = DbStore(SqliteDatabase(place / "runs.db"))
    copy = database.find_run("local", "shop")
    tip = database.tip(copy)
    database.close()
    assert (tip.size, tip.step_hash) == (good.steps, good.head)
    states = re.findall(r"state ([0-9a-f]{16})…", said)
    assert len(states) == 5
    assert {states[0]} == {states[2], states[3], states[4]} != {states[1]}
    assert "one head, one state" in said
    assert (place / "orders.txt").read_text() == "12 tea\n"


def test_color_only_where_it_is_wanted(tmp_path: Path) -> None:
    plain: list[str] = []
    painted: list[str] = []
    tell(plain.append, tmp_path / "a")
    tell(painted.append, tmp_path / "b", color=True)
    stripped = [re.sub(r"\x1b\[\d+m", "", line) for line in painted]
    assert stripped != painted
    assert [len(line) for line in stripped[:6]] == [len(line) for line in plain[:6]]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError):
        tell(print, tmp_path)
    with pytest.raises(UsageError):
        tell(print, tmp_path / "mine")
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_change_that_is_not_caught_would_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story's own checks see a chapter that does not come out."""
    from playhead.demo import story, tamper

    def change_nothing(root: Root, run_id: str, text: bytes, digit: bytes) -> tamper.Change:
        return tamper.Change(1, 0, "", "")

    monkeypatch.setattr(story, "change_one_byte", change_nothing)
    lines: list[str] = []
    assert tell(lines.append, tmp_path / "x") == 1
    assert "did not come out" in lines[-1]


def test_a_copy_that_differs_would_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from playhead.demo import again

    true = again.copy_run

    def other(*given: object) -> object:
        made = true(*given)  # type: ignore[arg-type]
        return replace(made, target=replace(made.target, state="0" * 64))

    monkeypatch.setattr(again, "copy_run", other)
    lines: list[str] = []
    assert tell(lines.append, tmp_path / "x") == 1
    assert "   they differ" in lines
