"""Types of columns that the program tells: of records, and of aggregates over fields with types.

The first epoch has no value in any column; what comes later fits, and files are alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

import gearpy as gp
from gearpy.testing import Simulation
from gearpy.windowlog.log import WindowLog

UTC_US: Final = pa.timestamp("us", "UTC")
MONEY: Final = pa.decimal128(12, 3)
SCHEMA: Final = pa.schema(
    {
        "at": pa.int64(),
        "i": pa.int64(),
        "f": pa.float64(),
        "d": MONEY,
        "t": UTC_US,
        "s": pa.string(),
    }
)
EMPTY: Final = {"i": None, "f": None, "d": None, "t": None, "s": None}
FULL: Final = {
    "i": 2**53 + 1,
    "f": 1.5,
    "d": Decimal("123456789.125"),
    "t": datetime(2024, 1, 1, tzinfo=UTC),
    "s": "a",
}
ROWS: Final[list[dict[str, Any]]] = [{"at": 0, **EMPTY}, {"at": 5000, **FULL}]
AGGREGATES: Final[dict[str, tuple[gp.Aggregate, pa.DataType, Any]]] = {
    "n": (gp.agg.count(), pa.int64(), 1),
    "total": (gp.agg.sum("i"), pa.int64(), 2**53 + 1),
    "fractions": (gp.agg.sum("f"), pa.float64(), 1.5),
    "money": (gp.agg.sum("d"), pa.decimal128(38, 3), FULL["d"]),
    "mean": (gp.agg.mean("f"), pa.float64(), 1.5),
    "spread": (gp.agg.variance("f", ddof=0), pa.float64(), 0.0),
    "least": (gp.agg.min("t"), UTC_US, FULL["t"]),
    "most": (gp.agg.max("d"), MONEY, FULL["d"]),
    "first": (gp.agg.first("s"), pa.string(), "a"),
    "all": (gp.agg.collect("i"), pa.list_(pa.int64()), [2**53 + 1]),
    "top": (gp.agg.top(2, "d"), pa.list_(MONEY), [FULL["d"]]),
    "different": (gp.agg.distinct("s"), pa.int64(), 1),
    "any": (gp.agg.any("i"), pa.bool_(), True),
    "median": (gp.agg.median("f"), pa.float64(), 1.5),
    "tail": (gp.agg.quantile([0.5, 0.9], "f"), pa.list_(pa.float64()), [1.5, 1.5]),
    "mode": (gp.agg.mode("s"), pa.string(), "a"),
    "best": (gp.agg.arg_max("s", by="i"), pa.string(), "a"),
    "decayed": (gp.agg.ewma("f", half_life="5s"), pa.float64(), 1.5),
    "about": (gp.agg.approx_distinct("s"), pa.int64(), 1),
    "frequent": (
        gp.agg.heavy_hitters(2, "s"),
        pa.list_(pa.struct({"value": pa.string(), "count": pa.int64()})),
        [{"value": "a", "count": 1}],
    ),
    "where": (gp.agg.count(where="i"), pa.int64(), 1),
}
SINKS: Final[dict[str, Callable[[Path], gp.Sink[Any]]]] = {
    "parquet": gp.parquet_folder,
    "delta": gp.delta_table,
    "window log": gp.window_log_folder,
}


def tables(name: str, place: Path) -> list[pa.Table]:
    if name == "delta":
        return [DeltaTable(str(place)).to_pyarrow_table()]
    if name == "window log":
        log = WindowLog(str(place))
        return [log.read_between({}, log.view().ends())]
    return [pq.read_table(file) for file in sorted(place.glob("*.parquet"))]


@pytest.mark.parametrize("name", SINKS)
@pytest.mark.parametrize("is_columnar", [True, False])
def test_aggregates_have_the_types_of_their_fields(
    tmp_path: Path, name: str, *, is_columnar: bool
) -> None:
    for row in ROWS:
        app = gp.StreamApp("told")
        rows = app.read(gp.rows([row], schema=SCHEMA, time="at"))
        if not is_columnar:
            rows = rows.filter(lambda _: True)
        results = rows.window(gp.tumbling("1s")).aggregate(
            **{each: aggregate for each, (aggregate, _, _) in AGGREGATES.items()}
        )
        results.write(SINKS[name](tmp_path / "out"))
        Simulation(app).run()

    found = tables(name, tmp_path / "out")
    for table in found:
        for each, (_, kind, _) in AGGREGATES.items():
            have = table.schema.field(each).type
            assert have == kind or (pa.types.is_list(kind) and have.value_type == kind.value_type)
    written = [row for table in found for row in table.to_pylist()]
    _, last = sorted(written, key=lambda row: row["window_start"])
    assert {each: last[each] for each in AGGREGATES} == {
        each: right for each, (_, _, right) in AGGREGATES.items()
    }


@dataclass(frozen=True)
class Price:
    name: str | None
    price: float | None
    count: int | None


def priced(row: dict[str, Any]) -> Price:
    return Price(row["s"], row["f"], row["i"])


def wrongly_priced(row: dict[str, Any]) -> Price:
    return Price(row["at"], str(row["at"]), row["i"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SINKS)
def test_records_have_the_types_of_their_stream(tmp_path: Path, name: str) -> None:
    for row in ROWS:
        app = gp.StreamApp("told")
        rows = app.read(gp.rows([row], schema=SCHEMA, time="at")).filter(lambda _: True)
        rows.write(SINKS[name](tmp_path / "rows"))
        rows.map(priced).write(SINKS[name](tmp_path / "prices"))
        rows.map(wrongly_priced).write(SINKS[name](tmp_path / "wrong"))
        Simulation(app).run()

    for table in tables(name, tmp_path / "rows"):
        assert [table.schema.field(each.name).type for each in SCHEMA] == SCHEMA.types
    kinds = {"name": pa.string(), "price": pa.float64(), "count": pa.int64()}
    for table in tables(name, tmp_path / "prices"):
        assert {each: table.schema.field(each).type for each in kinds} == kinds
    for table in tables(name, tmp_path / "wrong"):
        assert table.schema.field("name").type == pa.int64()
        assert table.schema.field("price").type == pa.string()
