"""The hash of columns: the same as that of their values one by one."""

from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.base.stable_hash import key_group, stable_hash, task_of_group
from gearpy.core.flow.column_hash import fold_columns, hash_column
from gearpy.core.flow.partition import GroupByPartitioner
from gearpy.messages.table import Table, Times

#: The first two numbers of Python that do not hash to themselves, and their neighbours.
_EDGES = [-1, -2, 0, *(sign * ((1 << 61) + near) for sign in (1, -1) for near in (-3, -2, -1, 0))]
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.text(max_size=9)),
    (pa.large_string(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=9)),
    (pa.int64(), st.sampled_from(_EDGES) | st.integers(-(1 << 63), (1 << 63) - 1)),
    (pa.uint64(), st.sampled_from([0, 1 << 61, (1 << 64) - 1]) | st.integers(0, 1 << 40)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.null(), st.none()),
]
COLUMNS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.lists(st.none() | kind[1], max_size=20).map(lambda of: pa.array(of, kind[0]))
)


@given(COLUMNS, st.integers(0, 3))
def test_hash_of_a_column_is_that_of_its_values(column: pa.Array, start: int) -> None:
    part = column[start:]

    assert hash_column(part).to_pylist() == [stable_hash(value) for value in part.to_pylist()]


@given(st.lists(st.tuples(st.integers(), st.text(max_size=3), st.none()), min_size=1, max_size=9))
def test_hash_of_several_columns_is_that_of_tuples(keys: list[tuple[Any, ...]]) -> None:
    hashes = [pa.array(map(stable_hash, column), pa.uint64()) for column in zip(*keys, strict=True)]

    assert fold_columns(hashes).to_pylist() == list(map(stable_hash, keys))


def test_many_keys_go_where_few_of_them_go() -> None:
    """They are hashed as columns, few one by one: with any number of tasks, and of key groups."""
    rows = 3000
    table = pa.record_batch({"a": list(range(rows)), "b": [f"b{row // 2}" for row in range(rows)]})
    for key, keys in (
        (FieldGetter("b"), table.column("b").to_pylist()),
        (FieldsGetter(("a", "b")), [tuple(row.values()) for row in table.to_pylist()]),
    ):
        for tasks, groups in ((3, 1024), (7, 100)):
            parts = GroupByPartitioner(key, key_groups=groups).partition(
                Table(table), Times.of(range(rows)), parallelism=tasks, sender=0
            )
            found = {row: task for task, _, rows_of_task in parts for row in rows_of_task}
            assert list(map(found.__getitem__, range(rows))) == [
                task_of_group(key_group(each, groups), parallelism=tasks, key_groups=groups)
                for each in keys
            ]
