"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.store.eventlog import BlockingLog
from playhead.store.stores import Store
from playhead.store.urls import open_store


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "runtime" / "journal" / "run-1"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store of every kind."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def log(store: Store) -> Iterator[BlockingLog]:
    """The event log of an empty store of every kind."""
    opened = BlockingLog(store)
    yield opened
    opened.close()
