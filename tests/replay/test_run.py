"""A run on disk: any step at any time, cheap, and nothing in it can break the walk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import event_rows, foreign_rows, write_events, write_lines
from playhead.core import prompts
from playhead.core.canonical import encode_step
from playhead.core.events import Draft
from playhead.core.fold import fold
from playhead.core.projections import ToolCalls, Turns, Usage
from playhead.errors import BlobError, NotFound, PlayheadError, TooLarge, ValueRefused
from playhead.formats.journal import SEGMENT
from playhead.recorder.writer import RunWriter
from playhead.replay import segments as replay_segments
from playhead.replay.run import Run
from playhead.replay.view import detail, is_error, line_of
from playhead.store.cas import Cas
from playhead.store.lines import STRIDE, PlainLines
from playhead.store.root import Root

KINDS = st.sampled_from(
    "interrupt.raised interrupt.resolved subagent.started subagent.completed export.created "
    "user_card.shown user_card.updated turn.started turn.completed tool.called tool.completed "
    "model.responded acme.noise".split()
)
IDS = st.sampled_from("abc")
PLAIN = st.none() | st.integers(-9, 9) | st.text("xyz", max_size=3)

EVERY = 256  # steps between two states that a handle keeps


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    key = draw(IDS)
    names = ("interrupt_id", "subagent_run_id", "export_id", "card_id", "call_id", "turn_id")
    payload: dict[str, Any] = dict.fromkeys(names, key)
    payload |= {"content": draw(PLAIN), "version": draw(st.integers(0, 3)), "usage": {"n": 1}}
    return Draft(draw(KINDS), payload)


def wire(folded: Any) -> str:
    views = [folded.view(key) for key in ("turns", "tool_calls", "usage")]
    return encode_step([folded.state.to_wire(), *views])


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(drafts(), min_size=1, max_size=40), st.data())
def test_any_way_to_a_step_gives_the_fold_of_the_steps_before(
    tmp_path: Path, log: list[Draft], data: st.DataObject
) -> None:
    with Run.open(write_events(tmp_path / "run", log)) as run:
        events = list(run.events())
        projections = (Turns(), ToolCalls(), Usage())
        moves = data.draw(st.lists(st.integers(-1, len(log) - 1), min_size=1, max_size=12))
        for number in moves:
            expected = fold(events[: number + 1], projections)
            assert wire(run.folded(number)) == wire(expected)
            assert run.state(number).event_count == number + 1


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 events: calls, results, and an interrupt now and then."""

    def draft(n: int) -> Draft:
        if n % 500 == 0:
            return Draft("interrupt.raised", {"interrupt_id": f"i{n}"})
        kind = "tool.called" if n % 2 else "tool.completed"
        return Draft(kind, {"call_id": f"c{n // 2}", "arguments": {}}, name="t")

    rows = event_rows(draft(n) for n in range(20_000))
    return write_lines(tmp_path_factory.mktemp("long") / "run", rows)


class Spy(PlainLines):
    """Counts the rows that are read to be decoded."""

    reads = 0

    def get(self, number: int) -> Any:
        self.reads += 1
        return super().get(number)

    def walk(self, start: int, stop: int | None) -> Any:
        for line in super().walk(start, stop):
            self.reads += 1
            yield line


def spied(folder: Path) -> tuple[Run, Spy]:
    lines = Spy(os.open(folder / SEGMENT, os.O_RDONLY))
    return Run(lines, folder.name, str(folder), None, folder), lines


def test_stepping_reads_about_a_row_a_step_in_both_directions(long_run: Path) -> None:
    run, spy = spied(long_run)
    assert run.state(19_999).event_count == 20_000
    assert spy.reads <= 20_000 + 1
    spy.reads = 0
    for number in range(19_999, 17_999, -1):
        assert run.state(number).event_count == number + 1
    back = spy.reads
    assert back <= 2 * 2000 + 2 * EVERY
    spy.reads = 0
    for number in range(5000, 6000):
        run.state(number)
    assert spy.reads <= 2 * 1000 + EVERY
    spy.reads = 0
    for number in (1, 19_000, 300, 12_345, 2):
        assert len(run.state(number).interrupts) == number // 500 + 1
    assert spy.reads <= 5 * (EVERY + 1)
    run.close()


def test_the_first_steps_of_a_long_run_need_no_scan_of_the_rest(long_run: Path) -> None:
    run, spy = spied(long_run)
    assert run.event(3).seq == 3
    assert run.has(10)
    assert spy._count < STRIDE  # counted so far
    assert len(run) == 20_000
    assert run.step(STRIDE).seq == STRIDE
    assert [e.seq for e in run.events(STRIDE - 2, STRIDE + 2)] == [1022, 1023, 1024, 1025]
    assert [e.seq for e in run.events(19_900)] == list(range(19_900, 20_000))
    run.close()


def test_states_share_their_structure(long_run: Path) -> None:
    with Run.open(long_run) as run:
        assert run.state(999).interrupts is run.state(501).interrupts


def test_a_step_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Run.open(write_events(tmp_path / "run", [Draft("acme.x", {})])) as run:
        for number in (1, -2, 10**30):
            with pytest.raises(NotFound, match="steps are 0 to 0"):
                run.event(number)
        assert run.state(-1).event_count == 0
    with Run.open(write_lines(tmp_path / "none", [])) as run, pytest.raises(NotFound):
        run.state(0)


def test_looking_writes_nothing(tmp_path: Path) -> None:
    folder = write_events(tmp_path / "root" / "run", [Draft("acme.x", {"a": 1})])
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with Run.open(folder, Cas(tmp_path / "root" / "cas")) as run:
        assert run.info.steps == 1
        detail(run, 0, full=True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_rows_written_after_opening_are_not_seen(tmp_path: Path) -> None:
    lines = event_rows([Draft("acme.x", {}), Draft("acme.y", {})])
    folder = write_lines(tmp_path / "run", lines[:1])
    with Run.open(folder) as run:
        with open(folder / SEGMENT, "ab") as file:
            file.write(lines[1] + b"\n")
        assert len(run) == 1


def test_a_prompt_is_rebuilt_with_its_blobs(root: Path) -> None:
    place = Root(root)
    writer = RunWriter.create(place, agent="a", run_id="r")
    said = [{"role": "user", "content": "x" * 20_000}, {"role": "user", "content": "ünï"}]
    tools = [{"name": "t", "description": "d" * 400}]
    first = writer.emit(Draft("model.requested", {"call_id": "1", "tools": tools}), messages=said)
    writer.emit(Draft("model.responded", {"call_id": "1", "result": "yes"}))
    more = [*said, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
    second = writer.emit(Draft("model.requested", {"call_id": "2", "tools": tools}), messages=more)
    writer.close()
    folder = place.journal_dir("r")
    with Run.open(folder, place.cas) as run:
        assert (run.messages(first), run.messages(second)) == (said, more)
        assert run.payload(second)["tools"] == tools
        assert run.event(second).payload["tools"] != tools  # it is a reference there
        assert run.messages(second + 1) == []
    with Run.open(folder, None) as run:
        with pytest.raises(BlobError, match="not at hand"):
            run.messages(first)
        marked: Any = run.messages(first, mark=True)
        assert marked[0]["content"].startswith("⟨blob ")
        assert marked[1] == said[1]


def test_a_prompt_that_doubles_itself_is_refused_and_shown_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "MAX_MESSAGES", 10_000)  # the real bound is a million
    chain = ['["a","b"]']
    chain += [f"[[{n - 1},0,{2**n}],[{n - 1},0,{2**n}]]" for n in range(1, 40)]
    log = [Draft("model.requested", {"call_id": str(n)}, prompt=p) for n, p in enumerate(chain)]
    with Run.open(write_events(tmp_path / "run", log)) as run:
        assert len(run.messages(3)) == 16
        with pytest.raises(TooLarge):
            run.messages(39)
        (request,) = [s for s in detail(run, 39) if s.title == "request"]
        assert "cannot be rebuilt" in request.text


def test_a_prompt_that_looks_at_one_long_row_for_ever_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        replay_segments, "_MAX_SEGMENTS", 100_000
    )  # the real bound is eighty times it
    wide, picks = json.dumps(["m"] * 1000), json.dumps([[0, 999, 1000]] * 1000)
    log = [Draft("model.requested", {"call_id": "c"}, prompt=p) for p in (wide, picks)]
    with Run.open(write_events(tmp_path / "run", log)) as run:
        assert run.messages(0) == ["m"] * 1000
        with pytest.raises(TooLarge, match="segments"):
            run.messages(1)


@pytest.mark.parametrize("prompt", ["[[0,0,1]]", "[[5,0,1]]", "[[-1,0,1]]", "[[0,1,0]]"])
def test_a_prompt_that_refers_to_nothing_is_refused(tmp_path: Path, prompt: str) -> None:
    log = [Draft("model.requested", {"call_id": "c"}, prompt=prompt)]
    with Run.open(write_events(tmp_path / "run", log)) as run, pytest.raises(ValueRefused):
        run.messages(0)


def test_a_reference_to_an_earlier_value_that_leads_nowhere_stays_as_it_is(tmp_path: Path) -> None:
    marks: list[dict[str, Any]] = [
        {"$playhead": "same", "seq": seq, "key": "tools"} for seq in (1, 7, -1, "0", True)
    ]
    for mark in marks:
        log = [Draft("acme.x", {}), Draft("model.requested", {"call_id": "c", "tools": mark})]
        with Run.open(write_events(tmp_path / "run", log)) as run:
            assert run.payload(1)["tools"] == mark


LINES: list[bytes] = [
    b"not json",
    b"[]",
    b"{}",
    b"null",
    b"\xff\xfe",
    b"\0" * 40,
    b'{"seq":"x","tool_call":7,"ts":"then"}',
    b'{"seq":1e400,"ts":1e999,"prev_hash":[1],"step_hash":{},"blob_refs":"no"}',
    b'{"seq":0,"ts":' + b"9" * 400 + b"}",
    b'{"tool_call":{"v":1,"event":""}}',
    b'{"tool_call":{"v":1,"event":"tool.called","payload":[],"at":5,"id":{},"name":[]}}',
    b'{"tool_call":{"v":1,"event":"model.requested","payload":{}},"prompt":"[[[["}',
    b'{"tool_call":{"v":1,"event":"model.requested"},"prompt":{"a":1},"model":[2]}',
    b'{"tool_call":{"v":1,"event":"model.responded","payload":{"usage":7}},"tool_result":[[]]}',
    b'{"tool_call":' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"tool_call":' + b"[" * 600 + b"]" * 600 + b"}",
    b'{"prompt":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}",
    b"[" * 20_000 + b"]" * 20_000,
    b'{"tool_result":{"$playhead":"blob","sha256":"../../etc/passwd","form":"text"}}',
    b'{"tool_result":{"$playhead":"int","hex":"0x' + b"f" * 9000 + b'"}}',
    b'{"tool_result":{"$playhead":"map","items":[[{"$playhead":"bytes","base64":"AA=="},1]]}}',
    b'{"prompt":"\\ud800 \\u202e \\u001b[31m"}',
]


def look_at_everything(folder: Path, cas: Cas | None = None) -> int:
    """Use every view of every step; returns the number of steps."""
    with Run.open(folder, cas) as run:
        assert run.info.steps == len(run)
        for number in range(len(run)):
            is_error(run.event(number))
            run.step(number)
            line = line_of(run, number)
            for section in detail(run, number) + detail(run, number, full=True):
                assert "\x1b" not in section.text + line.detail + line.title
                section.text.encode("utf-8")
        return len(run)


def test_hostile_lines_are_steps_too(tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "run", LINES)
    assert look_at_everything(folder, Cas(tmp_path / "cas")) == len(LINES)
    with Run.open(folder) as run:
        kinds = [event.type for event in run.events()]
        assert kinds[:6] == ["unreadable", "unreadable", "step", *["unreadable"] * 3]
        assert run.event(0).payload["reason"] == "invalid-json"
        assert run.event(9).payload["reason"] == "no-type"
        assert run.state(len(LINES) - 1).event_count == len(LINES)


def test_blank_lines_are_no_steps_and_a_torn_tail_is_one(tmp_path: Path) -> None:
    rows = event_rows([Draft("acme.x", {}), Draft("acme.y", {})])
    folder = write_lines(tmp_path / "run", [rows[0], b"", b"  ", rows[1]])
    with open(folder / SEGMENT, "ab") as file:
        file.write(rows[0][:40])
    with Run.open(folder) as run:
        assert [e.type for e in run.events()] == ["acme.x", "acme.y", "unreadable"]
        assert run.place(1).line == 4
        assert run.raw(2) == rows[0][:40]


MARK_KEYS = "value hex json base64 iso items sha256 form size seq key type repr".split()
PAYLOAD_KEYS = (
    "call_id arguments error usage tools effects status outcome input output message stamp agent "
    "uid name redacted prompt".split()
)
ROW_KEYS = (
    "seq prev_hash input_hash step_hash model tool_result effort ts blob_refs "
    "schema_version".split()
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
MARKS = st.fixed_dictionaries(
    {
        "$playhead": st.sampled_from(
            "float int text bytes time set map deep object blob same".split()
        )
    },
    optional=dict.fromkeys(
        "value hex json base64 iso items sha256 form size seq key type repr".split(), JUNK
    ),
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={"role": JUNK, "content": JUNK | MARKS, "tool_calls": JUNK, "type": JUNK},
)
ANY = JUNK | MARKS | MESSAGES | st.lists(MESSAGES | MARKS, max_size=3)
SEGMENTS = st.lists(
    st.tuples(st.integers(-1, 4), st.integers(-1, 3), st.integers(-1, 4)).map(list) | ANY,
    max_size=4,
)
EVENTS = st.sampled_from(
    "model.requested model.responded model.failed tool.called tool.completed tool.failed "
    "run.started run.ended run.forked turn.started turn.completed message.received step x".split()
)
ENVELOPES = st.fixed_dictionaries(
    {"v": st.just(1), "event": EVENTS},
    optional={
        "payload": ANY
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                "call_id arguments error usage tools effects status outcome input "
                "output message stamp agent uid name redacted prompt".split(),
                ANY,
            ),
        ),
        **dict.fromkeys("name at id turn_id subagent_run_id causation_id run_id".split(), ANY),
    },
)
ROWS = st.fixed_dictionaries(
    {"tool_call": ENVELOPES | ANY},
    optional={
        "prompt": SEGMENTS.map(json.dumps) | ANY,
        **dict.fromkeys(
            "seq prev_hash input_hash step_hash model tool_result effort ts blob_refs "
            "schema_version".split(),
            ANY,
        ),
    },
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(ROWS.map(lambda row: json.dumps(row).encode()) | st.binary(max_size=30), max_size=5)
)
def test_no_row_can_raise_out_of_a_view(tmp_path: Path, rows: list[bytes]) -> None:
    folder = write_lines(tmp_path / "run", rows)
    look_at_everything(folder, Cas(tmp_path / "cas"))
    with Run.open(folder) as run:
        for number in range(len(run)):
            try:
                run.messages(number)
                run.payload(number)
            except PlayheadError as error:
                assert error.what


def test_a_foreign_run_shows_its_prompts_as_they_are(tmp_path: Path) -> None:
    rows = foreign_rows(
        [
            {"model": "m", "prompt": "[[0,0,1]]", "tool_result": {"error": "no"}},
            {"tool_call": {"name": "ls", "args": {"path": "."}}, "tool_result": "a b"},
        ]
    )
    with Run.open(write_lines(tmp_path / "run", rows)) as run:
        assert run.messages(0) == ["[[0,0,1]]"]
        assert run.info.kind == "foreign"
        assert line_of(run, 1).title == "ls"
        assert line_of(run, 1).time == "2026-01-01T00:00:01.000000Z"
        assert [is_error(event) for event in run.events()] == [True, False]


def test_a_sealed_run_reads_as_the_plain_one(root: Path) -> None:
    from playhead.store.seal import seal_folder

    place = Root(root)
    writer = RunWriter.create(place, agent="a", run_id="r")
    for n in range(50):
        writer.emit(Draft("tool.called", {"call_id": str(n), "arguments": {"n": n}}, name="t"))
    writer.close()
    folder = place.journal_dir("r")
    with Run.open(folder) as run:
        plain = [run.raw(n) for n in range(len(run))]
    seal_folder(folder)
    with Run.open(folder) as run:
        assert run.event(40).payload["arguments"] == {"n": 39}
        assert [run.raw(n) for n in (51, 3, 20)] == [plain[n] for n in (51, 3, 20)]
        assert [run.raw(n) for n in range(len(run))] == plain
        assert [e.seq for e in run.events(10, 52)] == list(range(10, 52))
        assert run.info.sealed
        assert run.state(51).event_count == 52
        with pytest.raises(NotFound):
            run.raw(52)
