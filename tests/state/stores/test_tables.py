"""Rows of tables as cells: the same as each of them made by Python."""

from typing import Any

import msgpack
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group
from gearpy.state.encoding.keys import TASK_GROUP, encode_key
from gearpy.state.stores.many import Chunk, sections_of_chunks
from gearpy.state.stores.tables import chunk_of, packed, packed_tuples
from gearpy.wire.values.payload import decode_value
from tests.state.build import a_table

TABLE = a_table(kind="bulk")
INT64 = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([-1, -2, 0, 255, 256, 65_536, 1 << 32, (1 << 61) - 1, (1 << 63) - 1]),
)
TEXTS = st.one_of(st.text(max_size=5), st.sampled_from(["", "é\n", "x" * 300]))
COLUMNS = st.sampled_from(
    [(pa.int64(), INT64), (pa.string(), TEXTS), (pa.int8(), st.integers(-128, 127))]
)
VALUES: list[pa.Array] = [
    pa.array([1, None, 255]),
    pa.array([0, -1, 1 << 40]),
    pa.array([(1 << 64) - 1, 0, None], pa.uint64()),
    pa.array([70_000, 3, 9], pa.int32()),
    pa.array([0.5, None, float("-inf")]),
    pa.array([True, False, None]),
    pa.array(["a", None, "é" * 200]),
    pa.nulls(3),
    pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array(["a", None, "b" * 300])], ["a", "b"]),
    pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["a"], mask=pa.array([False, True, False])),
]


def python_of(value: Any) -> Any:
    return tuple(map(python_of, value.values())) if isinstance(value, dict) else value


def cells_in(chunk: Any, *, is_keyed: bool) -> dict[tuple[int, bytes], Any]:
    return {
        (section.group, cell): value if value is None else decode_value(value)
        for section in sections_of_chunks([chunk], is_keyed=is_keyed)
        for cell, value in msgpack.unpackb(section.body).items()
    }


@given(st.data(), st.lists(COLUMNS, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_cells_are_those_of_each_key(
    data: st.DataObject,
    columns: list[tuple[pa.DataType, st.SearchStrategy[Any]]],
    is_keyed: bool,  # noqa: FBT001 - drawn
    is_gone: bool,  # noqa: FBT001 - drawn
) -> None:
    rows = data.draw(st.lists(st.tuples(*(each for _, each in columns)), min_size=1, unique=True))
    keys = [pa.array(each, kind) for each, (kind, _) in zip(zip(*rows, strict=True), columns)]  # noqa: B905 - of each row
    numbers = pa.array(range(len(rows)))

    chunk = chunk_of(TABLE, keys, None if is_gone else packed(numbers))

    plain = [row[0] if len(row) == 1 else row for row in rows]
    assert cells_in(chunk, is_keyed=is_keyed) == {
        (key_group(key) if is_keyed else TASK_GROUP, TABLE + encode_key(key)): None
        if is_gone
        else at
        for at, key in enumerate(plain)
    }


@pytest.mark.parametrize("column", VALUES, ids=str)
def test_values_are_read_as_they_were(column: pa.Array) -> None:
    expected = list(map(python_of, column.to_pylist()))

    for start in (0, 1):
        data = packed(column[start:])
        assert data is not None
        assert list(map(decode_value, data.to_pylist())) == expected[start:]


def test_many_values_make_a_tuple() -> None:
    parts = [pa.array([at, -at]) for at in range(40)]

    data = packed_tuples([packed(each) for each in parts]).to_pylist()

    assert list(map(decode_value, data)) == [tuple(range(40)), tuple(range(0, -40, -1))]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [pa.array([1, None])],
        [pa.array([1 << 63], pa.uint64())],
        [pa.array([True])],
        [pa.array([1]), pa.array([0.5])],
    ],
    ids=["none", "a null", "a large number", "a truth", "a float"],
)
def test_other_keys_are_left_to_python(keys: list[pa.Array]) -> None:
    assert chunk_of(TABLE, keys, None) is None


@pytest.mark.parametrize("column", [pa.array([b"x"]), pa.array([[1]])], ids=str)
def test_other_values_are_left_to_python(column: pa.Array) -> None:
    assert packed(column) is None


def test_the_last_change_of_a_cell_counts() -> None:
    def of_table(value: int) -> Any:
        return chunk_of(TABLE, [pa.array([7])], packed(pa.array([value])))

    chunks = [Chunk(TABLE, [7], [1]), of_table(2), Chunk(TABLE, [7], [3]), of_table(4)]
    for count in range(1, len(chunks) + 1):
        (section,) = sections_of_chunks(chunks[:count], is_keyed=True)
        ((value,),) = (msgpack.unpackb(section.body).values(),)
        assert decode_value(value) == count
