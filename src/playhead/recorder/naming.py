"""Names of runs."""

from __future__ import annotations

import re
import secrets
import time

from playhead.formats.journal import check_run_id

_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


def new_run_id(agent: str) -> str:
    """A fresh run id: the agent's name as a slug, the time, and randomness."""
    slug = _SLUG.sub("-", agent).strip("-._")[:32] or "run"
    when = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return check_run_id(f"{slug}-{when}-{secrets.token_hex(3)}")
