"""Times that are finer than a microsecond, out of files and tables: cut, and said in the plan."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.feather  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.connectors.files.datasets import arrow, parquet
from gearpy.testing import Simulation

NS = [1_714_564_800_123_456_789, 1_714_564_800_000_000_000, -1]
MOMENTS = [
    datetime(2024, 5, 1, 12, 0, 0, 123_456),  # noqa: DTZ001 - without a zone
    datetime(2024, 5, 1, 12, 0),  # noqa: DTZ001 - without a zone
    datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - without a zone
]
TABLE = pa.table(
    {
        "plain": pa.array(NS, pa.timestamp("ns")),
        "zone": pa.array(NS, pa.timestamp("ns", "UTC")),
        "span": pa.array([1999, -1, None], pa.duration("ns")),
        "day": pa.array([1999, 0, None], pa.time64("ns")),
        "list": pa.array([[NS[0]], [], None], pa.list_(pa.timestamp("ns"))),
    }
)
ROWS = [
    {"plain": at, "zone": at.replace(tzinfo=UTC), "span": span, "day": day, "list": listed}
    for at, span, day, listed in zip(
        MOMENTS,
        [timedelta(microseconds=1), timedelta(microseconds=-1), None],
        [time(0, 0, 0, 1), time(0), None],
        [[MOMENTS[0]], [], None],
        strict=True,
    )
]


def _read(source: gp.Source[Any], step: Callable[[Any], Any] = lambda stream: stream) -> list[Any]:
    app, results = gp.StreamApp("nanos"), list[Any]()
    step(app.read(source)).write(gp.to_list(results))
    Simulation(app).run()
    return results


def _sources(folder: Path) -> list[gp.Source[Any]]:
    pq.write_table(TABLE, folder / "t.parquet")
    pa.feather.write_feather(TABLE, str(folder / "t.arrow"))
    return [parquet(folder / "t.parquet"), arrow(folder / "t.arrow"), gp.rows(TABLE)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_rows_and_columns_have_microseconds(tmp_path: Path, place: int) -> None:
    """Alike, so that a step by columns has the keys that one by rows has."""
    source = _sources(tmp_path)[place]
    assert _read(source) == ROWS
    assert _read(source, lambda rows: rows.map(lambda row: row)) == ROWS
    assert {type(row["plain"]) for row in _read(source)} == {datetime}
    moved = _read(source, lambda rows: rows.map_batches(lambda batch: batch).repartition(2))
    assert sorted(moved, key=lambda row: row["plain"], reverse=True) == ROWS
    assert "plain, zone, span, day, list" in source.note


def test_two_times_of_one_microsecond_are_one_key() -> None:
    close = pa.table({"at": pa.array([1000, 1999, 2000], pa.timestamp("ns"))})

    def by_columns(rows: Any) -> Any:
        return rows.key_by("at").window(gp.global_window()).aggregate(n=gp.agg.count())

    def by_rows(rows: Any) -> Any:
        return by_columns(rows.map(lambda row: row))

    for step in (by_columns, by_rows):
        found = _read(gp.rows(close), step)
        assert sorted((each.key.microsecond, each.value["n"]) for each in found) == [(1, 2), (2, 1)]


def test_int96_has_all_years(tmp_path: Path) -> None:
    """Nanoseconds would end in 2262, and count on from 1677."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - without a zone
    table = pa.table({"at": pa.array([far, MOMENTS[0]], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "far.parquet", use_deprecated_int96_timestamps=True)

    assert [row["at"] for row in _read(parquet(tmp_path / "far.parquet"))] == [far, MOMENTS[0]]


def test_a_time_read_as_a_number_has_all_digits(tmp_path: Path) -> None:
    pq.write_table(TABLE.select(["plain"]), tmp_path / "t.parquet")

    found = _read(parquet(tmp_path / "t.parquet", schema={"plain": int}))
    assert [row["plain"] for row in found] == NS


def test_a_page_that_was_changed_is_not_read(tmp_path: Path) -> None:
    app = gp.StreamApp("pages")
    app.read(gp.rows([{"n": n} for n in range(5000)])).write(
        gp.parquet_folder(tmp_path / "out", compression="none")
    )
    Simulation(app).run()
    (file,) = (tmp_path / "out").glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)

    with pytest.raises(gp.GearpyError, match="checksum"):
        _read(parquet(file))
