"""Command lines are run in this process, from an empty directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Cli, Done
from playhead.cli.main import run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: empty, and not the root."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run ``playhead`` with these arguments; a fault of playhead itself fails the test."""
    monkeypatch.setenv("PLAYHEAD_DEBUG", "1")

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        status = run(arguments)
        said = capsys.readouterr()
        return Done(status, said.out, said.err)

    return call
