"""Where credentials stand in a text: spans, found by compiled patterns of our own.

Two questions are answered. `url_spans`: which parts of URLs are secrets (always asked).
`content_spans`: what looks like a credential anywhere in free text (asked only by a policy
with ``content=True``; resolutions 6 and 25). Each pattern has needles; a text without them
is never given to the pattern, so clean text costs a few substring searches.

A marker (`MARKER`) is never found again: redacting twice is redacting once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

RULES: Final = (
    "header", "env", "userinfo", "query", "assignment", "bearer", "basic", "jwt", "pem",
    "sk", "github", "aws", "google", "slack", "base64", "percent",
)  # fmt: skip
"""Every rule that a marker can name."""

_MARKER: Final = rf"<<redacted:(?:{'|'.join(RULES)}):(?:1-8|9-16|17-32|33-64|65\+)>>"
MARKER: Final = re.compile(_MARKER)

# A token begins where a word begins; inside nested JSON the letter before it may be the end of
# an escape such as \n or \u000a.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
_NAME_START: Final = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A secret's place in a text, ``start`` to ``end`` in characters, and the rule."""

    start: int
    end: int
    rule: str


def marker(rule: str, length: int) -> str:
    """What stands in a secret's place: the rule and a class of its length, nothing of it (C48)."""
    classes = ((8, "1-8"), (16, "9-16"), (32, "17-32"), (64, "33-64"))
    name = next((name for limit, name in classes if length <= limit), "65+")
    return f"<<redacted:{rule}:{name}>>"


def is_marker(text: str) -> bool:
    return MARKER.fullmatch(text) is not None


# --- URLs ---------------------------------------------------------------------------------------

_URL: Final = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]{{0,31}}:(?:\\?/){{2}}(?:{_MARKER}|\\/|\\u0026|[^\s\"'<>\\])+"
)
_AUTHORITY: Final = re.compile(rf":(?:\\?/){{2}}((?:{_MARKER}|[^/?#\\])*)@")
_USERS: Final = frozenset({"", "git"})


def url_spans(text: str, query: re.Pattern[str]) -> Iterator[Span]:
    """Userinfo and secret query values of every URL in ``text``.

    Args:
        text: any string; most hold no URL and cost two substring searches.
        query: from `query_pattern`.
    """
    if "://" not in text and ":\\/" not in text:
        return
    for url in _URL.finditer(text):
        authority = _AUTHORITY.search(text, url.start(), url.end())
        if authority and authority[1] not in _USERS:
            yield Span(*authority.span(1), "userinfo")
        for match in query.finditer(text, url.start(), url.end()):
            yield Span(*match.span(1), "query")


def query_pattern(keys: frozenset[str]) -> re.Pattern[str]:
    """The pattern whose group 1 is the value of a secret query (or fragment) parameter."""
    names = "|".join(sorted(map(re.escape, keys), key=len, reverse=True)) or r"(?!)"
    return re.compile(
        rf"(?:[?&;#]|&amp;|\\u0026)(?:{names})=((?:{_MARKER}|[^&#\s\"'<>\\])+)", re.IGNORECASE
    )


# --- free text ----------------------------------------------------------------------------------

_NAME: Final = (
    r"(?:[A-Z0-9]{1,32}[_-]){0,8}(?:API[_-]?KEY|ACCESS[_-]?KEY(?:[_-]?ID)?|(?:SECRET|PRIVATE"
    r"|SIGNING|ENCRYPTION|MASTER)[_-]?KEY|(?:ACCESS|AUTH|REFRESH|SESSION|BEARER|API|ID)[_-]?TOKEN"
    r"|CLIENT[_-]?SECRET|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)"
)
_ENV_NAME: Final = r"(?-i:[A-Z][A-Z0-9_]{0,64}_(?:KEY|TOKEN|SECRET|PAT))"
SECRET_NAME: Final = re.compile(rf"{_NAME}|{_ENV_NAME}", re.IGNORECASE)
"""Names whose value is a secret wherever they are assigned; used with ``fullmatch``."""

_QUOTED: Final = r"(?P<open>\\*[\"'])(?P<quoted>(?:(?!(?P=open))(?:\\.|[^\\\n])){1,4096})"
# A comma or bracket belongs to a bare value only when the value goes on behind it.
_INSIDE: Final = r"(?<=[^\s\"'\\=:,])[,()\[\]{}](?=[^\s\"'\\,])"
_BARE: Final = rf"(?P<bare>(?:{_MARKER}|[^\s\"'\\&;<>,{{}}\[\]()]|{_INSIDE})+)"
_ASSIGNED: Final = re.compile(
    rf"{_NAME_START}(?:{_NAME}|{_ENV_NAME})(?P<close>\\*[\"'])?"
    rf"[ \t]{{0,4}}(?:=>|:=|[:=])[ \t]{{0,4}}(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_LITERAL: Final = re.compile(
    r"(?:true|false|null|none|undefined|-?[0-9.]+(?:e[+-]?[0-9]+)?)(?:[,}\]].*)?", re.I
)
_REFERENCE: Final = re.compile(r"\$\{?\{?\s?[A-Za-z_][\w.]*\s?\}?\}?")


def _assigned(match: re.Match[str]) -> tuple[int, int] | None:
    if match["quoted"] is not None:
        return None if _REFERENCE.fullmatch(match["quoted"]) else match.span("quoted")
    bare = match["bare"]
    if _REFERENCE.fullmatch(bare) or (match["close"] and _LITERAL.fullmatch(bare)):
        # A number after a quoted name is JSON; a marker there would break it.
        return None
    return match.span("bare")


def _whole(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span()


def _group(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span(1)


def _basic(match: re.Match[str]) -> tuple[int, int] | None:
    decoded = _decoded(match[1])
    return match.span(1) if decoded and b":" in decoded else None


@dataclass(frozen=True, slots=True)
class _Detector:
    rule: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    place: Callable[[re.Match[str]], tuple[int, int] | None] = _whole


_DETECTORS: Final = (
    _Detector("sk", ("sk-",), re.compile(_START + r"sk-(?=[\w-]*[A-Z0-9])[A-Za-z0-9_-]{16,}")),
    _Detector(
        "github",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(_START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ),
    _Detector("aws", ("akia", "asia"), re.compile(_START + r"A(?:KIA|SIA)[A-Z0-9]{16,}")),
    _Detector("google", ("aiza",), re.compile(_START + r"AIza[A-Za-z0-9_-]{30,}")),
    _Detector("slack", ("xox",), re.compile(_START + r"xox[abeprs]-[A-Za-z0-9-]{10,}")),
    _Detector("jwt", ("eyj",), re.compile(_START + r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", re.ASCII)),
    _Detector(
        "pem",
        ("private key-----",),
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
            r"(?:.*?-----END [A-Z ]{0,40}PRIVATE KEY-----|.*)",
            re.DOTALL,
        ),
    ),
    _Detector(
        "bearer",
        ("bearer",),
        re.compile(
            r"(?i:bearer)\s+(?=[^\s\"',]*\d|[\w.~+/-]{24})([A-Za-z0-9._~+/-]{12,}=*)", re.ASCII
        ),
        _group,
    ),
    _Detector(
        "basic",
        ("basic",),
        re.compile(r"(?i:basic)\s+([A-Za-z0-9+/_-]{8,}={0,2})"),
        _basic,
    ),
    _Detector(
        "assignment",
        ("key", "token", "secret", "passw", "passphrase", "credential", "_pat"),
        _ASSIGNED,
        _assigned,
    ),
)

_BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_PERCENT: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_PERCENT_RUN: Final = re.compile(r"(?:[A-Za-z0-9_.~+/-]|%[0-9A-Fa-f]{2})+")


def content_spans(text: str) -> list[Span]:
    """Everything in ``text`` that looks like a credential, plain or encoded once."""
    spans = _plain_spans(text)
    spans += (
        Span(*run.span(), "base64") for run in _BASE64_RUN.finditer(text) if _in_base64(run[0])
    )
    if "%" in text:
        spans += (
            Span(*run.span(), "percent")
            for run in _PERCENT_RUN.finditer(text)
            if "%" in run[0] and _plain_spans(_PERCENT.sub(_unquoted, run[0]))
        )
    return spans


def _plain_spans(text: str) -> list[Span]:
    lowered = text.lower()
    return [
        Span(*place, detector.rule)
        for detector in _DETECTORS
        if any(needle in lowered for needle in detector.needles)
        for match in detector.pattern.finditer(text)
        if (place := detector.place(match)) is not None
    ]


def _unquoted(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _in_base64(run: str) -> bool:
    decoded = _decoded(run)
    return decoded is not None and bool(_plain_spans(decoded.decode("latin-1")))


def _decoded(run: str) -> bytes | None:
    """Either alphabet of base64, with or without padding; None when it is neither."""
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        plain = plain[:-1]
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        return None


def merged(text: str, spans: list[Span]) -> list[Span]:
    """Spans in order, overlaps joined under the first one's rule, exact markers left out.

    Two spans that only touch stay two: joining them would hide which rule found which.
    """
    out: list[Span] = []
    for span in sorted(spans):
        if span.start == span.end or is_marker(text[span.start : span.end]):
            continue
        if out and span.start < out[-1].end:
            last = out[-1]
            out[-1] = Span(last.start, max(last.end, span.end), last.rule)
        else:
            out.append(span)
    return out
