"""The walk on a screen, driven by keys (Textual's Pilot)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from playhead.replay.run import Run
from playhead.tui import walk as walk_module
from playhead.tui.help import HelpScreen
from playhead.tui.walk import WalkApp

SIZE = (120, 40)
ERROR = 5
SECOND_TURN = 8


@asynccontextmanager
async def walking(run: Run, start: int = 0) -> AsyncIterator[tuple[WalkApp, Pilot[Any]]]:
    app = WalkApp(run, start)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        yield app, pilot


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, WalkApp)
    while app.working:
        await pilot.pause(0.001)


def text_of(app: WalkApp, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).content)


def drawn(app: WalkApp) -> str:
    """What stands on the screen, as the terminal would get it: text without styles."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_it_opens_on_the_first_step_and_shows_it(run: Run) -> None:
    async with walking(run) as (app, _):
        assert app.at == 0
        assert app.timeline.count == len(run)
        assert "type: run.started" in text_of(app, "step")
        assert "events: 1" in text_of(app, "state")
        assert "first" in text_of(app, "title")
        assert "run.started" in drawn(app)


@pytest.mark.parametrize("keys", [("j", "k"), ("down", "up"), ("right", "left"), ("l", "h")])
async def test_forward_and_back(run: Run, keys: tuple[str, str]) -> None:
    forward, back = keys
    async with walking(run) as (app, pilot):
        await press(pilot, forward, forward)
        assert app.at == 2
        assert "events: 3" in text_of(app, "state")
        await press(pilot, back)
        assert app.at == 1
        assert "type: turn.started" in text_of(app, "step")
        await press(pilot, back, back, back)
        assert app.at == 0


async def test_the_ends_hold(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "end")
        assert app.at == len(run) - 1
        assert "run.ended" in drawn(app)
        await press(pilot, "j")
        assert app.at == len(run) - 1
        await press(pilot, "home")
        assert app.at == 0
        await press(pilot, "pagedown")
        assert app.at > 10


async def test_it_opens_where_it_is_told(run: Run) -> None:
    async with walking(run, 7) as (app, _):
        assert app.at == 7
        assert "events: 8" in text_of(app, "state")


async def test_the_step_that_it_opens_on_is_in_sight(run: Run) -> None:
    app = WalkApp(run, len(run) - 1)
    async with app.run_test(size=(120, 16)) as pilot:
        await press(pilot)
        assert "run.ended" in drawn(app)
        assert "run.started" not in drawn(app).split("\n")[1]


async def test_jump(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "g", "1", "2", "enter")
        assert app.at == 12
        await press(pilot, "g", "-", "1", "enter")
        assert app.at == len(run) - 1
        await press(pilot, "g", "9", "9", "9", "enter")
        assert app.at == len(run) - 1
        assert "no step 999" in text_of(app, "status")
        await press(pilot, "g", "x", "enter")
        assert "is no step" in text_of(app, "status")
        await press(pilot, "g", "3", "escape", "j")
        assert app.at == len(run) - 1


async def test_search_forward_and_back(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "slash", *"ZEBRA", "enter")
        assert app.at == len(run) - 2
        await press(pilot, "n")
        assert "no further 'ZEBRA'" in text_of(app, "status")
        await press(pilot, "home", "slash", *"missing", "enter")
        first = app.at
        assert first == 4
        await press(pilot, "end", "N")
        assert app.at == first


async def test_next_and_previous_error(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "e")
        assert app.at == ERROR
        await press(pilot, "e")
        assert app.at == ERROR
        assert "no further error" in text_of(app, "status")
        await press(pilot, "end", "E")
        assert app.at == ERROR


async def test_next_and_previous_turn(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "t")
        assert app.at == 1
        await press(pilot, "t")
        assert app.at == SECOND_TURN
        await press(pilot, "T")
        assert app.at == 1


async def test_diff_shows_what_changed_in_the_state(run: Run) -> None:
    async with walking(run, SECOND_TURN + 1) as (app, pilot):
        await press(pilot, "d")
        assert "interrupts: + " in text_of(app, "state")
        assert "events:" not in text_of(app, "state")
        await press(pilot, "k")
        assert text_of(app, "state") == "nothing changed in the state here"
        await press(pilot, "d")
        assert "events: 9" in text_of(app, "state")


async def test_help_opens_and_closes(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "next, previous error" in drawn(app)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)
        await press(pilot, "j")
        assert app.at == 1


async def test_quit(run: Run) -> None:
    async with walking(run) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
    assert not app.is_running


async def test_hostile_text_is_shown_as_it_is_and_never_acts(run: Run) -> None:
    async with walking(run) as (app, pilot):
        for step in (1, 2, 3, 4, 5, 6):
            await press(pilot, "home", *"j" * step)
            screen = drawn(app)
            assert "[bold]x[/bold] <img src=x onerror=alert(1)>" in text_of(app, "step")
            if step < 6:  # the state's value is shown as JSON, which has escapes of its own
                assert "⟨U+001B⟩[31mred⟨U+0007⟩ ⟨U+202E⟩gnp.exe" in text_of(app, "step")
            assert "[bold]x[/bold]" in screen
            assert not {"\x1b", "\x07", "\u202e"} & set(screen)


async def test_a_search_goes_on_in_slices_and_can_be_stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "TICK", 3600.0)  # no slice comes by itself
    async with walking(run) as (app, pilot):
        monkeypatch.setattr(walk_module, "SLICE", 0.0)
        monkeypatch.setattr("playhead.tui.errands.LOOKS", 1)
        await pilot.press("slash", *"zebra", "enter")
        assert "searching at step" in text_of(app, "status")
        assert app.working
        await pilot.press("escape")
        assert text_of(app, "status") == "stopped"
        assert (app.at, app.working) == (0, False)
        monkeypatch.setattr(walk_module, "SLICE", 60.0)
        await pilot.press("n")
        await pilot.pause()
        assert app.at == len(run) - 2


async def test_a_long_run_is_opened_before_it_is_counted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "SLICE", 0.0)
    monkeypatch.setattr(walk_module, "CHUNK", 10)
    app = WalkApp(run, 0)
    async with app.run_test(size=SIZE) as pilot:
        assert app.timeline.count < len(run)
        assert "type: run.started" in text_of(app, "step")
        await press(pilot, "g", "3", "0", "enter")
        assert app.at == 30
        await press(pilot)
        assert app.timeline.count == len(run)


async def test_an_empty_run(root: Path) -> None:
    folder = root / "runtime" / "journal" / "empty"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(b"")
    with Run.open(folder) as empty:
        async with walking(empty) as (app, pilot):
            assert text_of(app, "status") == "an empty run"
            await press(
                pilot, "j", "end", "e", "t", "d", "f", "slash", "x", "enter", "g", "1", "enter"
            )
            assert "no step 1" in text_of(app, "status")


@pytest.mark.parametrize("width", [60, 80, 99])
async def test_a_narrow_screen_has_room_for_the_list_and_names_help_and_quit(
    run: Run, width: int
) -> None:
    app = WalkApp(run, ERROR)
    async with app.run_test(size=(width, 24)) as pilot:
        await press(pilot)
        assert app.timeline.size.width >= width - 4
        assert "? help  q quit" in drawn(app)
        lines = drawn(app).split("\n")
        assert any(line.startswith(f"{ERROR:>7} ✗ tool failed [bold]x[/bold]") for line in lines)
        assert any(line.startswith("      8 ▸ turn-4 again") for line in lines)


async def test_on_a_wide_screen_the_list_is_wider_than_the_detail(run: Run) -> None:
    async with walking(run) as (app, _):
        assert app.timeline.size.width > app.query_one("#side").size.width
