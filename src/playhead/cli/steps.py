"""STEP on a command line: a number from 0, ``last``, or a negative number from the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.cli.shared import find_chain

if TYPE_CHECKING:
    from playhead.replay.run import Run
    from playhead.store.stores import Store


@contextmanager
def opened(store: Store, tenant_id: str, word: str) -> Iterator[Run]:
    """The tenant's run that RUN means, open for reading.

    Raises:
        NotFound, UsageError, Unreadable: nothing fits, several do, or it cannot be read.
    """
    from playhead.replay.run import Run

    with Run.there(store, find_chain(store, tenant_id, word)) as run:
        yield run


def step_number(run: Run, word: str) -> int:
    """The step that ``word`` means in ``run``.

    Raises:
        UsageError: it is no number. NotFound: there is no such step.
    """
    from playhead.errors import NotFound, UsageError

    if word == "last":
        word = "-1"
    if not word.removeprefix("-").isdecimal() or not word.isascii() or len(word) > 18:
        raise UsageError(
            f"{word!r:.40} is no step", remedy="Give a number from 0, 'last', or -2 from the end"
        )
    number = int(word)
    at = number + len(run) if number < 0 else number
    if at < 0 or not run.has(at):
        count = len(run)
        steps = f"steps are 0 to {count - 1}" if count else "the run has no steps"
        raise NotFound(f"no step {word}: {steps}", remedy="'playhead log' lists the steps")
    return at
