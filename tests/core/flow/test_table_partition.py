"""Which task gets which rows of a table: the one that gets the same record by itself."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import FieldsGetter, field_getter, key_getter
from gearpy.core.flow.partition import (
    DROP,
    BroadcastPartitioner,
    CoLocationPartitioner,
    GroupByPartitioner,
    HashPartitioner,
    MulticastPartitioner,
    Part,
    Partitioner,
    ShuffleGroupingPartitioner,
    ShufflePartitioner,
    UnicastPartitioner,
)
from gearpy.core.flow.table_partition import distinct_keys
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.table import Table, Times

#: Types of key columns and what values they have.
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-3, 3)),
    (pa.uint8(), st.integers(0, 5)),
    (pa.float64(), st.sampled_from([0.0, -0.0, 1.0, 1.5, float("inf")])),
    (pa.float32(), st.sampled_from([0.5, 2.0, 1e10])),
    (pa.string(), st.text(max_size=2)),
    (pa.large_string(), st.text(max_size=1)),
    (pa.binary(), st.binary(max_size=2)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates(date(2020, 1, 1), date(2020, 1, 5))),
    (pa.timestamp("us", tz="UTC"), st.just(datetime(2020, 1, 1, tzinfo=UTC))),
    (pa.decimal128(5, 2), st.sampled_from([Decimal("1.00"), Decimal("2.50")])),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "c"])),
    (pa.null(), st.none()),
]
KEYS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind[0]), st.lists(st.none() | kind[1], min_size=1))
)


class ByPlace(UnicastPartitioner):
    def get_partition(self, value: Any, parallelism: int, sender: int) -> int:
        target: int = value["to"]
        return target


class Copies(MulticastPartitioner):
    """Sends a row to as many tasks as it says, from the last one; to the first one twice."""

    def get_partitions(self, value: Any, parallelism: int, sender: int) -> Sequence[int]:
        count: int = value["to"]
        return [*reversed(range(count)), 0] if count > 0 else [DROP]


def a_table(**columns: Any) -> tuple[Table, Times]:
    table = Table(pa.record_batch(columns))
    return table, Times.of(range(len(table)))


def rows(parts: list[Part]) -> dict[int, list[tuple[Any, int]]]:
    """Return rows and times by target; of a table each part is one."""
    return {at: list(zip(values, times, strict=True)) for at, values, times in parts}


def both(
    partitioner: Partitioner, table: Table, times: Times, parallelism: int
) -> tuple[dict[int, Any], dict[int, Any]]:
    split = {"parallelism": parallelism, "sender": 0}
    parts = partitioner.fork(Random(5)).partition(table, times, **split)
    assert all(type(part[1]) is Table and type(part[2]) is Times for part in parts)
    assert all(len(part[1]) for part in parts)
    listed = partitioner.fork(Random(5)).partition(list(table), list(times), **split)
    return rows(parts), rows(listed)


@given(KEYS, st.integers(1, 5))
def test_key_goes_where_it_goes_by_itself(keys: tuple[Any, list[Any]], parallelism: int) -> None:
    """Else the state of a key would be in two tasks, as one input has columns and one has not."""
    kind, values = keys
    table, times = a_table(key=pa.array(values, kind))

    for key in (field_getter("key"), FieldsGetter(("key",)), lambda row: row["key"]):
        of_table, of_rows = both(GroupByPartitioner(key), table, times, parallelism)
        assert of_table == of_rows


@given(
    st.lists(
        st.tuples(st.integers(0, 2) | st.none(), st.text("ab", max_size=1), st.booleans()),
        min_size=1,
    ),
    st.integers(2, 5),
)
def test_key_of_several_columns_is_a_tuple(records: list[tuple[Any, ...]], tasks: int) -> None:
    columns = zip(*records, strict=True)
    table, times = a_table(**{name: pa.array(c) for name, c in zip("xyz", columns, strict=True)})

    for names in (("x", "y"), ("z", "x", "y")):
        of_table, of_rows = both(GroupByPartitioner(key_getter(*names)), table, times, tasks)
        assert of_table == of_rows


def test_missing_key_column_names_those_there_are() -> None:
    table, times = a_table(user=["a"])

    with pytest.raises(OperatorError, match=r"key_by\('usr'\).*no field 'usr'.*user"):
        GroupByPartitioner(field_getter("usr")).partition(table, times, parallelism=2, sender=0)


def test_key_that_can_be_none_is_refused() -> None:
    """With the advice that a record of its own would get."""
    table, times = a_table(key=[[1], [2]])

    for partitioner in (GroupByPartitioner(field_getter("key")), HashPartitioner()):
        with pytest.raises(ConfigError, match=r"make it a tuple|choose the fields"):
            partitioner.partition(table, times, parallelism=2, sender=0)


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(1, 6), st.booleans())
def test_shuffles_deal_evenly(sizes: list[int], parallelism: int, is_grouping: bool) -> None:  # noqa: FBT001
    """Over all batches, whether of rows or of columns; and no row is copied or lost."""
    partitioner: Partitioner = (
        ShuffleGroupingPartitioner() if is_grouping else ShufflePartitioner()
    ).fork(Random(1))
    counts = Counter(dict.fromkeys(range(parallelism), 0))
    for turn, size in enumerate(sizes):
        table, times = a_table(n=pa.array(range(size), pa.int64()))
        values = (list(table), list(times)) if turn % 3 == 2 else (table, times)
        parts = partitioner.partition(*values, parallelism=parallelism, sender=0)
        assert sorted(row["n"] for _, part, _ in parts for row in part) == list(range(size))
        assert all(list(part[2]) == [row["n"] for row in part[1]] for part in parts)
        counts.update({part[0]: len(part[1]) for part in parts})

    assert max(counts.values()) - min(counts.values()) <= 1


@given(st.lists(st.integers(-1, 2), max_size=20))
def test_users_partitioners_take_tables(targets: list[int]) -> None:
    """Each row is a dict to them; parts are tables again."""
    table, times = a_table(
        n=pa.array(range(len(targets)), pa.int64()), to=pa.array(targets, "int8")
    )

    for partitioner in (ByPlace(), Copies(), BroadcastPartitioner(), CoLocationPartitioner()):
        of_table, of_rows = both(partitioner, table, times, 3)
        assert of_table == of_rows


def test_many_columns_of_many_values_do_not_overflow() -> None:
    columns = {name: [f"{name}{n}" for n in range(3000)] for name in "abcdefgh"}
    table, times = a_table(**columns)

    of_table, of_rows = both(GroupByPartitioner(key_getter(*columns)), table, times, 4)

    assert of_table == of_rows


def test_hours_that_a_zone_repeats_are_two_keys() -> None:
    hours = [datetime(2020, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1, 0)]
    column = pa.array(hours, pa.timestamp("us", "Europe/Berlin"))
    table = Table(pa.RecordBatch.from_arrays([column, column], ["a", "b"]))
    for key in (key_getter("a"), key_getter("a", "b")):
        found = distinct_keys(table, key)
        assert found is not None
        keys, places = found
        assert len(set(keys)) == len(keys) == 2
        assert places.to_pylist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("column", "places"),
    [
        (pa.array([0.0, -0.0, float("nan"), 1.0, -0.0, float("nan")]), [0, 0, 1, 2, 0, 1]),
        (pa.array([1, 2, 1_001, None], pa.timestamp("ns")), [0, 0, 1, 2]),
    ],
    ids=["zeros", "nanoseconds"],
)
def test_values_that_are_one_key_are_one(column: pa.Array, places: list[int]) -> None:
    table = Table(pa.RecordBatch.from_arrays([column, column], ["a", "b"]))
    for key in (key_getter("a"), key_getter("a", "b")):
        found = distinct_keys(table, key)
        assert found is not None
        assert len(found[0]) == max(places) + 1
        assert found[1].to_pylist() == places
