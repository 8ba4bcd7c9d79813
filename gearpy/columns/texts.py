"""Texts: whether columns are text, as neither Parquet nor Arrow look at it; and short ones."""

from struct import unpack_from
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

_SHOWN_CHARS_MAX: Final = 300  # Arrow's errors repeat a whole value.
_OFFSETS: Final = {pa.string(): ("=i", 4), pa.large_string(): ("=q", 8)}
_AS_BYTES: Final = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


def shortened(text: str, chars_max: int = _SHOWN_CHARS_MAX) -> str:
    """Return a text, without its middle if it is very long."""
    half = chars_max // 2
    return text if len(text) <= chars_max else f"{text[:half]} ... {text[-half:]}"


def is_text(batch: pa.RecordBatch) -> bool:
    try:
        for column in batch.columns:
            kind = column.type
            types = pa.types
            of_text = (types.is_string, types.is_large_string, types.is_nested, types.is_dictionary)
            may_have_text = any(is_one(kind) for is_one in of_text)
            if may_have_text and not _is_ascii(column):
                column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def check_texts(batch: pa.RecordBatch) -> None:
    """Refuse rows with bytes that are no UTF-8."""
    own = batch.take(pa.array(range(batch.num_rows), pa.int64()))  # Without what a slice hides.
    for field, column in zip(own.schema, own.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"column {field.name!r} has bytes that are no UTF-8 ({error}): write the file "
                "with texts in UTF-8, or with a column of bytes"
            ) from error


def without_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pa.Array.from_buffers(_AS_BYTES[each.type], len(each), each.buffers(), offset=each.offset)
        if each.type in _AS_BYTES
        else each
        for each in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_ascii(column: pa.Array) -> bool:
    """Tell whether all texts of a column are ASCII, much faster than each of them is looked at."""
    form = _OFFSETS.get(column.type)
    if form is None:
        return False
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return True
    code, size = form
    (start,) = unpack_from(code, offsets, column.offset * size)
    (stop,) = unpack_from(code, offsets, (column.offset + len(column)) * size)
    return bool(data.slice(start, stop - start).to_pybytes().isascii())
