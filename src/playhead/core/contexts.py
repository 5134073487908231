"""What the mapping or list around a value says about it: headers, environment, or nothing.

The same headers come in five spellings, all of them seen in real recordings: a mapping, a
list of pairs, a list of ``{"name", "value"}`` objects, a flat list of names and values, and a
block of ``Name: value`` lines. Environments come in the same, with ``NAME=value`` lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import orjson

from playhead.core.credentials import SECRET_NAME
from playhead.core.model import JSON

_ENV_MAPS: Final = frozenset({"env", "environ", "environment"})
_AUTH_KEYS: Final = frozenset({"authorization", "proxy-authorization"})
_AUTH_VALUE: Final = re.compile(
    r"(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s+\S.*", re.I | re.S
)
_ENV_LINE: Final = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=([^\r\n]+)", re.M)


class Around(Enum):
    """Where a value stands. The last three mean: it is a secret whatever it looks like."""

    PLAIN = "plain"
    HEADERS = "headers"
    ENV = "environment"
    SECRET_HEADER = "header"
    SECRET_ENV = "env"
    SECRET_NAME = "assignment"


SECRET_RULE: Final[Mapping[Around, str]] = {
    around: around.value for around in (Around.SECRET_HEADER, Around.SECRET_ENV, Around.SECRET_NAME)
}
"""The rule under which a value in such a place is removed."""
_PLAIN_ONLY: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_TELLING: Final = (b":/", rb":\\/", b"headers", b"authorization", b"env")
"""What `Contexts.entry` and the search for URLs look for, as it stands in JSON text."""
_MAPS: Final = (Around.HEADERS, Around.ENV)


def nothing_to_remove(value: JSON) -> bool:
    """True for a value that holds no URL and no word that makes a mapping one of secrets.

    One look at its JSON text in place of a walk; nearly every value of nearly every row is
    such a one. False says nothing. Free text is not looked at: this is not for
    ``Policy(content=True)``.
    """
    try:
        text = orjson.dumps(value, None, _PLAIN_ONLY).lower()
    except TypeError:  # a lone surrogate, a key that is no text, a value nested deeply
        return False
    return not any(word in text for word in _TELLING)


class Contexts:
    """Tells `Around` for one set of header names and one pattern of environment names."""

    __slots__ = ("_content", "_env", "_header_lines", "_headers")

    def __init__(self, headers: frozenset[str], env_keys: str, content: bool) -> None:
        self._headers = headers
        self._env = re.compile(env_keys, re.I | re.S)
        names = "|".join(sorted(map(re.escape, headers))) or r"(?!)"
        self._header_lines = re.compile(rf"^[ \t]*({names})[ \t]*:[ \t]*([^\r\n]+)", re.I | re.M)
        self._content = content

    def entry(self, key: object, item: JSON, around: Around, node: Mapping[object, JSON]) -> Around:
        """The place of ``item`` under ``key`` of ``node``, which itself stands ``around``."""
        if around in SECRET_RULE or not isinstance(key, str):
            return around
        lowered = key.lower().strip()
        if around in _MAPS:
            named = node.get("name", node.get("key"))
            if "value" in node and isinstance(named, str):
                return self.named(named, around) if lowered == "value" else Around.PLAIN
            return self.named(key, around)
        if lowered in _ENV_MAPS:
            return Around.ENV
        if lowered.endswith("headers"):
            return Around.HEADERS
        if not isinstance(item, str):
            return Around.PLAIN
        if lowered in _AUTH_KEYS and _AUTH_VALUE.fullmatch(item):
            return Around.SECRET_HEADER
        if self._content and SECRET_NAME.fullmatch(key):
            return Around.SECRET_NAME
        return Around.PLAIN

    def named(self, name: str, around: Around) -> Around:
        """The place of the value of header or variable ``name``."""
        if around is Around.HEADERS and name.lower().strip() in self._headers:
            return Around.SECRET_HEADER
        if around is Around.ENV and self._env.fullmatch(name):
            return Around.SECRET_ENV
        return around

    def items(self, node: Sequence[JSON], around: Around) -> list[Around]:
        """The places of a list's items: pairs and flat lists name at every even place."""
        arounds = [around] * len(node)
        if around in _MAPS:
            for at in range(0, len(node) - 1, 2):
                name = node[at]
                if isinstance(name, str):
                    arounds[at + 1] = self.named(name, around)
        return arounds

    def line_secrets(self, text: str, around: Around) -> list[tuple[int, int]]:
        """Places of the secret values in a block of header or environment lines."""
        if around is Around.HEADERS:
            return [match.span(2) for match in self._header_lines.finditer(text)]
        if around is Around.ENV:
            lines = _ENV_LINE.finditer(text)
            return [match.span(2) for match in lines if self._env.fullmatch(match[1])]
        return []
