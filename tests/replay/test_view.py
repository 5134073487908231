"""What people see of a step: safe, short, and true to the record."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import event_rows, write_events, write_lines
from playhead.core.events import Draft
from playhead.core.model import Event
from playhead.replay.render import message_text, value_text
from playhead.replay.run import Run
from playhead.replay.text import one_liner, shortened
from playhead.replay.view import Section, detail, is_error, line_of, one_line, visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain ünï 漢 😀", "plain ünï 漢 😀"),
        ("\x1b[31mred", "⟨U+001B⟩[31mred"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"),
        ("\u200e\u200f\u061c", "⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"),
        ("ad\u200bmin\ufeff", "ad⟨U+200B⟩min⟨U+FEFF⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\x9b2J", "⟨U+009B⟩2J"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("a\nb\tc", "a⟨U+000A⟩b⟨U+0009⟩c"),
    ],
)
def test_what_acts_or_deceives_is_spelled_out(raw: str, shown: str) -> None:
    assert visible(raw) == shown


def test_newlines_stay_when_asked_for() -> None:
    assert visible("a\nb\tc\r", newlines=True) == "a\nb\tc⟨U+000D⟩"


@given(st.text(st.characters(), max_size=40))
def test_nothing_invisible_comes_through(text: str) -> None:
    for char in visible(text):
        # private-use characters have a shape of their own and act on nothing
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in (
            "LRE RLE LRO RLO PDF LRI RLI FSI PDI".split()
        )
    visible(text).encode("utf-8")


def test_a_line_folds_white_space_and_says_that_it_is_cut() -> None:
    assert one_liner("a\n\n  b\tc") == "a b c"
    assert one_liner("x" * 500, 10) == "xxxxxxxxx…"
    assert one_liner("x" * 10, 10) == "x" * 10
    assert shortened("x" * 12, 10) == "x" * 10 + "\n… 2 more characters (--full shows them)"


@pytest.mark.parametrize(
    ("event", "title", "detail_", "status", "marks"),
    [
        (
            Event("tool.called", 0, {"arguments": {"a": 1}, "effects": "write"}, "pay"),
            "pay",
            "a=1",
            "",
            ("write",),
        ),
        (Event("tool.completed", 0, {"result": "fine"}, "pay"), "pay", "fine", "ok", ()),
        (
            Event("tool.completed", 0, {"result": {"is_error": True}}, "x"),
            "x",
            '{"is_error": true}',
            "failed",
            ("error",),
        ),
        (
            Event("tool.failed", 0, {"error": {"type": "E", "message": "m"}}, "x"),
            "x",
            "E: m",
            "failed",
            ("error",),
        ),
        (
            Event(
                "model.responded",
                0,
                {"result": {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}},
                model="m",
            ),
            "m",
            "hi",
            "ok",
            (),
        ),
        (
            Event(
                "model.requested",
                0,
                {"prompt": "reconstructed"},
                prompt='[[0,0,2],{"role":"user","content":"q"}]',
                model="m",
            ),
            "m",
            "user: q",
            "",
            ("reconstructed",),
        ),
        (
            Event("model.failed", 0, {"outcome": "no answer was recorded"}, model="m"),
            "m",
            "no answer was recorded",
            "failed",
            ("error",),
        ),
        (
            Event("turn.completed", 0, {"output": "done", "outcome": "failed"}, turn_id="t"),
            "t",
            "done",
            "failed",
            ("error",),
        ),
        (Event("run.ended", 0, {"status": "completed"}), "", "", "completed", ()),
        (
            Event("run.ended", 0, {"status": "failed", "error": {"type": "E", "message": "x"}}),
            "",
            "E: x",
            "failed",
            ("error",),
        ),
        (
            Event(
                "message.received",
                0,
                {"message": {"role": "user", "content": [{"type": "text", "text": "yo"}]}},
            ),
            "",
            "user: yo",
            "",
            (),
        ),
        (
            Event("step", 0, {"tool_call": {"args": {"p": 1}}, "tool_result": "r"}, "ls"),
            "ls",
            "p=1 → r",
            "",
            (),
        ),
        (Event("subagent.started", 0, {}, subagent_run_id="s"), "s", "", "", ("subagent",)),
        (Event("acme.thing", 0, {"k": "v\x1b"}), "", "k=v⟨U+001B⟩", "", ()),
    ],
)
def test_one_line_says_who_what_and_how_it_ended(
    event: Event, title: str, detail_: str, status: str, marks: tuple[str, ...]
) -> None:
    line = one_line(event)
    assert (line.title, line.detail, line.status, line.marks) == (title, detail_, status, marks)
    assert is_error(event) == ("error" in marks)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("text", ("", "text")),
        ({"role": "user", "content": "x"}, ("user", "x")),
        (
            {"role": "a", "content": [{"type": "tool_use", "name": "ls", "input": {"p": 1}}]},
            ("a", '→ ls {"p": 1}'),
        ),
        (
            {"role": "a", "content": [{"type": "tool_result", "content": "r", "is_error": True}]},
            ("a", "✗ r"),
        ),
        (
            {
                "role": "a",
                "content": None,
                "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
            },
            ("a", "→ f {}"),
        ),
        ({"role": "a", "content": [{"type": "image", "source": "…"}]}, ("a", "(image)")),
        (
            {"$playhead": "blob", "size": 9, "sha256": "ab" * 32},
            ("", "(blob of 9 bytes, abababababab…)"),
        ),
        ({"role": 7, "odd": True}, ("", '{"odd": true}')),
        (None, ("", "")),
    ],
)
def test_a_message_of_any_shape_has_a_text(message: Any, shown: tuple[str, str]) -> None:
    assert message_text(message) == shown


def test_values_that_json_cannot_say_have_a_text_too() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    assert value_text(deep) == "(nested too deeply to be shown)"
    assert value_text(b"ab") == "(2 bytes: 61 62)"
    assert value_text({b"k": 1}) == "{b'k': 1}"
    assert value_text(10**5000) == "(a number of too many digits to be shown)"
    assert value_text({"b": b"\x00"}, compact=True) == '{"b": "(1 bytes: 00)"}'


def sections(folder: Path, number: int, full: bool = False) -> dict[str, str]:
    with Run.open(folder) as run:
        found = detail(run, number, full)
    assert all(isinstance(section, Section) for section in found)
    return {section.title: section.text for section in found}


def test_detail_tells_what_became_of_a_call_and_what_changed(tmp_path: Path) -> None:
    log = [
        Draft("tool.called", {"call_id": "c", "arguments": {"city": "Bonn"}}, name="get"),
        Draft("interrupt.raised", {"interrupt_id": "i", "reason": "ask"}),
        Draft("interrupt.resolved", {"interrupt_id": "i", "answer": "yes"}),
        Draft("tool.completed", {"call_id": "c", "result": {"ok": 1}}, name="get"),
        Draft("tool.called", {"call_id": "d", "arguments": {}}, name="get"),
    ]
    folder = write_events(tmp_path / "run", log)
    first = sections(folder, 0)
    assert first["arguments"] == '{\n  "city": "Bonn"\n}'
    assert first["outcome"] == "completed at step 3, after 3.000 s"
    assert sections(folder, 1)["changed"] == "interrupts: + i (pending)"
    assert "interrupts i: status pending → resolved" in sections(folder, 2)["changed"]
    assert "interrupts: 1, of them open 0" in sections(folder, 2)["state after it"]
    assert '"eventCount": 3' in sections(folder, 2, full=True)["state after it"]
    assert sections(folder, 3)["result"] == '{\n  "ok": 1\n}'
    assert sections(folder, 3)["changed"] == "calls: get (step 0) pending → completed"
    assert sections(folder, 4)["outcome"].startswith("unknown: the record holds no result")
    assert "line 5, byte" in sections(folder, 4)["chain"]


def test_detail_shows_the_last_messages_unless_all_are_asked_for(tmp_path: Path) -> None:
    words = ",".join(f'{{"role":"user","content":"w{n}"}}' for n in range(30))
    long = '{"role":"user","content":"' + "z" * 5000 + '"}'
    log = [Draft("model.requested", {"call_id": "c"}, model="m", prompt=f"[{words},{long}]")]
    folder = write_events(tmp_path / "run", log)
    short = sections(folder, 0)["request (31 messages)"]
    assert "… 25 earlier messages" in short
    assert "w24" not in short
    assert "w25" in short
    whole = sections(folder, 0, full=True)["request (31 messages)"]
    assert "[0] user: w0" in whole
    assert "z" * 5000 in whole


def test_a_changed_row_is_told_where_it_is_shown(tmp_path: Path) -> None:
    rows = event_rows([Draft("acme.x", {"n": 1}), Draft("acme.y", {"n": 2}), Draft("acme.z", {})])
    rows[1] = rows[1].replace(b'"n":2', b'"n":3')
    folder = write_lines(tmp_path / "run", [rows[0], rows[1], rows[0]])
    with Run.open(folder) as run:
        assert [line_of(run, n).marks for n in range(3)] == [(), ("changed",), ("misplaced",)]
    assert "CHANGED: the fields hash to" in sections(folder, 1)["chain"]
    assert "BROKEN: the row before stores" in sections(folder, 2)["chain"]
    assert "the row says seq 0 at place 2" in sections(folder, 2)["chain"]


def test_an_import_that_stops_early_is_no_error_and_its_source_is_not_in_the_line() -> None:
    assert not is_error(Event("run.ended", 0, {"status": "incomplete"}))
    assert is_error(Event("run.ended", 0, {"status": "crashed"}))
    assert is_error(Event("run.ended", 0, {"status": ["completed"]}))
    changed = Event("state.changed", 0, {"kind": "mode", "source": {"line": 4}})
    assert one_line(changed).detail == "kind=mode"
