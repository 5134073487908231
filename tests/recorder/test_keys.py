"""Cache keys on record: what is stamped, that it follows from the record alone, and that the
conversation's memory is bounded and never wrong."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead
from playhead.core.cachekey import CacheStamp, ContentKey, derive_content_hash_key
from playhead.core.events import Draft, decode_event
from playhead.core.model import Event
from playhead.core.prompts import answer_segments, parse_segments, rebuild
from playhead.core.redact import Policy
from playhead.core.restore import restore
from playhead.recorder import keys
from playhead.recorder.keys import Stamper
from playhead.recorder.launch import launch
from playhead.replay.middleware import request_stamp
from playhead.store.root import Root


def events(root: Path, run_id: str) -> list[Event]:
    reader = playhead.JournalReader(Root(root).journal_dir(run_id))
    return [decode_event(step) for step in reader.entries()]


def stamped(found: list[Event]) -> list[Any]:
    return [
        event.payload.get("cache_key")
        for event in found
        if event.type in ("model.responded", "turn.completed")
    ]


def from_record(found: list[Event], root: Path) -> list[str]:
    """The key of every answer, from nothing but the rows and the blobs."""

    def source(seq: int) -> list[Any]:
        if found[seq].type == "model.responded":
            return list(answer_segments(found[seq].payload["result"]))
        return list(parse_segments(found[seq].prompt))

    asked: dict[object, str] = {}
    out: list[str] = []
    for event in found:
        if event.type == "model.requested":
            payload = dict(event.payload)
            tools = payload.get("tools")
            if isinstance(tools, dict) and tools.get("$playhead") == "same":
                payload["tools"] = found[tools["seq"]].payload["tools"]
            get = Root(root).cas.get
            parameters: Any = restore(payload, get)
            messages = [restore(message, get) for message in rebuild(event.seq, source)]
            stamp = CacheStamp.of_request(str(event.model), parameters)
            asked[payload["call_id"]] = derive_content_hash_key(stamp, messages)
        elif event.type == "model.responded":
            out.append(asked[event.payload["call_id"]])
    return out


def chat(run: playhead.Recording, turns: int = 4, **parameters: object) -> None:
    messages: list[object] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        with run.turn(f"question {number}"):
            messages.append({"role": "user", "content": f"question {number} ü"})
            with run.model_call("m-1", messages, temperature=0, **parameters) as call:
                call.respond(f"answer {number}")
            messages.append({"role": "assistant", "content": f"answer {number}"})


LONG = "x" * 400_000


@pytest.mark.parametrize("prompts", ["delta", "full"])
@pytest.mark.parametrize(
    "parameters", [{}, {"seed": None}, {"tools": [{"name": "find", "text": "y" * 400}]}]
)
def test_every_answer_has_the_key_that_follows_from_the_record(
    root: Path, prompts: Any, parameters: dict[str, object]
) -> None:
    with playhead.record("agent", root=root, prompts=prompts) as run:
        chat(run, **parameters)
    found = events(root, run.id)
    answers = [e.payload["cache_key"] for e in found if e.type == "model.responded"]
    assert len(set(answers)) == 4
    assert answers == from_record(found, root)
    turns = [e.payload["cache_key"] for e in found if e.type == "turn.completed"]
    assert turns == answers
    assert playhead.verify(run.id, root=Root(root)).ok


def test_large_values_are_hashed_as_they_were_before_they_became_blobs(root: Path) -> None:
    messages = [{"role": "user", "content": LONG}]
    with (
        playhead.record("agent", root=root) as run,
        run.model_call("m-1", messages, system=LONG) as call,
    ):
        call.respond("ok")
    found = events(root, run.id)
    assert LONG not in str(found)
    stamp = CacheStamp.of_request("m-1", {"system": LONG})
    assert stamped(found) == [derive_content_hash_key(stamp, messages)] == from_record(found, root)


def test_a_secret_is_removed_before_anything_is_hashed(root: Path) -> None:
    secret = {"role": "user", "content": "https://me:pa55word@example.org/x"}
    asked = {"extra": {"Authorization": "Bearer abcdefghijklmnop"}}
    with (
        playhead.record("agent", root=root) as run,
        run.model_call("m-1", [secret], **asked) as call,
    ):
        call.respond("ok")
    found = events(root, run.id)
    assert "pa55word" not in str(found)
    assert stamped(found) == from_record(found, root)
    assert stamped(found) != [
        derive_content_hash_key(CacheStamp.of_request("m-1", asked), [secret])
    ]


def test_the_stamp_of_a_host_is_that_of_the_recording() -> None:
    asked = {"extra": {"Authorization": "Bearer abcdefghijklmnop"}, "stop": ("a", "b")}
    stamp = request_stamp("m-1", asked)
    assert stamp.sampling["stop"] == ["a", "b"]
    assert "abcdefghijklmnop" not in str(stamp)
    assert request_stamp("m-1", asked, policy=Policy()) == stamp


def test_stamping_can_be_turned_off(root: Path) -> None:
    with playhead.record("agent", root=root, stamp_cache_keys=False) as run:
        chat(run)
    assert set(stamped(events(root, run.id))) == {None}


def test_a_changed_system_prompt_and_a_compaction_start_anew(root: Path) -> None:
    with playhead.record("agent", root=root) as run:
        for messages in (
            ["s", "a", "b", "c"],
            ["s", "a", "b", "c", "d"],
            ["other", "a", "b", "c", "d"],
            ["s", "summary", "d"],
            ["s", "a", "b"],
            ["s", "a", "b", "c", "d"],
        ):
            with run.model_call("m-1", messages) as call:
                call.respond("ok")
    found = stamped(events(root, run.id))
    assert found == from_record(events(root, run.id), root)
    assert found[1] == found[5]
    assert len(set(found)) == 5


def test_a_turn_has_the_key_of_its_own_last_answer_and_not_of_a_subagent(root: Path) -> None:
    def ask(run: playhead.Recording, text: str) -> None:
        with run.model_call("m-1", [text]) as call:
            call.respond("ok")

    with playhead.record("agent", root=root) as run:
        with run.turn("one"):
            ask(run, "first")
            ask(run, "last")
            with run.subagent("helper"):
                ask(run, "aside")
        with run.turn("two"):
            pass
        with run.turn("three"), pytest.raises(OSError), run.model_call("m-1", ["x"]):
            raise OSError("no answer")
    found = events(root, run.id)
    first, last, aside = [e.payload["cache_key"] for e in found if e.type == "model.responded"]
    turns = [e.payload.get("cache_key") for e in found if e.type == "turn.completed"]
    assert turns == [last, None, None]
    assert len({first, last, aside}) == 3
    assert not any("cache_key" in e.payload for e in found if e.type == "model.failed")


@pytest.mark.parametrize("name", ["cache_key", "cacheKey"])
def test_a_key_that_the_host_gave_stays(root: Path, name: str) -> None:
    with playhead.record("agent", root=root) as run, run.turn("hello"):
        run.event("model.responded", {"call_id": "c", "result": "ok", name: "mine"})
    found = events(root, run.id)
    answer = next(e for e in found if e.type == "model.responded")
    assert {k: v for k, v in answer.payload.items() if k.lower().startswith("cache")} == {
        name: "mine"
    }
    assert next(e for e in found if e.type == "turn.completed").payload["cache_key"] == "mine"


def test_programs_of_playhead_run_are_stamped_too(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, playhead\n"
        "with playhead.record('child') as run, run.turn('hello'):\n"
        "    with run.model_call('m-1', ['x' * 400000, 'b'], temperature=0) as call:\n"
        "        call.respond('ok')\n"
        "    pid = os.fork()\n"
        "    with run.model_call('m-1', ['parent' if pid else 'child']) as call:\n"
        "        call.respond('ok')\n"
        "    if pid == 0:\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    )
    result = launch(Root(root), [sys.executable, str(program)])
    assert result.exit_code == 0
    found = events(root, result.run_id)
    answers = {e.payload["cache_key"] for e in found if e.type == "model.responded"}
    plain = CacheStamp.of_request("m-1", {})
    assert answers == {
        derive_content_hash_key(
            CacheStamp.of_request("m-1", {"temperature": 0}), ["x" * 400_000, "b"]
        ),
        derive_content_hash_key(plain, ["parent"]),
        derive_content_hash_key(plain, ["child"]),
    }
    turn = next(e for e in found if e.type == "turn.completed")
    assert turn.payload["cache_key"] == derive_content_hash_key(plain, ["parent"])


def key_of(stamper: Stamper, digests: list[bytes], model: str = "m") -> object:
    stamper.requested(model, {"call_id": "c"}, digests)
    answered = stamper.stamped(Draft("model.responded", {}), {"call_id": "c"})
    return answered["cache_key"]


def afresh(digests: list[bytes], model: str = "m") -> str:
    found = ContentKey.start(CacheStamp(model=model))
    for digest in digests:
        found = found.add_digest(digest)
    return found.key


@given(
    st.lists(
        st.tuples(st.sampled_from("mn"), st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=7)),
        max_size=30,
    )
)
def test_whatever_was_asked_before_the_key_is_that_of_the_request(
    requests: list[tuple[str, list[bytes]]],
) -> None:
    stamper = Stamper()
    for model, letters in requests:
        digests = [letter * 32 for letter in letters]
        assert key_of(stamper, digests, model) == afresh(digests, model)


def test_a_turn_costs_its_new_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    added = 0
    real = ContentKey.add_digest

    def counted(self: ContentKey, digest: bytes) -> ContentKey:
        nonlocal added
        added += 1
        return real(self, digest)

    stamper, digests = Stamper(), [bytes([number]) * 32 for number in range(200)]
    monkeypatch.setattr(ContentKey, "add_digest", counted)
    for end in range(2, 201, 2):
        key_of(stamper, digests[:end])
    assert added == 200


def test_memory_is_bounded_and_what_is_forgotten_is_computed_again() -> None:
    stamper = Stamper()
    long = [number.to_bytes(32, "big") for number in range(keys._MESSAGES + 50)]
    assert key_of(stamper, long) == afresh(long)
    assert key_of(stamper, [*long, b"x" * 32]) == afresh([*long, b"x" * 32])
    for number in range(3 * keys._CALLS):
        stamper.requested("m", {"call_id": f"open-{number}"}, [number.to_bytes(32, "big")])
        draft = Draft("model.responded", {}, turn_id=f"turn-{number}")
        stamper.stamped(draft, {"call_id": f"open-{number}", "cache_key": "k"})
        stamper.requested("m", {"call_id": f"open-{number}"}, [])
    sizes = [len(held) for held in (stamper._known, stamper._asked, stamper._turns)]
    assert sizes == [keys._CONVERSATIONS, keys._CALLS, keys._CALLS]
    held = [len(part) for known in stamper._known.values() for part in known]
    assert max(held) <= keys._MESSAGES
    assert key_of(stamper, long) == afresh(long)


def test_threads_share_a_stamper(root: Path) -> None:
    stamper, wrong = Stamper(), []

    def talk(name: int) -> None:
        digests: list[bytes] = [b"s" * 32]
        for number in range(150):
            digests.append((number % 7 * 100 + name % 2).to_bytes(32, "big"))
            call = f"{name}-{number}"
            stamper.requested("m", {"call_id": call}, digests)
            got = stamper.stamped(Draft("model.responded", {}), {"call_id": call})
            if got["cache_key"] != afresh(digests):
                wrong.append(call)

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_odd_requests_are_recorded_all_the_same(root: Path) -> None:
    deep: object = "end"
    for _ in range(80):
        deep = [deep]
    with playhead.record("agent\ud800", root=root) as run:
        for messages, asked in (
            ([deep, float("nan"), {1: 2}, object()], {"deep": deep, "nan": float("nan")}),
            ([], {"tools": None, "provider": 7}),
            (["\ud800"], {"raw": b"raw"}),
            (["a"], {"\ud801": "a name that stands in no payload as it is"}),
        ):
            with run.model_call("m\ud800", messages, **asked) as call:
                call.respond("ok")
    *found, unnamed = stamped(events(root, run.id))
    assert all(str(key).startswith("ck1:") for key in found)
    assert len(set(found)) == 3
    assert unnamed is None
