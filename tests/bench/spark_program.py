"""Numbered records in windows, which go to Spark in every way there is, and their answer.

What must be in each table in the end is computed from the numbers by plain loops. The module is
also the program that a cluster is given.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from gearpy.connectors.partitioned.hive import hive_folder
from gearpy.connectors.window_log.sink import window_log_folder
from tests.bench.numbered import PARTITIONS, numbers

#: Folders of results: the window log, which a Spark job outside reads into a table of its own ...
LOG: Final = "log"
OUTSIDE: Final = "outside"
#: ... the log of the sink that calls a function on Spark, and the tables that this one writes ...
HANDED: Final = "handed"
KEYED: Final = "keyed"
NAIVE: Final = "naive"
#: ... and the table that is written without Spark.
HIVE: Final = "hive"

#: What must have every window once. The naive table must not: that is the test of the test.
EXACT: Final = (LOG, OUTSIDE, KEYED, HIVE)

PARALLELISM: Final = 2
SINK: Final = "spark"  #: Name of the sink that calls the function.
_WORDS: Final = 61
_SHARDS: Final = 3
_WINDOW_MS: Final = 100
_COLUMNS: Final = ("word", "shard", "window_start", "window_end", "records", "total", "retracts")
_WRONG_MAX: Final = 10
_UNTIL_SAMPLES: Final = 3

#: A record of the source: partition and number. Its event time is the number, in ms.
_Record: TypeAlias = tuple[int, int]


class _Window(NamedTuple):
    word: str
    shard: int
    start_ms: int


#: Of each window, how many records it has, and their sum.
Expected: TypeAlias = Mapping[_Window, tuple[int, int]]


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args``: folder of results, records per second."""
    folder, rate = args
    return spark_program(Path(folder), rate=float(rate))


def spark_program(folder: Path, *, rate: float) -> gp.StreamApp:
    """Return the application; it ends where `numbered.set_end` says."""
    app = gp.StreamApp("spark-crash", parallelism=PARALLELISM)
    source = gp.generate(
        lambda partition: numbers(int(partition), folder),
        rate=rate,
        partitions=PARTITIONS,
        timestamp=lambda record: record[1],
    )
    keyed = app.read(source).map(lambda record: {"of": record, "n": record[1]}).key_by(_key)
    windows = keyed.window(gp.tumbling(f"{_WINDOW_MS}ms")).aggregate(
        records=gp.agg.count(), total=gp.agg.sum("n")
    )
    names = ("word", "shard")
    windows.write(window_log_folder(folder / LOG, key=names))
    windows.write(hive_folder(folder / HIVE, partition_by="shard", key=names))
    windows.to_spark(
        lambda df, batch: _take(df, batch, folder),
        str(folder / HANDED),
        spark=lambda: small_session("sink"),
        name=SINK,
        key=names,
    )
    return app


def small_session(app: str) -> Any:
    """Return a session that starts soon and takes little; only here is Spark imported."""
    from gearpy.spark import session  # noqa: PLC0415 - needs Spark

    return session(
        app,
        master="local[1]",
        memory="512m",
        conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )


def _take(df: Any, batch: Any, folder: Path) -> None:
    """Append a batch, which may be done again by a repetition; and overwrite what is of it."""
    from gearpy.spark.delivery.batch import overwrite  # noqa: PLC0415 - needs Spark

    df.write.mode("append").parquet(str(folder / NAIVE))
    overwrite(df, str(folder / KEYED), batch)


def _key(row: dict[str, Any]) -> tuple[str, int]:
    return _key_of(row["of"])


def _key_of(record: _Record) -> tuple[str, int]:
    partition, n = record
    number = (n * 7 + partition * 13) % _WORDS
    return f"word{number}", number % _SHARDS


def expected_windows(end: int) -> Expected:
    counts: Counter[_Window] = Counter()
    totals: Counter[_Window] = Counter()
    for partition in range(PARTITIONS):
        for n in range(end):
            window = _Window(*_key_of((partition, n)), n // _WINDOW_MS * _WINDOW_MS)
            counts[window] += 1
            totals[window] += n
    return {window: (counts[window], totals[window]) for window in counts}


@dataclass(slots=True)
class TableVerdict:
    name: str
    rows: int = 0
    expected: int = 0
    lost: int = 0
    twice: int = 0  #: Rows of a window that was there before.
    wrong: int = 0  #: Rows with other values, or of no window.
    samples: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.twice or self.wrong)

    @property
    def is_only_repeated(self) -> bool:
        """Whether nothing is missing or wrong, and something is there again."""
        return bool(self.twice) and not (self.lost or self.wrong)

    def note(self, text: str) -> None:
        """Keep an example of what is wrong; the first ones."""
        if len(self.samples) < _WRONG_MAX:
            self.samples.append(f"{self.name}: {text}")


def check_table(name: str, table: pa.Table, expected: Expected) -> TableVerdict:
    verdict = TableVerdict(name, rows=table.num_rows, expected=len(expected))
    seen: set[_Window] = set()
    for window, values in _rows_of(table):
        if window in seen:
            verdict.twice += 1
        if expected.get(window) != values:
            verdict.wrong += 1
            verdict.note(f"{window} has {values}, not {expected.get(window)}")
        seen.add(window)
    missing = expected.keys() - seen
    verdict.lost = len(missing)
    for window in islice(sorted(missing), _UNTIL_SAMPLES):
        verdict.note(f"{window} is lost")
    return verdict


def _rows_of(table: pa.Table) -> Iterator[tuple[_Window, tuple[Any, ...]]]:
    columns: list[Iterable[Any]] = [_cells(table, name) for name in _COLUMNS]
    for word, shard, start, end, records, total, retracts in zip(*columns, strict=True):
        values: tuple[Any, ...] = records, total
        if end - start != _WINDOW_MS or retracts:
            values = (*values, end - start, retracts)
        yield _Window(word, int(shard), start), values


def _cells(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    cells: list[Any] = column.to_pylist()
    return cells
