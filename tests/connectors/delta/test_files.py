"""Where the files of a Delta table are, and what the log tells of them."""

from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.delta.writer import local_folder, stats_of
from tests.connectors.delta_build import stats

MICROS = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


def stats_for(columns: dict[str, Any], *, group_rows: int = 1000) -> dict[str, Any]:
    metadata: list[Any] = []
    with pq.ParquetWriter(
        BytesIO(), (table := pa.table(columns)).schema, metadata_collector=metadata
    ) as writer:
        writer.write_table(table, group_rows)
    return stats(stats_of(metadata[0]))


def test_bounds_are_told_of_numbers_dates_and_times() -> None:
    """Over all groups of rows; of texts, fractions and what is nested, how many are null."""
    found = stats_for(
        {
            "n": [3, None, -1],
            "d": [date(2026, 1, 2), date(2025, 1, 1), None],
            "f": [0.5, float("nan"), 1.0],
            "s": ["b", "a", None],
            "t": [True, False, None],
            "l": [[1], [2], []],
            "none": pa.nulls(3, pa.int64()),
        },
        group_rows=1,
    )

    assert found == {
        "numRecords": 3,
        "minValues": {"n": -1, "d": "2025-01-01"},
        "maxValues": {"n": 3, "d": "2026-01-02"},
        "nullCount": {"n": 1, "d": 1, "f": 0, "s": 1, "t": 1, "none": 3},
    }


@pytest.mark.parametrize(
    ("kind", "ending"), [(pa.timestamp("us", "UTC"), "Z"), (pa.timestamp("us"), "")]
)
def test_bounds_of_times_are_whole_milliseconds_around_them(kind: Any, ending: str) -> None:
    times = [MICROS if kind.tz else MICROS.replace(tzinfo=None)]

    found = stats_for({"t": pa.array(times, kind)})

    assert found["minValues"] == {"t": f"2026-01-02T03:04:05.678{ending}"}
    assert found["maxValues"] == {"t": f"2026-01-02T03:04:05.679{ending}"}
    exact = stats_for({"t": pa.array([times[0].replace(microsecond=5000)], kind)})
    assert exact["maxValues"] == exact["minValues"]


def test_a_table_is_here_or_elsewhere(tmp_path: Path) -> None:
    assert local_folder(str(tmp_path)) == tmp_path
    assert local_folder(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert local_folder("s3://bucket/table") is None
