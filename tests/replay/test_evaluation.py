"""The slot for an evaluation package: a real output, and a coupling that goes one way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import playhead
from facets import CHAT, TENANT, row, runtime
from playhead.errors import BlobError, NotFound, ReplayArgumentError
from playhead.replay import LastAnswer, ReplayClient, create_default_replay_client
from playhead.replay.evaluation import EvalReplayClient
from playhead.replay.source import StoreRuntime


class Suite:
    """What an evaluation package would bring: it only knows the method."""

    def set_replay_client(self, client: EvalReplayClient) -> None:
        self.client = client

    async def run(self, chat_id: str) -> str:
        return (await self.client.replay(chat_id))["output"]


def record(root: Path) -> None:
    with playhead.record("helper", root=root, tenant_id=TENANT, chat_id=CHAT) as run:
        messages: list[object] = [{"role": "user", "content": "How warm is it?"}]
        with run.turn("How warm is it?"):
            with run.model_call("m", messages) as call:
                call.respond(
                    {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "t"}]}
                )
            run.tool(lambda: 21.5, name="thermometer")()
            messages += [{"role": "tool", "content": "21.5"}]
            with run.model_call("m", messages) as call:
                call.respond(
                    {"role": "assistant", "content": [{"type": "text", "text": "It is 21.5 °C."}]}
                )


async def test_the_output_is_the_text_of_the_last_answer(root: Path) -> None:
    record(root)
    suite = Suite()
    suite.set_replay_client(LastAnswer(create_default_replay_client(root), TENANT))
    assert await suite.run(CHAT) == "It is 21.5 °C."


async def test_metadata_says_of_which_record_it_is(root: Path) -> None:
    record(root)
    client = create_default_replay_client(root)
    found = await LastAnswer(client, TENANT).replay(CHAT)
    async with client.from_event_log(CHAT, tenant_id=TENANT) as handle:
        assert handle.window.stop is not None
        await handle.seek(handle.window.stop)
        assert found["metadata"]["row_hash"] == handle.row_hash
        assert found["metadata"]["sequence_number"] == handle.window.stop
    assert len(found["metadata"]["state_digest"]) == 64


async def test_a_chat_without_an_answer_has_no_output() -> None:
    rows = [{"sequence_number": 1, "event_type": "turn.started", "payload": {}}]
    assert (await LastAnswer(ReplayClient(runtime(*rows)), TENANT).replay(CHAT))["output"] == ""


async def test_the_tenant_is_that_of_the_adapter(root: Path) -> None:
    record(root)
    client = create_default_replay_client(root)
    for tenant in ("", None, " "):
        with pytest.raises(ReplayArgumentError):
            LastAnswer(client, tenant)  # type: ignore[arg-type]
    for bad in ((None, TENANT), (client, TENANT, object())):
        with pytest.raises(ReplayArgumentError):
            LastAnswer(*bad)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await LastAnswer(client, "somebody-else").replay(CHAT)


def answered(root: Path, *results: Any) -> None:
    with playhead.record("helper", root=root, tenant_id=TENANT, chat_id=CHAT) as run:
        for result in results:
            with run.model_call("m", [{"role": "user", "content": "?"}]) as call:
                call.respond(result)


SAID = {"role": "assistant", "content": "Said before."}
TOOL_ONLY = {"role": "assistant", "content": [{"type": "tool_use", "name": "t", "input": {}}]}
OPENAI = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [{}]}}]}
LONG = "It is long. " * 4000


@pytest.mark.parametrize(
    ("results", "output"),
    [
        (["Plain text."], "Plain text."),
        ([SAID, TOOL_ONLY], "Said before."),
        ([SAID, OPENAI], "Said before."),
        ([TOOL_ONLY], ""),
        ([SAID, {"role": "user", "content": "not mine"}], "Said before."),
        (
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "One."},
                        {"type": "tool_use", "name": "t", "input": {}},
                        {"type": "text", "text": "Two."},
                    ],
                }
            ],
            "One.\nTwo.",
        ),
        ([SAID, LONG], LONG),
        ([SAID, {"role": "assistant", "content": LONG}], LONG),
        ([SAID, {"role": "assistant", "content": [{"type": "text", "text": LONG}]}], LONG),
        ([LONG, SAID], "Said before."),
        ([{"role": "assistant", "content": {"answer": 42}}], '{"answer": 42}'),
    ],
    ids=str,
)
async def test_the_output_is_what_was_said_and_all_of_it(
    root: Path, results: list[Any], output: str
) -> None:
    answered(root, *results)
    with StoreRuntime.open(root) as opened:
        client = ReplayClient(opened)
        whole = LastAnswer(client, TENANT, opened.store.blobs(TENANT))
        assert (await whole.replay(CHAT))["output"] == output
        if output == LONG:
            with pytest.raises(BlobError, match="blobs="):
                await LastAnswer(client, TENANT).replay(CHAT)

            class Wrong:
                def get(self, digest: str) -> bytes:
                    return b"another answer"

            with pytest.raises(BlobError):
                await LastAnswer(client, TENANT, Wrong()).replay(CHAT)


async def test_a_subagent_does_not_answer_for_the_run() -> None:
    rows = [
        row(1, "model.responded", {"call_id": "a", "result": "Mine."}),
        row(2, "model.responded", {"call_id": "b", "result": "Theirs."}) | {"subagent_run_id": "s"},
    ]
    assert (await LastAnswer(ReplayClient(runtime(*rows)), TENANT).replay(CHAT))[
        "output"
    ] == "Mine."


PROBE = """
import importlib, json, pkgutil, sys
import playhead.replay
for found in pkgutil.iter_modules(playhead.replay.__path__):
    importlib.import_module(f"playhead.replay.{found.name}")
for name in dir(playhead.replay):
    getattr(playhead.replay, name)
known = set(sys.stdlib_module_names) | {"playhead", "__main__"}
print(json.dumps(sorted({n.split(".")[0] for n in sys.modules} - known)))
print(sorted(n for n in sys.modules if n.startswith("playhead.recorder")))
"""


def test_replay_loads_no_evaluation_package_and_no_recorder() -> None:
    """Everything below playhead.replay, loaded in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE], capture_output=True, text=True, check=True
    )
    others, recorder = done.stdout.splitlines()
    allowed = {"cryptography", "orjson", "zstandard", "rfc8785", "cffi", "_cffi_backend"}
    loaded = set(json.loads(others)) - {
        n for n in json.loads(others) if n.startswith(("_", "sitecustomize"))
    }
    assert loaded <= allowed, loaded - allowed
    assert recorder == "[]"
    assert not [name for name in loaded if "eval" in name]


def test_what_the_contract_names_is_there() -> None:
    import playhead.replay.cache
    import playhead.replay.strict

    for name in dir(playhead.replay):
        assert getattr(playhead.replay, name).__name__ == name
    assert playhead.replay.cache.CacheReadMode is playhead.replay.CacheReadMode
    for name in playhead.replay.strict.__all__:
        assert callable(getattr(playhead.replay.strict, name))
    with pytest.raises(AttributeError):
        _ = playhead.replay.nothing
