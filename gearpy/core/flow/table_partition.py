"""Partitions the rows of a table among tasks, without looking at each row.

A key column is turned into its distinct values and, for each row, the place of one of them; so
only distinct values are hashed, by the same function as those of single records.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.messages.table import Table, Times, cells_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: Index of the task, rows, times.
TablePart: TypeAlias = tuple[int, Table, list[int]]

#: Distinct keys, and for each row the place of its own.
_Keys: TypeAlias = tuple[list[Any], "pa.Array"]

_DROP: Final = -1


def distinct_keys(table: Table, key: FieldGetter | FieldsGetter) -> _Keys | None:
    """Return the different keys of a table, and for each row which of them is its own.

    None where a column's values cannot be told apart at once, or there is no such column.
    """
    names, columns = key.names, table.batch.schema
    if any(len(columns.get_all_field_indices(name)) != 1 for name in names):
        return None
    encoded = [_encoded(table.batch.column(name)) for name in names]
    if any(each is None for each in encoded):
        return None
    first, *others = (each for each in encoded if each is not None)
    if isinstance(key, FieldGetter):
        return first
    keys, places = [(key,) for key in first[0]], first[1]
    for more in others:
        keys, places = _combined(keys, places, *more)
    return keys, places


def split_table(
    targets: Sequence[int], table: Table, timestamps: list[int], places: "pa.Array | None" = None
) -> list[TablePart]:
    """Return the rows for each target, in their order; leave out target -1.

    Args:
        targets: of the rows; or of keys.
        places: for each row the place of its key.
    """
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

    if not table:
        return []
    among = sorted(set(targets))
    if len(among) == 1:
        return [] if among[0] == _DROP else [(among[0], table, timestamps)]
    of_rows = pa.array(targets, pa.int32())
    if places is not None:
        of_rows = of_rows.take(places)
    order = pc.array_sort_indices(of_rows)  # A stable sort: equal ones keep their order.
    of_rows, table, times = of_rows.take(order), table.take(order), Times.of(timestamps).take(order)
    starts = [
        bisect_left(range(len(of_rows)), target, key=lambda at: of_rows[at].as_py())
        for target in among
    ]
    return [
        (target, table[start:stop], times[start:stop])
        for target, start, stop in zip(among, starts, [*starts[1:], len(table)], strict=True)
        if target != _DROP and start < stop
    ]


def deal_table(counts: dict[int, int], table: Table, timestamps: list[int]) -> list[TablePart]:
    parts: list[TablePart] = []
    start = 0
    for target, count in counts.items():
        if count:
            rows = slice(start, start + count)
            parts.append((target, table[rows], timestamps[rows]))
        start += count
    return parts


def pick_rows(places: Sequence[int], table: Table, timestamps: list[int]) -> tuple[Table, Times]:
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there

    column = pa.array(places, pa.int64())
    return table.take(column), Times.of(timestamps).take(column)


def _encoded(column: "pa.Array") -> _Keys | None:
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        found = pc.dictionary_encode(column, null_encoding="encode")
    except pa.ArrowNotImplementedError:
        return None
    return cells_of(found.dictionary), found.indices


def _combined(
    keys: list[tuple[Any, ...]], places: "pa.Array", values: list[Any], codes: "pa.Array"
) -> _Keys:
    import pyarrow.compute as pc  # noqa: PLC0415 - there is a table, so Arrow is there

    width = len(values)
    both = pc.add(pc.multiply(places.cast("int64"), width), codes.cast("int64"))
    found = pc.dictionary_encode(both)
    pairs = (divmod(code, width) for code in found.dictionary.to_pylist())
    return [(*keys[key], values[value]) for key, value in pairs], found.indices
