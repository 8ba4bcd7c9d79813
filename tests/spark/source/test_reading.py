"""What Spark's processes do with a log, called as Spark calls them, without a JVM."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructType

from gearpy.errors import ConfigError, GearpyError, WindowLogGap
from gearpy.spark.source.format import DefaultSource
from gearpy.spark.source.options import read_options
from gearpy.spark.source.reading import FilteringLogReader, SourceLogReader, arrow_schema_of
from gearpy.spark.source.stream import LogStreamReader, LogStreamWriter
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import ReaderReport
from tests.connectors.log_build import WINDOW_MS, LogBuilder

LANES = ("windows-00000", "windows-00001")
EVERYTHING = ReadAllAvailable()


def schema_of(build: LogBuilder) -> StructType:
    return DefaultSource({"path": build.log.place}).schema()


def a_stream(build: LogBuilder, **options: str) -> LogStreamReader:
    source = DefaultSource({"path": build.log.place, **options})
    return source.streamReader(source.schema())


def a_reader(build: LogBuilder, **options: str) -> SourceLogReader:
    source = DefaultSource({"path": build.log.place, **options})
    return source.reader(source.schema())


def rows_of(
    reader: DataSourceReader | DataSourceStreamReader, partitions: Sequence[InputPartition]
) -> list[tuple[str, int]]:
    """Return what the tasks read: key and batch of each row. All of it goes to other processes."""
    serializer: Any = CPickleSerializer()
    found: list[tuple[str, int]] = []
    for partition in partitions:
        there, share = serializer.loads(serializer.dumps((reader, partition)))
        for batch in there.read(share):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema == arrow_schema_of(schema_of_reader(there))
            found += zip(
                batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
            )
    return found


def schema_of_reader(reader: Any) -> StructType:
    found: StructType = reader._schema  # noqa: SLF001
    return found


def test_the_schema_is_that_of_the_log(tmp_path: Path) -> None:
    """Exactly as Spark takes it; without a log there is none."""
    build = LogBuilder(tmp_path / "log")

    assert arrow_schema_of(schema_of(build)) == build.log.schema.arrow
    with pytest.raises(ConfigError, match=r"there is no window log at .* yet: start what writes"):
        DefaultSource({"path": str(tmp_path / "none")}).schema()


def test_reading_once_gives_every_row(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for lane in LANES:
        build.put(lane, 3)
        build.put(lane, 2, body="arrow")

    reader = a_reader(build, numPartitions="3")
    shares = reader.partitions()

    assert len(shares) == 2
    assert len(set(rows_of(reader, shares))) == len(rows_of(reader, shares)) == 10
    assert repr(shares[0]) == "Share(2 files)"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2, 3, 4]),
        ({"startingPosition": '{"windows-00000": 2}'}, [3, 4]),
        ({"endingPosition": '{"windows-00000": 2}'}, [1, 2]),
        ({"startingPosition": "latest"}, []),
        ({"windowsSince": str(3 * WINDOW_MS)}, [3, 4]),
        ({"windowsSince": str(9 * WINDOW_MS)}, []),
    ],
)
def test_parts_of_a_log(tmp_path: Path, options: dict[str, str], expected: list[int]) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put(rows=1)

    reader = a_reader(build, **options)

    assert [value for _, value in rows_of(reader, reader.partitions())] == expected


def test_files_without_windows_that_are_asked_for_are_not_opened(tmp_path: Path) -> None:
    """Spark asks for filters only where it was told to; it still looks at each row."""
    build = LogBuilder(tmp_path / "log")
    for _ in range(5):
        build.put(rows=1)
    reader = FilteringLogReader(read_options({"path": build.log.place}), schema_of(build))
    at = [datetime.fromtimestamp(seq * WINDOW_MS / 1000, UTC) for seq in range(6)]
    filters = [
        GreaterThanOrEqual(("window_start",), at[3]),
        LessThan(("window_end",), at[5].replace(tzinfo=None)),
        EqualTo(("key",), "x"),
        EqualTo(("value", "deep"), at[1]),
    ]

    left = list(reader.pushFilters(filters))

    assert left == filters
    # Ends are only known to the millisecond, so the file before is kept.
    assert [value for _, value in rows_of(reader, reader.partitions())] == [2, 3, 4, 5]


def test_filters_are_taken_only_where_spark_asks(tmp_path: Path) -> None:
    assert type(a_reader(LogBuilder(tmp_path / "log"))) is SourceLogReader


def test_files_that_a_compaction_has_taken_are_read_all_the_same(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put(rows=2)
    reader = a_reader(build)
    shares = reader.partitions()

    compact_all(build.log)

    assert len(rows_of(reader, shares)) == 8


def test_other_columns_than_those_of_the_log(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put(rows=1)
    some = StructType().add("value", StringType()).add("key", StringType())

    reader = SourceLogReader(read_options({"path": build.log.place}), some)

    (batch,) = reader.read(reader.partitions()[0])
    assert batch.to_pylist() == [{"value": "1", "key": "windows-00000/0"}]
    wrong = StructType().add("nope", LongType())
    with pytest.raises(ConfigError, match="no column 'nope': there are window_start"):
        list(
            SourceLogReader(read_options({"path": build.log.place}), wrong).read(
                reader.partitions()[0]
            )
        )


def test_windows_since_needs_windows(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log", pa.schema([("key", pa.string())]))
    build.put(key=["a"])
    reader = a_reader(build, windowsSince="5")

    with pytest.raises(ConfigError, match="windowsSince: the window log has no column"):
        list(reader.read(reader.partitions()[0]))


def test_spark_s_own_partition_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(a_reader(LogBuilder(tmp_path / "log")), [InputPartition(None)]) == []


@settings(max_examples=15)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "put", "put", "trigger", "compact", "restart", "redo"]),
            st.sampled_from(LANES),
            st.integers(1, 4),
        ),
        max_size=25,
    ),
    limit=st.sampled_from(
        [{}, {"maxRowsPerTrigger": "3"}, {"maxBatchesPerTrigger": "2"}, {"purge": "true"}]
    ),
)
def test_a_stream_gives_each_row_in_one_batch_of_its_own(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, int]],
    limit: dict[str, str],
) -> None:
    """Property: also over compactions, restarts, and batches that are done again."""
    query = Query(LogBuilder(tmp_path_factory.mktemp("log") / "log"), limit)
    for what, lane, rows in steps:
        query.step(what, lane, rows)
    while query.trigger():
        pass

    found = [row for batch in query.batches for row in batch]
    assert sorted(found) == sorted(query.written)
    assert query.start == query.stream.reportLatestOffset()
    sizes = [len({(key.split("/")[0], seq) for key, seq in each}) for each in query.batches]
    if limit == {"maxBatchesPerTrigger": "2"}:
        assert all(size <= 2 for size in sizes)
    if limit == {"maxRowsPerTrigger": "3"}:
        assert all(
            len(each) <= 3 or size == 1 for each, size in zip(query.batches, sizes, strict=True)
        )


class Query:
    """Does with a stream's reader what Spark does, in its order, and what may happen meanwhile."""

    def __init__(self, build: LogBuilder, options: dict[str, str]) -> None:
        self.build = build
        self.options = options
        self.stream = a_stream(build, **options)
        self.start = self.before = self.stream.initialOffset()
        self.written: list[tuple[str, int]] = []
        self.batches: list[list[tuple[str, int]]] = []

    def step(self, what: str, lane: str, rows: int) -> None:
        if what == "put":
            seq = self.build.put(lane, rows)
            self.written += [(f"{lane}/{place}", seq) for place in range(rows)]
        elif what == "compact":
            compact_all(self.build.log)
        elif what == "restart":
            self.stream = a_stream(self.build, **self.options)
        elif what == "redo" and self.batches:
            shares = self.stream.partitions(self.before, self.start)
            assert sorted(rows_of(self.stream, shares)) == sorted(self.batches[-1])
        elif what == "trigger":
            self.trigger()

    def trigger(self) -> bool:
        """Make the next batch; False if there is none."""
        limit = self.stream.getDefaultReadLimit()
        end = self.stream.latestOffset(json.loads(json.dumps(self.start)), limit)
        if json.dumps(end) == json.dumps(self.start):
            return False
        self.stream.commit(self.start)
        shares = self.stream.partitions(self.start, end)
        self.batches.append(rows_of(self.stream, shares))
        self.before, self.start = self.start, end
        return True


def limit_of(stream: LogStreamReader) -> Any:
    return stream.getDefaultReadLimit()


def test_limits_are_those_that_spark_knows(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(5):
        build.put(rows=2)
    both = a_stream(build, maxRowsPerTrigger="8", maxBatchesPerTrigger="3")

    assert a_stream(build).getDefaultReadLimit() == EVERYTHING
    assert both.getDefaultReadLimit() == ReadMaxRows(8)
    assert a_stream(build, maxBatchesPerTrigger="3").getDefaultReadLimit() == ReadMaxFiles(3)
    assert both.latestOffset({}, ReadMaxRows(8)) == {LANES[0]: 3}
    assert both.latestOffset({}, ReadMaxRows(4)) == {LANES[0]: 2}
    assert both.latestOffset({}, EVERYTHING) == {LANES[0]: 5}


def test_available_now_reads_what_was_there_when_it_began(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(3):
        build.put()
    stream = a_stream(build, maxBatchesPerTrigger="2")
    stream.prepareForTriggerAvailableNow()
    build.put()
    build.put(LANES[1])

    first = stream.latestOffset({}, limit_of(stream))
    second = stream.latestOffset(first, limit_of(stream))

    assert (first, second) == ({LANES[0]: 2}, {LANES[0]: 3})
    assert stream.latestOffset(second, limit_of(stream)) == second


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({}, {LANES[0]: 1}),
        ({"startingPosition": "latest"}, {LANES[0]: 3}),
        ({"startingPosition": '{"windows-00000": 2}'}, {LANES[0]: 2}),
    ],
)
def test_a_new_query_begins_where_it_was_told(
    tmp_path: Path, option: dict[str, str], expected: dict[str, int]
) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(3):
        build.put()
    build.log.purge({LANES[0]: 1})

    assert a_stream(build, **option).initialOffset() == expected


def test_what_is_gone_is_an_error_or_passed_over(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put(rows=1)
    build.log.purge({LANES[0]: 2})

    with pytest.raises(WindowLogGap, match="no batch 1 any more"):
        a_stream(build).partitions({}, {LANES[0]: 4})
    lossy = a_stream(build, failOnDataLoss="false")
    assert [value for _, value in rows_of(lossy, lossy.partitions({}, {LANES[0]: 4}))] == [3, 4]


def test_another_log_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put()

    with pytest.raises(GearpyError, match="another log than the one that was read before"):
        a_stream(build).latestOffset({LANES[0]: 7}, EVERYTHING)
    lossy = a_stream(build, failOnDataLoss="false")
    assert lossy.latestOffset({LANES[0]: 7}, EVERYTHING) == {LANES[0]: 7}


def test_how_far_it_has_come_is_told(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put(rows=3)
    build.put(rows=4)
    stream = a_stream(build, reader="roll-up")

    stream.latestOffset({LANES[0]: 1}, EVERYTHING)

    (report,) = build.log.readers()
    assert (report.name, dict(report.lanes)) == ("roll-up", {LANES[0]: 1})
    assert report.more["rows_behind"] == 4


def test_a_query_goes_on_where_nothing_can_be_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build = LogBuilder(tmp_path / "log")
    build.put()
    (tmp_path / "log" / "_readers").rmdir()
    (tmp_path / "log" / "_readers").write_text("")

    assert a_stream(build).latestOffset({}, EVERYTHING) == {LANES[0]: 1}
    assert "cannot tell how far it was read" in caplog.text


def test_nothing_is_removed_that_another_reader_needs(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    for _ in range(4):
        build.put()
    slow = ReaderReport(name="slow", lanes={LANES[0]: 2}, at_ms=1)
    noted = ReaderReport(name="noted", lanes={}, at_ms=1, more={"query": "x"})
    for report in (slow, noted):
        build.log.report(report)

    a_stream(build).commit({LANES[0]: 3})
    kept = build.log.view().begins()
    a_stream(build, purge="true").commit({LANES[0]: 3})

    assert kept == {LANES[0]: 1}
    assert build.log.view().begins() == {LANES[0]: 3}


def test_a_batch_of_no_known_query_is_not_written(tmp_path: Path) -> None:
    build = LogBuilder(tmp_path / "log")
    source = DefaultSource({"path": build.log.place})

    writer = source.streamWriter(schema_of(build), overwrite=False)

    assert isinstance(writer, LogStreamWriter)
    with pytest.raises(GearpyError, match="does not tell which query writes"):
        writer.write(iter(()))


def test_writing_only_appends(tmp_path: Path) -> None:
    source = DefaultSource({"path": str(tmp_path / "log")})

    for make in (source.writer, source.streamWriter):
        with pytest.raises(ConfigError, match='use mode\\("append"\\)'):
            make(StructType(), overwrite=True)
