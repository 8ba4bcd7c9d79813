"""Types of columns of which Arrow can pick rows; columns of other types become such as they enter.

For views of texts and bytes, and for runs of equal values, Arrow has no kernels that filter; and
it does not cast views of lists soundly. So no step is given any of these.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from gearpy.messages.table import with_leaves

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def workable_type(kind: "pa.DataType") -> "pa.DataType":
    """Return the type that keeps the values of another one, and of which rows can be picked."""
    return with_leaves(kind, _workable_leaf)


@lru_cache(maxsize=256)
def workable_schema(schema: "pa.Schema") -> "pa.Schema":
    """Return a schema with types of which rows can be picked; the same one if it has no others."""
    import pyarrow as pa  # noqa: PLC0415 - there is a schema, so Arrow is there

    if all(workable_type(kind) == kind for kind in schema.types):
        return schema
    fields = [field.with_type(workable_type(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def workable_batch(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return the same rows in columns of which rows can be picked."""
    schema = workable_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    return batch.from_arrays(list(map(workable_column, batch.columns)), schema=schema)


def workable_column(column: "pa.Array") -> "pa.Array":
    """Return the same values in a column of which rows can be picked."""
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    kind = workable_type(column.type)
    if kind == column.type:
        return column
    if pa.types.is_run_end_encoded(column.type) and column.type.value_type == kind:
        return pc.run_end_decode(column)
    if _is_cast_soundly(column.type):
        return column.cast(kind)
    return pa.array(column.to_pylist(), kind)


def _workable_leaf(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_run_end_encoded(kind):
        return workable_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, workable_type(kind.value_type), kind.ordered)
    return kind


def _is_cast_soundly(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    odd = (pa.types.is_list_view, pa.types.is_large_list_view, pa.types.is_run_end_encoded)
    if any(is_odd(kind) for is_odd in odd):
        return False
    return all(_is_cast_soundly(kind.field(at).type) for at in range(kind.num_fields))
