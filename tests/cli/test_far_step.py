"""A step far into a run is shown at once; its state only when it is asked for."""

from __future__ import annotations

import json

import pytest

from commands import Cli
from playhead.cli import show
from story import a_run


@pytest.mark.parametrize(("words", "told"), [((), False), (("--state",), True)])
def test_the_state_far_into_a_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: bool
) -> None:
    a_run()
    monkeypatch.setattr(show, "FAR", 5)
    text = cli("show", "first", "8", *words).out
    assert ("events: 9" in text) is told
    assert ("left out: 8 steps come before; --state computes it" in text) is not told
    document = json.loads(cli("show", "first", "8", "--json", *words).out)
    assert (document["state"] is not None) is told


def test_the_state_near_the_beginning(cli: Cli) -> None:
    a_run()
    assert "events: 9" in cli("show", "first", "8").out
