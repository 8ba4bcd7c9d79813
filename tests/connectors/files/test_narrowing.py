"""Columns and groups of rows that no step takes are not read; results and places stay the same."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.connectors.files.partitions import RowFiles
from gearpy.dsl.operators.operator import ReadOperator
from gearpy.dsl.plan.physical import physical
from gearpy.errors import ConfigError
from gearpy.testing import Simulation

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ROWS: Final[list[dict[str, Any]]] = [
    {
        "id": n,
        "half": None if 20 <= n < 30 else n / 2,
        "name": f"n{n:02}",
        "at": _START + timedelta(minutes=n),
        "where": {"x": n},
        "other": "x" * n,
    }
    for n in range(40)
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a file of four groups of ten rows."""
    pq.write_table(pa.Table.from_pylist(_ROWS), tmp_path / "rows.parquet", row_group_size=10)
    return str(tmp_path / "rows.parquet")


def read_of(app: gp.StreamApp) -> Any:
    """Return the source as it will be read."""
    (read,) = (step for step in physical(app.plan) if isinstance(step, ReadOperator))
    return read.source


_AT: Final = gp.lit(_START + timedelta(minutes=25))
_CONDITIONS: Final = [
    # A condition, and the groups that may have such rows.
    (gp.col("id") < 5, [0]),
    (gp.col("id") <= 10, [0, 1]),
    (gp.lit(30) < gp.col("id"), [3]),
    (gp.col("id") == 17, [1]),
    (gp.col("id").is_in([3, 33, 99]), [0, 3]),
    (gp.col("id").between(9, 10) & (gp.col("other") != ""), [0, 1]),
    (gp.col("half") >= 4.5, [0, 1, 2, 3]),  # Of nulls nothing is known.
    (gp.col("half") > 14.5, [2, 3]),
    (gp.col("name") == "n12", [1]),
    (gp.col("at") >= _AT, [2, 3]),
    (gp.col("where.x") == 3, [0, 1, 2, 3]),
    ((gp.col("id") < 3) | (gp.col("id") > 38), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("condition", "groups"), _CONDITIONS, ids=str)
def test_groups_without_such_rows_are_left_out(
    path: str, condition: gp.Expr, groups: list[int]
) -> None:
    """And with them only what would not pass."""
    found: list[dict[str, Any]] = []
    app = gp.StreamApp("some")
    app.read(gp.parquet(path)).filter(condition).select("id").write(gp.to_list(found))
    Simulation(app).run()

    source = read_of(app)
    reader = source.open(*source.partitions(), None)
    read: list[int] = []
    while (batch := reader.read_batch(5)) is not None:
        read += [row["id"] for row in batch.values]
        reader = source.open(*source.partitions(), reader.snapshot())  # A place stays the same.
    assert sorted({n // 10 for n in read}) == groups
    assert [row["id"] for row in found] == [row["id"] for row in _ROWS if condition(row)]


def test_columns_that_are_taken_are_read_alone(path: str) -> None:
    """What they are for does not count; all are read where a step may take any."""
    pairs = [
        (lambda rows: rows.select("id"), ["id"]),
        (lambda rows: rows.filter(gp.col("id") > 3).select("name"), ["id", "name"]),
        (lambda rows: rows.with_columns(y=gp.col("where.x")).select("id", "y"), ["id", "where"]),
        (lambda rows: rows.filter(gp.col("id") > 3), None),
        (lambda rows: rows.filter(lambda row: row["id"] > 3).select("name"), None),
        (lambda rows: rows.window(gp.global_window()).aggregate(n=gp.agg.count()), ["id"]),
        (
            lambda rows: (
                rows.key_by("name").window(gp.global_window()).aggregate(n=gp.agg.sum("id"))
            ),
            ["id", "name"],
        ),
        (lambda rows: rows.key_by("name").top_n(2, "half", when="changed"), None),
        (lambda rows: rows.window(gp.global_window()).top_n(2, "half"), None),
        (lambda rows: rows.key_by("name").aggregate(last=gp.agg.last()), None),
    ]
    for build, names in pairs:
        app = gp.StreamApp("some")
        build(app.read(gp.parquet(path))).write(gp.to_list([]))  # type: ignore[no-untyped-call]
        source = read_of(app)
        assert source.schema.arrow.names == (names or [*_ROWS[0]])
        assert ("alone" in source.note) == (names is not None)


def test_readers_share_what_they_take(path: str) -> None:
    """Of several readers the columns of all are read, and all groups."""
    app = gp.StreamApp("two")
    rows = app.read(gp.parquet(path, time="at"))
    rows.filter(gp.col("id") > 35).select("id").write(gp.to_list([]))
    rows.filter(gp.col("name") < "n02").select("half").write(gp.to_list([]))
    source = read_of(app)

    assert source.schema.arrow.names == ["id", "half", "name"]
    assert "leaves out" not in source.note
    Simulation(app).run()  # Nobody misses a column.


@pytest.mark.parametrize("options", [{"time": "at"}, {"on_bad": "skip"}])
def test_what_says_more_than_its_rows_is_read(path: str, options: Any) -> None:
    """Event times of rows that do not pass count; so do bad rows."""
    source = gp.parquet(path, **options)
    assert isinstance(source, RowFiles)
    narrowed = source.narrowed(["id"], [gp.col("id") < 5])

    assert "leaves out" not in narrowed.note
    assert (narrowed is source) == ("on_bad" in options)
    (partition,) = narrowed.partitions()
    batch = narrowed.open(partition, None).read_batch(100)
    assert batch is not None
    if "time" in options:
        assert [*batch.timestamps] == [row["at"].timestamp() * 1000 for row in _ROWS[:10]]


def test_a_new_file_with_more_columns_is_refused(path: str) -> None:
    """As it is where all columns are read."""
    source = gp.parquet(str(Path(path).parent), follow=True, settle="0s").narrowed(["id"], [])
    more = pa.Table.from_pylist([{**_ROWS[0], "more": 1}])
    pq.write_table(more, Path(path).parent / "more.parquet")

    with pytest.raises(ConfigError, match=r"more\.parquet has a column 'more'"):
        [source.open(partition, None).read_batch(1000) for partition in source.partitions()]
