"""Recorded text made safe to show: what would act on a terminal or deceive an eye is spelled out.

A recording is untrusted. Control characters, escape sequences, marks that turn the writing
direction (CVE-2021-42574), characters of no width and lone surrogates are shown as ``⟨U+202E⟩``.
"""

from __future__ import annotations

import re

_ALWAYS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, the escape character among them
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def _spell(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"


def visible(text: str, *, newlines: bool = False) -> str:
    """``text`` with every such character spelled out; ``newlines`` keeps newlines and tabs."""
    # re keeps compiled patterns itself, so nothing is done at import time
    return re.sub(f"[{_ALWAYS}]" if newlines else f"[{_ALWAYS}\t\n]", _spell, text)


def one_liner(text: str, limit: int = 160) -> str:
    """The beginning of ``text`` on one line: white space folded, the rest made visible."""
    folded = " ".join(text[: limit * 4].split())
    cut = folded if len(folded) <= limit and len(text) <= limit * 4 else folded[: limit - 1] + "…"
    return visible(cut)


def shortened(text: str, limit: int) -> str:
    """``text``, or its beginning and how much is left out (in characters)."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {len(text) - limit} more characters (--full shows them)"
