"""The thread that calls a function with batches: all rows once, whatever goes wrong around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gearpy.config.schema import SparkConfig
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.spark.delivery.batch import SparkBatch
from gearpy.spark.delivery.thread import Delivery, DeliverySpec
from gearpy.windowlog.log import WindowLog
from tests.eventually import DEADLINE_S
from tests.spark.log_build import LANE, FakeTarget, LogOnDisk

WAIT_S = float(DEADLINE_S)


@dataclass
class Taken:
    """A function that keeps what it gets, by batch; it may be told to raise, or to wait."""

    batches: dict[int, list[int]] = field(default_factory=dict)
    told: list[SparkBatch] = field(default_factory=list)
    failures: int = 0
    before: Callable[[SparkBatch], object] = lambda _: None

    def __call__(self, frame: Any, batch: SparkBatch) -> None:
        self.told.append(batch)
        self.before(batch)
        if self.failures:
            self.failures -= 1
            raise KeyError("country")
        assert self.batches.get(batch.id, frame) == frame, "the same rows again"
        self.batches[batch.id] = frame

    @property
    def rows(self) -> list[int]:
        return [n for number in sorted(self.batches) for n in self.batches[number]]


class Held:
    """Holds the calls of a function until a test lets them go."""

    def __init__(self) -> None:
        self.called, self.go = Event(), Event()

    def __call__(self, _: SparkBatch) -> None:
        self.called.set()
        self.go.wait(WAIT_S)


class Woken:
    """What the task would look at, each time that it is woken."""

    def __init__(self) -> None:
        self._event = Event()

    def __call__(self) -> None:
        self._event.set()

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; looked at whenever the task would look."""
        while not is_so():
            assert self._event.wait(WAIT_S), "it is never so"
            self._event.clear()


@contextmanager
def a_delivery(
    log: LogOnDisk | Path, function: Any, *, target: FakeTarget | None = None, **config: Any
) -> Iterator[tuple[Delivery, Woken]]:
    woken = Woken()
    limits: dict[str, Any] = {"pause_ms": 1, "call_attempts": 3, **config}
    spec = DeliverySpec(
        path=str(log if isinstance(log, Path) else log.path),
        options=None,
        name="spark",
        lane=LANE,
        app="shop",
        operator="to_spark(take)",
        function=function,
        target=target or FakeTarget(),
        config=SparkConfig(**limits),
    )
    delivery = Delivery(spec, woken)
    delivery.start()
    try:
        yield delivery, woken
    finally:
        delivery.close(wait_s=WAIT_S)


def hand_over(log: LogOnDisk, taken: Any, **config: Any) -> None:
    with a_delivery(log, taken, **config) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)


def failure_of(log: LogOnDisk, taken: Any, **config: Any) -> BaseException:
    with a_delivery(log, taken, **config) as (delivery, woken):
        woken.until(lambda: delivery.failure is not None)
        assert delivery.failure is not None
        return delivery.failure


def test_hands_over_what_is_there_and_what_comes(tmp_path: Path) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)

    with a_delivery(log, taken) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        delivery.backlog.on_shown(log.show(4))
        woken.until(lambda: delivery.backlog.is_empty)
        report = delivery.report()

    assert taken.batches == {1: [0, 1, 2], 2: [3, 4, 5, 6]}
    assert (report.batch_id, report.rows, report.waiting_rows) == (2, 7, 0)


def test_function_is_told_which_batch_it_is(tmp_path: Path) -> None:
    """Bounds, number, key: all that a write needs that may be repeated."""
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)
    log.show(2)

    hand_over(log, taken)

    assert taken.told == [
        SparkBatch(
            id=1,
            key="abc-spark-000000000001",
            app="shop",
            sink="spark",
            rows=5,
            windows=2,
            window_start=datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC),
            window_end=datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC),
            attempt=1,
        )
    ]


def test_many_files_are_one_call(tmp_path: Path) -> None:
    """A job for each of them would take minutes."""
    log, taken = LogOnDisk(tmp_path / "log"), Taken()
    for _ in range(50):
        log.show(1)

    hand_over(log, taken)

    assert taken.batches == {1: list(range(50))}


@pytest.mark.parametrize("body", ["parquet", "arrow"])
def test_many_rows_are_read_from_files(tmp_path: Path, body: Any) -> None:
    log, taken = LogOnDisk(tmp_path / "log", body=body), Taken()
    log.show(3)
    log.show(4)

    hand_over(log, taken, in_memory_max_rows=5)

    assert taken.batches == {1: list(range(7))}
    assert not list(tmp_path.glob("log/_spark/*.parquet"))


def test_goes_on_where_an_earlier_one_has_ended(tmp_path: Path) -> None:
    log, taken, again = LogOnDisk(tmp_path / "log"), Taken(), Taken()
    log.show(3)
    hand_over(log, taken)
    log.show(2)

    with a_delivery(log, again) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        report = delivery.report()

    assert again.batches == {2: [3, 4]}
    assert (report.batch_id, report.rows) == (2, 2)


def test_function_that_raises_gets_the_same_batch_again(tmp_path: Path) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken(failures=2)
    log.show(3)

    with a_delivery(log, taken) as (delivery, woken):
        woken.until(lambda: delivery.backlog.is_empty)
        report = delivery.report()

    assert taken.batches == {1: [0, 1, 2]}
    assert [batch.attempt for batch in taken.told] == [1, 2, 3]
    assert report.trouble == ""


def test_function_that_raises_too_often_is_blamed(tmp_path: Path) -> None:
    log, taken = LogOnDisk(tmp_path / "log"), Taken(failures=99)
    log.show(3)

    def take(frame: Any, batch: SparkBatch) -> None:
        taken(frame, batch)

    with a_delivery(log, take) as (delivery, woken):
        woken.until(lambda: delivery.failure is not None)
        failure, report = delivery.failure, delivery.report()

    assert isinstance(failure, OperatorError)
    assert failure.operator == "to_spark(take)"
    assert "take() has raised 3 times with batch 1: KeyError: 'country'" in failure.cause
    assert failure.source.startswith(f"{__file__}:")
    assert failure.source_line == 'raise KeyError("country")'
    assert failure.record == "batch 1"
    assert report.trouble == "the function has raised: KeyError: 'country'"
    assert not delivery.backlog.is_empty


def test_what_was_begun_comes_again_after_a_failure(tmp_path: Path) -> None:
    log, again = LogOnDisk(tmp_path / "log"), Taken()
    log.show(3)
    failure_of(log, Taken(failures=99))
    log.show(2)

    hand_over(log, again)

    assert again.batches == {1: [0, 1, 2], 2: [3, 4]}
    assert [batch.attempt for batch in again.told] == [2, 1]


def test_spark_that_is_away_is_waited_for(tmp_path: Path) -> None:
    log, taken, target = LogOnDisk(tmp_path / "log"), Taken(), FakeTarget()
    target.is_down = True
    log.show(3)

    with a_delivery(log, taken, target=target) as (delivery, woken):
        woken.until(lambda: bool(delivery.report().trouble))
        trouble = delivery.report().trouble
        delivery.backlog.on_shown(log.show(2))
        target.is_down = False
        woken.until(lambda: delivery.backlog.is_empty)

    assert trouble == "Spark is not there: ConnectionRefusedError: no Spark here"
    assert taken.rows == [0, 1, 2, 3, 4]


def test_spark_that_is_lost_in_a_call_gets_the_batch_again(tmp_path: Path) -> None:
    log, target = LogOnDisk(tmp_path / "log"), FakeTarget()
    lost = iter([True] * 10)

    def lose(_: SparkBatch) -> None:
        target.is_down = next(lost, False)
        if target.is_down:
            raise ConnectionResetError("the JVM is gone")

    class Restarted(FakeTarget):
        def connect(self) -> Any:
            target.is_down = False
            return super().connect()

    target = Restarted()
    taken = Taken(before=lose)
    log.show(3)

    hand_over(log, taken, target=target)

    assert taken.batches == {1: [0, 1, 2]}
    assert [batch.attempt for batch in taken.told] == list(range(1, 12))


def test_spark_that_stays_away_ends_it(tmp_path: Path) -> None:
    log, target = LogOnDisk(tmp_path / "log"), FakeTarget()
    target.is_down = True
    log.show(3)

    failure = failure_of(log, Taken(), target=target, outage_max_ms=50)

    assert isinstance(failure, GearpyError)
    assert "Spark was not there for 50 ms; batch 1 waits for it" in str(failure)
    assert "no Spark here" in str(failure)


def test_spark_that_cannot_be_had_ends_it_at_once(tmp_path: Path) -> None:
    def refuse() -> Any:
        raise ConfigError("there is no Java")

    log = LogOnDisk(tmp_path / "log")

    failure = failure_of(log, Taken(), target=FakeTarget(refuse))

    assert str(failure) == "there is no Java"


def test_stream_waits_while_too_much_is_not_taken(tmp_path: Path) -> None:
    log, held = LogOnDisk(tmp_path / "log"), Held()
    taken = Taken(before=held)
    log.show(3)

    with a_delivery(log, taken, waiting_max_rows=10) as (delivery, woken):
        held.called.wait(WAIT_S)
        first = delivery.backlog.has_room
        delivery.backlog.on_shown(log.show(8))
        full = delivery.backlog.has_room
        held.go.set()
        woken.until(lambda: delivery.backlog.has_room)
        woken.until(lambda: delivery.backlog.is_empty)

    assert (first, full) == (True, False)
    assert taken.rows == list(range(11))


def test_it_is_not_delivered_before_the_first_look(tmp_path: Path) -> None:
    log, go = LogOnDisk(tmp_path / "log"), Event()
    log.show(3)

    with a_delivery(log, Taken(before=lambda _: go.wait(WAIT_S))) as (delivery, woken):
        before = delivery.backlog.is_empty
        go.set()
        woken.until(lambda: delivery.backlog.is_empty)

    assert not before


def test_call_that_takes_too_long_is_a_failure(tmp_path: Path) -> None:
    log, held = LogOnDisk(tmp_path / "log"), Held()
    log.show(3)

    with a_delivery(log, Taken(before=held), call_max_ms=1) as (delivery, _):
        held.called.wait(WAIT_S)
        while delivery.failure is None:
            held.called.wait(0.001)
        failure = delivery.failure
        held.go.set()

    assert "was called with batch 1 and has not returned for 1 ms" in str(failure)


def test_next_start_waits_for_the_last_call_of_the_one_before(tmp_path: Path) -> None:
    log, held = LogOnDisk(tmp_path / "log"), Held()
    slow, again = Taken(before=held), Taken()
    log.show(3)

    with a_delivery(log, slow) as (first, _):
        held.called.wait(WAIT_S)
        first.close()
        log.show(2)
        with a_delivery(log, again) as (second, woken):
            is_waiting = not again.told
            held.go.set()
            woken.until(lambda: second.backlog.is_empty)

    assert is_waiting
    assert (slow.batches, again.batches) == ({1: [0, 1, 2]}, {2: [3, 4]})


def test_a_call_that_never_ends_does_not_hold_the_next_start_for_ever(tmp_path: Path) -> None:
    log, held = LogOnDisk(tmp_path / "log"), Held()
    log.show(3)

    with a_delivery(log, Taken(before=held)) as (first, _):
        held.called.wait(WAIT_S)
        first.close()
        with a_delivery(log, Taken(), outage_max_ms=1) as (second, woken):
            woken.until(lambda: second.failure is not None)
        held.go.set()

    assert "that an earlier start of the sink has begun still runs" in str(second.failure)


def test_others_are_told_how_far_it_is(tmp_path: Path) -> None:
    log = LogOnDisk(tmp_path / "log")
    log.show(3)

    hand_over(log, Taken())

    (report,) = WindowLog(log.path).readers()
    assert (report.name, report.lanes, report.batch_id) == ("to_spark.spark", {LANE: 1}, 1)


def test_begins_before_there_is_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    taken = Taken()

    with a_delivery(folder, taken) as (delivery, woken):
        delivery.backlog.on_shown(LogOnDisk(folder).show(3))
        woken.until(lambda: delivery.backlog.is_empty)

    assert taken.rows == [0, 1, 2]
