"""The slot for an evaluation package: a real output, and a coupling that goes one way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from facets import CHAT, TENANT, runtime
from playhead.errors import NotFound, ReplayArgumentError
from playhead.replay import LastAnswer, ReplayClient, create_default_replay_client
from playhead.replay.evaluation import EvalReplayClient


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
            await LastAnswer(client, tenant).replay(CHAT)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await LastAnswer(client, "somebody-else").replay(CHAT)


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
