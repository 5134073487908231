"""The first half of the story: the script of the model, and the recording of the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

from playhead.demo.agent import work
from playhead.recorder.start import record
from playhead.store.root import Root
from playhead.testing.script import Reply, ask, call, say
from playhead.testing.scripted import ScriptedServer

RUN_ID = "shop"
QUESTIONS = [
    "Is it cold in Bern or Oslo? Then order tea, if there are fewer than ten.",
    "What does that cost?",
]
COUNT = 12
"""How many are ordered."""


def script() -> list[Reply]:
    """What the model says."""
    return [
        ask(call("weather", city="Bern"), call("weather", city="Oslo"), text="I look at both."),
        ask(call("stock", item="tea"), text="Oslo is cold. How much tea is left?"),
        ask(call("order", item="tea", count=COUNT), text="Too little: I order."),
        ask(call("notify", address="owner@shop.example"), text="Ordered; I tell the owner."),
        say("Oslo is at -7 degrees, 3 tea were left: 12 are ordered. The mail did not go out."),
        ask(call("total", count=COUNT, cents=450), text="I multiply."),
        say("12 tea at 4.50 cost 54.00."),
    ]


def play(root: Root, orders: Path) -> tuple[str, list[str]]:
    """Record the agent under ``root``; returns the head and what the agent answered."""
    with (
        ScriptedServer(script()) as server,
        record("shop-agent", root=root, run_id=RUN_ID) as run,
    ):
        answers = asyncio.run(work(run, server.url, orders, QUESTIONS))
    return run.head, answers
