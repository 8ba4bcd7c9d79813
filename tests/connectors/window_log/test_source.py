"""A window log as a source: each row once, in the order of its lane, and what can be promised."""

from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.connectors.files.column_times import time_form
from gearpy.connectors.window_log.source import (
    WindowLogReader,
    WindowLogSource,
    part_of_lane,
    window_log,
)
from gearpy.errors import ConfigError, GearpyError, WindowLogGap
from gearpy.ids import MIN_MS
from gearpy.messages.table import Table
from gearpy.task.api.interfaces import SourceReader
from gearpy.task.api.snapshots import decode_state, encode_state
from gearpy.testing import Simulation
from gearpy.windowlog.log import WindowLog
from tests.connectors.log_build import TIME, WINDOW_MS, LogBuilder

LANES = ("windows-00000", "windows-00001")
S = 1_000_000


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def opened(path: Path, resume: Any = None, **options: Any) -> WindowLogReader:
    """Return a reader of all lanes; it looks as often as it is asked."""
    defaults: dict[str, Any] = {
        "time": None,
        "form": time_form("window_log", "ms", None),
        "bound_ms": 0,
        "schema": None,
        "rows": True,
        "parts": 1,
        "follow": False,
        "poll_ms": 0,
        "idle_ms": 1000,
        "now_ms": Clock(),
    }
    source = WindowLogSource(WindowLog(path), **{**defaults, **options})
    reader = source.open("00000", resume)
    assert isinstance(reader, WindowLogReader)
    return reader


def rows_of(reader: SourceReader, reads: int = 1000, size: int = 1000) -> list[tuple[str, int]]:
    """Return what some reads give: key and batch of each row."""
    found = []
    for _ in range(reads):
        if reader.finished:
            break
        batch = reader.read_batch(size)
        if batch is None:
            break
        found += [(row["key"], row["value"]) for row in batch.values]
    return found


def everything(batches: dict[str, int], rows: int = 2) -> list[tuple[str, int]]:
    return sorted(
        (f"{lane}/{place}", seq)
        for lane, end in batches.items()
        for seq in range(1, end + 1)
        for place in range(rows)
    )


def test_every_row_of_every_lane_comes_once(tmp_path: Path) -> None:
    """Lane after lane would let event time run ahead, so they take turns."""
    build = LogBuilder(tmp_path / "log")
    for _ in range(3):
        build.put(LANES[0])
        build.put(LANES[1], body="arrow")

    reader = opened(tmp_path / "log")
    found = rows_of(reader)

    assert sorted(found) == everything({LANES[0]: 3, LANES[1]: 3})
    assert [seq for _, seq in found] == sorted(seq for _, seq in found)
    assert reader.finished
    assert reader.progress == (6, 6)


def test_tables_are_given_as_they_are(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put(rows=3)

    source = window_log(tmp_path / "log", partitions=1)
    batch = source.open("00000", None).read_batch(2)

    assert source.schema is not None
    assert source.schema.arrow == build.log.schema.arrow
    assert batch is not None
    assert type(batch.values) is Table
    assert batch.values.batch.schema == build.log.schema.arrow
    assert list(batch.timestamps) == [2 * WINDOW_MS - 1] * 2
    assert source.bounded
    assert source.replayable


def test_a_schema_selects_columns_and_types(tmp_path: Path) -> None:
    LogBuilder(tmp_path / "log").put(rows=1)

    source = window_log(
        tmp_path / "log", partitions=1, schema={"value": float, "window_end": pa.timestamp("ms")}
    )
    batch = source.open("00000", None).read_batch(9)

    assert batch is not None
    assert [dict(row)["value"] for row in batch.values] == [1.0]


@settings(max_examples=20)
@given(
    puts=st.lists(st.tuples(st.sampled_from(LANES), st.integers(0, 4)), min_size=1, max_size=12),
    before=st.lists(st.integers(1, 5), max_size=8),
    size=st.integers(1, 5),
    cut=st.tuples(st.integers(1, 6), st.integers(2, 6)),
)
def test_it_goes_on_exactly_where_a_snapshot_was_taken(
    tmp_path_factory: pytest.TempPathFactory,
    puts: list[tuple[str, int]],
    before: list[int],
    size: int,
    cut: tuple[int, int],
) -> None:
    """Property: same rows, times and watermarks, from bytes, and over a compaction in between."""
    path = tmp_path_factory.mktemp("log") / "log"
    build = LogBuilder(path)
    ends: dict[str, int] = {}
    for lane, rows in puts:
        ends[lane] = build.put(lane, rows)
    reader = opened(path)
    found = [row for step in before for row in rows_of(reader, 1, step)]
    state = decode_state(encode_state("log", reader.snapshot()))
    expected = steps_of(reader, size)

    for lane, end in ends.items():
        if cut[0] < min(cut[1], end):
            build.compact(lane, cut[0], min(cut[1], end))
    build.put(LANES[0], 1)  # Comes behind the end.
    again = opened(path, state)
    after = steps_of(again, size)

    assert after == expected
    total = {
        (f"{lane}/{place}", at)
        for lane in ends
        for at, rows in enumerate([rows for to, rows in puts if to == lane], 1)
        for place in range(rows)
    }
    seen = [*found, *((key, seq) for rows, _ in after for key, seq, _ in rows)]
    assert sorted(seen) == sorted(total)
    assert again.finished


def steps_of(reader: SourceReader, size: int) -> list[tuple[list[tuple[str, int, int]], int]]:
    found = []
    while not reader.finished:
        batch = reader.read_batch(size)
        rows = [] if batch is None else list(batch.messages())
        listed = [(each.value["key"], each.value["value"], each.timestamp) for each in rows]
        if listed:
            found.append((listed, reader.watermark_ms))
    return found


def test_the_watermark_moves_at_the_end_of_a_batch(tmp_path: Path) -> None:
    """Rows of a batch are in no order; behind it nothing older comes."""
    build = LogBuilder(tmp_path / "log")
    build.put(rows=2)
    reader = opened(tmp_path / "log", bound_ms=5)

    reader.read_batch(1)
    halfway = reader.watermark_ms
    reader.read_batch(1)

    assert halfway == MIN_MS
    assert reader.watermark_ms == 2 * WINDOW_MS - 1 - 5


def test_a_watermark_that_the_writer_has_noted_is_taken(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put(rows=1, watermark=123_456)
    reader = opened(tmp_path / "log")

    reader.read_batch(9)

    assert reader.watermark_ms == 123_456


def test_early_results_promise_nothing(tmp_path: Path) -> None:
    """Their window has not closed: others that end before it are to come."""
    schema = pa.schema([("window_end", TIME), ("timing", pa.string())])
    build = LogBuilder(tmp_path / "log", schema)
    build.put(window_end=[9 * S, 5 * S], timing=["early", "on-time"])
    build.put(window_end=[99 * S], timing=["early"])
    reader = opened(tmp_path / "log")

    reader.read_batch(9)
    first_ms = reader.watermark_ms
    reader.read_batch(9)

    assert first_ms == 5 * 1000 - 1
    assert reader.watermark_ms == first_ms


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"event_time": [3 * S, 4 * S]}, {}, [3000, 4000]),
        ({"event_time": [3 * S], "window_end": [9 * S]}, {}, [3000]),
        ({"event_time": [3 * S], "window_end": [9 * S]}, {"time": "window_end"}, [9000]),
        ({"event_time": [None, 4 * S, None]}, {}, [0, 4000, 0]),
    ],
)
def test_event_times_are_those_of_a_column(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], expected: list[int]
) -> None:
    """That which is named, or is called so; a row without one has that of the batch before."""
    schema = pa.schema([(name, TIME) for name in columns])
    LogBuilder(tmp_path / "log", schema).put(**columns)

    batch = opened(tmp_path / "log", **options).read_batch(9)

    assert batch is not None
    assert list(batch.timestamps) == expected


def test_following_finds_batches_and_lanes_as_they_come(tmp_path: Path) -> None:
    """Idle when all lanes have been silent for a while; then it goes on."""
    build, clock = LogBuilder(tmp_path / "log"), Clock()
    build.put(LANES[0])
    reader = opened(tmp_path / "log", follow=True, now_ms=clock, idle_ms=1000)

    first = rows_of(reader)
    waits = reader.idle
    clock.now_ms = 1000
    reader.read_batch(1)
    silent = reader.idle
    build.put(LANES[1])
    build.put(LANES[0])
    second = rows_of(reader)

    assert (waits, silent) == (False, True)
    assert sorted(first + second) == everything({LANES[0]: 2, LANES[1]: 1})
    assert not reader.finished


def test_it_looks_no_more_often_than_it_was_told(tmp_path: Path) -> None:
    build, clock = LogBuilder(tmp_path / "log"), Clock()
    reader = opened(tmp_path / "log", follow=True, now_ms=clock, poll_ms=100)
    reader.read_batch(1)
    build.put()

    too_soon = reader.read_batch(9)
    clock.now_ms = 100

    assert too_soon is None
    assert reader.read_batch(9) is not None


def test_what_was_purged_before_it_was_read_is_a_gap(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put()
    reader = opened(tmp_path / "log", follow=True)
    reader.read_batch(9)
    build.log.purge({LANES[0]: 3})

    with pytest.raises(WindowLogGap, match="no batch 2 any more, the next one kept is 4"):
        rows_of(opened(tmp_path / "log", reader.snapshot(), follow=True))


def test_another_log_in_its_place_is_refused(tmp_path: Path) -> None:
    """Its first rows would be missing."""
    build = LogBuilder(tmp_path / "log")
    build.put()
    build.put()
    reader = opened(tmp_path / "log", follow=True)
    rows_of(reader)
    LogBuilder(tmp_path / "other").put()

    with pytest.raises(GearpyError, match="read up to batch 2, and has 1 now: it is another log"):
        rows_of(opened(tmp_path / "other", reader.snapshot(), follow=True))


def test_lanes_of_a_writer_are_spread_evenly() -> None:
    """The same in every process; a partition stays what it is when lanes come."""
    parts = [part_of_lane(f"windows-{task:05d}", 4) for task in range(8)]

    assert sorted(parts) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert window_log("x", schema={"event_time": int}).partitions() == [
        "00000",
        "00001",
        "00002",
        "00003",
    ]


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"partitions": 0}, "partitions is 0, must be 1 or more"),
        ({"time_unit": "min"}, "time_unit is 'min'"),
        ({"out_of_order": "-1s"}, "negative"),
        ({"time": "nope"}, "time='nope' is no column"),
        ({"schema": {"value": int}}, "no column tells event times: give time=, one of value"),
    ],
)
def test_wrong_use_is_refused_when_it_is_built(
    tmp_path: Path, options: dict[str, Any], mistake: str
) -> None:
    LogBuilder(tmp_path / "log")

    with pytest.raises(ConfigError, match=mistake):
        window_log(tmp_path / "log", **options).partitions()


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no window log yet"):
        window_log(tmp_path / "none").partitions()

    reader = window_log(tmp_path / "none", schema={"event_time": int}, partitions=1, follow=True)
    assert reader.open("00000", None).read_batch(1) is None


def test_an_application_reads_it(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for lane in LANES * 3:
        build.put(lane)
    found: list[Any] = []

    app = gp.StreamApp("read")
    app.read(window_log(tmp_path / "log")).write(gp.to_list(found))
    Simulation(app).run()

    assert sorted((row["key"], row["value"]) for row in found) == everything(
        dict.fromkeys(LANES, 3)
    )


def test_event_times_may_be_those_of_a_record_in_a_column(tmp_path: Path) -> None:
    app, found = gp.StreamApp("make"), list[Any]()
    app.read(gp.rows([{"meta": {"ts": 5}}, {"meta": {"ts": 7}}])).write(
        gp.window_log_folder(tmp_path / "log")
    )
    Simulation(app).run()
    app = gp.StreamApp("read")

    log = window_log(tmp_path / "log", time="meta.ts", partitions=1)
    app.read(log).write(gp.to_list(found, messages=True))
    Simulation(app).run()

    assert sorted(each.timestamp for each in found) == [5, 7]
