"""What a run records, and that recording changes nothing for the agent."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.model import Event, Verdict
from playhead.errors import RecordError, UsageError
from playhead.store.root import Root


def events(root: Path, run_id: str) -> list[Event]:
    from playhead.core.events import decode_event

    reader = playhead.JournalReader(Root(root).journal_dir(run_id))
    return [decode_event(step) for step in reader.entries()]


def types(found: list[Event]) -> list[str]:
    return [event.type for event in found]


@pytest.fixture
def recorded(root: Path) -> Callable[[Callable[[playhead.Recording], object]], list[Event]]:
    def act(body: Callable[[playhead.Recording], object]) -> list[Event]:
        with playhead.record("agent", root=root) as run:
            body(run)
        report = playhead.verify(run.id, root=Root(root))
        assert report.verdict is Verdict.VERIFIED, report.findings
        return events(root, run.id)

    return act


def test_a_run_starts_and_ends_and_its_head_is_signed(recorded: Any) -> None:
    found = recorded(lambda run: None)
    assert types(found) == ["run.started", "run.ended"]
    assert found[0].ids["tenant_id"] == "local"
    assert found[0].ids["chat_id"] == found[0].ids["run_id"]
    assert found[1].payload["status"] == "completed"


def test_a_tool_returns_the_same_object(recorded: Any) -> None:
    marker = object()

    def body(run: playhead.Recording) -> None:
        @run.tool(effects="read")
        def find(key: str, limit: int = 3) -> object:
            return marker

        assert find("x") is marker
        assert find.__name__ == "find"

    called, completed = recorded(body)[1:3]
    assert called.payload["arguments"] == {"key": "x", "limit": 3}
    assert called.payload["effects"] == "read"
    assert completed.name == "find"
    assert completed.payload["call_id"] == called.payload["call_id"]


def test_arguments_are_recorded_as_they_were_at_the_call(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        @run.tool
        def grow(items: list[int]) -> list[int]:
            items.append(2)
            return items

        shared = [1]
        assert grow(shared) is shared

    called, completed = recorded(body)[1:3]
    assert called.payload["arguments"] == {"items": [1]}
    assert completed.payload["result"] == [1, 2]


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_exceptions_pass_through_unchanged(recorded: Any) -> None:
    error = ValueError("bad input")

    def body(run: playhead.Recording) -> None:
        @run.tool
        def fails(which: BaseException) -> None:
            raise which

        for thrown in (error, Odd(), KeyboardInterrupt()):
            with pytest.raises(type(thrown)) as seen:
                fails(thrown)
            assert seen.value is thrown

    failed = [e for e in recorded(body) if e.type == "tool.failed"]
    assert failed[0].payload["error"] == {"type": "builtins.ValueError", "message": "bad input"}
    assert "RuntimeError" in str(failed[1].payload["error"])
    assert failed[2].payload["outcome"] == "interrupted"


async def test_cancellation_is_recorded_as_such(root: Path) -> None:
    async with playhead.record("agent", root=root) as run:

        @run.tool
        async def waits() -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    failed = [e for e in events(root, run.id) if e.type == "tool.failed"]
    assert failed[0].payload["outcome"] == "cancelled"


def test_a_generator_yields_receives_and_returns_as_before(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        @run.tool
        def talk() -> Iterator[Any]:
            got = yield "a"
            try:
                yield got
            except LookupError:
                yield "caught"
            return "end"

        stream: Any = talk()
        assert next(stream) == "a"
        assert stream.send("b") == "b"
        assert stream.throw(LookupError()) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(stream)
        assert stop.value.value == "end"

    completed = next(e for e in recorded(body) if e.type == "tool.completed")
    assert completed.payload["result"] == {"items": ["a", "b", "caught"], "returned": "end"}


def test_a_generator_closed_early_says_so(recorded: Any) -> None:
    closed = []

    def body(run: playhead.Recording) -> None:
        @run.tool
        def count() -> Iterator[int]:
            try:
                yield from range(10)
            finally:
                closed.append(True)

        stream: Any = count()
        assert [next(stream), next(stream)] == [0, 1]
        stream.close()

    completed = next(e for e in recorded(body) if e.type == "tool.completed")
    assert completed.payload["outcome"] == "closed"
    assert closed == [True]


async def test_an_async_generator_and_its_failure(root: Path) -> None:
    async with playhead.record("agent", root=root) as run:

        @run.tool
        async def stream(n: int) -> Any:
            for i in range(n):
                yield i
            raise OSError("gone")

        seen = []
        with pytest.raises(OSError, match="gone"):
            async for item in stream(2):
                seen.append(item)
        assert seen == [0, 1]
    failed = next(e for e in events(root, run.id) if e.type == "tool.failed")
    assert failed.payload["items"] == [0, 1]


async def test_two_hundred_tasks_make_one_valid_chain(root: Path) -> None:
    async with playhead.record("agent", root=root) as run:

        @run.tool(effects="pure")
        async def work(n: int) -> int:
            await asyncio.sleep(0)
            return n * n

        async with run.turn("go"):
            assert await asyncio.gather(*(work(n) for n in range(200))) == [
                n * n for n in range(200)
            ]
    found = events(root, run.id)
    assert playhead.verify(run.id, root=Root(root)).verdict is Verdict.VERIFIED
    called = {e.payload["call_id"]: e for e in found if e.type == "tool.called"}
    done = {e.payload["call_id"]: e for e in found if e.type == "tool.completed"}
    assert len(called) == len(done) == 200
    for call_id, event in called.items():
        assert event.turn_id == "turn-1"
        n = event.payload["arguments"]["n"]  # type: ignore[index]
        assert done[call_id].payload["result"] == n * n


def test_threads_keep_their_turn_with_and_without_carry(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        @playhead.tool(effects="pure")
        def work(n: int) -> int:
            return n

        with run.turn("go"), ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(playhead.carry(work), range(50))) == sum(range(50))
            thread = threading.Thread(target=work, args=(99,))
            thread.start()
            thread.join()

    called = [e for e in recorded(body) if e.type == "tool.called"]
    assert len(called) == 51
    assert {event.turn_id for event in called} == {"turn-1"}


def test_without_a_run_a_tool_just_runs(root: Path) -> None:
    @playhead.tool
    def plain(x: int) -> int:
        return x + 1

    assert plain(1) == 2
    assert not root.exists()


def test_intent_stands_before_the_effect_and_is_durable(root: Path) -> None:
    seen: list[int] = []
    with playhead.record("agent", root=root) as run:

        @run.tool(effects="write")
        def pay() -> None:
            seen.append(run.durable_upto)
            seen.append(len(events(root, run.id)))

        pay()
    assert seen == [2, 2]


def test_model_calls_store_the_conversation_once(recorded: Any) -> None:
    story = "a long text " * 100

    def body(run: playhead.Recording) -> None:
        messages: list[Any] = [{"role": "user", "content": story}]
        for n in range(3):
            with run.model_call("m-1", messages, temperature=0) as call:
                call.respond({"role": "assistant", "content": f"{n} {story}"}, usage={"in": 1})
            messages.append({"role": "assistant", "content": f"{n} {story}"})

    found = recorded(body)
    requests = [e for e in found if e.type == "model.requested"]
    assert str(requests[0].prompt).count(story) == 1
    assert requests[1].prompt == "[[1,0,1],[2,0,1]]"
    assert requests[2].prompt == "[[3,0,2],[4,0,1]]"
    assert requests[0].model == "m-1"
    assert requests[0].payload["temperature"] == 0


def test_a_model_call_that_raises_or_forgets_its_answer(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        with pytest.raises(TimeoutError), run.model_call("m-1", ["hi"]):
            raise TimeoutError("slow")
        with run.model_call("m-1", ["hi"]):
            pass

    failed = [e for e in recorded(body) if e.type == "model.failed"]
    assert failed[0].payload["error"] == {"type": "builtins.TimeoutError", "message": "slow"}
    assert failed[1].payload["outcome"] == "no answer was recorded"


def test_a_streamed_answer_joins_a_pair_that_was_split(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        with run.model_call("m-1", ["hi"]) as call:
            assert [call.chunk(part) for part in ("a\ud83c", "\udf78")] == ["a\ud83c", "\udf78"]
        with pytest.raises(ConnectionError), run.model_call("m-1", ["hi"]) as call:
            call.chunk("half")
            raise ConnectionError

    found = recorded(body)
    answered = next(e for e in found if e.type == "model.responded")
    assert answered.payload["result"] == "a\U0001f378"
    assert next(e for e in found if e.type == "model.failed").payload["partial"] == "half"


def test_content_redaction_marks_the_run(root: Path) -> None:
    from playhead.core.redact import Policy

    secret = "sk-test-" + "A" * 24
    with playhead.record("agent", root=root, policy=Policy(content=True)) as run:
        run.state("env", f"HOME=/w\nAPI_KEY={secret}\n")
    found = events(root, run.id)
    assert "redacted" in found[0].payload
    assert secret not in (Root(root).journal_dir(run.id) / "000000.jsonl").read_text()


def test_turns_subagents_interrupts_and_state(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        with run.turn("hello", turn_id="t-9") as turn:
            run.state("plan", ["a", "b"])
            with run.subagent("helper", "look") as child:
                run.state("inner", 1)
                child.suspend("waits")
                child.resume()
                child.output = "found"
            question = run.interrupt("may I?", {"amount": 3})
            question.resolve("yes")
            question.cancel()
            turn.output = "bye"

    found = recorded(body)
    assert types(found)[1:-1] == [
        "turn.started",
        "state.changed",
        "subagent.started",
        "state.changed",
        "subagent.suspended",
        "subagent.resumed",
        "subagent.completed",
        "interrupt.raised",
        "interrupt.resolved",
        "turn.completed",
    ]
    inner = found[4]
    assert inner.subagent_run_id == "helper-1"
    assert all(event.turn_id == "t-9" for event in found[1:-1])
    assert found[-2].payload["output"] == "bye"


def test_a_run_that_raises_ends_as_failed(root: Path) -> None:
    with pytest.raises(LookupError), playhead.record("agent", root=root) as run:
        raise LookupError("no such thing")
    ended = events(root, run.id)[-1]
    assert ended.payload["status"] == "failed"


class Hostile:
    def __repr__(self) -> str:
        raise SystemError("no")

    @property
    def model_dump(self) -> object:
        raise SystemError("never")


def test_values_json_cannot_say_are_marked_and_do_not_raise(recorded: Any) -> None:
    loop: list[Any] = []
    loop.append(loop)
    values = [
        float("nan"),
        float("inf"),
        {1: "a", None: "b"},
        "lone \udcb2 half",
        b"\x00\xff",
        10**5000,
        {1, 2},
        loop,
        Hostile(),
        Path("/etc"),
        {"$playhead": "mine"},
    ]

    def body(run: playhead.Recording) -> None:
        @run.tool
        def takes(value: object) -> object:
            return value

        for value in values:
            assert takes(value) is value

    found = recorded(body)
    assert len([e for e in found if e.type == "tool.completed"]) == len(values)


def test_large_values_lie_in_the_blob_store_once(root: Path) -> None:
    image = "A" * 50_000
    with playhead.record("agent", root=root) as run:

        @run.tool
        def show(picture: str) -> str:
            return picture

        for _ in range(3):
            show(image)
    assert len(list(Root(root).cas)) == 1
    journal = Root(root).journal_dir(run.id) / "000000.jsonl"
    assert journal.stat().st_size < 10_000


def test_a_chat_continued_later_appends_to_the_same_chain(root: Path) -> None:
    for n in range(2):
        with playhead.record("agent", root=root, chat_id="chat-7") as run, run.turn(f"turn {n}"):
            pass
    assert run.id == "chat-7"
    found = events(root, "chat-7")
    assert types(found).count("run.started") == 1
    assert types(found).count("turn.completed") == 2
    assert playhead.verify("chat-7", root=Root(root)).verdict is Verdict.VERIFIED


def test_a_chat_of_another_tenant_is_a_chain_of_its_own(root: Path) -> None:
    with playhead.record("agent", root=root, chat_id="chat-7") as mine:
        pass
    with playhead.record("agent", root=root, chat_id="chat-7", tenant_id="other") as theirs:
        pass
    assert mine.id != theirs.id
    assert types(events(root, theirs.id)) == ["run.started", "run.ended"]
    with (
        pytest.raises(UsageError, match="tenant"),
        playhead.record("agent", root=root, run_id="chat-7", tenant_id="other"),
    ):
        pass


def test_a_continued_chat_does_not_store_its_history_again(root: Path) -> None:
    messages: list[Any] = [{"role": "user", "content": "first"}]
    for n in range(3):
        with playhead.record("agent", root=root, chat_id="chat-7") as run:
            for _ in range(2):
                with run.model_call("m-1", messages) as call:
                    call.respond(f"answer {n}")
                messages += [{"role": "assistant", "content": f"answer {n}"}, {"role": "user"}]
    prompts = [str(e.prompt) for e in events(root, "chat-7") if e.type == "model.requested"]
    assert sum(text.count("first") for text in prompts) == 1
    assert all("answer" not in text for text in prompts)


def test_secrets_in_headers_are_not_written(root: Path) -> None:
    with playhead.record("agent", root=root) as run:
        run.event("vendor.call", {"headers": {"Authorization": "Bearer abcdef0123456789"}})
    text = (Root(root).journal_dir(run.id) / "000000.jsonl").read_text()
    assert "abcdef0123456789" not in text
    assert "redacted:" in text


@pytest.mark.parametrize("bad", ["../../x", "CON", "a\\b", "", ".", "a/b", "x" * 200, "nul.txt"])
def test_ids_never_become_paths(root: Path, bad: str) -> None:
    with pytest.raises(UsageError), playhead.record("agent", root=root, run_id=bad or "/"):
        pass
    assert not root.exists()


def broken_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    from playhead.store import durable

    def full(self: object, fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.Disk, "write", full)


def test_a_full_disk_raises_one_clear_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(RecordError, match="no space left"),
        playhead.record("agent", root=root) as run,
    ):
        broken_disk(monkeypatch)
        run.state("x", 1)


def test_with_warn_the_agent_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with playhead.record("agent", root=root, on_error="warn") as run:
            broken_disk(monkeypatch)

            @run.tool
            def add(a: int) -> int:
                return a + 1

            assert add(1) == 2
            assert add(2) == 3
        assert run.lost >= 4
    assert len([w for w in seen if issubclass(w.category, RuntimeWarning)]) == 1


def test_a_large_secret_is_redacted_before_it_becomes_a_blob(root: Path) -> None:
    from playhead.core.redact import Policy

    secret = "sk-test-" + "B" * 24
    text = f"API_KEY={secret}\n" + "x" * 20_000
    with playhead.record("agent", root=root, policy=Policy(content=True)) as run:
        run.state("env", text)
        with run.model_call("m-1", [{"role": "user", "content": text}]) as call:
            call.respond("ok")
    cas = Root(root).cas
    kept = [cas.get(digest) for digest in cas]
    assert kept
    assert all(secret.encode() not in blob for blob in kept)
    assert secret not in (Root(root).journal_dir(run.id) / "000000.jsonl").read_text()


def test_names_with_lone_surrogates_are_written_as_escapes(recorded: Any) -> None:
    def body(run: playhead.Recording) -> None:
        run.tool(lambda: 1, name="odd \udcb2 name")()
        with run.turn("x", turn_id="t\udcb2"):
            pass

    found = recorded(body)
    assert found[1].name == "odd \\udcb2 name"
    assert found[3].turn_id == "t\\udcb2"


def test_a_value_too_large_for_a_row_is_kept_as_one_blob(root: Path) -> None:
    with playhead.record("agent", root=root) as run:
        run.state("wide", list(range(1_000_000)))
    journal = Root(root).journal_dir(run.id) / "000000.jsonl"
    assert journal.stat().st_size < 10_000
    with playhead.Run.open(journal.parent, Root(root).cas) as seen:
        assert seen.payload(1)["value"] == list(range(1_000_000))


def test_items_of_a_generator_keep_what_json_cannot_say(root: Path) -> None:
    with playhead.record("agent", root=root) as run:

        @run.tool
        def stream() -> Iterator[Any]:
            yield b"\x00\xff"
            yield {"$playhead": "mine"}

        assert list(stream()) == [b"\x00\xff", {"$playhead": "mine"}]
    with playhead.Run.open(Root(root).journal_dir(run.id), Root(root).cas) as seen:
        result = seen.payload(2)["result"]
    assert result == {"items": [b"\x00\xff", {"$playhead": "mine"}], "returned": None}


def test_a_call_in_the_middle_of_another_event_is_written_after_it(root: Path) -> None:
    """A signal handler may call a tool while a row is being written."""
    import signal

    with playhead.record("agent", root=root, durability="os") as run:

        @run.tool(effects="pure")
        def f(x: object) -> object:
            return x

        seen = []
        old = signal.signal(signal.SIGALRM, lambda *_: seen.append(f("signal")))
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        while len(seen) < 50:
            f(1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert playhead.verify(run.id, root=Root(root)).verdict is Verdict.VERIFIED
    assert run.lost == 0


def test_in_a_forked_child_tools_just_run(root: Path) -> None:
    from procs import in_fork

    with playhead.record("agent", root=root) as run:

        @run.tool
        def add(a: int) -> int:
            return a + 1

        def child() -> str:
            result = add(1)
            run.close()
            return str(result)

        assert in_fork(child) == "2"
        add(5)
    assert playhead.verify(run.id, root=Root(root)).verdict is Verdict.VERIFIED


def test_a_run_left_in_another_context_still_ends(root: Path) -> None:
    import contextvars

    run = playhead.record("agent", root=root)
    contextvars.copy_context().run(run.__enter__)
    contextvars.copy_context().run(run.__exit__, None, None, None)
    assert not run.is_open
    assert types(events(root, run.id))[-1] == "run.ended"
