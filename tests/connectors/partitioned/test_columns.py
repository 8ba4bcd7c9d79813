"""Tables are cut into partitions by columns, and by parts of times."""

from datetime import UTC, date, datetime
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.partitioned.columns import NULL_PARTITION, Partitioning, partition_fields
from gearpy.errors import ConfigError

AT = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)


def cut(by: Any, columns: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    batch = pa.RecordBatch.from_pydict(columns)
    pieces = Partitioning("sink", partition_fields("sink", by), batch.schema).cut(batch)
    found: dict[str, list[dict[str, Any]]] = {}
    for piece in pieces:
        found.setdefault(piece.folder, []).extend(piece.rows.to_pylist())
    return found


def test_rows_go_to_the_folder_of_their_values() -> None:
    """Their columns are in the folder's name only; the order stays within a folder."""
    rows = cut(["c", "b"], {"n": [1, 2, 3, 4], "c": ["x", "y", "x", "x"], "b": [1, 1, 1, 2]})

    assert rows == {"c=x/b=1": [{"n": 1}, {"n": 3}], "c=x/b=2": [{"n": 4}], "c=y/b=1": [{"n": 2}]}


def test_nothing_and_an_empty_text_are_one_partition() -> None:
    assert cut("c", {"n": [1, 2, 3], "c": [None, "", "a"]}) == {
        f"c={NULL_PARTITION}": [{"n": 1}, {"n": 2}],
        "c=a": [{"n": 3}],
    }


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([True]), "true"),
        (pa.array([False]), "false"),
        (pa.array([-5], pa.int16()), "-5"),
        (pa.array([date(2026, 1, 2)]), "2026-01-02"),
        (pa.array(["a b"]), "a b"),
    ],
)
def test_values_are_written_as_spark_writes_them(values: pa.Array, text: str) -> None:
    assert list(cut("c", {"n": [1], "c": values})) == [f"c={text}"]


@pytest.mark.parametrize(
    ("unit", "text"),
    [("date", "2026-11-21"), ("year", "2026"), ("month", "11"), ("day", "21"), ("hour", "23")],
)
@pytest.mark.parametrize("zone", [None, "UTC", "+02:00", "America/New_York"])
def test_parts_of_times_are_those_in_utc(unit: str, text: str, zone: str | None) -> None:
    times = pa.array([AT.replace(tzinfo=None)], pa.timestamp("us"))
    if zone is not None:
        times = pa.array([AT], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))

    rows = cut(f"{unit}(t)", {"t": times})

    assert list(rows) == [f"t_{unit}={text}"]
    assert list(rows[f"t_{unit}={text}"][0]) == ["t"]


def test_a_part_of_a_date_is_one_too() -> None:
    assert list(cut({"y": "year(d)"}, {"d": pa.array([date(2026, 1, 2), None])})) == [
        "y=2026",
        f"y={NULL_PARTITION}",
    ]


KINDS = st.sampled_from(["a", "b", "", None, "a/b"])


@given(st.lists(st.tuples(KINDS, st.integers(0, 3) | st.none()), min_size=1, max_size=50))
def test_every_row_is_in_one_piece(rows: list[tuple[str | None, int | None]]) -> None:
    columns = {
        "at": list(range(len(rows))),
        "c": pa.array([c for c, _ in rows], pa.string()),
        "n": pa.array([n for _, n in rows], pa.int64()),
    }
    batch = pa.RecordBatch.from_pydict(columns)

    pieces = Partitioning("s", partition_fields("s", ["c", "n"]), batch.schema).cut(batch)

    places = [piece.rows["at"].to_pylist() for piece in pieces]
    assert sorted(place for each in places for place in each) == list(range(len(rows)))
    for piece, found in zip(pieces, places, strict=True):
        assert found == sorted(found)
        for place in found:
            c, n = rows[place]
            assert piece.values == (c or None, None if n is None else str(n))


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["a", "a"], "partition_by names 'a' twice"),
        ("_a", "'_a' would be a folder that readers pass over"),
        ({".x": "a"}, "'.x' would be a folder"),
        ([""], "'' would be a folder"),
        ("week(t)", r"'week\(t\)', can take date, year, month, day, hour of a time"),
        ([5], "partition_by has 5, need names of columns"),
        ("x", "partition_by has 'x', columns are n, f, t, day"),
        ("f", "column 'f' is double, a partition needs texts, whole numbers"),
        ("t", "column 't' is timestamp"),
        ("date(n)", r"column 'n' is int64, date\(...\) needs a time"),
        ({"day": "date(t)"}, "records have a column 'day' already"),
        ({"m": "n"}, "partition column 'm' is column 'n' under another name"),
        (["n", "f", "t", "day"], "column 'f' is double"),
    ],
)
def test_what_cannot_be_a_partition_is_refused(by: Any, message: str) -> None:
    columns = {"n": [1], "f": [1.5], "t": pa.array([AT], pa.timestamp("us", "UTC")), "day": [1]}

    with pytest.raises(ConfigError, match=message):
        cut(by, columns)


def test_a_table_of_partition_columns_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="no column is left that is not partitioned by"):
        cut(["n"], {"n": [1]})


def test_a_value_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 255 bytes"):
        cut("c", {"n": [1], "c": ["x" * 300]})
