"""Rows of tables of Arrow as cells and their values, at once: the bytes that each would have alone.

Keys of whole numbers and text, and values of numbers, text and tuples of them are made by Arrow
and NumPy, for a twentieth of what Python takes; where all have one size, for half of that. For
others there is `gearpy.state.stores.many`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.core.flow.column_hash import fold_columns, hash_column
from gearpy.state.encoding.keys import TASK_GROUP

_INT64_MAX: Final = (1 << 63) - 1
_BYTE_MAX: Final = (1 << 8) - 1
_NIL: Final = b"\xc0"
#: Whole numbers from none on: the largest of msgpack's types that begins so, and its digits.
_UNSIGNED: Final = (
    (_BYTE_MAX, 0xCC, "u1"),
    ((1 << 16) - 1, 0xCD, ">u2"),
    ((1 << 32) - 1, 0xCE, ">u4"),
)
_SHORT_MAX: Final = 15  # So many values a list can have whose header is one byte.
_TUPLE: Final = 1  # The type of extension that `gearpy.wire.values` has for it.


class TableChunk(NamedTuple):
    """Cells of rows with the columns of their keys, and their values; None: all were deleted."""

    keys: Sequence[pa.Array]
    cells: pa.Array
    values: pa.Array | None
    is_keyed: bool = True  #: They belong to the groups of their keys; else to the task.

    def by_group(self) -> Iterator[tuple[int, int, memoryview]]:
        """Yield groups with the number of their cells, and those as they are in a map."""
        pairs = [_headed(self.cells), self.cells]
        if self.values is None:
            pairs.append(pa.scalar(_NIL))
        else:
            pairs += [_headed(self.values), self.values]
        groups = np.full(len(self.cells), TASK_GROUP, np.uint16)
        if self.is_keyed:
            hashes = [hash_column(each) for each in self.keys]
            whole = hashes[0] if len(hashes) == 1 else fold_columns(hashes)
            groups = (whole.to_numpy() % KEY_GROUPS).astype(np.uint16)
        order = pa.array(np.argsort(groups, kind="stable"))
        cells = joined(pairs).take(order)
        counts = np.bincount(groups)
        found = np.flatnonzero(counts)
        ends = np.cumsum(counts[found])
        starts = ends - counts[found]
        if _is_fixed(cells.type):
            at = np.arange(len(cells) + 1) * cells.type.byte_width
        else:
            at = np.frombuffer(cells.buffers()[1], np.int32)[cells.offset :].astype(np.int64)
        everything = memoryview(cells.buffers()[-1])
        for group, start, end in zip(found.tolist(), starts.tolist(), ends.tolist(), strict=True):
            yield group, end - start, everything[at[start] : at[end]]


def chunk_of(table: bytes, keys: Sequence[pa.Array], values: pa.Array | None) -> TableChunk | None:
    """Return the cells of a table with their values; None if some key needs Python.

    Args:
        table: the first bytes of all cells.
        keys: columns of the keys, one or several.
    """
    encoded = encoded_keys(keys)
    if encoded is None:
        return None
    return TableChunk(keys, joined([pa.scalar(table), encoded]), values)


def encoded_keys(columns: Sequence[pa.Array]) -> pa.Array | None:
    """Return the keys of rows as `encode_key` does; None if some needs Python."""
    parts = [_key_of(each) for each in columns]
    if not parts or None in parts:
        return None
    if len(parts) == 1:
        return parts[0]
    sized = [piece for part in parts for piece in (_sized(part), part)]
    return joined([pa.scalar(b"t"), *sized])


def joined(parts: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """Return the bytes of parts behind one another; of a fixed size, if all parts are of one."""
    columns = [each for each in parts if isinstance(each, pa.Array)]
    if not all(_is_fixed(each.type) for each in columns):
        alike = [
            each.cast(pa.binary()) if isinstance(each, pa.Array) and _is_fixed(each.type) else each
            for each in parts
        ]
        return pc.binary_join_element_wise(*alike, b"")
    rows = len(columns[0])
    return _fixed(np.concatenate([_octets(each, rows) for each in parts], axis=1))


def packed(column: pa.Array) -> pa.Array | None:
    """Return each value as msgpack; structs become tuples. None if some type needs Python."""
    kind, at = column.type, pa.types
    if at.is_struct(kind):
        fields = [packed(column.field(place)) for place in range(kind.num_fields)]
        data = None if None in fields else packed_tuples(fields)
    elif at.is_integer(kind):
        data = _numbers(column.fill_null(0))
    elif at.is_float64(kind):
        data = _tagged(0xCB, ">f8", column.fill_null(0.0).to_numpy())
    elif at.is_boolean(kind):
        is_true = column.fill_null(False).to_numpy(zero_copy_only=False)
        data = _fixed(np.where(is_true, 0xC3, 0xC2).astype("u1"))
    elif at.is_string(kind):
        text = column.fill_null("").cast(pa.binary())
        data = joined([_headed(text, 0xD9, 0xDB), text])
    elif at.is_null(kind):
        return _fixed(np.full(len(column), _NIL[0], np.uint8))
    else:
        return None
    if data is None or not column.null_count:
        return data
    return pc.if_else(column.is_valid(), data.cast(pa.binary()), pa.scalar(_NIL))


def packed_tuples(parts: Sequence[pa.Array]) -> pa.Array:
    """Return tuples as msgpack, given the values of each place."""
    inside = joined(parts)
    return as_tuples(inside, np.full(len(inside), len(parts)))


def as_tuples(inside: pa.Array, sizes: Any) -> pa.Array:
    """Return tuples as msgpack, given the values of each behind one another, and their number."""
    if sizes.max(initial=0) <= _SHORT_MAX:
        header = _fixed((sizes + 0x90).astype("u1"))
    else:
        header = _tagged(0xDD, ">u4", sizes)
    inside = joined([header, inside])
    return joined([_headed(inside, 0xC7, 0xC9), pa.scalar(bytes((_TUPLE,))), inside])


def _key_of(column: pa.Array) -> pa.Array | None:
    """Return each value as `gearpy.state.encoding.keys` has it."""
    if column.null_count:
        return None
    if pa.types.is_string(column.type):
        return joined([pa.scalar(b"s"), column.cast(pa.binary())])
    if not pa.types.is_integer(column.type):
        return None
    if (pc.max(column).as_py() or 0) > _INT64_MAX:
        return None
    # Of its highest bit the other one, so that negative ones come first.
    return _tagged(ord("i"), ">u8", column.cast(pa.int64()).to_numpy().view(np.uint64) ^ (1 << 63))


def _numbers(column: pa.Array) -> pa.Array:
    low, high = (each or 0 for each in pc.min_max(column).as_py().values())
    numbers = column.to_numpy()
    if low >= 0:
        for most, tag, digits in _UNSIGNED:
            if high <= most:
                return _tagged(tag, digits, numbers)
        return _tagged(0xCF, ">u8", numbers)
    return _tagged(0xD3, ">i8", numbers)


def _headed(values: pa.Array, short: int = 0xC4, long: int = 0xC6) -> pa.Array:
    """Return the headers of values in msgpack, for those up to 255 bytes or for any."""
    sizes = pc.binary_length(values).to_numpy()
    if sizes.max(initial=0) <= _BYTE_MAX:
        return _tagged(short, "u1", sizes)
    return _tagged(long, ">u4", sizes)


def _sized(values: pa.Array) -> pa.Array:
    return _fixed(pc.binary_length(values).to_numpy().astype(">u4"))


def _tagged(tag: int, digits: str, numbers: Any) -> pa.Array:
    rows = np.empty(len(numbers), [("tag", "u1"), ("number", digits)])
    rows["tag"], rows["number"] = tag, numbers
    return _fixed(rows)


def _fixed(rows: Any) -> pa.FixedSizeBinaryArray:
    kind = pa.binary(rows[:1].nbytes if len(rows) else rows.dtype.itemsize)
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind))


def _octets(part: pa.Array | pa.Scalar, rows: int) -> Any:
    if isinstance(part, pa.Scalar):
        return np.broadcast_to(np.frombuffer(part.as_py(), np.uint8), (rows, len(part.as_py())))
    width, begin = part.type.byte_width, part.offset * part.type.byte_width
    octets = np.frombuffer(part.buffers()[1], np.uint8, rows * width, begin)
    return octets.reshape(rows, width)
