"""What the tests of the store share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "runtime" / "journal" / "run-1"
