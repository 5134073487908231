"""What a command line that ran in this process left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Exit status, stdout and stderr."""

    status: int
    out: str
    err: str


Cli = Callable[..., Done]
