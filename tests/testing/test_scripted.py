"""The scripted model server: whole and streamed, both dialects, errors, the same bytes twice."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping

import pytest

from playhead.testing.script import Call, Reply, ask, call, say
from playhead.testing.scripted import ScriptedServer

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
SCRIPT = [
    ask(call("weather", city="Bern", days=2), call("stock", item="tea"), text="Let me look."),
    say("It is warm in Bern, and there is tea."),
]


def post(url: str, body: Mapping[str, object]) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        data = answer.read()
        assert isinstance(data, bytes)
        return data


def asked(stream: bool = False, **more: object) -> dict[str, object]:
    messages = [{"role": "user", "content": "weather and tea?"}]
    return {"model": "m-1", "messages": messages, "stream": stream, **more}


def events(data: bytes) -> list[tuple[str | None, str]]:
    found = []
    for block in data.decode().split("\n\n"):
        if block:
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            found.append((lines.get("event"), lines["data"]))
    return found


def test_a_chat_completion_and_its_tool_calls() -> None:
    with ScriptedServer(SCRIPT) as server:
        first = json.loads(post(server.url + CHAT, asked()))
        second = json.loads(post(server.url + CHAT, asked()))
        assert server.left == 0
        assert [r["model"] for r in server.requests] == ["m-1", "m-1"]
    choice = first["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Let me look."
    calls = choice["message"]["tool_calls"]
    assert [c["id"] for c in calls] == ["call_1_1", "call_1_2"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"city": "Bern", "days": 2}
    assert second["choices"][0]["message"] == {"role": "assistant", "content": SCRIPT[1].text}
    assert second["usage"]["total_tokens"] > second["usage"]["prompt_tokens"] > 0


def test_the_pieces_of_a_streamed_chat_are_the_whole() -> None:
    options = {"include_usage": True}
    with ScriptedServer(SCRIPT, piece=5) as server:
        data = post(server.url + CHAT, asked(True, stream_options=options))
    found = events(data)
    assert found[-1] == (None, "[DONE]")
    chunks = [json.loads(text) for _, text in found[:-1]]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    deltas = [c["choices"][0]["delta"] for c in chunks[:-1]]
    assert "".join(d.get("content") or "" for d in deltas) == "Let me look."
    arguments = {0: "", 1: ""}
    for delta in deltas:
        for part in delta.get("tool_calls", ()):
            arguments[part["index"]] += part["function"]["arguments"]
    assert json.loads(arguments[0]) == {"city": "Bern", "days": 2}
    assert json.loads(arguments[1]) == {"item": "tea"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_messages_whole_and_streamed() -> None:
    with ScriptedServer([SCRIPT[0], SCRIPT[0]], piece=5) as server:
        whole = json.loads(post(server.url + MESSAGES, asked(max_tokens=10)))
        streamed = events(post(server.url + MESSAGES, asked(True, max_tokens=10)))
    assert whole["stop_reason"] == "tool_use"
    assert [b["type"] for b in whole["content"]] == ["text", "tool_use", "tool_use"]
    assert whole["content"][1]["input"] == {"city": "Bern", "days": 2}
    bodies = [json.loads(text) for _, text in streamed]
    assert [name for name, _ in streamed] == [b["type"] for b in bodies]
    assert (streamed[0][0], streamed[-1][0]) == ("message_start", "message_stop")
    built: dict[int, str] = {}
    for body in bodies:
        if body["type"] == "content_block_delta":
            delta = body["delta"]
            built[body["index"]] = built.get(body["index"], "") + (
                delta.get("text") or delta.get("partial_json") or ""
            )
    assert built[0] == "Let me look."
    assert json.loads(built[1]) == {"city": "Bern", "days": 2}


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
def test_the_same_script_gives_the_same_bytes(path: str, stream: bool) -> None:
    def once() -> list[bytes]:
        with ScriptedServer(SCRIPT) as server:
            return [post(server.url + path, asked(stream)) for _ in SCRIPT]

    assert once() == once()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_errors_of_the_script_and_its_end(path: str) -> None:
    with ScriptedServer([Reply("slow down", status=429)]) as server:
        with pytest.raises(urllib.error.HTTPError) as busy:
            post(server.url + path, asked())
        with pytest.raises(urllib.error.HTTPError) as over:
            post(server.url + path, asked())
        assert json.loads(busy.value.read())["error"]["message"] == "slow down"
        assert json.loads(over.value.read())["error"]["message"] == "the script has 1 replies"
        assert (busy.value.code, over.value.code) == (429, 500)
        busy.value.close()
        over.value.close()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/elsewhere", b"{}", 404),
        (CHAT, b"[]", 400),
        (CHAT, b"{", 400),
        (CHAT, b"[" * 9999, 400),
    ],
)
def test_what_is_no_request_takes_no_reply(path: str, body: bytes, status: int) -> None:
    with ScriptedServer([say("x")]) as server:
        host = server.url.removeprefix("http://")
        link = http.client.HTTPConnection(host, timeout=20)
        link.request("POST", path, body)
        assert link.getresponse().status == status
        link.close()
        assert server.left == 1


def test_a_delay_is_asked_for_before_each_event() -> None:
    waits: list[float] = []
    with ScriptedServer([say("abcdef", delay=2.5)], piece=3, pause=waits.append) as server:
        found = events(post(server.url + CHAT, asked(True)))
    assert waits == [2.5] * len(found)


def test_a_stream_that_breaks_off() -> None:
    with ScriptedServer([Reply("abcdef", cut=2)], piece=3) as server:
        with pytest.raises(http.client.IncompleteRead) as broken:
            post(server.url + CHAT, asked(True))
        assert len(events(broken.value.partial)) == 2


def test_two_requests_on_one_connection() -> None:
    with ScriptedServer([say("a"), say("b")]) as server:
        link = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        said = []
        for stream in (True, False):
            link.request("POST", CHAT, json.dumps(asked(stream)))
            said.append(link.getresponse().read())
        link.close()
    assert b"[DONE]" in said[0]
    assert json.loads(said[1])["choices"][0]["message"]["content"] == "b"


def test_an_id_of_the_script_is_kept() -> None:
    with ScriptedServer([Reply(calls=(Call("t", {}, "mine"),))]) as server:
        body = json.loads(post(server.url + CHAT, asked()))
    assert body["choices"][0]["message"]["tool_calls"][0]["id"] == "mine"
    assert server.url == ""
