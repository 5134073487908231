"""The last chapter: the record folded again, to and fro, and out of another store."""

from __future__ import annotations

from pathlib import Path

from playhead.convert.copying import Copied, copy_run
from playhead.core.projections import BUILT_IN
from playhead.demo.stage import Stage
from playhead.replay.source import StoreRuntime
from playhead.replay.sync import SyncReplayClient, SyncReplayHandle
from playhead.store.dbstore import DbStore
from playhead.store.dirstore import DirStore
from playhead.store.root import Root
from playhead.store.scope import LOCAL
from playhead.store.sqlite import SqliteDatabase

DATABASE = "runs.db"


def replay_again(stage: Stage, root: Root, run_id: str, place: Path) -> bool:
    """Replay the run step by step, back and forward, and from a copy in SQLite.

    Returns whether every way gave one state.
    """
    stage.chapter("REPLAY", "the state at every row, from the record alone; no model is asked")
    with SyncReplayClient(StoreRuntime.open(root)) as client, _opened(client, run_id) as handle:
        rows = sum(1 for _ in handle)
        there = handle.state_digest()
        stage.line(_state(f"forward, {rows} rows step by step", there))
        middle = rows // 2
        handle.seek(middle)
        between = handle.state_digest()
        stage.line(_state(f"back to row {middle}, as it was then", between))
        handle.seek(rows)
        again = handle.state_digest()
        stage.line(_state("and to the end again, in one jump", again))
    copied = _copied(root, run_id, place / DATABASE)
    stage.line(f"   copied into {DATABASE}, a SQLite file; {copied.target.rows} rows in each")
    for name, facts in (("files", copied.source), (DATABASE, copied.target)):
        stage.line(f"   {name:<8} head {facts.head[:16]}…  state {facts.state[:16]}…")
    same = there == again == copied.target.state and copied.same
    stage.line("   one head, one state" if same else "   they differ", None if same else "red")
    return same and between != there


def _state(what: str, digest: str) -> str:
    return f"   {what:<36} state {digest[:16]}…"


def _opened(client: SyncReplayClient, run_id: str) -> SyncReplayHandle:
    # no kept state is used: every seek folds again from the first row
    return client.from_event_log(run_id, tenant_id=LOCAL, projections=BUILT_IN, snapshots="off")


def _copied(root: Root, run_id: str, database: Path) -> Copied:
    source = DirStore(root)
    target = DbStore(SqliteDatabase(database))
    try:
        return copy_run(source, source.find_run(LOCAL, run_id), target)
    finally:
        target.close()
