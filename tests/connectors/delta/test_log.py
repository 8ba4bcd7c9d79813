"""The log of a Delta table: what it notes, what it refuses, what is on disk."""

import os
from pathlib import Path

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

from gearpy.connectors.delta.log import CommitConflict, DeltaFile, DeltaLog
from gearpy.core.handover.ledger import LedgerEntry, Step
from gearpy.core.handover.table_commits import Change, Lane, Shown

LANE = Lane("r", "part", 0)
SCHEMA = pa.schema([("n", pa.int64()), ("p", pa.string())])


def a_log(path: Path) -> DeltaLog:
    log = DeltaLog("sink", str(path), None, path)
    if not log.refresh():
        log.create(SCHEMA, partition_by=["p"], properties={})
    return log


def change(epoch: int, *, owner: int = 1, remove: tuple[str, ...] = ()) -> Change:
    return Change(Step(LedgerEntry(owner, epoch), None, commits=True), remove)


def a_file(name: str) -> DeltaFile:
    return DeltaFile(f"p=a%2Fb/{name} é.parquet", 1, {"p": "a/b"}, '{"numRecords":1}')


def test_files_are_taken_out_by_their_names(tmp_path: Path) -> None:
    log = a_log(tmp_path / "t")
    log.commit(LANE, change(1), files=[a_file("x"), a_file("y")], begun=1)
    log.refresh()

    undo = Change(Step(LedgerEntry(2, 0), 0, commits=False), (a_file("x").path,))
    log.commit(LANE, undo, files=[], begun=1)
    log.refresh()

    assert log.paths() == [a_file("y").path]
    assert list(log.history(LANE)) == [Shown(0, 1, 0, 0), Shown(1, 1, 2)]


def test_a_lane_that_was_written_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    mine, other = a_log(tmp_path / "t"), a_log(tmp_path / "t")

    other.commit(LANE._replace(task=1), change(1), files=[a_file("o")], begun=1)
    mine.commit(LANE, change(1), files=[a_file("x")], begun=1)
    for epoch in (1, 2):
        other = DeltaLog("sink", str(tmp_path / "t"), None, tmp_path / "t")
        other.refresh()
        with pytest.raises(CommitConflict):
            mine.commit(LANE, change(epoch), files=[a_file("y")], begun=1)

    other.refresh()
    assert sorted(other.paths()) == [a_file("o").path, a_file("x").path]


def test_two_may_make_the_table(tmp_path: Path) -> None:
    one, two = (DeltaLog("sink", str(tmp_path / "t"), None, tmp_path / "t") for _ in range(2))
    assert not one.refresh()
    assert not two.refresh()

    for log in (one, two):
        log.create(SCHEMA, partition_by=["p"], properties={})

    assert (one.exists, two.exists) == (True, True)
    assert two.schema == SCHEMA
    assert DeltaTable(tmp_path / "t").version() == 0


def test_columns_are_added_once(tmp_path: Path) -> None:
    one, two = a_log(tmp_path / "t"), a_log(tmp_path / "t")

    for log in (one, two):
        log.refresh()
        log.add_columns([pa.field("more", pa.float64(), nullable=False)])

    assert two.schema.names == ["n", "p", "more"]
    two.check()


def test_versions_are_on_disk_when_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    log, other = a_log(tmp_path / "t"), a_log(tmp_path / "t")
    log.commit(LANE, change(1), files=[], begun=1)
    synced.clear()

    other.commit(LANE._replace(task=1), change(1), files=[], begun=1)
    theirs = list(synced)
    synced.clear()
    log.refresh()
    log.commit(LANE, change(2), files=[], begun=1)
    ours = list(synced)
    synced.clear()
    DeltaTable(tmp_path / "t").create_checkpoint()
    log.sync()

    assert f"{2:020}.json" in theirs
    assert ours == [f"{2:020}.json", f"{3:020}.json", "_delta_log"]
    assert synced == ["_last_checkpoint", f"{3:020}.checkpoint.parquet", "_delta_log"]


def test_a_log_elsewhere_is_durable_by_itself(tmp_path: Path) -> None:
    a_log(tmp_path / "t")
    log = DeltaLog("sink", f"file://{tmp_path}/t", None, None)
    log.refresh()

    log.commit(LANE, change(1), files=[], begun=1)
    log.refresh()

    assert log.entry(LANE) == LedgerEntry(1, 1)
