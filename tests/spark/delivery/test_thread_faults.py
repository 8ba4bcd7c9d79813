"""What others do to a log that is handed over, and what else goes wrong around a call."""

import asyncio
import logging
import shutil
from pathlib import Path
from threading import Event
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.errors import GearpyError, OperatorError, WindowLogDamaged, WindowLogGap
from gearpy.spark.delivery import thread as module
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog
from tests.spark.delivery.test_thread import WAIT_S, Taken, a_delivery, failure_of, hand_over
from tests.spark.log_build import LANE, FakeSession, FakeTarget, LogOnDisk

OTHER = "other-00000"


def test_others_know_of_it_before_the_first_batch(tmp_path: Path) -> None:
    log, target, taken = LogOnDisk(tmp_path / "log"), FakeTarget(), Taken()
    target.is_down = True
    log.show(3)

    with a_delivery(log, taken, target=target) as (delivery, woken):
        woken.until(lambda: bool(delivery.report().trouble))
        (report,) = WindowLog(log.path).readers()
        target.is_down = False
        woken.until(lambda: delivery.backlog.is_empty)

    assert (report.name, report.lanes) == ("to_spark.spark", {})
    assert taken.rows == [0, 1, 2]


def test_what_was_removed_before_the_first_batch_is_missed(tmp_path: Path) -> None:
    log, target = LogOnDisk(tmp_path / "log"), FakeTarget()
    target.is_down = True
    for _ in range(3):
        log.show(1)
    with a_delivery(log, Taken(), target=target) as (delivery, woken):
        woken.until(lambda: bool(delivery.report().trouble))
    WindowLog(log.path).purge({LANE: 2})

    failure = failure_of(log, Taken())

    assert isinstance(failure, WindowLogGap)
    assert (failure.lane, failure.wanted, failure.kept) == (LANE, 1, 3)


def test_other_lanes_are_none_of_its_business(tmp_path: Path) -> None:
    """Those of another sink or of Spark: neither handed over nor waited for, nor held back."""
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    other = LogOnDisk(log.path, lane=OTHER)
    other.show(7)
    log.show(3)

    with a_delivery(log, taken) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        other.show(1)
        delivery.backlog.on_shown(log.show(2))
        woken.until(lambda: delivery.backlog.is_empty)

    (report,) = WindowLog(log.path).readers()
    assert taken.batches == {1: [0, 1, 2], 2: [3, 4]}
    assert report.lanes == {LANE: 2, OTHER: 2}


def test_files_that_were_removed_by_hand_are_missed(tmp_path: Path) -> None:
    """Numbers begin again, so what comes would be taken for what was handed over."""
    log = LogOnDisk(tmp_path / "log")
    for _ in range(4):
        log.show(3)
    hand_over(log, Taken())
    for file in log.path.glob("windows*"):
        file.unlink()
    LogOnDisk(log.path).show(7)

    failure = failure_of(log, Taken())

    assert "up to file 4, but the last one is 1" in str(failure)
    assert "_spark/spark.*" in str(failure)


def test_another_log_at_the_same_place_is_refused(tmp_path: Path) -> None:
    log = LogOnDisk(tmp_path / "log")
    log.show(3)
    hand_over(log, Taken())
    schema = log.path / "_schema.json"
    schema.write_text(schema.read_text().replace('"abc"', '"def"'))
    log.show(3)

    assert "is about another log" in str(failure_of(log, Taken()))


def test_files_that_are_compacted_in_a_call_are_read_anew(tmp_path: Path) -> None:
    """That is no failure of the function, however often it happens."""
    log = LogOnDisk(tmp_path / "log")
    rounds: list[int] = []

    def compact(_: Any) -> None:
        rounds.append(1)
        if len(rounds) == 1:
            assert compact_all(WindowLog(log.path))
            raise FileNotFoundError("it is gone")

    taken = Taken(before=compact)
    for _ in range(3):
        log.show(2)

    hand_over(log, taken, in_memory_max_rows=0, call_attempts=1)

    assert taken.batches == {1: [0, 1, 2, 3, 4, 5]}
    assert [batch.attempt for batch in taken.told] == [1, 2]


def test_files_that_are_compacted_before_a_call_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, taken, info = LogOnDisk(tmp_path / "log"), Taken(), WindowLog.info
    left = [True]

    def compacted(self: WindowLog, segment: Any) -> Any:
        if left:
            left.clear()
            compact_all(WindowLog(log.path))
        return info(self, segment)

    for _ in range(3):
        log.show(2)
    monkeypatch.setattr(WindowLog, "info", compacted)

    hand_over(log, taken, call_attempts=1)

    assert taken.batches == {1: [0, 1, 2, 3, 4, 5]}
    assert [(batch.rows, batch.windows, batch.attempt) for batch in taken.told] == [(6, 3, 1)]


def test_trouble_with_files_before_a_call_is_no_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried so often as the function is, though files of earlier batches are gone."""
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(2)

    def fail(*_: Any) -> None:
        raise OSError("the disk is away")

    with a_delivery(log, taken, in_memory_max_rows=0) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        rows = log.show(2)
        (file,) = log.path.glob("windows-00000-000000000001-*")
        file.unlink()
        monkeypatch.setattr(WindowLog, "info", fail)
        delivery.backlog.on_shown(rows)
        woken.until(lambda: delivery.failure is not None)
        failure = delivery.failure

    assert isinstance(failure, OperatorError)
    assert "making the frame has raised 3 times with batch 2" in failure.cause


def test_many_files_are_few_for_spark(tmp_path: Path) -> None:
    """Those with few rows become one; a large one is read as it is."""
    log, read = LogOnDisk(tmp_path / "log"), list[tuple[str, ...]]()

    class Counted(FakeSession):
        def parquet(self, *files: str) -> list[int]:
            read.append(files)
            return sorted(super().parquet(*files))

    for place in range(20):
        log.show(50_000 if place == 7 else 3)
    taken = Taken()

    hand_over(log, taken, target=FakeTarget(Counted), in_memory_max_rows=0)

    assert taken.batches == {1: list(range(50_000 + 19 * 3))}
    ((large, small),) = read
    assert "-50000-" in large
    assert "/_spark/" in small


def test_task_is_woken_when_a_call_takes_too_long(tmp_path: Path) -> None:
    """Else an idle stream would never look."""
    log, go = LogOnDisk(tmp_path / "log"), Event()
    log.show(3)

    with a_delivery(log, Taken(before=lambda _: go.wait(WAIT_S)), call_max_ms=300) as (
        delivery,
        woken,
    ):
        woken.until(lambda: delivery.failure is not None)
        go.set()


def test_task_is_woken_when_a_look_frees_room(tmp_path: Path) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(12)

    with a_delivery(log, taken, waiting_max_rows=12) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        delivery.backlog.on_shown(12)
        woken.until(lambda: delivery.backlog.has_room and delivery.backlog.is_empty)

    assert len(taken.rows) == 12


def test_idle_stream_does_not_miss_spark(tmp_path: Path) -> None:
    log, target, taken = LogOnDisk(tmp_path / "log"), FakeTarget(), Taken()
    target.is_down = True

    with a_delivery(log, taken, target=target, outage_max_ms=1) as (delivery, woken):
        while target.connects < 10:
            woken.until(lambda: bool(delivery.report().trouble))
        failure = delivery.failure
        target.is_down = False
        delivery.backlog.on_shown(log.show(3))
        woken.until(lambda: delivery.backlog.is_empty)

    assert failure is None
    assert taken.rows == [0, 1, 2]


def test_damaged_file_is_not_blamed_on_the_function(tmp_path: Path) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)
    (file,) = log.path.glob("windows*")
    data = bytearray(file.read_bytes())
    data[4:40] = bytes(36)
    file.write_bytes(data)

    failure = failure_of(log, taken)

    assert isinstance(failure, WindowLogDamaged)
    assert file.name in str(failure)
    assert taken.told == []


def test_frame_that_cannot_be_made_is_not_blamed_on_the_function(tmp_path: Path) -> None:
    class Blind(FakeSession):
        def createDataFrame(self, table: pa.Table, schema: Any) -> Any:  # noqa: N802 - Spark's
            raise OSError("no such folder here")

    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)

    failure = failure_of(log, taken, target=FakeTarget(Blind))

    assert isinstance(failure, OperatorError)
    assert "making the frame has raised 3 times with batch 1: OSError" in failure.cause
    assert taken.told == []


def test_what_is_no_exception_is_one_for_the_task(tmp_path: Path) -> None:
    """Such as asyncio's, which would end a loop that it does not belong to."""

    def cancel(_: Any) -> None:
        raise asyncio.CancelledError

    log = LogOnDisk(tmp_path / "log")
    log.show(3)

    failure = failure_of(log, Taken(before=cancel))

    assert isinstance(failure, OperatorError)
    assert "CancelledError" in failure.cause


def test_whatever_ends_the_thread_is_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogOnDisk(tmp_path / "log")

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "Handoff", stop)
    assert isinstance(failure_of(log, Taken()), OperatorError)


def test_report_that_cannot_be_written_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)

    with a_delivery(log, taken) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        shutil.rmtree(log.path / "_readers")
        (log.path / "_readers").write_text("")
        with caplog.at_level(logging.WARNING):
            delivery.backlog.on_shown(log.show(2))
            woken.until(lambda: delivery.backlog.is_empty)

    assert not isinstance(delivery.failure, GearpyError)
    assert taken.rows == [0, 1, 2, 3, 4]
    assert "cannot tell how far it is" in caplog.text
