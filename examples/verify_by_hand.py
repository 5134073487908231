"""Verify a journal with nothing but Python: no playhead, no key, one page to read.

    python verify_by_hand.py .sdd/runtime/journal/<run> [expected head]

Each line of a journal is one step, a JSON object. Its `step_hash` is the SHA-256 of six of its
fields (seven where `effort` is set), written as JSON with sorted keys, no spaces and only ASCII.
One of the six is `prev_hash`, the hash of the step before; the first step has 64 zeros. So a
change anywhere changes every hash after it, and the last hash, the head, stands for all of it.

A file alone cannot show that its tail is missing, or that all of it was made anew: give the head
that you were told by another way. Here a half-written last line counts as an error.
"""

import hashlib
import json
import os
import sys

FIELDS = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result")


def step_hash(row):
    hashed = {name: row.get(name) for name in FIELDS}
    if row.get("effort") is not None:
        hashed["effort"] = row["effort"]
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def problems(lines, expected_head=None):
    """Yield (line number, what is wrong); line 0 is the whole."""
    head, steps = "0" * 64, 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            stored, previous, seq = row["step_hash"], row["prev_hash"], row["seq"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            yield number, f"no step: {type(error).__name__}"
            continue
        if previous != head:
            yield number, f"prev_hash {previous[:12]}, but the step before has {head[:12]}"
        if seq != steps:
            yield number, f"seq {seq}, but {steps} steps are before it"
        computed = step_hash(row)
        if computed != stored:
            yield number, f"step_hash {stored[:12]}, but its fields hash to {computed[:12]}"
        head, steps = stored, steps + 1
    if expected_head is not None and head != expected_head:
        yield 0, f"the head is {head}, not {expected_head}"
    print(f"{steps} steps, head {head}")


def main(arguments):
    path = arguments[0]
    if os.path.isdir(path):
        path = os.path.join(path, "000000.jsonl")
    try:
        with open(path, "rb") as file:
            found = list(problems(file, *arguments[1:2]))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for number, what in found:
        print(f"line {number}: {what}" if number else what)
    print("FAILED" if found else "every step follows from the one before")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) in (2, 3) else __doc__)
