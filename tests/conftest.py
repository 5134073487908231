"""What every test gets: a state directory and a root of its own, and nothing from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgres import Server, Site

REPO = Path(__file__).resolve().parent.parent

# The settings that a person running the tests may give; every other PLAYHEAD_ variable
# of the surrounding shell is taken away, so that no test depends on it.
FOR_TESTS = frozenset({"PLAYHEAD_SHARED", "PLAYHEAD_KILLS", "PLAYHEAD_POSTGRES_BIN"})


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point PLAYHEAD_STATE and PLAYHEAD_ROOT into this test's own directory.

    Neither directory exists yet: a test also sees what the first use creates.
    """
    for name in [n for n in os.environ if n.startswith("PLAYHEAD_") and n not in FOR_TESTS]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAYHEAD_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PLAYHEAD_ROOT", str(tmp_path / "root"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root that PLAYHEAD_ROOT names; not created."""
    return tmp_path / "root"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory that PLAYHEAD_STATE names; not created."""
    return tmp_path / "state"


@pytest.fixture(scope="session")
def repo() -> Path:
    """The top of the repository."""
    return REPO


@pytest.fixture(scope="session")
def vectors() -> Path:
    """Files kept with their expected verdict: tests/vectors."""
    return REPO / "tests" / "vectors"


@pytest.fixture(scope="session")
def kills() -> int:
    """Rounds of a kill test: 3 in CI, 300 in `make crash`, else what PLAYHEAD_KILLS says."""
    return int(os.environ.get("PLAYHEAD_KILLS", "3"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real transcripts and large golden sets that are not part of the repository.

    They lie in `../shared`, or where PLAYHEAD_SHARED says. A test that needs them is skipped
    where they are absent; what must hold everywhere is a vector under tests/vectors.
    """
    place = Path(os.environ.get("PLAYHEAD_SHARED") or REPO.parent / "shared")
    if not place.is_dir():
        pytest.skip(f"no shared data in {place}: set PLAYHEAD_SHARED to run this test")
    return place


@pytest.fixture(scope="session")
def pg_server() -> Iterator[Server]:
    """A real PostgreSQL server (tests/postgres.py), or the one that PLAYHEAD_POSTGRES_BIN names
    the binaries of. Skipped only where none can run."""
    from postgres import NoServer, servers

    running = servers()
    try:
        server = next(running)
    except NoServer as error:
        pytest.skip(f"no PostgreSQL server runs here: {error}")
    yield server
    running.close()  # type: ignore[attr-defined]


@pytest.fixture
def pg(pg_server: Server) -> Site:
    """A fresh playhead schema in the setting mode, with an application login."""
    return pg_server.site()


@pytest.fixture(params=["memory", "directory", "sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, one of every kind."""
    if request.param == "postgresql":
        site: Site = request.getfixturevalue("pg")
        return site.url()
    return {
        "memory": "memory://",
        "directory": str(tmp_path / "contract"),
        "sqlite": f"sqlite:///{tmp_path / 'contract.db'}",
    }[request.param]
