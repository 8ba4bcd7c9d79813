"""Types of columns that streams have; columns of other types become such as they enter.

For views of texts and bytes, and for runs of equal values, Arrow has no kernels that filter; and
it does not cast views of lists soundly. Rows have no nanoseconds, and what comes out must not
depend on whether a step takes rows. So no step is given any of these.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from gearpy.messages.table import in_microseconds, microsecond_type, with_leaves

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def workable_type(kind: "pa.DataType") -> "pa.DataType":
    return microsecond_type(_pickable_type(kind))


@lru_cache(maxsize=256)
def workable_schema(schema: "pa.Schema") -> "pa.Schema":
    """Return a schema with types that streams have; the same one if it has no others."""
    import pyarrow as pa  # noqa: PLC0415 - there is a schema, so Arrow is there

    if all(workable_type(kind) == kind for kind in schema.types):
        return schema
    fields = [field.with_type(workable_type(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def note_of(schema: "pa.Schema") -> str:
    finer = [field.name for field in schema if microsecond_type(field.type) != field.type]
    return f"times are cut to microseconds: {', '.join(finer)}" if finer else ""


def workable_batch(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    schema = workable_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    return batch.from_arrays(list(map(workable_column, batch.columns)), schema=schema)


def _pickable_type(kind: "pa.DataType") -> "pa.DataType":
    return with_leaves(kind, _pickable_leaf)


def workable_column(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    kind = _pickable_type(column.type)
    if pa.types.is_run_end_encoded(column.type) and column.type.value_type == kind:
        column = pc.run_end_decode(column)
    elif kind != column.type and _is_cast_soundly(column.type):
        column = column.cast(kind)
    elif kind != column.type:
        column = pa.array(column.to_pylist(), kind)
    return in_microseconds(column)


def _pickable_leaf(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_run_end_encoded(kind):
        return _pickable_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _pickable_type(kind.value_type), kind.ordered)
    return kind


def _is_cast_soundly(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    odd = (pa.types.is_list_view, pa.types.is_large_list_view, pa.types.is_run_end_encoded)
    if any(is_odd(kind) for is_odd in odd):
        return False
    return all(_is_cast_soundly(kind.field(at).type) for at in range(kind.num_fields))
