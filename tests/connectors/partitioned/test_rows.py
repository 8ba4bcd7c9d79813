"""Records become files of partitions; what does not fit is refused before anything is taken."""

from io import BytesIO
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.partitioned import files as partition_files
from gearpy.connectors.partitioned.files import BegunFile
from gearpy.connectors.partitioned.rows import PartitionRows
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from tests.connectors.table_build import table_options

SCHEMA = pa.schema([("n", pa.int64()), ("p", pa.string())])


class Files:
    def __init__(self) -> None:
        self.all: dict[str, BytesIO] = {}

    def begin(self, folder: str) -> BegunFile:
        name = f"{folder}#{len(self.all)}"
        file = self.all[name] = BytesIO()
        return BegunFile(name, file)


def rows_of(*numbers: int) -> Batch:
    return Batch([{"n": n, "p": f"p{n % 3}"} for n in numbers], [0] * len(numbers))


def a_table(**given: Any) -> tuple[PartitionRows, Files]:
    files = Files()
    return PartitionRows(table_options(**{"partition_by": "p"} | given), files.begin), files


def test_each_partition_has_a_file() -> None:
    rows, _ = a_table()

    rows.write(rows_of(0, 1, 3))
    rows.write(rows_of(6))
    first = rows.finish()
    rows.write(rows_of(2))
    second = rows.finish()

    assert [(each.folder, each.values, each.rows) for each in first] == [
        ("p=p0", ("p0",), 3),
        ("p=p1", ("p1",), 1),
    ]
    assert pq.read_table(first[0].file)["n"].to_pylist() == [0, 3, 6]
    assert [each.folder for each in second] == ["p=p2"]
    assert rows.finish() == []


def test_groups_are_written_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_files, "_GROUP_ROWS", 2)
    rows, files = a_table(schema=SCHEMA)

    rows.write(rows_of(0, 3, 1))
    begun = list(files.all)
    rows.write(rows_of(6))
    (one, two) = rows.finish()

    assert begun == ["p=p0#0"]
    assert (one.metadata.num_row_groups, two.metadata.num_row_groups) == (2, 1)
    assert pq.read_table(one.file).num_rows == 3
    rows.write(rows_of(0, 3))
    assert rows.drop() == ["p=p0#2"]
    assert rows.finish() == []


def test_many_partitions_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_files, "_WAITING_BYTES_MAX", 8 * 4)
    rows, files = a_table(schema=SCHEMA)

    rows.write(rows_of(0, 1, 2))
    before = len(files.all)
    rows.write(rows_of(3))

    assert (before, len(files.all)) == (0, 3)
    assert sum(each.rows for each in rows.finish()) == 4


def test_too_many_partitions_are_a_failure() -> None:
    rows, _ = a_table(partitions_max=2, schema=SCHEMA)
    rows.write(rows_of(0, 1))

    with pytest.raises(GearpyError, match="more than 2 partitions in one epoch, such as p=p2"):
        rows.write(rows_of(0, 2))

    assert [each.rows for each in rows.finish()] == [1, 1]
    rows.write(rows_of(2))


def test_a_record_that_makes_no_folder_is_named() -> None:
    rows, _ = a_table()
    bad = {"n": 2, "p": "x" * 300}

    with pytest.raises(OperatorError, match="more than 255 bytes") as caught:
        rows.write(Batch([{"n": 1, "p": "a"}, bad], [0, 0]))

    assert "xxx" in str(caught.value.record)
    assert rows.finish() == []


def test_a_record_that_does_not_fit_is_named() -> None:
    rows, _ = a_table(schema={"n": int, "p": str})

    for bad in ({"n": "x", "p": "a"}, {"n": 1, "p": "a", "more": 1}):
        with pytest.raises(OperatorError):
            rows.write(Batch([bad], [0]))

    rows.write(rows_of(1))
    assert [each.rows for each in rows.finish()] == [1]


def test_event_time_is_a_column_where_it_is_asked_for() -> None:
    by_time, _ = a_table(partition_by="hour(event_time)")
    time = pa.timestamp("us", "UTC")
    schema = pa.schema([("n", pa.int64()), ("p", pa.string()), ("event_time", time)])
    in_schema, _ = a_table(schema=schema)
    plain, _ = a_table()
    batch = Batch([{"n": 1, "p": "a"}], [7_200_000])

    by_time.write(batch)
    in_schema.write(batch)
    plain.write(batch)

    (file,) = by_time.finish()
    assert (file.folder, file.values) == ("event_time_hour=2", ("2",))
    assert pq.read_table(file.file).column_names == ["n", "p", "event_time"]
    (file,) = plain.finish()
    assert pq.read_table(file.file).column_names == ["n"]
    (file,) = in_schema.finish()
    assert pq.read_table(file.file).column_names == ["n", "event_time"]


def test_tables_go_in_as_they_are() -> None:
    rows, _ = a_table()
    table = Table(pa.RecordBatch.from_pydict({"n": [1, 2], "p": ["a", "b"]}))

    rows.write(Batch(table, Times.of([0, 0])))

    assert [each.folder for each in rows.finish()] == ["p=a", "p=b"]


def test_the_schema_stays_over_a_restart_unless_one_is_given() -> None:
    first, _ = a_table()
    first.write(rows_of(1))
    kept, _ = a_table()
    given, _ = a_table(schema={"n": float, "p": str})
    for each in (kept, given):
        each.restore(first.snapshot())

    kept.write(rows_of(2))
    given.write(rows_of(2))

    with pytest.raises(OperatorError, match="'n' is int64"):
        kept.write(Batch([{"n": "x", "p": "a"}], [0]))
    (file,) = given.finish()
    assert pq.read_table(file.file)["n"].type == pa.float64()
    kept.restore(None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"compression": "x"}, "compression is 'x', must be one of snappy"),
        ({"partitions_max": 0}, "partitions_max is 0"),
        ({"prefix": "_x"}, "prefix '_x' cannot begin"),
        ({"prefix": "a-b"}, "prefix 'a-b' cannot begin"),
        ({"schema": 5}, "schema is 5"),
        ({"schema": pa.schema([("n", pa.uint64())])}, "'n' is uint64"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table_options(**given)
