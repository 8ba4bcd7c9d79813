"""One task that writes a lane: what is shown when, and what is left to others."""

import logging

import pytest

from gearpy.core.handover.window_log import OWNERS, PENDING
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.windowlog import lane as lane_module
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.lane import LaneWriter
from tests.windowlog.log_build import a_lane, a_log, keys_in, prepared, rows_of, shown

LANE = "windows-00000"


def test_a_file_notes_what_is_in_it() -> None:
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    lane.add(rows_of(1, 1))
    lane.add(rows_of(5))

    batch = lane.prepare(4, body="parquet", about={"app": "a", "app_id": "9"}, watermark=77)
    assert batch is not None
    lane.show(batch)

    info = log.info(log.segments()[0])
    assert (info.app, info.app_id, info.run, info.writer, info.task) == (
        "a",
        "9",
        "r",
        "windows",
        0,
    )
    assert info.batches == ((1, 3, 4, 10, 60, 2, 77, ""),)


def test_an_epoch_without_rows_has_no_number() -> None:
    log = a_log(MemoryFolder())
    lane = a_lane(log)

    assert lane.prepare(1, body="parquet", about={}) is None
    assert shown(lane, 2, 1)["seq"] == 1
    assert lane.next_seq == 2


def test_many_rows_do_not_wait_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written in groups, into one file; a small body is then Parquet, too."""
    monkeypatch.setattr(lane_module, "_GROUP_ROWS", 4)
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    for number in range(5):
        lane.add(rows_of(number * 2, number * 2 + 1))

    batch = lane.prepare(1, body="arrow", about={})
    assert batch is not None
    lane.show(batch)
    shown(lane, 2, 10)

    assert batch["name"].endswith(".parquet")
    assert keys_in(log) == list(range(11))
    assert log.info(log.segments()[0]).batches[0].windows == 10


def test_closing_removes_what_is_not_prepared_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "_GROUP_ROWS", 1)
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    batch = prepared(lane, 1, 1)
    lane.add(rows_of(2))

    lane.close()
    lane.close()

    assert log.store.names(PENDING) == [batch["pending"]]


def test_a_successor_shows_what_was_prepared_and_removes_the_rest() -> None:
    log = a_log(MemoryFolder())
    zombie = a_lane(log)
    told, untold = prepared(zombie, 1, 1), prepared(zombie, 2, 2)

    successor = LaneWriter(log, writer="windows", task=0, compression="lz4")
    successor.begin(run="r", incarnation=2)
    successor.show(told)
    successor.clean()
    successor.number_on()
    shown(successor, 2, 3)

    with pytest.raises(GearpyError, match="belongs to start 2 of run r by now: this is start 1"):
        zombie.show(untold)
    assert keys_in(log) == [1, 3]


def test_a_new_run_numbers_on_and_an_old_one_stays_away() -> None:
    """Two applications write one lane: the one that came last goes on."""
    log = a_log(MemoryFolder())
    old = a_lane(log, "old", 9)
    shown(old, 1, 1)
    left = prepared(old, 2, 2)
    new = a_lane(log, "new", 1)

    assert shown(new, 1, 3)["seq"] == 2
    with pytest.raises(GearpyError, match="belongs to start 1 of run new by now"):
        old.show(left)
    with pytest.raises(GearpyError, match="taken over by run new: run old may not write it"):
        a_lane(log, "old", 10)
    assert keys_in(log) == [1, 3]


def test_an_owner_that_was_overwritten_by_an_earlier_start_goes_on() -> None:
    """Both began at once; the earlier one is never told to show anything."""
    log = a_log(MemoryFolder())
    a_lane(log, incarnation=1)
    before = log.store.read(f"{OWNERS}{LANE}.json")
    lane = a_lane(log, incarnation=2)
    batch = prepared(lane, 1, 1)
    assert before is not None
    log.store.put(f"{OWNERS}{LANE}.json", before)

    lane.show(batch)

    assert keys_in(log) == [1]
    assert log.store.read(f"{OWNERS}{LANE}.json") != before


def test_without_an_owner_nothing_is_shown() -> None:
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    batch = prepared(lane, 1, 1)
    log.store.remove(f"{OWNERS}{LANE}.json")

    with pytest.raises(GearpyError, match="json is not there any more: bring the log back"):
        lane.show(batch)


def test_other_lanes_are_left_alone() -> None:
    log = a_log(MemoryFolder())
    others = [a_lane(log, task=1), a_lane(log, writer="window"), a_lane(log, task=10)]
    for lane in others:
        prepared(lane, 1, 1)

    a_lane(log, incarnation=2)

    assert len(log.store.names(PENDING)) == 3


def test_a_lane_of_spark_is_refused() -> None:
    """It numbers and recognises its batches otherwise."""
    log = a_log(MemoryFolder())
    shown(a_lane(log, "sparkquery-1"), 1, 1)

    with pytest.raises(ConfigError, match="written by Spark: give this sink another name"):
        a_lane(log, "r")


def test_a_batch_that_is_neither_pending_nor_shown_is_an_error() -> None:
    """Windows would be lost without a word."""
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    batch = prepared(lane, 1, 1)
    log.store.remove(PENDING + batch["pending"])

    with pytest.raises(GearpyError, match="batch 1 of lane windows-00000, which was written befor"):
        lane.show(batch)


def test_a_batch_whose_number_another_run_has_is_an_error() -> None:
    log = a_log(MemoryFolder())
    batch = prepared(a_lane(log), 1, 1)
    shown(a_lane(log, "s"), 1, 2)

    lane = LaneWriter(log, writer="windows", task=0, compression="lz4")
    lane.begin(run="t", incarnation=1)
    with pytest.raises(GearpyError, match="another run has begun to write the lane meanwhile"):
        lane.show(batch)


def test_a_pending_file_of_another_size_is_an_error() -> None:
    store = MemoryFolder()
    log = a_log(store)
    lane = a_lane(log)
    batch = prepared(lane, 1, 1)
    store.files[PENDING + batch["pending"]].data += b"x"

    with pytest.raises(GearpyError, match="it was changed or is damaged"):
        lane.show(batch)


def test_a_batch_that_is_compacted_or_purged_was_shown() -> None:
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    first, second = shown(lane, 1, 1), shown(lane, 2, 2)
    compact_all(log)
    lane.show(first)
    shown(lane, 3, 3)
    log.purge({LANE: 2})

    lane.show(first)
    lane.show(second)

    assert keys_in(log) == [3]


def test_a_batch_of_another_folder_is_none_of_its_business(
    caplog: pytest.LogCaptureFixture,
) -> None:
    batch = prepared(a_lane(a_log(MemoryFolder())), 1, 1)
    log = a_log(MemoryFolder())
    lane = a_lane(log, "s")

    with caplog.at_level(logging.WARNING):
        lane.show(batch)

    assert keys_in(log) == []
    assert "it was written into another log" in caplog.text


def test_a_number_that_was_there_is_not_given_again() -> None:
    """Somebody has removed the last file; readers are behind it."""
    log = a_log(MemoryFolder())
    lane = a_lane(log)
    lane.number_on(behind=5)

    assert shown(lane, 1, 1)["seq"] == 6
