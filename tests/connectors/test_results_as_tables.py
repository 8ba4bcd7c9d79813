"""Sinks take results of windows as tables, and write what they write of rows."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import load_catalog

import gearpy as gp
from gearpy.columns.results import results_schema
from gearpy.columns.row_schema import row_schema_of
from gearpy.connectors.files.writers import json_lines
from gearpy.connectors.kafka.writing.outgoing import RecordForm, TopicFacts
from gearpy.connectors.kafka.writing.values import RecordValues
from gearpy.dsl.operators.groups import MergeAggregateOperator
from gearpy.dsl.plan.physical import physical
from gearpy.messages.table import Table
from gearpy.task.api.window_result import rows_in
from gearpy.task.stages.plan import physical_plan
from gearpy.testing import Simulation

SCHEMA: Final = {"shop": str, "kind": int, "price": int, "share": float, "at": int}
SALES: Final = [
    {
        "shop": f'shop "{n % 3}"',
        "kind": n % 2,
        "price": n * 7 % 20,
        "share": n / 4 if n % 5 else 2**-24,  # Their sums are exact, in any order.
        "at": n * 400,
    }
    for n in range(60)
]


def _jsonl(path: Path) -> list[Any]:
    return [file.read_text() for file in sorted(path.glob("*.jsonl"))]


def _sqlite(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path / "sales.db")) as database:
        found = database.execute("select * from sales").fetchall()
    return [row[:-1] for row in found]  # The last column is that of epochs.


def _catalog(path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{path}/c.db", "warehouse": f"file://{path}"}


def _iceberg(path: Path) -> list[Any]:
    table = load_catalog(**_catalog(path)).load_table("shop.sales").scan().to_arrow()
    rows: list[Any] = table.drop_columns(["gearpy_epoch"]).to_pylist()
    return rows


SINKS: Final[dict[str, tuple[Callable[[Path], gp.Sink], Callable[[Path], list[Any]]]]] = {
    "jsonl_folder": (gp.jsonl_folder, _jsonl),
    "parquet_folder": (
        gp.parquet_folder,
        lambda path: pa_dataset.dataset(path).to_table().to_pylist(),
    ),
    "csv_folder": (
        gp.csv_folder,
        lambda path: pa_dataset.dataset(path, format="csv").to_table().to_pylist(),
    ),
    "jsonl_file": (lambda path: gp.jsonl_file(path / "sales.jsonl"), _jsonl),
    "sql_sink": (
        lambda path: gp.sql_sink(f"sqlite:///{path}/sales.db", "sales", create=True),
        _sqlite,
    ),
    "delta_table": (gp.delta_table, lambda path: DeltaTable(path).to_pyarrow_table().to_pylist()),
    "hive_folder": (
        lambda path: gp.hive_folder(path, partition_by="most"),
        lambda path: pa_dataset.dataset(path, partitioning="hive").to_table().to_pylist(),
    ),
    "iceberg_table": (
        lambda path: gp.iceberg_table("shop.sales", catalog=_catalog(path)),
        _iceberg,
    ),
}


def written(sink: gp.Sink, key: list[str], *, as_tables: bool) -> None:
    app = gp.StreamApp("sales")
    sales = app.read(gp.rows(SALES, schema=SCHEMA, time="at"))
    windows = (sales.key_by(*key) if key else sales).window(gp.tumbling("10s"))
    totals = windows.aggregate(
        n=gp.agg.count(), total=gp.agg.sum("price"), most=gp.agg.max("price"),
        part=gp.agg.mean("share"), some=gp.agg.any("kind"),
    )  # fmt: skip
    assert sink.columnar
    assert sink.takes_results
    sink.takes_results = as_tables
    totals.write(sink)
    (merge,) = (step for step in physical(app.plan) if isinstance(step, MergeAggregateOperator))
    assert merge.gives == ("table" if as_tables else "rows")
    Simulation(app).run()


def read_of_both(
    folder: Path, write: Callable[[Path, bool], None], read: Callable[[Path], list[Any]]
) -> list[list[str]]:
    """Return what is read of a sink that was given tables, and of one that was given rows."""
    found = []
    for as_tables in (True, False):
        path = folder / str(as_tables)
        path.mkdir()
        write(path, as_tables)
        found.append(sorted(map(repr, read(path))))
    return found


@pytest.mark.parametrize(
    ("name", "key"),
    [*((name, ["shop", "kind"]) for name in SINKS), ("jsonl_file", ["shop"]), ("jsonl_file", [])],
)
def test_a_sink_writes_the_same_of_tables_and_rows(
    tmp_path: Path, name: str, key: list[str]
) -> None:
    make, read = SINKS[name]

    def write(path: Path, as_tables: bool) -> None:  # noqa: FBT001 - the form
        written(make(path), key, as_tables=as_tables)

    of_tables, of_rows = read_of_both(tmp_path, write, read)
    assert of_tables == of_rows != []


def pairs_written(sink: gp.Sink, key: list[str], *, as_tables: bool) -> set[type]:
    """Write pairs of a join; return what the sink got them in."""
    app = gp.StreamApp("pairs")
    left, right = (
        app.read(gp.rows(rows, schema=SCHEMA, time="at"), name=name).key_by(*key)
        for name, rows in (("left", SALES), ("right", SALES[::7]))
    )
    sink.takes_results = as_tables
    left.join(right, gp.tumbling("5s"), how="left").write(sink)
    got, plan = got_by(sink), physical_plan(app.build())
    steps = [step for each in plan.processors for step in each.steps]
    (written,) = (step for step in steps if step.kind == "write")
    Simulation(app).run()
    assert (written.takes, written.gives) == (("columns",) * 2 if as_tables else ("rows",) * 2)
    return got


def got_by(sink: gp.Sink) -> set[type]:
    """Return the kinds of what the writers of a sink will get."""
    got, open_one = set[type](), sink.open

    def opened(task_index: int, parallelism: int) -> Any:
        writer = open_one(task_index, parallelism)
        write = writer.write_batch

        def spied(batch: Any) -> None:
            got.add(type(batch.values))
            write(batch)

        object.__setattr__(writer, "write_batch", spied)
        return writer

    object.__setattr__(sink, "open", opened)
    return got


@pytest.mark.parametrize(
    ("name", "key"), [*((name, ["shop", "kind"]) for name in SINKS), ("jsonl_file", ["shop"])]
)
def test_a_sink_writes_the_same_of_pairs_in_tables_and_rows(
    tmp_path: Path, name: str, key: list[str]
) -> None:
    make, read = SINKS[name]

    def write(path: Path, as_tables: bool) -> None:  # noqa: FBT001 - the form
        sink = gp.hive_folder(path, partition_by="key_2") if name == "hive_folder" else make(path)
        assert pairs_written(sink, key, as_tables=as_tables) == {Table if as_tables else list}

    of_tables, of_rows = read_of_both(tmp_path, write, read)
    assert of_tables == of_rows != []


def test_gathered_pairs_are_a_table_of_the_same_columns() -> None:
    found = []
    for as_tables in (True, False):
        sink = gp.to_table()
        pairs_written(sink, ["shop"], as_tables=as_tables)
        assert SALES[0] in [each.left for each in sink.records]
        assert {type(each) for each in sink.records} == {gp.JoinResult}
        order = [(name, "ascending") for name in ("left_at", "right_at")]
        found.append(sink.to_arrow().sort_by(order))
    assert found[0].equals(found[1])


def test_pairs_of_a_part_of_a_stream_are_pairs() -> None:
    app, some = gp.StreamApp("pairs"), gp.to_table()
    sales = app.read(gp.rows(SALES, schema=SCHEMA, time="at")).key_by("shop", "kind")
    dear, _ = sales.join(sales, gp.tumbling("1s")).split(gp.col("left.price") > 10)
    dear.write(some)
    Simulation(app).run()

    assert {type(each) for each in some.records} == {gp.JoinResult}
    assert {"window_start", "key_2", "left_price"} < {*some.to_arrow().schema.names}


def test_gathered_results_are_a_table_of_the_same_columns() -> None:
    found = []
    for as_tables in (True, False):
        sink = gp.to_table()
        written(sink, ["shop"], as_tables=as_tables)
        assert {type(each) for each in sink.records} == {gp.WindowResult}
        found.append(sink.to_arrow().sort_by([("window_start", "ascending"), ("key", "ascending")]))
    assert found[0].equals(found[1])


# -- JSON -----------------------------------------------------------------------------------------

CELLS: Final[dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]] = {
    "number": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.uint8(), st.integers(0, 255)),
    "fraction": (pa.float64(), st.floats()),
    "amount": (pa.float64(), st.decimals(-(10**17), 10**17, places=4).map(float)),
    "half": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "is": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text()),
    "day": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "local": (pa.timestamp("us"), st.datetimes()),
    "clock": (pa.timestamp("ms"), st.datetimes().map(lambda at: at.replace(microsecond=0))),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 9))),
    "bytes": (pa.binary(), st.binary(min_size=1)),
}


AROUND: Final = {
    "firing": 1, "timing": "late", "retracts": False, "local_start": "0", "local_end": "1"
}  # fmt: skip
FACTS: Final = TopicFacts(partitions=4, record_bytes_max=1_000, ahead_ms_max=500)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Return a table of records, or of results of windows."""
    rows = draw(st.integers(1, 4))

    def column(kind: pa.DataType, cells: st.SearchStrategy[Any]) -> pa.Array:
        return pa.array(draw(st.lists(st.none() | cells, min_size=rows, max_size=rows)), kind)

    names = draw(st.lists(st.sampled_from([*CELLS]), unique=True, min_size=1, max_size=4))
    arrays = {name: column(*CELLS[name]) for name in names}
    if draw(st.booleans()):
        return Table(pa.record_batch(arrays))
    keys = [column(*CELLS["text"]) for _ in range(draw(st.integers(0, 2)))]
    schema = results_schema(
        [key.type for key in keys],
        {name: array.type for name, array in arrays.items()},
        is_local=draw(st.booleans()),
        is_single=len(arrays) == 1 and draw(st.booleans()),
    )
    assert schema is not None
    times = st.integers(-5000, 5000).map(lambda at: datetime.fromtimestamp(at, UTC))
    columns = []
    for field in schema:
        if field.name.startswith("key"):
            columns.append(keys.pop(0))
        elif field.name in arrays:
            columns.append(arrays[field.name])
        elif field.name.startswith("window_"):
            columns.append(column(field.type, times))
        else:
            columns.append(pa.array([AROUND[field.name]] * rows, field.type))
    return Table(pa.RecordBatch.from_arrays(columns, schema=schema))


@given(table=tables())
def test_lines_of_json_are_those_of_the_rows(table: Table) -> None:
    found = []
    for values in (table, list(rows_in(table))):
        try:
            found.append(json_lines("sink", values))
        except gp.OperatorError as error:
            found.append(str(error).encode())
    assert found[0] == found[1]


class Sale(NamedTuple):
    shop: str
    price: int


SALE_TABLE: Final = Table(pa.record_batch({"shop": ["a", None], "price": [1, 2]}))
RESULT_TABLE: Final = Table(
    pa.RecordBatch.from_arrays(
        [
            *(pa.array([at, None], pa.timestamp("us", "UTC")) for at in (0, 10_000_000)),
            pa.array(["a", "b"]), pa.array([1, 2]), pa.array([0, 0], pa.int32()),
            pa.array(["on-time"] * 2), pa.array([False] * 2),
        ],
        schema=results_schema(
            [pa.string()], {"n": pa.int64()}, is_local=False, is_single=False
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize("table", [SALE_TABLE, RESULT_TABLE], ids=["records", "results"])
@pytest.mark.parametrize("value", ["json", "msgpack", lambda row: repr(row).encode()])
@pytest.mark.parametrize("key", [None, "shop", "key", "end", lambda row: row[0]])
@pytest.mark.parametrize("headers", [None, lambda row: {"of": type(row).__name__}])
def test_records_of_a_topic_are_those_of_the_rows(
    table: Table, value: Any, key: Any, headers: Any
) -> None:
    """Functions get the class of the rows, also where the sink takes columns."""
    schema = row_schema_of(Sale)
    found = []
    for values in (table, list(rows_in(table, schema))):
        form = RecordForm(
            operator="sink", topic="t", values=RecordValues("sink", value).begun(), key=key,
            headers=headers, schema=schema,
        )  # fmt: skip
        try:
            addressed = form.addressed(values)
            outgoing = form.outgoing(addressed, [1, 2], lambda _: FACTS, 0)
            found.append([*map(str, outgoing.sends())])
        except gp.OperatorError as error:
            found.append([error.cause, error.record])
    assert found[0] == found[1]
