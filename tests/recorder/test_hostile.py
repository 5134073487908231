"""What a hostile or broken program sends to its recorder: an answer, and a chain that holds."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead.core.events import Draft
from playhead.core.model import Verdict
from playhead.errors import JournalClosed, RecordError, TooLarge, UsageError
from playhead.recorder.remote import RemoteSink
from playhead.recorder.server import EventServer
from playhead.recorder.wire import MAX_FRAME, Frames, draft_from_json, encode_frame
from playhead.recorder.writer import RunWriter
from playhead.store.root import Root

HELLO = {"op": "hello", "v": 1, "agent": "x", "pid": 1}


class Child:
    """Says what it likes."""

    def __init__(self, path: str) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.link.settimeout(20)
        self.link.connect(path)
        self.frames = Frames(self.link)

    def say(self, frame: object) -> dict[str, object]:
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        self.link.sendall(data + b"\n")
        answer = self.frames.read()
        assert answer is not None
        found = json.loads(answer)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def server(root: Path) -> Iterator[EventServer]:
    writer = RunWriter.create(Root(root), agent="owner", run_id="run")
    with EventServer(writer) as made:
        yield made
    writer.close()
    report = playhead.verify("run", root=Root(root))
    assert report.verdict is Verdict.VERIFIED, report.findings


@pytest.fixture
def child(server: EventServer) -> Iterator[Child]:
    made = Child(server.path)
    yield made
    made.link.close()


def emit(**draft: object) -> dict[str, object]:
    return {"op": "emit", "draft": {"type": "state.changed", "payload": {"key": "k"}, **draft}}


DEEP = b'{"op":"emit","draft":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
NESTED = {"a": json.loads("[" * 80 + "]" * 80)}
BAD = {
    "no JSON": b"{",
    "no object": b"[1]",
    "empty": b"",
    "no UTF-8": b'{"op":"\xff"}',
    "NaN": b'{"op":"emit","draft":{"type":"a.b","payload":{"x":NaN}}}',
    "20,000 arrays": DEEP,
    "5,000 digits": b'{"op":"emit","draft":{"type":"a.b","payload":{"x":' + b"9" * 5000 + b"}}}",
    "unknown op": {"op": "format-disk"},
    "op of a wrong type": {"op": ["emit"]},
    "no draft": {"op": "emit"},
    "draft of a wrong type": {"op": "emit", "draft": 7},
    "unknown type": emit(type="nonsense"),
    "type with a path": emit(type="../x.y"),
    "type of a wrong type": emit(type=["a.b"]),
    "run.started": emit(type="run.started", payload={"uid": "0"}),
    "run.ended": emit(type="run.ended", payload={"status": "completed"}),
    "run.forked": emit(type="run.forked", payload={}),
    "payload is a list": emit(payload=[]),
    "key missing": emit(type="tool.called"),
    "nested": emit(payload=NESTED),
    "lone surrogate": emit(payload={"x": "\ud800"}),
    "surrogate in a name": emit(name="\udc00"),
    "name of a wrong type": emit(name=3),
    "name too long": emit(name="n" * 5000),
    "blob that is a path": emit(blobs=["../../etc/passwd"]),
    "blobs of a wrong type": emit(blobs="0" * 64),
    "messages of a wrong type": {**emit(), "messages": {"a": 1}},
    "time of a wrong type": {**emit(), "at": 5},
    "no time": {**emit(), "at": "yesterday"},
    "time without a zone": {**emit(), "at": "2025-01-01T00:00:00"},
    "time far out": {**emit(), "at": "0001-01-01T00:00:00+23:59"},
    "hello of another version": {**HELLO, "v": 2},
    "hello with odd ids": {**HELLO, "pid": "1"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_frame_is_answered_and_the_next_one_works(
    server: EventServer, child: Child, bad: object
) -> None:
    assert child.say(HELLO)["run_id"] == "run"
    answer = child.say(bad)
    problem = answer["error"]
    assert isinstance(problem, dict)
    assert problem["code"]
    assert problem["what"]
    assert child.say(emit())["seq"] == 1
    assert server.events == 1


def test_a_frame_over_the_limit_is_skipped(child: Child) -> None:
    child.say(HELLO)
    block = b"x" * (1 << 20)
    for _ in range(MAX_FRAME // len(block) + 2):
        child.link.sendall(block)
    problem = child.say(b"end")["error"]
    assert isinstance(problem, dict)
    assert problem["code"] == "too-large"
    assert child.say(emit())["seq"] == 1


def test_nothing_is_taken_before_hello(server: EventServer, child: Child) -> None:
    assert "error" in child.say(emit())
    assert "error" in child.say({"op": "sync"})
    assert server.programs == 0


def test_half_a_frame_and_gone(server: EventServer, root: Path) -> None:
    child = Child(server.path)
    child.say(HELLO)
    child.link.sendall(b'{"op":"emit","draft":{"type":"state.chan')
    child.link.close()
    other = Child(server.path)
    assert "run_id" in other.say(HELLO)
    other.say({"op": "bye"})
    other.link.close()
    server.close()
    last = list(playhead.JournalReader(Root(root).journal_dir("run")).entries())[-1]
    assert isinstance(last.tool_call, dict)
    assert last.tool_call["payload"] == {
        "stamp": {"agent": "x", "pid": 1, "status": "disconnected"}
    }


def test_marks_in_values_are_kept_as_the_program_had_them(server: EventServer, root: Path) -> None:
    """A dict that looks like a mark is no mark, on either side of the socket."""
    from playhead.core.restore import restore

    sink = RemoteSink.connect(server.path, "a")
    value = {"$playhead": "blob", "sha256": "0" * 64}
    seq = sink.emit(Draft("state.changed", {"key": "k", "value": value}))
    sink.close()
    step = list(playhead.JournalReader(Root(root).journal_dir("run")).entries())[seq]
    assert isinstance(step.tool_call, dict)
    payload = step.tool_call["payload"]
    assert isinstance(payload, dict)
    assert restore(payload["value"], lambda digest: b"") == value


def test_an_event_over_the_limit_is_refused_before_it_is_sent() -> None:
    with pytest.raises(TooLarge):
        encode_frame({"items": ["x" * 10_000] * (MAX_FRAME // 10_000)})


def test_a_refusal_is_an_error_of_the_tree(server: EventServer) -> None:
    sink = RemoteSink.connect(server.path, "a")
    with pytest.raises(UsageError, match="owner of the run"):
        sink.emit(Draft("run.ended", {"status": "completed"}))
    assert sink.emit(Draft("state.changed", {"key": "k"})) == 2
    assert sink.sync() == 3
    assert sink.close() == sink.head
    with pytest.raises(JournalClosed):
        sink.emit(Draft("state.changed", {"key": "k"}))


@pytest.mark.parametrize("on_error", ["raise", "warn"])
def test_losing_the_recorder_is_a_matter_of_on_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, on_error: playhead.recorder.session.OnError
) -> None:
    writer = RunWriter.create(Root(root), agent="owner")
    server = EventServer(writer)
    monkeypatch.setenv("PLAYHEAD_SOCKET", server.path)
    run = playhead.record("agent", on_error=on_error).open()
    run.state("k", 1)
    server.close()
    if on_error == "raise":
        with pytest.raises(RecordError, match="gone"):
            run.state("k", 2)
        with pytest.raises(RecordError, match="gone"):
            run.close()
    else:
        with pytest.warns(RuntimeWarning, match="gone"):
            run.state("k", 2)
        run.close()
        assert run.lost == 1
    writer.close()


def test_a_draft_is_checked_key_by_key() -> None:
    draft = draft_from_json({"type": "vendor.thing", "payload": {"a": 1}, "blobs": ["0" * 64]})
    assert draft == Draft("vendor.thing", {"a": 1}, blobs=("0" * 64,))
