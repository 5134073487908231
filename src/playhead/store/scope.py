"""Whose chain: tenant and chat, checked before anything is read (decision 12).

Both are plain text keys of every store. What no store can hold as a key (a NUL, a lone
surrogate, a very long text) is refused in the same words everywhere.
"""

from __future__ import annotations

import re
from hashlib import sha256

from playhead.errors import InvalidId, NotFound, UsageError
from playhead.formats.journal import check_run_id

MAX_KEY = 512
"""Characters of a tenant or chat id."""
LOCAL = "local"
"""The tenant of a chain that names none: one that playhead did not write."""

_PASSWORD = re.compile(r"(?<=://)([^/?#@]*):([^/?#]*)@")
_SECRET_WORD = re.compile(r"(?i)([?&](?:password|passwd|sslpassword)=)[^&#]*")


def check_tenant(tenant_id: str) -> str:
    """``tenant_id`` itself when it names a tenant.

    Raises:
        UsageError: it is no text, blank, or no key that every store can hold.
    """
    return _key("tenant_id", tenant_id, "Name the tenant that the chat belongs to")


def check_chat(chat_id: str) -> str:
    """``chat_id`` itself when it names a chat.

    Raises:
        UsageError: as `check_tenant`.
    """
    return _key("chat_id", chat_id, "Name the chat ('playhead ls' lists them)")


def check_scope(tenant_id: str, chat_id: str) -> None:
    """Both, the tenant first.

    Raises:
        UsageError: as `check_tenant`.
    """
    check_tenant(tenant_id)
    check_chat(chat_id)


def _key(field: str, value: object, remedy: str) -> str:
    problem = None
    if not isinstance(value, str):
        problem = f"is {type(value).__name__}, not a text"
    elif not value.strip():
        problem = "is blank"
    elif len(value) > MAX_KEY:
        problem = f"has over {MAX_KEY} characters"
    elif "\0" in value or not _encodable(value):
        problem = "holds a character that no store can keep"
    if problem is not None or not isinstance(value, str):
        raise UsageError(f"{field} {problem}", remedy=remedy)
    return value


def _encodable(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def column_text(value: object) -> str | None:
    """``value`` as an index column can hold it; None for what is no key (`check_tenant`)."""
    if not isinstance(value, str) or not value or len(value) > MAX_KEY:
        return None
    return value if "\0" not in value and _encodable(value) else None


def run_id_for(chat_id: str) -> str:
    """The run id of a chat that was given none: the chat's own name where that can be one."""
    try:
        return check_run_id(chat_id)
    except InvalidId:
        return "chat-" + sha256(chat_id.encode("utf-8")).hexdigest()[:24]


def no_chat(chat_id: str, where: str) -> NotFound:
    """The one answer for a chat that is not there and for one of another tenant."""
    return NotFound(f"no chat {chat_id!r:.80} of this tenant in {where}")


def no_run(word: str, where: str) -> NotFound:
    """The one answer for a RUN that fits nothing and for one that fits another tenant's run."""
    if word == "@last":
        remedy = "Record one (playhead.record), import one (playhead import) or see 'playhead demo'"
        return NotFound(f"no run under {where}", remedy=remedy)
    return NotFound(f"no run {word!r:.80} under {where}")


def shown_url(url: str) -> str:
    """``url`` for a message: without any password."""
    return _SECRET_WORD.sub(r"\1***", _PASSWORD.sub(r"\1@", url))
