"""A small agent on record. Run it twice: each time is a run of its own under .sdd/."""

import asyncio

import playhead


@playhead.tool(effects="read")
async def weather(city: str) -> dict:
    return {"city": city, "degrees": {"Bern": 4, "Oslo": -7}[city]}


@playhead.tool(effects="write")
def order(item: str, count: int) -> str:
    return f"ordered {count} {item}"


async def agent(question: str) -> str:
    messages = [{"role": "user", "content": question}]
    with playhead.record("shop-agent") as run, run.turn(question) as turn:
        with run.model_call("my-model", messages, temperature=0) as call:
            call.respond({"role": "assistant", "content": "Let me look at both cities."})
        places = await asyncio.gather(weather("Bern"), weather("Oslo"))
        if min(place["degrees"] for place in places) < 0:
            turn.output = order("tea", count=12)
    return f"{turn.output}\nplayhead walk {run.id}\nplayhead verify {run.id} --head {run.head}"


if __name__ == "__main__":
    print(asyncio.run(agent("Is it cold somewhere? Then order tea.")))
