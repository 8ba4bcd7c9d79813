"""A batch of Spark becomes one batch of a log: all of it or nothing, and once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.handover.window_log import PENDING, LogSegment
from gearpy.errors import ConfigError, GearpyError
from gearpy.spark.source import committing
from gearpy.spark.source.committing import (
    Part,
    SourceDelivery,
    begin_log,
    drop_parts,
    query_run,
    show,
    single_run,
    transaction_run,
    write_part,
)
from gearpy.spark.source.options import WriteOptions
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog
from tests.connectors.log_build import TIME, LogBuilder

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])
LANE = "spark-00000"


class PowerCut(Exception):
    """Nothing comes after this."""


class CutStore:
    def __init__(self, store: Any, steps: int) -> None:
        self._store = store
        self.steps = steps

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._store, name)
        return self._counted(step) if name in {"put", "create", "sync", "move", "remove"} else step

    def _counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if not self.steps:
                raise PowerCut
            self.steps -= 1
            return step(*args, **kwargs)

        return counted


def a_log(path: Path, schema: pa.Schema = SCHEMA) -> WindowLog:
    log = WindowLog(path / "log")
    begin_log(log, schema)
    return log


def options_of(log: WindowLog, **others: Any) -> WriteOptions:
    return WriteOptions(path=log.place, **others)


def a_batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([[f"k{n}" for n in numbers], list(numbers)], schema=SCHEMA)


def deliver(
    log: WindowLog, number: int | None, *tasks: list[int], run: str = "q", **others: Any
) -> LogSegment | None:
    run, options = query_run(run), options_of(log, **others)
    parts = [write_part(log, options, run, [a_batch(*rows)]) for rows in tasks]
    return show(log, options, SourceDelivery(run=run, number=number, parts=parts))


def numbers_in(log: WindowLog) -> list[int]:
    view = log.view()
    found: list[int] = log.read_between(view.start(), view.ends()).column("n").to_pylist()
    return found


def test_all_tasks_of_a_batch_become_one(tmp_path: Path) -> None:
    log = a_log(tmp_path)

    segment = deliver(log, 0, [1, 2], [], [3])

    assert segment is not None
    assert numbers_in(log) == [1, 2, 3]
    assert (segment.lane, segment.first, segment.last, segment.rows) == (LANE, 1, 1, 3)
    info = log.info(segment)
    assert (info.writer, info.task, info.run, info.app) == ("spark", 0, "sparkquery-q", "spark")
    assert log.store.names("_pending/") == []


def test_a_batch_without_rows_is_none(tmp_path: Path) -> None:
    log = a_log(tmp_path)

    assert deliver(log, 0, []) is None
    assert log.segments() == []


def test_a_batch_that_comes_again_is_recognised(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for number in range(3):
        deliver(log, number, [number])
    deliver(log, 0, [100], run="other")

    again = [deliver(log, number, [number]) for number in (2, 1)]

    assert again == [None, None]
    assert numbers_in(log) == [0, 1, 2, 100]
    assert deliver(log, 3, [3]) is not None


@pytest.mark.parametrize("change", ["compact", "purge", "other", "nothing"])
def test_a_crash_anywhere_loses_nothing_and_doubles_nothing(tmp_path: Path, change: str) -> None:
    """Spark delivers the batch again; meanwhile the log may have been compacted or purged."""
    steps, is_done = 0, False
    while not is_done:
        log = a_log(tmp_path / f"{change}-{steps}")
        deliver(log, 0, [0])
        store = CutStore(log.store, steps)
        vars(log)["store"] = store
        try:
            deliver(log, 1, [1], [2])
            is_done = True
        except PowerCut:
            pass
        log = WindowLog(log.place)
        seen = numbers_in(log)
        assert seen in ([0], [0, 1, 2])

        meanwhile(log, change)
        deliver(log, 1, [1], [2])
        deliver(log, 2, [3])

        assert [n for n in numbers_in(log) if 0 < n < 100] == [1, 2, 3]
        assert log.store.names("_pending/") == []
        steps += 1

    assert steps >= 5


def meanwhile(log: WindowLog, change: str) -> None:
    if change == "compact":
        compact_all(log)
    if change == "purge":
        log.purge(log.view().ends())
    if change == "other":
        deliver(log, 7, [100], run="other")
        compact_all(log)
        log.purge({LANE: 1})


@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=10))
def test_queries_share_a_lane(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    """Property: whoever delivers, and whatever comes again, each batch is there once."""
    log, numbers = a_log(tmp_path_factory.mktemp("log")), {"a": -1, "b": -1}
    for run, is_again in steps:
        numbers[run] += not is_again
        if numbers[run] >= 0:
            deliver(log, numbers[run], [numbers[run] + 100 * (run == "b")], run=run)

    expected = [n + 100 * (run == "b") for run, end in numbers.items() for n in range(end + 1)]
    assert sorted(numbers_in(log)) == sorted(expected)
    assert not log.view().holes


def test_writes_by_hand_are_recognised_by_their_number(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for run, number in (
        (transaction_run("roll-up"), 5),
        (transaction_run("roll-up"), 5),
        (transaction_run("other"), 5),
        (single_run(), None),
        (single_run(), None),
    ):
        part = write_part(log, options_of(log), run, [a_batch(1)])
        show(log, options_of(log), SourceDelivery(run=run, number=number, parts=[part]))

    assert numbers_in(log) == [1, 1, 1, 1]


def test_what_is_large_waits_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "_INLINE_BYTES", 100)
    log = a_log(tmp_path)
    options, run = options_of(log), query_run("q")

    small = write_part(log, options, run, [a_batch(1)])
    large = write_part(log, options, run, [a_batch(*range(50)), a_batch(*range(50, 90))])
    waiting = log.store.names("_pending/")
    show(log, options, SourceDelivery(run=run, number=0, parts=[small, large]))

    assert (small.name, small.rows, large.rows, large.data) == ("", 1, 90, b"")
    assert waiting == [large.name]
    assert numbers_in(log) == [1, *range(90)]
    assert log.store.names("_pending/") == []


def test_a_task_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "_INLINE_BYTES", 0)
    log = a_log(tmp_path)
    options, run = options_of(log), query_run("q")

    def failing() -> Any:
        yield a_batch(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_part(log, options, run, failing())
    failed = log.store.names("_pending/")
    drop_parts(log, [write_part(log, options, run, [a_batch(1)]), Part(0)])
    given_up = log.store.names("_pending/")
    write_part(log, options, run, [a_batch(1)])  # Its process was killed.
    write_part(log, options, query_run("other"), [a_batch(1)])
    deliver(log, 0, [5])

    assert failed == given_up == []
    assert len(log.store.names("_pending/")) == 1
    assert numbers_in(log) == [5]


@pytest.mark.parametrize("body", ["parquet", "arrow"])
def test_bodies(tmp_path: Path, body: str) -> None:
    log = a_log(tmp_path)

    segment = deliver(log, 0, [1], body=body)

    assert segment is not None
    assert segment.name.endswith(f".{body}")
    assert numbers_in(log) == [1]


def test_windows_and_watermarks_are_noted(tmp_path: Path) -> None:
    """Readers in Spark pass over files by the windows; gearpy's go on by the watermark."""
    schema = pa.schema([("window_start", TIME), ("window_end", TIME)])
    log = a_log(tmp_path, schema)
    options = options_of(log, watermark="window_end", out_of_order_ms=100)
    columns = pa.record_batch([[0, 5_000_000], [5_000_000, 10_000_000]], names=schema.names)
    part = write_part(log, options, "sparkquery-q", [columns.cast(schema)])

    segment = show(log, options, SourceDelivery(run="sparkquery-q", number=4, parts=[part]))

    assert segment is not None
    (batch,) = log.info(segment).batches
    assert (batch.starts, batch.ends, batch.windows, batch.epoch) == (0, 10_000, 2, 4)
    assert batch.watermark == 10_000 - 100 - 1


@pytest.mark.parametrize(
    ("column", "mistake"), [("nope", "which is no column"), ("key", "column 'key'")]
)
def test_a_watermark_needs_a_column_of_times(tmp_path: Path, column: str, mistake: str) -> None:
    log = a_log(tmp_path)

    with pytest.raises(ConfigError, match=mistake):
        deliver(log, 0, [1], watermark=column)

    assert log.segments() == []


def test_columns_may_come_in_another_order(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    begin_log(log, pa.schema([("n", pa.int64()), ("key", pa.string())]))
    columns = a_batch(7).select(["n", "key"])
    part = write_part(log, options_of(log), "sparkonce-1", [columns])

    show(log, options_of(log), SourceDelivery(run="sparkonce-1", number=None, parts=[part]))

    assert numbers_in(log) == [7]


@pytest.mark.parametrize(
    ("schema", "mistake"),
    [
        ({"key": pa.string()}, "there is a column 'n', too"),
        ({"key": pa.string(), "n": pa.int32()}, "column 'n' is int64, not int32"),
        ({"key": pa.string(), "m": pa.int64()}, "there is no column 'm'"),
        ({"key": pa.string(), "n": pa.duration("s")}, "Spark reads no durations"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, schema: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        begin_log(a_log(tmp_path), pa.schema(schema))


def test_the_lane_of_an_application_is_not_written(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log", SCHEMA)
    build.put(LANE, key=["a"], n=[1])

    with pytest.raises(ConfigError, match="give Spark's writer another name, by option writer"):
        deliver(build.log, 0, [1])

    assert deliver(build.log, 0, [2], writer="mine") is not None


def test_a_batch_whose_file_is_gone_is_not_noted(tmp_path: Path) -> None:
    """Another writer of that name has removed it: the batch comes again, and is written then."""
    log, run = a_log(tmp_path), transaction_run("app")
    options = options_of(log)
    part = write_part(log, options, run, [a_batch(1)])
    move = log.store.move

    def lose(name: str, *, to: str) -> bool:
        if name.endswith(".whole"):
            log.store.remove(name)
        return move(name, to=to)

    log.store.move = lose  # type: ignore[method-assign]
    with pytest.raises(GearpyError, match="another writer has the same txnAppId"):
        show(log, options, SourceDelivery(run=run, number=7, parts=[part]))
    del log.store.move

    part = write_part(log, options, run, [a_batch(1)])
    assert show(log, options, SourceDelivery(run=run, number=7, parts=[part])) is not None
    assert numbers_in(log) == [1]


def test_leftovers_are_removed_while_no_other_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what another one of the same name is about to show would be one of them."""
    log, held = a_log(tmp_path), list[bool]()
    real, names = committing._alone, log.store.names  # noqa: SLF001
    listed = list[bool]()

    @contextmanager
    def alone(store: Any, lane: str) -> Iterator[None]:
        with real(store, lane):
            held.append(True)
            yield
            held.clear()

    def seen(folder: str = "") -> list[str]:
        if folder == PENDING:
            listed.append(bool(held))
        return list(names(folder))

    monkeypatch.setattr(committing, "_alone", alone)
    monkeypatch.setattr(log.store, "names", seen)

    assert deliver(log, 0, [1]) is not None
    assert listed == [True]
