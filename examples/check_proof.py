"""Check a proof without playhead: only Python, and `cryptography` for the signature.

    python check_proof.py PROOF [--key VKEY] [--row FILE]

PROOF is a document of `playhead/inclusion` (one row of a run) or `playhead/consistency` (a head
that grew out of another); the format is in docs/reference/formats/proof.md. VKEY is the signer's
public key line, `name+hash+base64`, from the signer. FILE holds the row that you were shown.

verified (status 0): all fits, and the key signed it. unproven (3): all fits, and no key was given
or it signed nothing here. failed (1): it does not fit. refused (4): it is no proof document.
"""

import base64
import binascii
import hashlib
import json
import re
import sys

HASHED = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result")
INCLUSION = {"v", "type", "run_id", "sequence_number", "leaf_hash", "path", "size", "checkpoint"}
CONSISTENCY = {"v", "type", "old_checkpoint", "new_checkpoint", "path"}
OPTIONAL = {"row", "tenant_id", "chat_id"}
LIMIT = {"row": 32 << 20, "tenant_id": 4096, "chat_id": 4096}
STATUS = {"verified": 0, "failed": 1, "unproven": 3, "refused": 4}


class Refused(Exception):
    """No proof document."""


class Failed(Exception):
    """The proof does not hold."""


def demand(fits, what, error=Failed):
    if not fits:
        raise error(what)


def unbase64(text):
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return data if base64.b64encode(data).decode() == text else None


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def spelled(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def read(data):
    """The document: one JSON object, in its one spelling."""
    demand(len(data) <= 97 << 20, "too long", Refused)
    try:
        proof = json.loads(data)
        demand(spelled(proof).encode() + b"\n" == data, "not the one spelling", Refused)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    demand(type(proof) is dict, "not an object", Refused)
    demand(type(proof.get("v")) is int and proof["v"] == 1, "not version 1", Refused)
    inclusion = proof.get("type") == "playhead/inclusion"
    demand(inclusion or proof.get("type") == "playhead/consistency", "another type", Refused)
    needed = INCLUSION if inclusion else CONSISTENCY
    names = set(proof) - (OPTIONAL if inclusion else set())
    demand(names == needed, "other members", Refused)
    for name in needed | OPTIONAL:
        if name in proof and name not in ("v", "path", "size", "sequence_number", "leaf_hash"):
            check_text(name, proof[name])
    nodes = proof["path"]
    demand(type(nodes) is list and len(nodes) <= 65, "path is no list of 65 at most", Refused)
    proof["path"] = [node(text) for text in nodes]
    if inclusion:
        proof["leaf_hash"] = node(proof["leaf_hash"])
        for name in ("size", "sequence_number"):
            number = proof[name]
            demand(type(number) is int and 0 < number < 10**19, f"{name} is off", Refused)
        run_id = re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,127}", proof["run_id"])
        demand(run_id is not None, "run_id is off", Refused)
    return proof


def check_text(name, text):
    demand(type(text) is str, f"{name} is no text", Refused)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Refused(f"{name} is no Unicode text") from None
    demand(size <= LIMIT.get(name, 65536), f"{name} is too long", Refused)
    demand(name != "row" or "\n" not in text, "row is more than one line", Refused)
    demand(name not in ("tenant_id", "chat_id") or text.strip(), f"{name} is blank", Refused)


def node(text):
    data = unbase64(text) if type(text) is str else None
    demand(data is not None and len(data) == 32, "a hash is no base64 of 32 bytes", Refused)
    return data


def read_key(vkey):
    """Name, key hash and raw key of a verifier key line."""
    name, _, rest = vkey.strip().partition("+")
    digest, _, encoded = rest.partition("+")
    raw = unbase64(encoded) or b""
    demand(len(raw) == 33 and raw[0] == 1, "not an Ed25519 vkey", Refused)
    expected = sha(name.encode(), b"\n", raw)[:4]
    demand(digest == expected.hex(), "the vkey is damaged", Refused)
    return name, expected, raw[1:]


def checkpoint(note, key):
    """What a signed note says, and whether the key signed it."""
    demand(not re.search("[\x00-\x09\x0b-\x1f]", note), "the checkpoint is malformed")
    body, blank, tail = note.rpartition("\n\n")
    lines, marks = body.split("\n"), tail[:-1].split("\n")
    demand(blank and tail.endswith("\n") and len(marks) <= 100, "the checkpoint is malformed")
    signed = False
    for mark in marks:
        dash, name, encoded = [*mark.split(" ", 2), "", ""][:3]
        data = unbase64(encoded) or b""
        named = name and "+" not in name and not any(c.isspace() or c < " " for c in name)
        demand(dash == "\u2014" and named and len(data) >= 5, "a signature line is malformed")
        if key and (name, data[:4]) == key[:2]:
            demand(good(key[2], data[4:], (body + "\n").encode()), "the signature is wrong")
            signed = True
    demand(len(lines) >= 3 and all(lines), "the checkpoint is malformed")
    root = unbase64(lines[2])
    demand(re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]), "the checkpoint has no size")
    demand(root is not None and len(root) == 32, "the checkpoint has no root")
    demand(lines[0].startswith("playhead/run/"), "the checkpoint is not of a run")
    words = {}
    for line in lines[3:]:
        name, *rest = line.split(" ")
        words.setdefault(name, rest)
    try:
        (head,) = words["head"]
        length, _ = words["bytes"]
        int(length)
        base64.b64decode((words.get("fields") or [""])[0], validate=True)
    except (KeyError, ValueError):
        raise Failed("the checkpoint lacks its head or bytes line") from None
    return {"run": lines[0][13:], "size": int(lines[1]), "root": root, "head": head, "ok": signed}


def good(raw, signature, text):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def climb(path, low, high, leaf, index):
    """The root over leaves low..high, by the recursion of RFC 6962, 2.1.1."""
    if high - low == 1:
        return leaf
    demand(path, "the path is too short")
    split = low + (1 << (high - low - 1).bit_length() - 1)
    side = path.pop()
    if index < split:
        return sha(b"\x01", climb(path, low, split, leaf, index), side)
    return sha(b"\x01", side, climb(path, split, high, leaf, index))


def prefix(path, first, second, known):
    """Old and new root over a part of both trees, by the recursion of RFC 6962, 2.1.2."""
    if first == second:
        if known is None:
            demand(path, "the path is too short")
            known = path.pop()
        return known, known
    demand(path, "the path is too short")
    split = 1 << (second - 1).bit_length() - 1
    side = path.pop()
    if first <= split:
        old, new = prefix(path, first, split, known)
        return old, sha(b"\x01", new, side)
    old, new = prefix(path, first - split, second - split, None)
    return sha(b"\x01", side, old), sha(b"\x01", side, new)


def check_row(line, proof, head):
    index = proof["sequence_number"] - 1
    demand(sha(b"\x00", line) == proof["leaf_hash"], "the row is not the leaf")
    try:
        row = json.loads(line.decode().strip())
        hashed = {name: row.get(name) for name in HASHED}
        hashed |= {name: str(row.get(name, "")) for name in HASHED[:2]}
        if row.get("effort") is not None:
            hashed["effort"] = row["effort"]
        stored, seq = str(row.get("step_hash", "")), int(row.get("seq", -1))
        computed = sha(spelled(hashed).encode()).hex()
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Failed("the row is no step") from None
    demand(computed == stored, "its fields do not hash to its step_hash")
    demand(seq == index, f"its seq is {seq}, its number in the tree is {index}")
    demand(index or hashed["prev_hash"] == "0" * 64, "the first row follows another one")
    demand(index < head["size"] - 1 or stored == head["head"], "the head is another step hash")
    call = row.get("tool_call")
    if type(call) is dict and call.get("v") == 1 and type(call.get("event")) is str:
        demand(call.get("seq") == row.get("seq"), "the hashed envelope has another seq")
        for name in ("tenant_id", "chat_id"):
            demand(name not in proof or call.get(name, proof[name]) == proof[name], name)


def check(data, vkey=None, row=None):
    """The verdict and a sentence."""
    try:
        proof, key = read(data), read_key(vkey) if vkey else None
        path = proof["path"]  # the lowest node first, so the highest is taken first
        if proof["type"] == "playhead/inclusion":
            heads = [checkpoint(proof["checkpoint"], key)]
            include(proof, heads[0], path, row)
            what = f"row {proof['sequence_number']} of the {proof['size']} of run {proof['run_id']}"
        else:
            heads = [checkpoint(proof[name], key) for name in ("old_checkpoint", "new_checkpoint")]
            grow(*heads, path)
            what = f"the {heads[1]['size']} rows begin with the {heads[0]['size']} signed before"
    except (Refused, Failed) as error:
        return type(error).__name__.lower(), str(error)
    return ("verified" if all(head["ok"] for head in heads) else "unproven"), what


def include(proof, head, path, row):
    demand(proof["run_id"] == head["run"], "the checkpoint is of another run")
    demand(proof["size"] == head["size"], "the checkpoint has another size")
    index = proof["sequence_number"] - 1
    demand(index < head["size"], "there is no such row under this head")
    root = climb(path, 0, head["size"], proof["leaf_hash"], index)
    demand(root == head["root"] and not path, "the path does not lead to the signed root")
    if "row" in proof:
        check_row(proof["row"].encode(), proof, head)
    if row is not None:
        check_row(row.removesuffix(b"\n"), proof, head)


def grow(old, new, path):
    demand(old["run"] == new["run"], "two runs")
    demand(old["size"] <= new["size"], "the newer head covers fewer rows: a rollback")
    roots = (old["root"], new["root"])
    if old["size"] == new["size"]:
        demand(roots[0] == roots[1] and old["head"] == new["head"], "two heads of one size")
    if old["size"] == 0:
        demand(old["root"] == sha(), "the older head has a root of nothing that is not nothing")
    if 0 < old["size"] < new["size"]:
        found = prefix(path, old["size"], new["size"], old["root"])
        demand(found == roots, "the newer chain does not begin with the older one")
    demand(not path, "the path is too long")


def contents(path, limit):
    with open(path, "rb") as file:
        return file.read(limit)


def main(words):
    options = {"--key": None, "--row": None}
    while len(words) > 2 and words[-2] in options:
        options[words[-2]] = words[-1]
        words = words[:-2]
    if len(words) != 1:
        return __doc__
    vkey, limit = options["--key"], (97 << 20) + 1
    try:
        data = contents(words[0], limit)
        row = contents(options["--row"], limit) if options["--row"] else None
        if vkey and vkey.count("+") < 2:
            vkey = contents(vkey, 16384).decode()
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    verdict, what = check(data, vkey, row)
    print(f"{verdict}: {what}")
    return STATUS[verdict]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
