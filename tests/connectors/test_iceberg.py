"""An Iceberg table, in a catalog of SQLite, has each record once, for readers of other programs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

import gearpy as gp
from gearpy.connectors.database.table_writer import EPOCH_COLUMN, TargetTable
from gearpy.connectors.iceberg.writer import IcebergWriter
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.testing import Simulation, check_sink

#: Whoever is killed closes nothing.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """The properties of an empty catalog."""
    database, data = tmp_path / "catalog.db", tmp_path / "data"
    return {"type": "sql", "uri": f"sqlite:///{database}", "warehouse": f"file://{data}"}


@pytest.fixture
def catalog(given: dict[str, str]) -> Iterator[Catalog]:
    with closing(load_catalog(**given)) as found:
        yield found


def run(records: Any, sink: gp.Sink[Any]) -> None:
    app = gp.StreamApp("iceberg")
    app.read(gp.collection(records)).write(sink)
    gp.run(app)


def rows(catalog: Catalog, table: str) -> list[dict[str, Any]]:
    try:
        found = catalog.load_table(table).scan().to_arrow().to_pylist()
    except NoSuchTableError:
        return []
    return [{k: v for k, v in row.items() if k != EPOCH_COLUMN} for row in found]


def test_the_contract_of_a_sink_holds(given: dict[str, str], catalog: Catalog) -> None:
    """Kills at any line, zombies, lost commits; going back takes rows back."""
    check_sink(
        lambda place: gp.iceberg_table(f"shop.{place}", catalog=given, schema={"n": int}),
        lambda place: rows(catalog, f"shop.{place}"),
        bad={"n": "one"},
        seeds=1,
    )


def test_a_task_that_was_given_up_commits_nothing_on_top_of_its_successor(
    given: dict[str, str], catalog: Catalog
) -> None:
    """Between the look at the ledger and the commit; PyIceberg itself would try again."""
    target = TargetTable(name="sales", creates=True)

    def a_writer(made: type[IcebergWriter]) -> IcebergWriter:
        return made("sales", "shop.sales", given, target, properties={}, task_index=0)

    class Overtaken(IcebergWriter):
        def put(self, rows: Sequence[pa.RecordBatch]) -> None:
            super().put(rows)
            later.recover({1: prepared}, epoch=1, run="r", incarnation=2)

    later, early = a_writer(IcebergWriter), a_writer(Overtaken)
    early.recover({}, epoch=0, run="r", incarnation=1)
    early.write_batch(gp.Batch([{"id": 1}], [0]))
    prepared = early.prepare(1)

    with pytest.raises(GearpyError, match="belongs to start 2 by now"):
        early.commit(1, prepared)
    assert rows(catalog, "shop.sales") == [{"id": 1}]
    for each in (early, later):
        each.close(completed=True)


@dataclass
class Sale:
    id: int
    label: str


ROW: Final = {
    "id": 2**40,
    "label": "\N{SNOWMAN}",
    "price": Decimal("12.50"),
    "made": datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC),
    "plain": datetime(2026, 3, 4, 5, 6, 7, 89),  # noqa: DTZ001 - one without a zone
    "flag": True,
    "raw": b"\x00\xff",
    "share": 0.1,
    "day": date(2026, 3, 4),
    "tags": ["a", "b"],
}


def test_values_come_as_they_are(given: dict[str, str], catalog: Catalog) -> None:
    """Twice: also into a table that is there by then; DuckDB reads them, too."""
    for _ in range(2):
        run([ROW, {"id": 1}], gp.iceberg_table("a.b.sales", catalog=given))

    found = sorted(rows(catalog, "a.b.sales"), key=lambda row: row["id"])
    assert found == [{**dict.fromkeys(ROW), "id": 1}] * 2 + [ROW] * 2
    table = catalog.load_table("a.b.sales").scan().to_duckdb("sales")
    with closing(table):
        assert table.sql("select sum(id) from sales").fetchall() == [(2**41 + 2,)]


def test_records_of_all_kinds_make_their_table(given: dict[str, str], catalog: Catalog) -> None:
    run([Sale(1, "a")], gp.iceberg_table("shop.sales", catalog=given))
    run([{"id": 2, "label": None}], gp.iceberg_table("shop.sales", catalog=given))
    assert [row["id"] for row in rows(catalog, "shop.sales")] == [2, 1]

    app = gp.StreamApp("windows")
    numbers = app.read(gp.collection(range(10), timestamp=lambda n: n * 1000))
    counts = numbers.key_by(lambda n: n % 2).window(gp.tumbling("5s")).count()
    counts.write(gp.iceberg_table("shop.counts", catalog=given, key="parity"))
    Simulation(app).run()
    made = rows(catalog, "shop.counts")
    assert sorted((row["parity"], row["value"]) for row in made) == [(0, 2), (0, 3), (1, 2), (1, 3)]


def test_tasks_that_write_at_a_time_wait_for_each_other(
    given: dict[str, str], catalog: Catalog
) -> None:
    app = gp.StreamApp("several")
    numbers = app.read(gp.collection([{"n": n} for n in range(40)], partitions=4), parallelism=4)
    numbers.write(gp.iceberg_table("shop.numbers", catalog=given))
    Simulation(app).run()
    assert sorted(row["n"] for row in rows(catalog, "shop.numbers")) == list(range(40))


MISTAKES: Final[dict[str, tuple[Callable[[dict[str, str]], gp.Sink[Any]], str]]] = {
    "name": (lambda given: gp.iceberg_table("sales", catalog=given), "write 'namespace.table'"),
    "no name": (
        lambda given: gp.iceberg_table(cast("Any", None), catalog=given),
        "write 'namespace.table'",
    ),
    "no catalog": (
        lambda _: gp.iceberg_table("shop.there", catalog=cast("Any", None)),
        "catalog is a NoneType, must be the name of one, or a dict",
    ),
    "column": (
        lambda given: gp.iceberg_table("shop.there", catalog=given, columns=["nr"]),
        "has no column 'nr': it has id",
    ),
    "type": (lambda given: gp.iceberg_table("shop.there", catalog=given), "id"),
    "field": (lambda given: gp.iceberg_table("shop.labels", catalog=given), "id"),
    "catalog": (
        lambda given: gp.iceberg_table("shop.there", catalog={**given, "type": "none"}),
        "none",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_error(
    given: dict[str, str], catalog: Catalog, mistake: str
) -> None:
    catalog.create_namespace("shop")
    catalog.create_table("shop.there", pa.schema([("id", pa.date32())]))
    catalog.create_table("shop.labels", pa.schema([("label", pa.string())]))
    make, text = MISTAKES[mistake]

    with pytest.raises((ConfigError, OperatorError, GearpyError), match=text):
        run([{"id": 1}], make(given))
