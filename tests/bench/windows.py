"""Sum and count over tumbling windows, by a thousand keys: rows and columns; and how soon.

One executor with two tasks: a source, and the aggregate with its sink. All records are made before
the clock starts, but for their times. The sink checks that no record was lost.
"""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.cluster.boot.local import LocalCluster
from gearpy.columns.row_schema import RowSchema
from gearpy.config.load import from_overrides
from gearpy.core.window import aggregates as agg
from gearpy.core.window.windows import tumbling
from gearpy.dsl.application import StreamApp
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader
from tests.bench.measure import percentile

#: What the records of a run are.
RecordPath: TypeAlias = Literal["rows", "columns"]
RECORD_PATHS: Final[tuple[RecordPath, ...]] = ("rows", "columns")

_SCHEMA: Final = pa.schema({"user": pa.string(), "price": pa.int64()})
_ROWS: Final = 1024  # Of a batch of rows, and of a table.
_TABLE_ROWS: Final = 65_536
_MADE: Final = 1 << 18  # Records that are made; then they come again, later.
_PER_MS: Final = 100  # Records of one ms of event time.
_WARM_UP_S: Final = 2.0
_MS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsOptions:
    """What a run does.

    Attributes:
        rate: records per second, which have the time at which they are made; 0 for as many as can
            be, of any time.
    """

    folder: str
    path: RecordPath
    seconds: float
    keys: int = 1000
    window: str = "10s"
    rate: float = 0

    def file(self, name: str) -> Path:
        return Path(self.folder) / name


class _Records(Source):
    def __init__(self, options: WindowsOptions) -> None:
        self._options = options

    def partitions(self) -> list[str]:
        return ["records"]

    @property
    def schema(self) -> RowSchema | None:
        return RowSchema(_SCHEMA) if self._options.path == "columns" else None

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        return (_PacedReader if self._options.rate else _FastReader)(self._options)


class _FastReader(SourceReader):
    """Gives as much as is taken; event time goes with the number of records."""

    out_of_order_ms = 0

    def __init__(self, options: WindowsOptions) -> None:
        self._options = options
        self._batches = _batches(options)
        self._span_ms = _MADE // _PER_MS
        self._given = 0
        self._records = 0  # All; and before the clock was started.
        self._before = 0
        self._begin_s = 0.0
        self._begin_cpu_s = 0.0
        self._newest_ms = 0

    def read_batch(self, max_records: int) -> Batch | None:
        now_s = time.monotonic()
        self._begin_s = self._begin_s or now_s + _WARM_UP_S
        if now_s < self._begin_s:
            self._before, self._begin_cpu_s = self._records, time.process_time()
        if now_s > self._begin_s + self._options.seconds:
            self._leave_figures(now_s - self._begin_s)
            return None
        round_, place = divmod(self._given, len(self._batches))
        batch = _later(self._batches[place], round_ * self._span_ms)
        self._given += 1
        self._records += len(batch)
        self._newest_ms = batch.timestamps[-1]
        return batch

    def snapshot(self) -> None:
        return None

    @property
    def watermark_ms(self) -> int:
        return self._newest_ms

    def _leave_figures(self, took_s: float) -> None:
        given = self._records - self._before
        cpu_s = time.process_time() - self._begin_cpu_s
        figures = {"rate": given / took_s, "per_cpu": given / cpu_s, "records": self._records}
        self._options.file("given").write_text(json.dumps(figures), encoding="ascii")
        self.finished = True


class _PacedReader(SourceReader):
    """Gives what is due, each ms its records, with the time that it is."""

    out_of_order_ms = 0

    def __init__(self, options: WindowsOptions) -> None:
        self._options = options
        self._batches = _batches(options)
        self._per_ms = round(options.rate / _MS)
        self._begin_ms = self._now_ms()
        self._records = 0

    def read_batch(self, max_records: int) -> Batch | None:
        now_ms = self._now_ms()
        if now_ms > self._begin_ms + (_WARM_UP_S + self._options.seconds) * _MS:
            figures = {"records": self._records}
            self._options.file("given").write_text(json.dumps(figures), encoding="ascii")
            self.finished = True
            return None
        due = min((now_ms - self._begin_ms) * self._per_ms - self._records, max_records)
        if due <= 0:
            return None
        made = self._batches[(self._records // _ROWS) % len(self._batches)].values[:due]
        numbers = range(self._records, self._records + len(made))
        times = [self._begin_ms + number // self._per_ms for number in numbers]
        self._records += len(made)
        return Batch(made, Times.of(times) if self._options.path == "columns" else times)

    def snapshot(self) -> None:
        return None

    @property
    def watermark_ms(self) -> int:
        return self._begin_ms + self._records // self._per_ms

    @staticmethod
    def _now_ms() -> int:
        return time.time_ns() // 1_000_000


def _batches(options: WindowsOptions) -> list[Batch]:
    rng = random.Random(1)
    users = [f"user{number}" for number in range(options.keys)]
    rows = [{"user": rng.choice(users), "price": rng.randrange(10_000)} for _ in range(_MADE)]
    times = [number // _PER_MS for number in range(_MADE)]
    if options.path == "rows":
        return [
            Batch(rows[at : at + _ROWS], times[at : at + _ROWS]) for at in range(0, _MADE, _ROWS)
        ]
    table, all_times = Table(pa.RecordBatch.from_pylist(rows, _SCHEMA)), Times.of(times)
    return [
        Batch(table[at : at + _TABLE_ROWS], all_times[at : at + _TABLE_ROWS])
        for at in range(0, _MADE, _TABLE_ROWS)
    ]


def _later(batch: Batch, by_ms: int) -> Batch:
    times = batch.timestamps
    if type(times) is Times:
        return Batch(batch.values, Times(pc.add(times.array, by_ms)))
    return Batch(batch.values, [time_ms + by_ms for time_ms in times])


class _Results(Sink):
    def __init__(self, options: WindowsOptions) -> None:
        self._options = options

    def open(self, task_index: int, parallelism: int) -> "_ResultsWriter":
        return _ResultsWriter(self._options)


class _ResultsWriter(SinkWriter):
    """Counts the records behind the results; notes how long after its window each one comes."""

    def __init__(self, options: WindowsOptions) -> None:
        self._options = options
        self._records = 0
        self._delays_ms: list[float] = []
        self._begin_ms = time.time() * _MS + _WARM_UP_S * _MS

    def write_batch(self, batch: Batch) -> None:
        now_ms = time.time() * _MS
        for result in batch.values:
            self._records += result.value["n"]
            if self._options.rate and self._begin_ms < result.end <= now_ms:
                self._delays_ms.append(now_ms - result.end)

    def close(self, *, completed: bool) -> None:
        figures = {"records": self._records, "delays_ms": self._delays_ms}
        self._options.file("results").write_text(json.dumps(figures), encoding="ascii")


def windows_application(options: WindowsOptions) -> StreamApp:
    app = StreamApp("windows")
    keyed = app.read(_Records(options)).key_by("user")
    windowed = keyed.window(tumbling(options.window))
    windowed.aggregate(total=agg.sum("price"), n=agg.count()).write(_Results(options))
    return app


def measure_throughput(
    path: RecordPath, *, seconds: float, keys: int = 1000
) -> tuple[float, float]:
    """Return records per second, and per second of processor time.

    The two differ on a machine that others use meanwhile.
    """
    given, _ = _run(
        lambda folder: WindowsOptions(folder=folder, path=path, seconds=seconds, keys=keys)
    )
    return given["rate"], given["per_cpu"]


def measure_latency(
    path: RecordPath, *, seconds: float, rate: float = 100_000, keys: int = 1000
) -> tuple[float, float]:
    """Return how many ms after the end of a window of 1 s its results come: p50 and p99."""
    _, delays_ms = _run(
        lambda folder: WindowsOptions(
            folder=folder, path=path, seconds=seconds, keys=keys, window="1s", rate=rate
        )
    )
    return percentile(delays_ms, 0.5), percentile(delays_ms, 0.99)


def _run(options_for: Callable[[str], WindowsOptions]) -> tuple[dict[str, float], list[float]]:
    with TemporaryDirectory(prefix="gearpy-windows-") as folder:
        options = options_for(folder)
        with LocalCluster(from_overrides({"log.folder": folder})) as cluster:
            cluster.run(windows_application(options))
        given = json.loads(options.file("given").read_text(encoding="ascii"))
        results = json.loads(options.file("results").read_text(encoding="ascii"))
    assert results["records"] == given["records"], (
        f"{given['records']} records, of which {results['records']} are in results"
    )
    return given, results["delays_ms"]
