"""Rows that no writer makes: every command says something about them and none falls over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Cli
from story import HOSTILE


def row(seq: int, call: str, prompt: str = "null") -> bytes:
    """A row as text, so that it can hold what json.dumps would not write."""
    fields = '"input_hash":"","model":null,"prev_hash":"","tool_result":null,"step_hash":""'
    return f'{{{fields},"seq":{seq},"prompt":{prompt},"tool_call":{call}}}'.encode()


def event(kind: str, payload: str) -> str:
    return f'{{"v":1,"event":{kind},"seq":0,"at":7,"id":[],"payload":{payload}}}'


ROWS = {
    "many digits": row(0, "9" * 5000),
    "digits in a payload": row(1, event('"state.changed"', '{"n":' + "9" * 5000 + "}")),
    "deep": row(2, "[" * 20_000 + "]" * 20_000),
    "rather deep": row(3, event('"tool.called"', '{"arguments":' + "[" * 400 + "]" * 400 + "}")),
    "not finite": row(4, '{"a":NaN,"b":Infinity,"c":-1e999}'),
    "lone surrogate": row(5, '{"name":"\\ud800","x":"\\udfff"}', '"\\ud800"'),
    "not utf-8": b'{"seq":6,"prompt":"\xff\xfe\x80"}',
    "NUL padding": b"\0" * 4096,
    "no object": b"[1,2,3]",
    "empty object": b"{}",
    "cut": b'{"seq":10,"prom',
    "twice the same key": b'{"seq":11,"seq":12,"prompt":"a","prompt":"b"}',
    "no type": row(12, event('""', "null")),
    "type is a list": row(13, event("[1]", "{}")),
    "far request": row(14, event('"model.requested"', '{"call_id":"c"}'), '"[[999999,0,5]]"'),
    "huge range": row(15, event('"model.requested"', '{"call_id":"c"}'), '"[[0,0,1e308]]"'),
    "own range": row(16, event('"model.requested"', '{"call_id":"c"}'), '"[[16,0,99999999]]"'),
    "missing blob": row(
        17,
        event('"tool.completed"', '{"result":{"$playhead":"blob","sha256":"../../x","size":-1}}'),
    ),
    "hostile text": row(18, event('"error.raised"', json.dumps({"message": HOSTILE}))),
    "hostile keys": row(19, event('"error.raised"', json.dumps({HOSTILE: {HOSTILE: 1}}))),
    "bad time": b'{"seq":20,"ts":1e999,"blob_refs":{"a":1},"schema_version":[],"step_hash":[]}',
}


@pytest.fixture
def hostile(root: Path) -> str:
    folder = root / "runtime" / "journal" / "hostile"
    folder.mkdir(parents=True)
    (folder / "000000.jsonl").write_bytes(b"\n".join(ROWS.values()) + b"\n")
    return "hostile"


def harmless(text: str) -> bool:
    return not {"\x1b", "\x07", "\u202e", "\0", "\ud800"} & set(text)


def test_the_log_has_a_line_for_each(cli: Cli, hostile: str) -> None:
    done = cli("log", hostile)
    assert (done.status, done.err) == (0, "")
    assert done.out.count("\n") == len(ROWS)
    assert harmless(done.out)


def test_the_whole_walk_both_ways(cli: Cli, hostile: str) -> None:
    for words in ([], ["--back"], ["--full"]):
        done = cli("walk", "--plain", hostile, *words)
        assert (done.status, done.err) == (0, "")
        assert harmless(done.out)


@pytest.mark.parametrize("step", range(len(ROWS)), ids=list(ROWS))
def test_each_can_be_shown(cli: Cli, hostile: str, step: int) -> None:
    for words in ([], ["--full"]):
        done = cli("show", hostile, str(step), *words)
        assert (done.status, done.err) == (0, "")
        assert harmless(done.out)
    done = cli("show", hostile, str(step), "--json")
    assert done.status == 0

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(done.out, parse_constant=refuse)["step"] == step
    assert harmless(done.out)


def test_it_is_listed_searched_exported_and_not_verified(cli: Cli, hostile: str) -> None:
    assert cli("ls", "--json").status == 0
    assert cli("log", hostile, "--grep", "\ud800").status == 0
    assert cli("log", hostile, "--grep", "onerror").out.count("\n") == 2
    assert cli("log", hostile, "--turns").out == ""
    assert cli("export", hostile, "-o", "x.jsonl").status == 1
    assert not Path("x.jsonl").exists()
    forced = cli("export", hostile, "-o", "x.jsonl", "--force")
    assert forced.status == 0
    assert "does not verify" in forced.err
    assert harmless(forced.err)
    assert Path("x.jsonl").read_bytes() == b"\n".join(ROWS.values()) + b"\n"
    for words in (["verify", hostile], ["verify", hostile, "--json"], ["fsck"]):
        done = cli(*words)
        assert (done.status, done.err) == (1, "")
        assert harmless(done.out)


def test_nothing_hostile_is_sealed(cli: Cli, hostile: str) -> None:
    done = cli("seal", hostile, "--force")
    assert done.status == 1
    assert done.err.count("\n") == 1
