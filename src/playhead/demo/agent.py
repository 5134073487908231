"""The small agent of the demo: a shop clerk with five tools. What an agent looks like on record.

It talks to a model over HTTP, runs the tools that the model asks for, all of one answer at
once, and hands the results back. Recording adds three things to it: the decorator on each
tool, a turn around each question, and a model call around each request.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from playhead.recorder.session import Recording
from playhead.recorder.tools import tool

# Any: answers of a model are JSON whose shape the agent trusts.
Tools = Mapping[str, Callable[..., Awaitable[object]]]
STOCK = {"tea": 3, "coffee": 40}
DEGREES = {"Bern": 4, "Oslo": -7}


def tools(orders: Path) -> Tools:
    """The tools, each on record with what it does to the world."""

    @tool(effects="read")
    async def weather(city: str) -> dict[str, object]:
        await asyncio.sleep(0)  # another lookup may start meanwhile
        return {"city": city, "degrees": DEGREES[city]}

    @tool(effects="read")
    async def stock(item: str) -> int:
        return STOCK[item]

    @tool(effects="write")
    async def order(item: str, count: int) -> str:
        with orders.open("a", encoding="utf-8") as file:
            file.write(f"{count} {item}\n")
        return f"ordered {count} {item}"

    @tool(effects="write")
    async def notify(address: str) -> str:
        raise ConnectionError(f"no mail server answers for {address}")

    @tool(effects="pure")
    async def total(count: int, cents: int) -> int:
        return count * cents

    return {
        "weather": weather,
        "stock": stock,
        "order": order,
        "notify": notify,
        "total": total,
    }


def ask_model(url: str, body: dict[str, object]) -> dict[str, Any]:
    """One chat completion."""
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), head)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    with opener.open(request, timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


async def use(at_hand: Tools, call: dict[str, Any]) -> dict[str, object]:
    """Run one tool that the model asked for; a failure is an answer too."""
    function = call["function"]
    try:
        result = await at_hand[function["name"]](**json.loads(function["arguments"]))
        content = json.dumps(result)
    except ConnectionError as error:
        content = f"failed: {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


async def work(run: Recording, url: str, orders: Path, questions: list[str]) -> list[str]:
    """One turn a question; returns the answers."""
    at_hand = tools(orders)
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You keep the shelves of a small shop. Be brief."}
    ]
    answers = []
    for question in questions:
        async with run.turn(question) as turn:
            messages.append({"role": "user", "content": question})
            while True:
                async with run.model_call("scripted-1", messages, temperature=0) as asked:
                    body = {"model": "scripted-1", "messages": messages, "temperature": 0}
                    answer = await asyncio.to_thread(ask_model, url, body)
                    message = answer["choices"][0]["message"]
                    asked.respond(message, usage=answer["usage"])
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                used = (use(at_hand, call) for call in message["tool_calls"])
                messages += await asyncio.gather(*used)
            turn.output = message["content"]
            answers.append(str(message["content"]))
    return answers
