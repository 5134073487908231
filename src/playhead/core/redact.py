"""The write-time policy: what is taken out of a value before it becomes a row.

By default only credentials in headers, URLs and environment-like mappings go (resolution 6);
``content=True`` also scans free text, JSON inside strings, and one level of base64 and
percent-encoding, and the run is then marked ``redacted``. A marker tells the rule and a class
of the length, never a prefix, hash or encoding of the secret (cases C41, C43, C48).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from playhead.core.model import JSON
from playhead.core.secrets import (
    SECRET_NAME,
    Span,
    content_spans,
    is_marker,
    marker,
    merged,
    query_pattern,
    url_spans,
)

HEADERS: Final = frozenset(
    {
        "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key",
        "x-goog-api-key", "x-amz-security-token", "x-auth-token", "x-access-token",
        "x-csrf-token", "x-gitlab-token", "x-vault-token", "private-token", "x-subscription-token",
        "ocp-apim-subscription-key", "x-functions-key",
    }
)  # fmt: skip
QUERY_KEYS: Final = frozenset(
    {
        "key", "api_key", "apikey", "api-key", "token", "access_token", "refresh_token",
        "id_token", "auth_token", "auth", "sig", "signature", "x-amz-signature",
        "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "client_secret", "secret", "password", "passwd", "pwd", "code", "subscription-key",
    }
)  # fmt: skip
ENV_KEYS: Final = (
    r".*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|ACCESS_KEY_ID|_PAT|_AUTH)"
)

_HEADER_MAPS: Final = re.compile(r".*headers", re.I | re.S)
_ENV_MAPS: Final = frozenset({"env", "environ", "environment"})
_AUTH_KEYS: Final = frozenset({"authorization", "proxy-authorization"})
_AUTH_VALUE: Final = re.compile(
    r"(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s+\S.*", re.I | re.S
)
_NAME_KEYS: Final = ("name", "key")
MAX_NESTED: Final = 4
"""Levels of JSON inside strings that are taken apart; deeper ones are scanned as text."""
_MAX_PASSES: Final = 8


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
    """One thing taken out: where (RFC 6901 pointer) and by which rule."""

    pointer: str
    rule: str


class _In(Enum):
    """What a mapping or list around a value says about it."""

    PLAIN = 0
    HEADERS = 1
    ENV = 2
    SECRET_HEADER = 3
    SECRET_ENV = 4
    SECRET_NAME = 5


_SECRET_RULE: Final = {
    _In.SECRET_HEADER: "header", _In.SECRET_ENV: "env", _In.SECRET_NAME: "assignment",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Path:
    parent: _Path | None
    token: str

    def __str__(self) -> str:
        tokens, here = [], self
        while True:
            tokens.append(here.token.replace("~", "~0").replace("/", "~1"))
            if here.parent is None:
                return "".join("/" + token for token in reversed(tokens))
            here = here.parent


_Found = list[tuple[_Path | None, str]]
_Put = Callable[[object], None]


class Redactor:
    """Applies one policy. Holds compiled patterns only, so one may serve many threads."""

    __slots__ = ("_env", "_lines", "_query", "policy")

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._query = query_pattern(self.policy.query_keys)
        self._env = re.compile(self.policy.env_keys, re.I | re.S)
        names = "|".join(sorted(map(re.escape, self.policy.headers))) or "(?!)"
        self._lines = re.compile(rf"^[ \t]*(?:{names})[ \t]*:[ \t]*([^\r\n]+)", re.I | re.M)

    def value(self, value: JSON) -> tuple[JSON, list[Removal]]:
        """The value without its secrets, and what was removed.

        The argument is never changed; when nothing is removed it comes back itself. Depth is
        bounded by memory only: the walk keeps its own stack.
        """
        out, found = self._walk(value, 0)
        if not found:
            return value, []
        return out, [Removal("" if path is None else str(path), rule) for path, rule in found]

    def text(self, text: str) -> tuple[str, list[str]]:
        """One string without its secrets, and the rules that removed something."""
        rules: list[str] = []
        for _ in range(_MAX_PASSES):
            spans = self._spans(text)
            if not spans:
                break
            rules += (span.rule for span in spans)
            for span in reversed(spans):
                mark = marker(span.rule, span.end - span.start)
                text = text[: span.start] + mark + text[span.end :]
        return text, rules

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

    # --- the walk -------------------------------------------------------------------------------

    def _walk(self, value: JSON, nested: int) -> tuple[JSON, _Found]:
        found: _Found = []
        top: list[JSON] = [None]
        stack: list[tuple[JSON, _Put, _In, _Path | None]] = [(value, _at(top, 0), _In.PLAIN, None)]
        while stack:
            node, put, around, path = stack.pop()
            if isinstance(node, str):
                put(self._leaf(node, around, path, found, nested))
            elif isinstance(node, dict):
                copy: dict[object, JSON] = {}
                put(copy)
                for key, item in node.items():
                    name = self._key(key, path, found, copy)
                    copy[name] = None
                    inner = self._around_entry(key, item, around, node)
                    stack.append((item, _under(copy, name), inner, _Path(path, str(name))))
            elif isinstance(node, (list, tuple)):
                items: list[JSON] = [None] * len(node)
                put(items)
                arounds = self._around_items(node, around)
                for at, item in enumerate(node):
                    stack.append((item, _at(items, at), arounds[at], _Path(path, str(at))))
            elif around in _SECRET_RULE and type(node) in (int, float):
                found.append((path, _SECRET_RULE[around]))
                put(marker(_SECRET_RULE[around], len(str(abs(node)) if node else "0")))
            else:
                put(node)
        return top[0], found[::-1]

    def _key(
        self, key: object, path: _Path | None, found: _Found, taken: dict[object, JSON]
    ) -> object:
        if not isinstance(key, str):
            return key
        name, rules = self.text(key)
        if rules:
            found += ((_Path(path, name), rule) for rule in rules)
            while name in taken:
                name += "'"
        return name

    def _around_entry(self, key: object, item: JSON, around: _In, node: dict[object, JSON]) -> _In:
        if around in _SECRET_RULE or not isinstance(key, str):
            return around
        lowered = key.lower().strip()
        if around is _In.HEADERS or around is _In.ENV:
            # [{"name": "Authorization", "value": "..."}] is a pair spelled as an object.
            named = next((node[k] for k in _NAME_KEYS if isinstance(node.get(k), str)), None)
            if "value" in node and isinstance(named, str):
                return self._around_value(named, around) if lowered == "value" else _In.PLAIN
            return self._around_value(key, around)
        if lowered in _ENV_MAPS:
            return _In.ENV
        if _HEADER_MAPS.fullmatch(lowered):
            return _In.HEADERS
        if lowered in _AUTH_KEYS and isinstance(item, str) and _AUTH_VALUE.fullmatch(item):
            return _In.SECRET_HEADER
        if self.policy.content and isinstance(item, str) and SECRET_NAME.fullmatch(key):
            return _In.SECRET_NAME
        return _In.PLAIN

    def _around_value(self, name: str, around: _In) -> _In:
        if around is _In.HEADERS and name.lower().strip() in self.policy.headers:
            return _In.SECRET_HEADER
        if around is _In.ENV and self._env.fullmatch(name):
            return _In.SECRET_ENV
        return around

    def _around_items(self, items: Sequence[JSON], around: _In) -> list[_In]:
        """For [name, value] pairs and flat name, value, name, value lists (Node's rawHeaders)."""
        arounds = [around] * len(items)
        if around is _In.HEADERS or around is _In.ENV:
            for at in range(0, len(items) - 1, 2):
                name = items[at]
                if isinstance(name, str):
                    arounds[at + 1] = self._around_value(name, around)
        return arounds

    def _leaf(self, text: str, around: _In, path: _Path | None, found: _Found, nested: int) -> str:
        rule = _SECRET_RULE.get(around)
        if rule is not None:
            if not text or is_marker(text):
                return text
            found.append((path, rule))
            return marker(rule, len(text))
        if around is _In.HEADERS or around is _In.ENV:
            text = self._named_lines(text, around, path, found)
        if self.policy.content and nested < MAX_NESTED:
            text = self._nested_json(text, path, found, nested)
        text, rules = self.text(text)
        found += ((path, rule) for rule in rules)
        return text

    def _named_lines(self, text: str, around: _In, path: _Path | None, found: _Found) -> str:
        """A block of ``Name: value`` headers, or ``NAME=value`` lines of an environment."""

        def replace(match: re.Match[str]) -> str:
            secret = match[match.lastindex or 0]
            if is_marker(secret):
                return match[0]
            found.append((path, rule))
            return match[0][: -len(secret)] + marker(rule, len(secret))

        def replace_env(match: re.Match[str]) -> str:
            return replace(match) if self._env.fullmatch(match[1]) else match[0]

        if around is _In.HEADERS:
            rule = "header"
            return self._lines.sub(replace, text)
        rule = "env"
        return _ENV_LINE.sub(replace_env, text)

    def _nested_json(self, text: str, path: _Path | None, found: _Found, nested: int) -> str:
        """Take a string that is a whole JSON object or array apart; its layout may change."""
        stripped = text.strip()
        if stripped[:1] + stripped[-1:] not in ("{}", "[]"):
            return text
        try:
            inner, inside = self._walk(json.loads(stripped), nested + 1)
            if not inside:
                return text
            found += ((path, rule) for _, rule in inside)
            compact = '": ' not in stripped
            separators = (",", ":") if compact else (", ", ": ")
            return json.dumps(inner, ensure_ascii=stripped.isascii(), separators=separators)
        except (ValueError, RecursionError):
            return text


_ENV_LINE: Final = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=([^\r\n]+)", re.M)


def _at(items: list[JSON], index: int) -> _Put:
    def put(value: object) -> None:
        items[index] = value

    return put


def _under(mapping: dict[object, JSON], key: object) -> _Put:
    def put(value: object) -> None:
        mapping[key] = value

    return put


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
