"""The right value of each case, on vectors kept beside the tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claude_sessions import answer, kinds, lines, of_type, read, read_path, result, types, use, user
from playhead.formats.registry import detect
from playhead.formats.transcript import Transcript

FOLDER = Path(__file__).parent.parent / "vectors" / "claude_code"
INDEX = json.loads((FOLDER / "INDEX.json").read_text("utf-8"))


def case(name: str) -> Transcript:
    return read_path(next(FOLDER.glob(f"{name}*.jsonl")))


def texts(transcript: Transcript) -> list[object]:
    return [entry.payload.get("input") for entry in of_type(transcript, "turn.started")]


def outcomes(transcript: Transcript) -> list[object]:
    return [entry.payload["outcome"] for entry in of_type(transcript, "turn.completed")]


@pytest.mark.parametrize("name", [name for name in INDEX if "/" not in name])
def test_vector(name: str) -> None:
    found = read_path(FOLDER / name)
    want = INDEX[name]
    counts = found.counts.to_dict()
    assert found.status == want["status"]
    assert {k: counts[k] for k in want if k in counts} == {k: want[k] for k in want if k in counts}
    assert kinds(found) == want["findings"]


@pytest.mark.parametrize("name", sorted(INDEX))
def test_the_format_is_told_by_the_first_bytes(name: str) -> None:
    assert detect(name, (FOLDER / name).read_bytes()[:65536]) == "claude-code"


@pytest.mark.parametrize("head", [b"[[[[", b'{"messages": []}', b"PK\x03\x04", b"hello", b"\0\0"])
def test_other_files_are_not_taken_for_sessions(head: bytes) -> None:
    assert detect("x.jsonl", head) is None


def test_c01_names_the_lost_bytes() -> None:
    lost = next(f for f in case("C01").findings if f.kind == "bad-line")
    assert (lost.place.line, lost.place.byte) == (2, 191)
    assert "60 bytes" in lost.what
    assert texts(case("C01")) == ["hi", "next"]


def test_c05_and_c06_keep_the_characters() -> None:
    assert texts(case("C05")) == ["left\u2028right\u0085end"]
    assert texts(case("C06")) == ["byte \udcb2 here"]


def test_c09_counts_the_unknown_record() -> None:
    found = case("C09")
    assert [f.what for f in found.findings] == ["1 unknown record (brand-new-record)"]
    assert found.counts.unknown == {"brand-new-record": 1}
    assert types(found)[-1] == "turn.completed" and "model.responded" in types(found)


def test_c11_reads_as_the_same_file_without_bom_and_crlf() -> None:
    data = (FOLDER / "C11_bom_crlf.jsonl").read_bytes()
    plain = read(data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n"))
    assert [(e.type, e.payload) for e in plain.entries] == [
        (e.type, e.payload) for e in case("C11").entries
    ]


def test_c14_the_call_is_interrupted_and_no_result_is_invented() -> None:
    found = case("C14")
    assert of_type(found, "tool.completed", "tool.failed") == []
    assert outcomes(found) == ["interrupted", "unanswered"]
    assert of_type(found, "turn.completed")[0].payload["unresolved"] == ["t1"]


def test_c16_the_result_goes_to_the_first_call_only() -> None:
    found = case("C16")
    called = [e.payload["call_id"] for e in of_type(found, "tool.called")]
    done = [(e.payload["call_id"], e.payload["result"]) for e in of_type(found, "tool.completed")]
    assert called == ["call-1", "call-1#2"] and done == [("call-1", "one")]
    assert outcomes(found) == ["completed", "interrupted", "unanswered"]


@pytest.mark.parametrize("with_request_id", [True, False])
def test_c17_one_request_with_its_usage_once(with_request_id: bool) -> None:
    data = (FOLDER / "C17_split_reply_same_message_id.jsonl").read_bytes()
    rows = [json.loads(line) for line in data.splitlines()]
    for number, row in enumerate(rows[1:4]):
        row["message"]["usage"]["output_tokens"] = 5 + number
        if with_request_id:
            row["requestId"] = "r1"
    found = read(lines(*rows))
    [reply] = of_type(found, "model.responded")
    assert reply.payload["usage"] == {"input_tokens": 10, "output_tokens": 7}
    blocks = reply.payload["result"]["content"]  # type: ignore[index]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]
    assert found.counts.model_requests == 1


def test_c19_the_active_path_and_the_branch_that_was_left() -> None:
    found = case("C19")
    assert texts(found) == ["start", "try B", "go on"]
    assert [b.to_dict() for b in found.branches] == [
        {"after": "a2", "leaf": "a4", "first_line": 3, "last_line": 4, "rows": 2}
    ]
    [compacted] = of_type(found, "context.compacted")
    assert compacted.payload["after"] == "a6" and compacted.payload["summary"] == "summary of B"
    prompt = of_type(found, "model.requested")[1].messages
    assert prompt is not None
    assert [m["role"] for m in prompt] == ["user", "assistant", "user"]  # type: ignore[index]


def test_c19_the_prompt_after_a_compaction_is_summary_and_what_follows() -> None:
    data = (FOLDER / "C19_rewind_then_compact.jsonl").read_bytes()
    found = read(data + lines(answer("a10", "yes", "u9")))
    prompt = of_type(found, "model.requested")[-1].messages
    assert prompt == [
        {"role": "user", "content": "summary of B"},
        {"role": "user", "content": "go on"},
    ]


def test_c20_what_the_model_saw_is_called_unknown_and_the_history_is_kept() -> None:
    data = (FOLDER / "C20_compact_no_summary.jsonl").read_bytes()
    found = read(data + lines(answer("a5", "yes", "u4")))
    asked = of_type(found, "model.requested")
    assert [e.payload.get("unknown_before") for e in asked] == [None, True]
    assert texts(found) == ["task", "continue"]


def test_c44_the_name_stays_as_it_is() -> None:
    assert of_type(case("C44"), "tool.called")[0].name == "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("cwd", (FOLDER / "C51_paths.txt").read_text("utf-8").splitlines())
def test_c51_the_project_is_what_the_rows_say(cwd: str) -> None:
    found = read(lines(user("u1", "hi", cwd=cwd)), name="-w-a-b-c.jsonl")
    assert found.cwd == cwd


def test_c55_zero_turns_are_loud() -> None:
    assert [f.severity for f in case("C55b").findings if f.kind == "no-turns"] == ["error"]
    assert [f.kind for f in case("C55_").findings] == ["empty-run"]


def test_c12_a_row_nested_too_deeply_costs_that_row_only() -> None:
    deep = b'{"type":"user","message":{"content":%s}}\n' % (b"[" * 20_000 + b"]" * 20_000)
    found = read(lines(user("u1", "hi")) + deep + lines(answer("a2", "ok", "u1")))
    assert kinds(found) == ["too-deep"] and found.status == "completed"


def test_parallel_results_are_on_the_path() -> None:
    found = case("parallel_calls")
    ended = [
        (e.type, e.payload["call_id"]) for e in of_type(found, "tool.completed", "tool.failed")
    ]
    assert ended == [("tool.completed", "t1"), ("tool.failed", "t2")]
    assert found.branches == ()
    assert len(of_type(found, "model.requested")[1].messages or ()) == 4


def test_one_stop_is_one_interrupt_and_going_on_resolves_it() -> None:
    found = case("interrupted")
    raised = [e.payload["interrupt_id"] for e in of_type(found, "interrupt.raised")]
    assert raised == ["interrupt-1"]
    assert [e.turn_id for e in of_type(found, "interrupt.resolved")] == ["turn-2"]
    assert outcomes(found) == ["interrupted", "completed"]


def test_an_api_error_is_a_failed_request_and_no_part_of_the_prompt() -> None:
    found = case("api_error")
    [failed] = of_type(found, "model.failed")
    assert failed.payload["error"]["type"] == "overloaded"  # type: ignore[index]
    assert len(of_type(found, "model.requested")[1].messages or ()) == 1


def test_a_second_root_keeps_the_walk_and_empties_the_prompt() -> None:
    found = case("second_root")
    assert texts(found) == ["first", "anew"]
    assert [len(e.messages or ()) for e in of_type(found, "model.requested")] == [1, 1]


def test_file_order_counts_where_no_row_names_its_parent() -> None:
    found = read(lines(user("u1", "a"), answer("a2", "b"), user("u3", "c"), answer("a4", "d")))
    assert texts(found) == ["a", "c"] and kinds(found) == ["no-parents"]
    assert len(of_type(found, "model.requested")[1].messages or ()) == 3


def test_a_result_that_comes_without_an_id_is_paired_by_position() -> None:
    block = {"type": "tool_result", "content": "x"}
    found = read(lines(user("u1", "a"), answer("a2", [use("t1")], "u1"), user("u3", [block], "a2")))
    [done] = of_type(found, "tool.completed")
    assert done.payload["pairing"] == "positional" and done.payload["call_id"] == "t1"


def test_a_result_without_a_call_is_kept_as_a_message() -> None:
    found = read(lines(user("u1", "a"), answer("a2", "b", "u1"), user("u3", [result("t9")], "a2")))
    assert "result-without-call" in kinds(found)


def test_the_same_row_twice_counts_once() -> None:
    row = answer("a2", "b", "u1", id="m1")
    found = read(lines(user("u1", "a"), row, row))
    assert kinds(found) == ["duplicate-row"] and found.counts.model_requests == 1


def test_times_without_a_zone_are_not_guessed() -> None:
    rows = [user("u1", "a", timestamp="2026-01-01T10:00:00"), answer("a2", "b", "u1", timestamp=5)]
    found = read(lines(*rows))
    assert {e.at for e in found.entries} == {None} and kinds(found) == ["unknown-time"]


def test_a_time_with_a_zone_becomes_utc() -> None:
    found = read(lines(user("u1", "a", timestamp="2026-01-01T10:00:00.5+02:00")))
    assert found.entries[0].at == "2026-01-01T08:00:00.500000Z"
