"""The write-time policy: what is taken out of a value before it becomes a row.

By default only credentials in headers, URLs and environment-like mappings go (resolution 6);
``content=True`` also scans free text, JSON inside strings, and one level of base64 and
percent-encoding, and the run is then marked ``redacted``. A marker tells the rule and a class
of the length, never a prefix, hash or encoding of the secret (cases C41, C43, C48).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from playhead.core.contexts import SECRET_RULE, Around, Contexts, nothing_to_remove
from playhead.core.credentials import (
    Span,
    content_spans,
    is_marker,
    marker,
    merged,
    query_pattern,
    url_spans,
)
from playhead.core.model import JSON

HEADERS: Final = frozenset(
    "authorization proxy-authorization cookie set-cookie x-api-key api-key x-goog-api-key "
    "x-amz-security-token x-auth-token x-access-token x-csrf-token x-gitlab-token x-vault-token "
    "private-token ocp-apim-subscription-key x-functions-key".split()
)
QUERY_KEYS: Final = frozenset(
    "key api_key apikey api-key token access_token refresh_token id_token auth_token auth sig "
    "signature x-amz-signature x-amz-credential x-amz-security-token x-goog-signature "
    "x-goog-credential client_secret secret password passwd pwd code subscription-key".split()
)
ENV_KEYS: Final = (
    r".*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|ACCESS_KEY_ID|_PAT|_AUTH)"
)
MAX_NESTED: Final = 4
"""Levels of JSON inside strings that are taken apart; deeper ones are scanned as text."""
_MAX_PASSES: Final = 8

_Path = tuple["_Path | None", str]
_Found = list[tuple["_Path | None", str]]


@dataclass(frozen=True, slots=True)
class Policy:
    """What to remove. Names are lower-case; ``env_keys`` is a pattern for the whole name."""

    name: str = "default"
    headers: frozenset[str] = HEADERS
    query_keys: frozenset[str] = QUERY_KEYS
    env_keys: str = ENV_KEYS
    content: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """One thing taken out: where (RFC 6901 pointer) and by which rule.

    A pointer into JSON that is inside a string ends at that string.
    """

    pointer: str
    rule: str


def _pointer(path: _Path | None) -> str:
    tokens = []
    while path is not None:
        path, token = path
        tokens.append("/" + token.replace("~", "~0").replace("/", "~1"))
    return "".join(reversed(tokens))


class Redactor:
    """Applies one policy. Holds compiled patterns only, so one may serve many threads."""

    __slots__ = ("_contexts", "_query", "policy")

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._query = query_pattern(self.policy.query_keys)
        self._contexts = Contexts(self.policy.headers, self.policy.env_keys, self.policy.content)

    def value(self, value: JSON) -> tuple[JSON, list[Removal]]:
        """The value without its secrets, and what was removed.

        The argument is never changed; when nothing is removed it comes back itself. Depth is
        bounded by memory only, since the walk keeps its own stack.
        """
        if not self.policy.content and nothing_to_remove(value):
            return value, []
        out, found = self._walk(value, 0)
        if not found:
            return value, []
        return out, [Removal(_pointer(path), rule) for path, rule in found]

    def text(self, text: str) -> tuple[str, list[str]]:
        """One string without its secrets, and the rules that removed something."""
        if not self.policy.content and ":/" not in text and ":\\/" not in text:
            return text, []  # nearly every string of nearly every row
        parts, rules = self.chunks([text])
        return parts[0], rules

    def chunks(self, parts: Sequence[str]) -> tuple[list[str], list[str]]:
        """A text that came in pieces: scanned as one, given back in as many pieces (C43).

        The marker stands in the piece in which the secret began.
        """
        out, rules = list(parts), []
        for _ in range(_MAX_PASSES):
            spans = self._spans("".join(out))
            if not spans:
                break
            rules += [span.rule for span in spans]
            for span in reversed(spans):
                _cut(out, span)
        return out, rules

    def _spans(self, text: str) -> list[Span]:
        spans = list(url_spans(text, self._query))
        if self.policy.content:
            spans += content_spans(text)
        return merged(text, spans) if spans else spans

    def _walk(self, value: JSON, nested: int) -> tuple[JSON, _Found]:
        found: _Found = []
        top: list[JSON] = [None]
        # (node, container to put it into, its key there, what is around it, path)
        stack: list[tuple[JSON, Any, Any, Around, _Path | None]] = [
            (value, top, 0, Around.PLAIN, None)
        ]
        while stack:
            node, into, place, around, path = stack.pop()
            if isinstance(node, str):
                into[place] = self._leaf(node, around, path, found, nested)
            elif isinstance(node, dict):
                copy: dict[object, JSON] = {}
                into[place] = copy
                for key, item in node.items():
                    name = self._key(key, path, found, copy)
                    copy[name] = None  # keeps the order of keys
                    inner = self._contexts.entry(key, item, around, node)
                    stack.append((item, copy, name, inner, (path, str(name))))
            elif isinstance(node, (list, tuple)):
                items: list[JSON] = [None] * len(node)
                into[place] = items
                arounds = self._contexts.items(node, around)
                for at, item in enumerate(node):
                    stack.append((item, items, at, arounds[at], (path, str(at))))
            elif around in SECRET_RULE and type(node) in (int, float):
                found.append((path, SECRET_RULE[around]))
                # The length is not worth a conversion that Python bounds to 4300 digits.
                into[place] = marker(SECRET_RULE[around], 8)
            else:
                into[place] = node
        return top[0], found[::-1]

    def _key(
        self, key: object, path: _Path | None, found: _Found, taken: dict[object, JSON]
    ) -> object:
        """Keys hold secrets too (URLs); two keys that become one text stay two keys."""
        if not isinstance(key, str):
            return key
        name, rules = self.text(key)
        if rules:
            found += (((path, name), rule) for rule in rules)
            while name in taken:
                name += "'"
        return name

    def _leaf(
        self, text: str, around: Around, path: _Path | None, found: _Found, nested: int
    ) -> str:
        rule = SECRET_RULE.get(around)
        if rule is not None:
            if not text or is_marker(text):
                return text
            found.append((path, rule))
            return marker(rule, len(text))
        if around is not Around.PLAIN:
            text = self._lines(text, around, path, found)
        if self.policy.content and nested < MAX_NESTED:
            text = self._nested_json(text, path, found, nested)
        text, rules = self.text(text)
        if rules:
            found += ((path, rule) for rule in rules)
        return text

    def _lines(self, text: str, around: Around, path: _Path | None, found: _Found) -> str:
        rule = "header" if around is Around.HEADERS else "env"
        places = self._contexts.line_secrets(text, around)
        parts = [text]
        for span in reversed(merged(text, [Span(*place, rule) for place in places])):
            found.append((path, rule))
            _cut(parts, span)
        return parts[0]

    def _nested_json(self, text: str, path: _Path | None, found: _Found, nested: int) -> str:
        """Take a string that is a whole JSON object or array apart; its layout may change."""
        stripped = text.strip()
        if stripped[:1] + stripped[-1:] not in ("{}", "[]"):
            return text
        try:
            inner, inside = self._walk(json.loads(stripped), nested + 1)
            if not inside:
                return text
            separators = (", ", ": ") if '": ' in stripped else (",", ":")
            ascii_only = stripped.isascii()
            out = json.dumps(inner, ensure_ascii=ascii_only, separators=separators)
        except (ValueError, RecursionError):
            return text
        found += ((path, rule) for _, rule in inside)
        return out


def _cut(parts: list[str], span: Span) -> None:
    """Replace a span of the joined text, inside the pieces."""
    mark, start = marker(span.rule, span.end - span.start), 0
    for at, part in enumerate(parts):
        end = start + len(part)
        low, high = max(span.start, start), min(span.end, end)
        if low < high:
            parts[at] = part[: low - start] + mark + part[high - start :]
            mark = ""
        start = end
