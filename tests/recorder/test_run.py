"""``playhead run``: programs under record, one chain, an end whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import playhead
from playhead.core.events import Draft, decode_event
from playhead.core.model import Event, Verdict
from playhead.errors import NotFound, Unreadable
from playhead.recorder.launch import LaunchResult, launch
from playhead.store.root import Root

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC))


def program(folder: Path, body: str, name: str = "agent.py") -> list[str]:
    file = folder / name
    file.write_text(textwrap.dedent(body))
    return [sys.executable, str(file)]


def events(root: Path, run_id: str) -> list[Event]:
    return [
        decode_event(step)
        for step in playhead.JournalReader(Root(root).journal_dir(run_id)).entries()
    ]


def proven(root: Path, result: LaunchResult) -> list[Event]:
    report = playhead.verify(result.run_id, root=Root(root))
    assert report.verdict is Verdict.VERIFIED, report.findings
    assert (report.head, report.steps) == (result.head, result.steps)
    return events(root, result.run_id)


def test_a_program_records_into_the_run_of_its_owner(root: Path, tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        """
        import playhead
        with playhead.record("inner") as run:
            with run.turn("hello") as turn:
                @run.tool(effects="read")
                def find(key): return {"found": key, "raw": b"\\x00\\xff", "long": "x" * 20000}
                find("a")
                with run.model_call("m", [{"role": "user", "content": "hello"}]) as call:
                    call.respond("hi")
                turn.output = "hi"
        print(run.id, run.head, run.durable_upto)
        """,
    )
    result = launch(Root(root), argv, agent="outer")
    found = proven(root, result)
    assert (result.exit_code, result.status) == (0, "completed")
    assert [e.type for e in found] == [
        "run.started",
        "run.stamped",
        "turn.started",
        "tool.called",
        "tool.completed",
        "model.requested",
        "model.responded",
        "turn.completed",
        "run.stamped",
        "run.ended",
    ]
    assert result.events_from_program == 6
    assert found[0].name == "outer"
    stamp = found[1].payload["stamp"]
    assert isinstance(stamp, dict)
    assert (stamp["agent"], stamp["argv0"]) == ("inner", argv[1])
    assert found[-1].payload == {"status": "completed", "exit_code": 0}
    value = found[4].payload["result"]
    assert isinstance(value, dict)
    assert value["raw"] == {"$playhead": "bytes", "base64": "AP8="}  # normalised once, not twice
    blob = value["long"]
    assert isinstance(blob, dict)
    assert Root(root).cas.get(str(blob["sha256"])) == b"x" * 20000
    assert found[3].id != found[4].id
    assert found[3].turn_id == found[2].turn_id


def test_the_caller_keeps_its_environment(root: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    marker = tmp_path / "seen"
    argv = program(
        tmp_path,
        f"""
        import os, stat
        path = os.environ["PLAYHEAD_SOCKET"]
        folder = os.stat(os.path.dirname(path))
        open({str(marker)!r}, "w").write(path + " " + oct(stat.S_IMODE(folder.st_mode)))
        """,
    )
    result = launch(Root(root), argv)
    path, mode = marker.read_text().split()
    assert mode == "0o700"
    assert not os.path.exists(os.path.dirname(path))
    assert dict(os.environ) == before
    assert result.events_from_program == 0
    assert result.steps == 2


def test_processes_that_record_at_once_are_one_chain(root: Path, tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        """
        import multiprocessing, os, subprocess, sys, threading
        import playhead

        def work(run, name):
            for number in range(25):
                run.state(name, number)

        if __name__ == "__main__":
            if sys.argv[1:]:
                with playhead.record("spawned") as run:
                    work(run, "spawned")
                raise SystemExit
            child = subprocess.Popen([sys.executable, __file__, "again"])
            with playhead.record("parent") as run:
                fork = multiprocessing.get_context("fork")
                forked = fork.Process(target=work, args=(run, "forked"))
                forked.start()
                threads = [threading.Thread(target=work, args=(run, f"t{n}")) for n in range(4)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
                forked.join()
            raise SystemExit(child.wait() or forked.exitcode)
        """,
    )
    result = launch(Root(root), argv)
    found = proven(root, result)
    assert result.exit_code == 0
    seen: dict[str, list[object]] = {}
    for event in found:
        if event.type == "state.changed":
            seen.setdefault(str(event.payload["key"]), []).append(event.payload["value"])
    assert seen == {n: list(range(25)) for n in ("spawned", "forked", "t0", "t1", "t2", "t3")}
    stamps = [e.payload["stamp"] for e in found if e.type == "run.stamped"]
    pids = {s["pid"] for s in stamps if isinstance(s, dict)}
    assert len(pids) == 3
    assert len({e.id for e in found}) == len(found)


def test_a_killed_program_leaves_a_run_that_failed(root: Path, tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        """
        import os, signal, playhead
        with playhead.record("doomed") as run:
            @run.tool(effects="write")
            def pay(amount): os.kill(os.getpid(), signal.SIGKILL)
            pay(3)
        """,
    )
    result = launch(Root(root), argv)
    found = proven(root, result)
    assert (result.exit_code, result.status) == (137, "failed")
    assert [e.type for e in found[-3:]] == ["tool.called", "run.stamped", "run.ended"]
    stamp = found[-2].payload["stamp"]
    assert isinstance(stamp, dict)
    assert stamp["status"] == "disconnected"
    assert found[-1].payload == {"status": "failed", "exit_code": 137, "signal": "SIGKILL"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_program_once(
    root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The owner runs in a process and a session of its own, as under a service manager."""
    argv = program(
        tmp_path,
        """
        import signal, sys, playhead
        stops = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, stops)
        run = playhead.record("patient").open()
        print("ready", flush=True)
        got = [signal.sigwait(stops)]
        run.state("first", got[0])
        got += signal.sigpending()
        run.state("got", len(got))
        run.close()
        sys.exit(3)
        """,
    )
    owner = program(
        tmp_path,
        f"""
        from playhead.recorder.launch import launch
        from playhead.store.root import Root
        result = launch(Root({str(root)!r}), {argv!r}, run_id="patient")
        print(result.status, result.exit_code, flush=True)
        """,
        "owner.py",
    )
    with subprocess.Popen(
        owner, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "interrupted 3\n"
        assert process.wait() == 0
    report = playhead.verify("patient", root=Root(root))
    assert report.verdict is Verdict.VERIFIED, report.findings
    found = events(root, "patient")
    assert [e.payload["value"] for e in found if e.type == "state.changed"] == [number, 1]
    assert found[-1].payload == {"status": "interrupted", "exit_code": 3}


def test_a_program_that_dies_of_the_signal_is_interrupted(root: Path, tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        """
        import os, signal, playhead
        with playhead.record("a") as run:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        """,
    )
    result = launch(Root(root), argv)
    found = proven(root, result)
    assert (result.exit_code, result.status) == (130, "interrupted")
    stamp = found[-2].payload["stamp"]
    assert isinstance(stamp, dict)
    assert stamp["status"] == "interrupted"


def test_no_such_program_leaves_nothing(root: Path, tmp_path: Path, state: Path) -> None:
    with pytest.raises(NotFound):
        launch(Root(root), ["no-such-program-here"])
    plain = tmp_path / "plain"
    plain.write_text("text")
    with pytest.raises(Unreadable):
        launch(Root(root), [str(plain)])
    assert not root.exists()
    assert not state.exists()


def test_a_file_that_the_system_cannot_execute_is_a_failed_run(root: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x7fELF" + bytes(60))
    odd.chmod(0o700)
    with pytest.raises(Unreadable):
        launch(Root(root), [str(odd)], run_id="odd")
    assert events(root, "odd")[-1].payload["status"] == "failed"
    assert playhead.verify("odd", root=Root(root)).verdict is Verdict.VERIFIED


def test_the_status_of_the_program_is_handed_on(root: Path, tmp_path: Path) -> None:
    result = launch(Root(root), program(tmp_path, "raise SystemExit(7)"))
    assert (result.exit_code, result.status) == (7, "failed")


def test_a_run_of_its_own_stays_its_own(root: Path, tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        f"""
        import playhead
        with playhead.record("own", root={str(tmp_path / "other")!r}, run_id="own") as run:
            run.state("k", 1)
        """,
    )
    result = launch(Root(root), argv)
    assert result.events_from_program == 0
    assert [e.type for e in events(tmp_path / "other", "own")][1] == "state.changed"


def test_a_program_that_outlives_its_owner_is_told(root: Path, tmp_path: Path) -> None:
    from playhead.errors import JournalClosed
    from playhead.recorder.remote import RemoteSink
    from playhead.recorder.server import EventServer
    from playhead.recorder.writer import RunWriter

    writer = RunWriter.create(Root(root), agent="a")
    server = EventServer(writer)
    sink = RemoteSink.connect(server.path, "late")
    server.close()
    with pytest.raises(JournalClosed, match="gone"):
        sink.emit(Draft("state.changed", {"key": 1}))
    with pytest.raises(JournalClosed):
        sink.close()
    with pytest.raises(JournalClosed):
        RemoteSink.connect(server.path, "later")
    writer.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("playhead")]
