"""Compaction, retention and the check of a whole log."""

import pytest

from gearpy.storage.folder.memory import MemoryFolder
from gearpy.windowlog import log as log_module
from gearpy.windowlog.compaction import compact_all, compact_newest
from gearpy.windowlog.replays import Replays
from gearpy.windowlog.verify import verify
from tests.windowlog.log_build import a_lane, a_log, a_log_of, keys_in, rows_of, shown

LANE = "windows-00000"


def test_many_files_become_few() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2, 3], [4]])
    shown(a_lane(log, "s"), 9, 5)

    (made,) = compact_all(log)

    assert log.segments() == [made]
    assert (made.first, made.last, made.rows, made.epoch, made.run) == (1, 4, 5, 9, "s")
    assert keys_in(log) == [1, 2, 3, 4, 5]
    info = log.info(made)
    assert [(batch.seq, batch.rows, batch.run) for batch in info.batches] == [
        (1, 1, "r"),
        (2, 2, "r"),
        (3, 1, "r"),
        (4, 1, "s"),
    ]


def test_what_a_crash_has_left_is_removed_by_the_next_one() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2]])
    left = dict(store.files)
    compact_all(log)
    store.files.update(left)

    assert keys_in(log) == [1, 2]
    compact_all(log)
    assert len(log.segments()) == 1


def test_a_start_of_the_writer_stops_a_compaction() -> None:
    """It removes whatever is pending in its lane; nothing is lost."""
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2]])

    def begin(step: str) -> None:
        if step == "move":
            store.on_step = lambda _: None
            a_lane(log, incarnation=2)

    store.on_step = begin

    assert compact_all(log) == []
    assert keys_in(log) == [1, 2]


def test_files_that_are_purged_meanwhile_are_not_compacted() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2], [3]])
    view = log.view()
    log.purge({LANE: 2})

    assert compact_newest(log, view, LANE, files_min=2, compression="none") == []
    assert keys_in(log) == [3]


def test_a_writer_compacts_its_newest_files() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2], [3]])
    shown(a_lane(log, task=1), 1, 4)

    few = compact_newest(log, log.view(), LANE, files_min=4, compression="none")
    enough = compact_newest(log, log.view(), LANE, files_min=3, compression="none")

    assert (few, len(enough)) == ([], 1)
    assert sorted(segment.lane for segment in log.segments()) == [LANE, "windows-00001"]


def test_old_files_expire() -> None:
    """Those that were shown before a time; the last one stays, however old."""
    store = MemoryFolder()
    log = a_log(store)
    lane = a_lane(log)
    for number in range(1, 5):
        store.now_ms = number * 100
        shown(lane, number, number)

    assert [each.first for each in log.expire({LANE: 99}, before_ms=250)] == [1, 2]
    assert [each.first for each in log.expire({LANE: 99}, before_ms=9999)] == [3]
    assert log.expire({LANE: 99}, before_ms=9999) == []
    assert log.expire({"other-00000": 99}, before_ms=9999) == []
    assert keys_in(log) == [4]


def test_a_batch_that_was_not_taken_stays_however_old_it_is() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2], [3]])

    assert log.expire({}, before_ms=9999) == []
    assert [each.first for each in log.expire({LANE: 1}, before_ms=9999)] == [1]


def test_a_file_whose_age_nobody_knows_stays() -> None:
    store = MemoryFolder(now_ms=0)
    log = a_log_of(store, [[1], [2]])

    assert log.expire({LANE: 99}, before_ms=9999) == []


def test_a_window_that_is_there_twice_is_found() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2, 2]])
    shown(a_lane(log, task=1), 1, 1)
    before = [finding.problem[:35] for finding in verify(log).findings]
    compact_all(log)

    assert before == ["1 rows of batch 2 are there twice: ", "1 rows of batch 1 are there twice: "]
    assert len(verify(log).findings) == 2


def test_holes_and_damaged_files_are_found() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2], [3], [4], [5]])
    files = sorted(log.segments())
    store.remove(files[1].name)
    store.remove(files[2].name)
    store.files[files[3].name].data = b"x"

    findings = verify(log).findings

    assert findings[0] == (LANE, "batches 2 to 3 missing: a file was removed")
    assert findings[1].place == files[3].name
    assert len(findings) == 2


def test_rows_that_come_again_are_left_out_as_often_as_they_were_shown() -> None:
    """A third time they are new; other columns do not count."""
    replays = Replays(("key",))
    replays.expect(rows_of(1, 1, 2))

    assert len(replays) == 3
    assert replays.without(rows_of(1, 3))["key"].to_pylist() == [3]
    assert replays.without(rows_of(1, 1, 2))["key"].to_pylist() == []
    rest = replays.settle()
    assert rest is not None
    assert rest["key"].to_pylist() == [1]
    assert len(replays) == 0
    assert replays.without(rows_of(1)).num_rows == 1


def test_without_an_identity_a_row_is_all_its_columns() -> None:
    replays = Replays()
    replays.expect(rows_of(1))

    assert replays.without(rows_of(2, 1))["key"].to_pylist() == [2]


def test_a_log_that_never_holds_still_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_LISTINGS_MAX", 1)

    assert a_log_of(MemoryFolder(), [[1]]).view().ends() == {LANE: 1}
