"""Delta tables: what is in them, who may write to them, and what others do meanwhile."""

# Ships no type information.
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake

from gearpy.connectors.delta.table import delta_table
from gearpy.connectors.delta.writer import DeltaWriter, PreparedRows
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.data import Batch
from gearpy.task.api.window_result import WindowResult
from tests.connectors.table_build import a_batch

#: Of no zone.
MORNING = datetime.fromisoformat("2026-01-02T03:00:00")
NAMES = ["de", "a/b", "x=1%", "é ~", None, "", "..", "01"]


def opened(
    path: Path,
    *,
    epoch: int = 0,
    incarnation: int = 1,
    run: str = "r",
    prepared: dict[int, PreparedRows | None] | None = None,
    task: int = 0,
    **given: Any,
) -> DeltaWriter:
    writer = delta_table(path, **given).open(task, 2)
    assert isinstance(writer, DeltaWriter)
    writer.recover(prepared or {}, epoch=epoch, run=run, incarnation=incarnation)
    return writer


def write(writer: DeltaWriter, epoch: int, *numbers: int) -> PreparedRows | None:
    writer.write_batch(a_batch(list(numbers)))
    return writer.prepare(epoch)


def numbers(path: Path) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["n"].to_pylist())


def test_readers_see_an_epoch_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "t"
    writer = opened(path, partition_by="p")

    prepared = write(writer, 1, 0, 1, 2, 3)
    before = numbers(path)
    writer.commit(1, prepared)
    version = DeltaTable(path).version()
    writer.commit(1, prepared)
    writer.commit(2, write(writer, 2))
    writer.close(completed=True)

    table = DeltaTable(path)
    assert (before, numbers(path)) == ([], [0, 1, 2, 3])
    assert table.version() == version
    assert len(table.file_uris()) == 3
    assert table.metadata().partition_columns == ["p"]


def test_values_come_back_whatever_is_in_them(tmp_path: Path) -> None:
    path = tmp_path / "t"
    writer = opened(path, partition_by="name")
    records = [{"n": n, "name": name} for n, name in enumerate(NAMES)]

    writer.write_batch(Batch(records, [0] * len(records)))
    writer.commit(1, writer.prepare(1))

    rows = sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=lambda row: int(row["n"]))
    assert [row["name"] for row in rows] == [name or None for name in NAMES]
    assert all(Path(uri).is_file() for uri in DeltaTable(path).file_uris())


def test_every_type_of_spark_goes_in(tmp_path: Path) -> None:
    path = tmp_path / "t"
    types = {
        "b": pa.bool_(),
        "i8": pa.int8(),
        "i16": pa.int16(),
        "i32": pa.int32(),
        "u32": pa.uint32(),
        "f32": pa.float32(),
        "f64": pa.float64(),
        "text": pa.string(),
        "raw": pa.binary(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "clock": pa.timestamp("us"),
        "price": pa.decimal128(10, 2),
        "items": pa.list_(pa.int64()),
        "pair": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        "counts": pa.map_(pa.string(), pa.int64()),
    }
    record: dict[str, Any] = {
        "b": True, "i8": 1, "i16": 1, "i32": 1, "u32": 2**32 - 1, "f32": 0.5, "f64": 0.1,
        "text": "é", "raw": b"\0", "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, tzinfo=UTC),
        "clock": MORNING, "price": None, "items": [1, 2],
        "pair": {"x": 1, "y": ["a"]}, "counts": {"a": 1},
    }  # fmt: skip
    nothing = dict.fromkeys(record)

    for incarnation in (1, 2):
        writer = opened(
            path, schema=pa.schema(types), incarnation=incarnation, epoch=incarnation - 1
        )
        writer.write_batch(Batch([record, nothing], [0, 0]))
        writer.commit(incarnation, writer.prepare(incarnation))

    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert rows == [record | {"counts": [("a", 1)]}, nothing] * 2


def test_windows_are_partitioned_by_their_date(tmp_path: Path) -> None:
    """A derived column is one of the table; readers pass over what they need not read."""
    path, hour = tmp_path / "t", 3_600_000
    writer = opened(path, partition_by={"day": "date(window_start)"}, key="user")
    results = [WindowResult(f"u{n}", n, n * hour, (n + 1) * hour) for n in range(48)]

    writer.write_batch(Batch(results, [0] * 48))
    writer.commit(1, writer.prepare(1))

    table = DeltaTable(path)
    least = pa.table(table.get_add_actions(flatten=True))["min.window_start"].to_pylist()
    assert sorted(least) == [datetime(1970, 1, day, tzinfo=UTC) for day in (1, 2)]
    late = pc.field("window_start") >= datetime(1970, 1, 2, 23, tzinfo=UTC)
    assert table.to_pyarrow_dataset().to_table(filter=late)["user"].to_pylist() == ["u47"]
    day = pc.field("day") == date(1970, 1, 2)
    assert table.to_pyarrow_dataset().to_table(filter=day).num_rows == 24


def test_going_back_removes_what_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t"
    for given in ({"run": "other"}, {"task": 1}, {"prefix": "mine"}):
        other = opened(path, **cast("Any", given))
        other.commit(7, write(other, 7, 100))
    first = opened(path)
    for epoch in (1, 2, 3):
        first.commit(epoch, write(first, epoch, epoch))

    second = opened(path, epoch=1, incarnation=2)
    after = numbers(path)
    second.commit(2, write(second, 2, 2))

    assert after == [1, 100, 100, 100]
    assert numbers(path) == [1, 2, 100, 100, 100]
    assert "back to epoch 1, so 2 files are removed" in caplog.text


def test_who_was_given_up_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = opened(path)
    first.commit(1, write(first, 1, 1))
    prepared = write(first, 2, 2)
    second = opened(path, epoch=1, incarnation=2)
    second.commit(2, write(second, 2, 2))

    with pytest.raises(GearpyError, match=r"what task 0 writes to table .* belongs to start 2"):
        first.commit(2, prepared)
    with pytest.raises(GearpyError, match="which was given up"):
        opened(path, epoch=1, incarnation=1)

    assert numbers(path) == [1, 2]


def test_files_that_were_merged_cannot_be_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It fails rather than to show rows twice, unless that is wanted."""
    path = tmp_path / "t"
    first = opened(path)
    for epoch in (1, 2):
        first.commit(epoch, write(first, epoch, epoch))
    DeltaTable(path).optimize.compact()

    with pytest.raises(GearpyError, match=r"files of epochs \[2\] of task 0 were merged"):
        opened(path, epoch=1, incarnation=2)
    opened(path, epoch=2, incarnation=2)
    second = opened(path, epoch=1, incarnation=3, keep_rewritten=True)
    second.commit(2, write(second, 2, 2))

    assert numbers(path) == [1, 2, 2]
    assert "their rows may be there twice" in caplog.text


def test_files_that_wait_too_long_may_be_gone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = opened(path)
    prepared = write(first, 1, 1)
    assert prepared is not None
    (path / prepared["files"][0]["path"]).unlink()

    with pytest.raises(GearpyError, match="is gone: was the table vacuumed"):
        opened(path, epoch=1, incarnation=2, prepared={1: prepared})
    (path / prepared["files"][0]["path"]).write_bytes(b"x")
    with pytest.raises(GearpyError, match=r"has 1 bytes, \d+ were written"):
        opened(path, epoch=1, incarnation=3, prepared={1: prepared})


def test_a_table_that_is_gone_is_a_failure(tmp_path: Path) -> None:
    first = opened(tmp_path / "t")
    prepared = write(first, 1, 1)

    with pytest.raises(GearpyError, match="is gone, or is not the same on all machines"):
        opened(tmp_path / "u", epoch=1, incarnation=2, prepared={1: prepared})


def test_what_is_not_prepared_is_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gearpy.connectors.partitioned.files._GROUP_ROWS", 1)
    writer = opened(tmp_path / "t")
    write(writer, 1, 1)
    writer.write_batch(a_batch([2]))
    before = len(list((tmp_path / "t").glob("*.parquet")))

    writer.close(completed=False)

    assert (before, len(list((tmp_path / "t").glob("*.parquet")))) == (2, 1)


# -- columns -------------------------------------------------------------------------------------


def test_columns_are_added_where_that_is_wanted(tmp_path: Path) -> None:
    """Old rows have nothing there; without it the table is refused."""
    path = tmp_path / "t"
    first = opened(path)
    first.commit(1, write(first, 1, 1))
    more = Batch([{"n": 2, "p": "a", "more": 1.5}], [0])

    second = opened(path, epoch=1, incarnation=2)
    second.write_batch(more)
    with pytest.raises(ConfigError, match="has no column 'more', only n, p: set add_columns=True"):
        second.prepare(2)
    third = opened(path, epoch=1, incarnation=3, add_columns=True)
    third.write_batch(more)
    third.commit(2, third.prepare(2))

    rows = DeltaTable(path).to_pyarrow_table().sort_by("n").to_pylist()
    assert rows == [{"n": 1, "p": "p1", "more": None}, {"n": 2, "p": "a", "more": 1.5}]


def test_a_table_may_have_more_columns(tmp_path: Path) -> None:
    """They are null then; those that are there have the types of the records."""
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"x": [1], "p": ["a"], "n": pa.array([5], pa.int64())}))

    writer = opened(path)
    writer.commit(1, write(writer, 1, 1))

    assert numbers(path) == [1, 5]
    other = opened(path, task=1)
    other.write_batch(Batch([{"n": "a"}], [0]))
    with pytest.raises(ConfigError, match=r"column 'n' of table .* is int64, that of the records"):
        other.prepare(1)


def test_partitions_are_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"n": [1], "p": ["a"]}), partition_by="p")

    with pytest.raises(ConfigError, match=r"is partitioned by \['p'\], partition_by gives \[\]"):
        write(opened(path), 1, 1)


def _constrained(path: Path) -> None:
    write_deltalake(path, pa.table({"n": [1]}))
    DeltaTable(path).alter.add_constraint({"positive": "n > 0"})


def _not_null(path: Path) -> None:
    DeltaTable.create(path, pa.schema([pa.field("n", pa.int64(), nullable=False)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_constrained, "has delta.constraints.positive=n > 0, which gearpy cannot write"),
        (_not_null, "column 'n' of table .* must not be null"),
    ],
)
def test_a_table_that_needs_more_than_rows_is_refused(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    """Its files are written without `deltalake`, which would see to it."""
    make(tmp_path / "t")

    with pytest.raises(ConfigError, match=message):
        opened(tmp_path / "t")


# -- the sink ------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist: make it first"):
        delta_table(tmp_path / "no" / "t").open(0, 1)
    (tmp_path / "t").write_text("")
    with pytest.raises(GearpyError):
        opened(tmp_path / "t")


def test_a_log_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{")

    with pytest.raises(GearpyError, match="delta_table: cannot read table"):
        opened(tmp_path / "t")


def test_deltalake_is_an_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)

    with pytest.raises(ConfigError, match=re.escape(pip_install("delta"))):
        delta_table(tmp_path / "t")


def test_properties_are_those_of_a_new_table(tmp_path: Path) -> None:
    writer = opened(tmp_path / "t", properties={"delta.logRetentionDuration": "interval 7 days"})

    write(writer, 1, 1)

    found = DeltaTable(tmp_path / "t").metadata().configuration
    assert found == {"delta.logRetentionDuration": "interval 7 days"}
