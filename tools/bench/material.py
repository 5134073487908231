"""Journals to measure with: invented text made of words, the same in every run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import orjson

from playhead.formats.journal import encode_row

WORDS = {
    "ASCII": "the agent reads a file and writes tests, then runs them again because one of them "
    'failed in the second module while another request waited for an answer:\n "done" #42',
    "curly quotes, dashes, emoji": "the agent — reads “a file” and writes tests, then it’s run "
    "again because one of them failed 😀 in the second module while another request waited",
    "French and German": "l'élève a été reçu à l'école où le garçon préfère les crêpes très tôt "
    "für schöne Grüße über das Gedächtnis dass wir später noch prüfen müssen même là",
    "Chinese": "智能体 读取 文件 并 编写 测试 然后 再次 运行 因为 第二 模块 失败 了 请求 仍在 等待",
}


def text(rng: random.Random, kind: str, size: int) -> str:
    """About ``size`` characters of words of one kind."""
    words = WORDS[kind].split(" ")
    out: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(words)
        out.append(word)
        length += len(word) + 1
    return " ".join(out)[:size]


def vocabulary(rng: random.Random, count: int = 4000) -> list[str]:
    """Invented words, a few letters long; drawn by rank as in natural text."""
    parts = (
        "an ber cor dis el for gra hin is jo kel lo mer nov os per qui ren sta tor un ver".split()
    )
    return ["".join(rng.choice(parts) for _ in range(rng.randint(1, 4))) for _ in range(count)]


def prose(rng: random.Random, words: list[str], size: int) -> str:
    """Text with the word frequencies of natural language (rank to the power of -1)."""
    out: list[str] = []
    length = 0
    while length < size:
        word = words[int(len(words) ** rng.random()) - 1]
        out.append(word)
        length += len(word) + 1
    return " ".join(out)[:size]


Encode = Callable[..., tuple[bytes, str]]


def raw_utf8(**fields: object) -> tuple[bytes, str]:
    """A row with its text in raw UTF-8, as some writers make them; the hash is the same."""
    line, step_hash = encode_row(**fields)  # type: ignore[arg-type]
    return orjson.dumps(orjson.loads(line), None, orjson.OPT_SORT_KEYS), step_hash


def rows(count: int, kind: str, size: int = 1000, encode: Encode = encode_row) -> Iterator[bytes]:
    """Linked rows with prompts of ``size`` characters and results of a quarter of that."""
    rng = random.Random(7)
    pool = [text(rng, kind, size) for _ in range(256)]
    prev = "0" * 64
    for seq in range(count):
        prompt = pool[seq % len(pool)]
        line, prev = encode(
            seq=seq,
            prev_hash=prev,
            input_hash=sha256(b"%d" % seq).hexdigest(),
            model="model-1",
            prompt=prompt,
            tool_call=None,
            tool_result=prompt[: size // 4],
            ts=1_700_000_000.25 + seq,
        )
        yield line + b"\n"


def write(path: Path, lines: Iterator[bytes]) -> Path:
    """Write lines to ``path``; returns it."""
    with path.open("wb", buffering=1 << 20) as handle:
        handle.writelines(lines)
    return path


def conversation(
    turns: int, user: int, answer: int, *, clock: bool = False, compact_at: int | None = None
) -> Iterator[tuple[list[dict[str, str]], str, int]]:
    """Requests that repeat the whole history: (messages, answer, new payload bytes).

    ``clock`` changes the first message in every request; at turn ``compact_at`` the history
    is replaced by a summary. Payload counts each text once, as UTF-8, and the first message
    once even when its clock ticks.
    """
    rng = random.Random(11)
    words = vocabulary(rng)
    system = prose(rng, words, 600)
    history: list[dict[str, str]] = []
    new = len(system)
    for turn in range(turns):
        if turn == compact_at:
            history = [{"role": "user", "content": "Summary: " + prose(rng, words, 2000)}]
            new += len(history[0]["content"])
        when = f"\nIt is 2026-01-01T{turn // 60:02}:{turn % 60:02}:00Z." if clock else ""
        history.append({"role": "user", "content": prose(rng, words, user)})
        messages = [{"role": "system", "content": system + when}, *history]
        reply = prose(rng, words, answer)
        history.append({"role": "assistant", "content": reply})
        yield messages, reply, new + user + answer
        new = 0
