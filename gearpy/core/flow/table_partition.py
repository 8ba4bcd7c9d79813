"""Partitions the rows of a table among tasks, without looking at each row.

A key column is turned into its distinct values and, for each row, the place of one of them; so
only distinct values are hashed, by the same function as those of single records.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gearpy.core.base.fields import FieldGetter, FieldsGetter
from gearpy.core.base.one_key import one_keys
from gearpy.core.flow.column_hash import fold_columns, hash_column
from gearpy.messages.table import Table, Times, cells_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: Index of the task, rows, times.
TablePart: TypeAlias = tuple[int, Table, list[int]]

#: Distinct keys, and for each row the place of its own.
_Keys: TypeAlias = tuple[list[Any], "pa.Array"]

_DROP: Final = -1
#: To hash so many at once takes as long as to look up where each was sent before.
_FEW_KEYS: Final = 1024


def distinct_keys(table: Table, key: FieldGetter | FieldsGetter) -> _Keys | None:
    """Return the different keys of a table, and for each row which of them is its own.

    None where a column's values cannot be told apart at once, or there is no such column.
    """
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there

    found = distinct_columns(table, key)
    if found is None:
        return None
    columns, places = found
    keys, kinds = keys_of_columns(columns, key), [each.type for each in columns]
    if not any(pa.types.is_floating(kind) or pa.types.is_temporal(kind) for kind in kinds):
        return keys, places
    # Zeros of either sign are one key, as are times that differ in nanoseconds.
    code_of: dict[Any, int] = {}
    codes = [code_of.setdefault(each, len(code_of)) for each in keys]
    return [*code_of], pa.array(codes, pa.int32()).take(places)


def distinct_columns(
    table: Table, key: FieldGetter | FieldsGetter
) -> "tuple[list[pa.Array], pa.Array] | None":
    """Do as `distinct_keys`, with the keys as columns."""
    encoded = _encoded_columns(table, key)
    return None if encoded is None else _distinct(encoded)


def _distinct(encoded: "list[pa.DictionaryArray]") -> "tuple[list[pa.Array], pa.Array]":
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - there is a table

    first, *others = encoded
    columns, places = [first.dictionary], first.indices
    for more in others:
        width = len(more.dictionary)
        both = pc.add(pc.multiply(places.cast("int64"), width), more.indices.cast("int64"))
        found = pc.dictionary_encode(both)
        before = pc.divide(found.dictionary, width)
        last = pc.subtract(found.dictionary, pc.multiply(before, width))
        columns = [*(each.take(before) for each in columns), more.dictionary.take(last)]
        places = found.indices
    return columns, places


def keys_of_columns(columns: "list[pa.Array]", key: FieldGetter | FieldsGetter) -> list[Any]:
    """Return the keys that a key has of rows, given its columns; of those that are one, one.

    See `one_key`: two hours of a zone that Python takes for equal are two keys.
    """
    if isinstance(key, FieldGetter):
        return one_keys(cells_of(columns[0]))
    return list(zip(*(one_keys(cells_of(each)) for each in columns), strict=True))


def tasks_of_keys(
    table: Table,
    key: FieldGetter | FieldsGetter,
    tasks_of: Callable[[list[Any]], list[int]],
    *,
    parallelism: int,
    key_groups: int,
) -> "pa.Array | None":
    """Return for each row the task of its key, as `task_of_group` has it for `key_group`.

    None where `distinct_keys` returns it.

    Args:
        tasks_of: returns the tasks of keys. It is asked for few, as it may know them by heart.
    """
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    encoded = _encoded_columns(table, key)
    if encoded is None:
        return None
    if prod(len(each.dictionary) for each in encoded) <= _FEW_KEYS:
        columns, places = _distinct(encoded)
        return pa.array(tasks_of(keys_of_columns(columns, key)), pa.int32()).take(places)
    hashes = [hash_column(each.dictionary).take(each.indices) for each in encoded]
    whole = hashes[0] if isinstance(key, FieldGetter) else fold_columns(hashes)
    width = pa.scalar(key_groups, pa.uint64())
    group = pc.subtract(whole, pc.multiply(pc.divide(whole, width), width))
    task = pc.divide(pc.multiply(group, pa.scalar(parallelism, pa.uint64())), width)
    return task.cast(pa.int32())


def split_table(
    targets: "Sequence[int] | pa.Array", table: Table, timestamps: list[int]
) -> list[TablePart]:
    """Return the rows for each target, in their order; leave out target -1."""
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    if not table:
        return []
    of_rows = targets if isinstance(targets, pa.Array) else pa.array(targets, pa.int32())
    order = pc.array_sort_indices(of_rows)  # A stable sort: equal ones keep their order.
    runs = pc.run_end_encode(of_rows.take(order))
    among, ends = runs.values.to_pylist(), runs.run_ends.to_pylist()
    if len(among) == 1:
        return [] if among[0] == _DROP else [(among[0], table, timestamps)]
    table, times = table.take(order), Times.of(timestamps).take(order)
    return [
        (target, table[start:stop], times[start:stop])
        for target, start, stop in zip(among, [0, *ends], ends, strict=False)
        if target != _DROP
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


def _encoded_columns(
    table: Table, key: FieldGetter | FieldsGetter
) -> "list[pa.DictionaryArray] | None":
    """Return the columns of a key, each as its different values and the places of these."""
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    names, schema = key.names, table.batch.schema
    if any(len(schema.get_all_field_indices(name)) != 1 for name in names):
        return None
    columns = (table.batch.column(name) for name in names)
    plain = (
        each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in columns
    )
    try:
        return [pc.dictionary_encode(each, null_encoding="encode") for each in plain]
    except pa.ArrowNotImplementedError:
        return None
