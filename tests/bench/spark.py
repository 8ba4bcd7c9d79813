"""The hand-off of windows to Spark: rates of the log, and how soon Spark is done with a window.

The log is written as a task does it: each window is an epoch, whose file is synced to the disk,
and then shown. From there on the clock runs until an action of Spark on the window has returned.
"""

import json
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.connectors.window_log.sink import window_log_folder
from gearpy.ids import AppId
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Sink, SinkContext, TaskLimits, TransactionalWriter
from gearpy.task.api.window_result import WindowResult
from tests.bench.measure import percentile

#: How windows get to Spark: a sink that calls a function, or a job that reads the log.
Way: TypeAlias = Literal["sink", "stream"]
WAYS: Final[tuple[Way, ...]] = ("sink", "stream")
_WAY_NAMES: Final = {"sink": "to_spark", "stream": 'readStream.format("gearpy")'}

#: What is done with a frame: its rows are fetched, or added up by key.
_Action: TypeAlias = Callable[[Any], object]

_LARGE: Final = 1_000_000
_MIDDLE: Final = 200_000
_SMALL: Final = 1000
_SMALLEST: Final = 100
_KEYS: Final = 1000
_WINDOW_MS: Final = 10_000
_MANY: Final = 500
_WARM_UP: Final = 12
#: A JVM compiles for longer what adds up many rows; a stream goes on for days.
_WARM_UP_LARGE: Final = 60
_TIMEOUT_S: Final = 120.0
_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: the values of several runs, and what they should be.

    Attributes:
        aim: what the median should be; None if nothing is aimed at.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    aim: float | None = None
    at_most: bool = True

    @property
    def ratio(self) -> float | None:
        """The median in relation to the aim; more than 1 is better than it."""
        if self.aim is None:
            return None
        middle = median(self.values)
        return self.aim / middle if self.at_most else middle / self.aim

    def __str__(self) -> str:
        middle, lowest, highest = median(self.values), min(self.values), max(self.values)
        bound = "at most" if self.at_most else "at least"
        aim = "" if self.aim is None else f"{bound} {self.aim:,.4g}"
        ratio = "" if self.ratio is None else f"{self.ratio:5.2f}"
        return (
            f"{self.name:58} {middle:12,.2f} {self.unit:8} {f'{lowest:,.2f}..{highest:,.2f}':>26}"
            f" {aim:>18} {ratio:>6}"
        )


# -- the log -------------------------------------------------------------------------------------


class _Task:
    def __init__(self, sink: Sink) -> None:
        writer = sink.open(0, 1)
        assert isinstance(writer, TransactionalWriter)
        self.writer = writer
        self._epoch = 0
        self._prepared: Any = None
        context = SinkContext(
            app_id=AppId(1),
            app_name="bench",
            operator="sink",
            limits=TaskLimits(),
            wake=lambda: None,
        )
        writer.begin(context)
        writer.restore(None)
        writer.recover({}, epoch=0, run="bench", incarnation=1)

    def prepare(self, *batches: Batch) -> None:
        self._epoch += 1
        for batch in batches:
            self.writer.write_batch(batch)
        self._prepared = self.writer.prepare(self._epoch)

    def commit(self) -> None:
        self.writer.commit(self._epoch, self._prepared)

    def write(self, *batches: Batch) -> None:
        self.prepare(*batches)
        self.commit()


def _rows(number: int, rows: int) -> Batch:
    """Return the results of a window: one for each key."""
    start = number * _WINDOW_MS
    end = start + _WINDOW_MS
    results = [
        WindowResult(f"user{n}", {"n": n, "total": n * 0.5}, start, end) for n in range(rows)
    ]
    return Batch(results, [end - 1] * rows)


def _columns(number: int, rows: int) -> Batch:
    start_us = number * _WINDOW_MS * 1000
    time_type = pa.timestamp("us", "UTC")
    count = pa.array(range(rows), pa.int64())
    batch = pa.RecordBatch.from_pydict(
        {
            "window_start": pa.array([start_us] * rows, time_type),
            "window_end": pa.array([start_us + _WINDOW_MS * 1000] * rows, time_type),
            "key": pa.array([f"user{n % _KEYS}" for n in range(rows)]),
            "n": count,
            "total": count.cast(pa.float64()),
        }
    )
    return Batch(Table(batch), Times.of([number] * rows))


def measure_writer(folder: Path, *, runs: int) -> Iterator[Figure]:
    """Yield how fast the log takes windows, each an epoch of its own and synced."""
    makers = {"columns": _columns, "rows": _rows}
    for name, make in makers.items():
        task = _Task(window_log_folder(folder / f"large-{name}"))
        batch = make(1, _LARGE)
        rates = [_LARGE / _seconds(lambda: task.write(batch)) / 1e6 for _ in range(runs)]  # noqa: B023 - called at once
        aim = 5.0 if name == "columns" else None
        yield Figure(f"log: a window of {_LARGE:,} {name}", "M rows/s", (*rates,), aim, False)
    for name, make in makers.items():
        task = _Task(window_log_folder(folder / f"small-{name}"))
        batches = [make(number, _SMALL) for number in range(_WARM_UP + 100)]
        took = [_seconds(lambda: task.write(each)) * _MS for each in batches]  # noqa: B023 - called at once
        yield Figure(f"log: a window of {_SMALL:,} {name}", "ms", (*took[_WARM_UP:],), 2.0)


def _seconds(act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


# -- the hand-off --------------------------------------------------------------------------------


class _Handed:
    """Does the action with what is handed over, and says when it was done with how many rows."""

    def __init__(self, action: _Action) -> None:
        self._action = action
        self._done: queue.Queue[tuple[float, int]] = queue.Queue()

    def take(self, df: Any, batch: Any) -> None:
        rows = self._action(df)
        self._done.put((time.perf_counter(), rows if isinstance(rows, int) else batch.rows))

    def wait(self, rows: int) -> float:
        at_s = 0.0
        while rows > 0:
            at_s, taken = self._done.get(timeout=_TIMEOUT_S)
            rows -= taken
        return at_s


def _collect(df: Any) -> int:
    return len(df.collect())


def _aggregate(df: Any) -> int:
    from pyspark.sql import functions as f  # noqa: PLC0415 - needs Spark

    sums = df.groupBy("key").agg(f.count("*").alias("rows"), f.sum("total"))
    return sum(each["rows"] for each in sums.collect())


def _append_to(folder: Path) -> _Action:
    return lambda df: df.write.mode("append").parquet(str(folder))


@contextmanager
def _running(
    way: Way, spark: Any, folder: Path, handed: _Handed, **options: Any
) -> Iterator[_Task]:
    """Yield what windows are written with, so that they get to Spark."""
    folder.mkdir(parents=True)
    if way == "sink":
        from gearpy.spark.delivery.sink import SparkSink  # noqa: PLC0415 - needs Spark

        task = _Task(SparkSink(handed.take, folder / "log", spark=lambda: spark, **options))
        try:
            yield task
        finally:
            task.writer.close(completed=True)
        return
    task = _Task(window_log_folder(folder / "log"))
    task.write(_columns(0, 1))
    stream = spark.readStream.format("gearpy").load(str(folder / "log")).writeStream
    stream = stream.foreachBatch(handed.take).trigger(processingTime="0 seconds")
    query = stream.option("checkpointLocation", str(folder / "progress")).start()
    handed.wait(1)
    try:
        yield task
    finally:
        query.stop()


def measure_handoff(spark: Any, way: Way, folder: Path, *, runs: int) -> Iterator[Figure]:
    """Yield how long it takes from the commit of a window to the end of an action on it."""
    name = _WAY_NAMES[way]
    took = _latencies(spark, way, folder / "small", _collect, rows=_SMALLEST, windows=runs * 20)
    small = Figure(f"{name}: {_SMALLEST} rows, fetched", "ms", (*took,), 150.0)
    yield small
    yield Figure(f"{name}: the same, p95", "ms", (percentile(took, 0.95),))
    took = _latencies(
        spark,
        way,
        folder / "large",
        _aggregate,
        rows=_MIDDLE,
        windows=runs * 5,
        warm_up=_WARM_UP_LARGE,
    )
    rates = [_MIDDLE / ms * _MS / 1e6 for ms in took]
    yield Figure(f"{name}: {_MIDDLE:,} rows, added up", "M rows/s", (*rates,), 1.2, False)


def _latencies(
    spark: Any,
    way: Way,
    folder: Path,
    action: _Action,
    *,
    rows: int,
    windows: int,
    warm_up: int = _WARM_UP,
) -> list[float]:
    """Return the ms of each window, one after the other, once some have warmed the JVM up."""
    handed = _Handed(action)
    took = []
    with _running(way, spark, folder, handed) as task:
        for number in range(1, warm_up + windows + 1):
            task.prepare(_columns(number, rows))
            began_s = time.perf_counter()
            task.commit()
            took.append((handed.wait(rows) - began_s) * _MS)
    return took[warm_up:]


def measure_many(spark: Any, folder: Path, *, runs: int) -> Iterator[Figure]:
    """Yield what a window takes when many small ones have come by the time Spark asks.

    They are appended to a table by one job. In one epoch, or each in an epoch of its own: then
    they are as many files.
    """
    for name, epochs, options in (
        ("one epoch", 1, {}),
        ("an epoch each", _MANY, {}),
        ('an epoch each, body="auto"', _MANY, {"body": "auto"}),
    ):
        took = [
            _many(spark, folder / f"{epochs}-{run}-{len(options)}", options, epochs=epochs)
            for run in range(runs)
        ]
        yield Figure(f"to_spark: {_MANY} windows of {_SMALL}, {name}", "ms each", (*took,), 2.0)


def _many(spark: Any, folder: Path, options: Mapping[str, Any], *, epochs: int) -> float:
    """Return the ms for a window: the first call is held up until all are in the log."""
    opened: queue.Queue[None] = queue.Queue()
    append = _append_to(folder / "table")
    calls: list[int] = []

    def action(df: Any) -> None:
        if not calls:
            opened.get(timeout=_TIMEOUT_S)
        calls.append(1)
        append(df)

    handed = _Handed(action)
    with _running("sink", spark, folder, handed, **options) as task:
        task.write(_rows(0, _SMALL))
        batches = [_rows(number, _SMALL) for number in range(1, _MANY + 1)]
        each = _MANY // epochs
        for begin in range(0, _MANY, each):
            task.write(*batches[begin : begin + each])
        opened.put(None)
        began_s = handed.wait(_SMALL)
        ended_s = handed.wait(_MANY * _SMALL)
    return (ended_s - began_s) * _MS / _MANY


# -- the start -----------------------------------------------------------------------------------


def measure_spark_start(*, runs: int) -> Iterator[Figure]:
    took = [_start() for _ in range(runs)]
    for step, name in _STEPS.items():
        yield Figure(f"start: {name}", "s", tuple(each[step] for each in took))


_START_PROGRAM: Final = "tests.bench.spark_start"  # Importing it needs Spark.
_STEPS: Final = {
    "session": "until there is a session",
    "job": "until its first job is done",
    "parquet": "until its first rows are in a file",
}


def _start() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", _START_PROGRAM, str(time.time())],
        stdout=subprocess.PIPE,
        check=True,
        timeout=_TIMEOUT_S,
    )
    took: dict[str, float] = json.loads(done.stdout)
    return took
