"""What sinks do with odd values: all keep a value as it is, or refuse it; none changes it."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyarrow import feather

import gearpy as gp
from gearpy.columns.row_schema import RowSchema
from gearpy.errors import OperatorError
from gearpy.testing import FlowDriver, ManualSource, Simulation

US: Final = pa.timestamp("us")
UTC_US: Final = pa.timestamp("us", "UTC")
NAIVE: Final = datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - that is the test
AWARE: Final = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
EAST: Final = AWARE.astimezone(timezone(timedelta(hours=2)))

#: A value, the column, and whether it is kept. What is refused is refused by every sink.
ODD: Final[list[tuple[Any, pa.DataType, bool]]] = [
    (AWARE, US, False),
    (NAIVE, UTC_US, False),
    (1_700_000_000_000, UTC_US, False),
    (1_700_000_000_000, US, False),
    (1.7e9, UTC_US, False),
    (date(2026, 1, 2), US, False),
    (NAIVE, pa.date32(), False),
    (b"text", pa.string(), False),
    ("bytes", pa.binary(), False),
    (5, pa.string(), False),
    ("5", pa.int64(), False),
    (True, pa.int64(), False),
    (True, pa.float64(), False),
    (1, pa.bool_(), False),
    (1.5, pa.int64(), False),
    (Decimal("1.5"), pa.float64(), False),
    (2**63, pa.int64(), False),
    (2**53 + 1, pa.float64(), False),
    (1e300, pa.float32(), False),
    (1.5, pa.decimal128(5, 2), False),
    (Decimal("1.255"), pa.decimal128(5, 2), False),
    ((1, 2), pa.list_(pa.int64()), False),
    ({1, 2}, pa.list_(pa.int64()), False),
    ("ab", pa.list_(pa.string()), False),
    ((1,), pa.struct({"x": pa.int64()}), False),
    ({"y": 1}, pa.struct({"x": pa.int64()}), False),
    ([1.5], pa.list_(pa.int64()), False),
    (AWARE, UTC_US, True),
    (EAST, UTC_US, True),
    (NAIVE, US, True),
    (date(2026, 1, 2), pa.date32(), True),
    (2.0, pa.int64(), True),
    (3, pa.float64(), True),
    (Decimal("1.5"), pa.decimal128(5, 2), True),
    ("text", pa.string(), True),
    (b"bytes", pa.binary(), True),
    ([1, 2], pa.list_(pa.int64()), True),
    ({"x": 1}, pa.struct({"x": pa.int64()}), True),
]
#: No cell of CSV holds them.
NOT_IN_CSV: Final = ("list", "struct", "binary")

SINKS: Final[dict[str, Callable[[Path, pa.Schema], gp.Sink]]] = {
    "parquet": lambda path, schema: gp.parquet_folder(path, schema=schema),
    "arrow": lambda path, schema: gp.arrow_folder(path, schema=schema),
    "csv": lambda path, schema: gp.csv_folder(path, schema=schema),
    "window log": lambda path, schema: gp.window_log_folder(path, schema=schema),
    "hive": lambda path, schema: gp.hive_folder(path, schema=schema, partition_by=["day"]),
    "delta": lambda path, schema: gp.delta_table(path, schema=schema),
}


def written(app: gp.StreamApp, feed: Callable[[FlowDriver], object]) -> str:
    """Run what a sink does with what it gets; return why it has refused it, if so."""
    flow = FlowDriver(app)
    try:
        feed(flow)
    except OperatorError as error:
        return error.cause
    finally:
        with suppress(OperatorError):
            flow.stop()
    return ""


def refusal_of_row(sink: str, path: Path, value: Any, kind: pa.DataType) -> str:
    """Return why a sink refuses a value for a column of a type; empty if it does not."""
    app, source = gp.StreamApp("odd"), ManualSource("rows")
    app.read(source).write(SINKS[sink](path, schema_of(kind)))
    return written(app, lambda flow: flow.send(source, {"v": value, "day": "mon"}))


def schema_of(kind: pa.DataType) -> pa.Schema:
    return pa.schema({"v": kind, "day": pa.string()})


@pytest.mark.parametrize("sink", SINKS)
def test_every_sink_keeps_or_refuses_the_same_values(sink: str, tmp_path: Path) -> None:
    """Whatever Arrow would make of them."""
    wrong = []
    for at, (value, kind, is_kept) in enumerate(ODD):
        if sink == "csv" and str(kind).startswith(NOT_IN_CSV):
            continue
        refusal = refusal_of_row(sink, tmp_path / str(at), value, kind)
        if is_kept is bool(refusal):
            wrong.append((value, str(kind), refusal))

    assert not wrong


def test_columns_of_a_stream_keep_or_refuse_the_same_values() -> None:
    """Rows that become columns on their way, for `map_batches`."""
    wrong = []
    for value, kind, is_kept in ODD:
        try:
            kept = RowSchema(pa.schema({"v": kind})).table([{"v": value}])["v"].to_pylist() == [
                value
            ]
        except OperatorError:
            kept = False
        if kept != is_kept:
            wrong.append((value, str(kind)))

    assert not wrong


@pytest.mark.parametrize("sink", ["parquet", "arrow", "window log", "hive", "delta"])
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1_700_000_000_000]), UTC_US),
        (pa.array([NAIVE]), UTC_US),
        (pa.array([AWARE]), US),
        (pa.array(["5"]), pa.int64()),
        (pa.array([5]), pa.string()),
        (pa.array([True]), pa.int64()),
        (pa.array([1.5]), pa.int64()),
    ],
)
def test_columns_that_come_as_columns_are_refused_like_rows(
    sink: str, column: pa.Array, kind: pa.DataType, tmp_path: Path
) -> None:
    """Arrow would cast most of them without a word."""
    app, source = gp.StreamApp("odd"), ManualSource("rows")
    batch = pa.record_batch({"v": column, "day": ["mon"]})
    columns = app.read(source).map_batches(lambda _: batch)
    columns.write(SINKS[sink](tmp_path / "out", schema_of(kind)))

    assert "'v'" in written(app, lambda flow: flow.send(source, {"day": "mon"}))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_numbers_in_a_file_are_no_times_either(form: str, tmp_path: Path) -> None:
    table = pa.table({"v": [1_700_000_000_000]})
    path = tmp_path / f"times.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)
    read = {"parquet": gp.parquet, "arrow": gp.arrow}[form]
    app = gp.StreamApp("odd")
    app.read(read(path, schema={"v": datetime})).write(gp.to_list([]))

    with pytest.raises(gp.GearpyError, match=r"'v' of .* is int64, .* nobody knows its unit"):
        Simulation(app).run()
