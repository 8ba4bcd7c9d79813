"""What is old goes, but for what nobody has taken yet."""

import os
from pathlib import Path

from gearpy.spark.delivery.expiry import expire
from gearpy.windowlog.log import WindowLog
from tests.spark.log_build import LANE, LogOnDisk


def a_log(path: Path, *ages_s: int) -> WindowLog:
    """Return one with files that were shown so many seconds after 1970."""
    written = LogOnDisk(path)
    for at_s in ages_s:
        before = set(path.iterdir())
        written.show(1)
        (name,) = set(path.iterdir()) - before
        os.utime(name, (at_s, at_s))
    return WindowLog(path)


def kept(log: WindowLog) -> int:
    """Return the number of the first batch that is there."""
    return log.view().begins()[LANE]


def test_old_files_that_were_taken_go(tmp_path: Path) -> None:
    """And no younger ones."""
    log = a_log(tmp_path / "log", 10, 20, 30, 40)

    removed = expire(log, {LANE: 4}, before_ms=25_000)

    assert ([each.first for each in removed], kept(log)) == ([1, 2], 3)


def test_what_nobody_has_taken_stays_however_old_it_is(tmp_path: Path) -> None:
    """A Spark that was away for longer than files are kept finds them all."""
    log = a_log(tmp_path / "log", 10, 20, 30, 40)

    expire(log, {LANE: 1}, before_ms=100_000)

    assert kept(log) == 2


def test_last_file_stays(tmp_path: Path) -> None:
    """Without it the next run would number from 1."""
    log = a_log(tmp_path / "log", 10, 20)

    expire(log, {LANE: 2}, before_ms=100_000)

    assert kept(log) == 2


def test_nothing_goes_before_anything_was_taken(tmp_path: Path) -> None:
    """Nor from an empty log."""
    log = a_log(tmp_path / "log", 10, 20)

    assert expire(log, {}, before_ms=100_000) == []
    assert expire(a_log(tmp_path / "other"), {}, before_ms=100_000) == []
