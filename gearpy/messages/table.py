"""Tables: records as columns, for `Batch.values` and `Batch.timestamps` on the columnar path.

To the type checker both are lists, which they are for rows, the rule: they have a length, parts
and an order like one. Nothing is ever appended to them. Code that may meet either asks
``type(values) is Table``. Arrow is loaded by the code that makes the first table.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, overload

from gearpy.errors import ConfigError
from gearpy.messages.late_time import LateTime, OrderedTimes, late_places, late_time, promise_of

#: So many rows of a table count for flow control as one record. What a row of a column takes, of
#: time and of memory, is about so much less than what a record of its own takes.
ROWS_PER_CREDIT: Final = 64
_NS_PER_US: Final = 1000

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    _Values = list[Any]
    _Times = list[int]
else:
    _Values = _Times = object


class Table(_Values):
    """Some records as the columns of one `pyarrow.RecordBatch`. Immutable.

    A row is a dict. A part of a table shares the memory of the whole.
    """

    __slots__ = ("batch",)

    def __init__(self, batch: "pa.RecordBatch") -> None:
        self.batch = batch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @overload
    def __getitem__(self, at: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> "Table": ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, length = _part(at, len(self))
            return Table(self.batch.slice(start, length))
        start = _place(at, len(self))
        return rows_of(self.batch.slice(start, 1))[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(rows_of(self.batch))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Table):
            return bool(self.batch.equals(other.batch))
        return NotImplemented

    __hash__ = None  # Like that of a list.

    def __repr__(self) -> str:
        columns = ", ".join(f"{each.name}: {each.type}" for each in self.batch.schema)
        return f"Table({len(self)} rows of {columns})"

    @property
    def size_bytes(self) -> int:
        """The bytes of memory that the rows take; exactly, as far as Arrow knows."""
        return int(self.batch.nbytes)

    def take(self, places: "pa.Array") -> "Table":
        return Table(self.batch.take(places))

    def filter(self, mask: "pa.BooleanArray") -> "Table":
        return Table(self.batch.filter(mask))


class Times(_Times):
    """Event times in ms as one `pyarrow.Int64Array`. Immutable.

    Args:
        promised: what had been promised before each record, in ms; a record is late if it is older.
            None if no record is.

    Raises:
        ConfigError: the array is of another type, or a time is missing.
    """

    __slots__ = ("array", "promised")

    def __init__(self, array: "pa.Array", promised: "pa.Array | None" = None) -> None:
        import pyarrow as pa  # noqa: PLC0415 - the maker of the array has loaded it

        if array.type != pa.int64() or array.null_count:
            raise ConfigError(
                f"event times are {array.type} with {array.null_count} nulls: give int64 "
                "milliseconds since the epoch, one for each record"
            )
        self.array = array
        self.promised = promised

    @classmethod
    def of(cls, times: Iterable[int]) -> "Times":
        """Make an array of some times."""
        import pyarrow as pa  # noqa: PLC0415 - Arrow is loaded for columns only

        if isinstance(times, Times):
            return times
        listed, promised = list(times), None
        for wrong in (time for time in listed if type(time) not in _INTS):
            raise ConfigError(f"timestamp {wrong!r} is no int: give ms since the epoch")
        try:
            array = pa.array(listed, pa.int64())
            if late := late_places(listed):  # Records in time have their own time promised.
                promises = [*listed]
                for at in late:
                    promises[at] = promise_of(listed[at])
                promised = pa.array(promises, pa.int64())
            return cls(array, promised)
        except (pa.ArrowException, ArithmeticError) as error:
            raise ConfigError(f"timestamps must be int64 milliseconds: {error}") from error

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> "Times": ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, length = _part(at, len(self))
            return self._changed(lambda array: array.slice(start, length))
        place = _place(at, len(self))
        time_ms: int = self.array[place].as_py()
        return (
            time_ms if self.promised is None else late_time(time_ms, self.promised[place].as_py())
        )

    def __iter__(self) -> Iterator[int]:
        if self.promised is None:
            return iter(self.array.to_pylist())
        return map(late_time, self.array.to_pylist(), self.promised.to_pylist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Times):
            return bool(self.array.equals(other.array))
        return NotImplemented

    __hash__ = None  # Like that of a list.

    def __repr__(self) -> str:
        return f"Times({len(self)})"

    def take(self, places: "pa.Array") -> "Times":
        return self._changed(lambda array: array.take(places))

    def filter(self, mask: "pa.BooleanArray") -> "Times":
        return self._changed(lambda array: array.filter(mask))

    def _changed(self, change: "Callable[[pa.Array], pa.Array]") -> "Times":
        promised = self.promised
        return Times(change(self.array), None if promised is None else change(promised))

    def bounds(self) -> tuple[int, int]:
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

        found = pc.min_max(self.array)
        return found["min"].as_py(), found["max"].as_py()


#: The types of event times in a list.
_INTS: Final = frozenset({int, LateTime})


def credit_of(values: list[Any]) -> int:
    if type(values) is Table:
        return -(-len(values) // ROWS_PER_CREDIT)
    return len(values)


def oldest_of(timestamps: list[int], default: int) -> int:
    if type(timestamps) is Times:
        return timestamps.bounds()[0] if len(timestamps) else default
    if type(timestamps) is OrderedTimes:
        return timestamps[0] if timestamps else default
    return int(min(timestamps, default=default))


def has_late(timestamps: list[int]) -> bool:
    if type(timestamps) is Times:
        return timestamps.promised is not None
    return bool(late_places(timestamps))


def newest_of(timestamps: list[int], default: int) -> int:
    if type(timestamps) is Times:
        return timestamps.bounds()[1] if len(timestamps) else default
    if type(timestamps) is OrderedTimes:
        return timestamps[-1] if timestamps else default
    return int(max(timestamps, default=default))


def joined_rows(parts: "Sequence[pa.RecordBatch]") -> "pa.RecordBatch":
    """Return the rows of some tables as one, which has the wider type of each column."""
    import pyarrow as pa  # noqa: PLC0415 - there are tables, so Arrow is there

    if all(each.schema.equals(parts[0].schema, check_metadata=True) for each in parts[1:]):
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    tables = [pa.Table.from_batches([each]) for each in parts]
    (rows,) = pa.concat_tables(tables, promote_options="permissive").combine_chunks().to_batches()
    return rows


def rows_of(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """Return the rows of a record batch as dicts; a map in a column as a dict, too."""
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    names, columns = batch.schema.names, []
    for name, column in zip(names, batch.columns, strict=True):
        try:
            columns.append(cells_of(column))
        except (ValueError, ArithmeticError, LookupError) as error:
            raise ValueError(
                f"column {name!r} has what Python has no value for: {error}"
            ) from error
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def cells_of(column: "pa.Array") -> list[Any]:
    """Return the values of a column as rows have them; a map as a dict.

    Rows have microseconds: see `in_microseconds`. Arrow by itself gives objects of pandas for
    nanoseconds where that is installed.
    """
    column = in_microseconds(column)
    # Arrow looks at each value when it is told of maps; most columns cannot have one.
    is_nested = column.type.num_fields > 0
    cells: list[Any] = column.to_pylist(maps_as_pydicts="strict" if is_nested else None)
    return cells


def in_microseconds(column: "pa.Array") -> "pa.Array":
    return changed_leaves(column, microsecond_type(column.type), _cut)


def _cut(column: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, in_microseconds(column.dictionary))
    counts = column.view(pa.int64())
    # Arrow divides towards zero, which before 1970 is towards the future.
    quotient = pc.divide(counts, _NS_PER_US)
    is_above = pc.greater(pc.multiply(quotient, _NS_PER_US), counts)
    return pc.subtract(quotient, is_above.cast(pa.int64())).view(kind)


@lru_cache(maxsize=256)
def microsecond_type(kind: "pa.DataType") -> "pa.DataType":
    """Return the type with microseconds instead of nanoseconds, also within lists and structs."""
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    def changed(leaf: "pa.DataType") -> "pa.DataType":
        if pa.types.is_dictionary(leaf):
            return pa.dictionary(leaf.index_type, microsecond_type(leaf.value_type), leaf.ordered)
        if getattr(leaf, "unit", "") != "ns":
            return leaf
        if pa.types.is_timestamp(leaf):
            return pa.timestamp("us", leaf.tz)
        return pa.duration("us") if pa.types.is_duration(leaf) else pa.time64("us")

    return with_leaves(kind, changed)


def with_leaves(
    kind: "pa.DataType", change: "Callable[[pa.DataType], pa.DataType]"
) -> "pa.DataType":
    """Return a type in which all plain types are changed, also those within lists and structs.

    A view of lists becomes lists.
    """
    import pyarrow as pa  # noqa: PLC0415 - there is a type, so Arrow is there

    def inside(field: "pa.Field") -> "pa.Field":
        return field.with_type(with_leaves(field.type, change))

    if pa.types.is_map(kind):
        return pa.map_(inside(kind.key_field), inside(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([inside(each) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(inside(kind.value_field))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(inside(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inside(kind.value_field), kind.list_size)
    return change(kind)


def changed_leaves(
    column: "pa.Array",
    kind: "pa.DataType",
    change: "Callable[[pa.Array, pa.DataType], pa.Array]",
) -> "pa.Array":
    """Return a column of a type that `with_leaves` has made, with its values."""
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there

    def inside(part: "pa.Array", kind: "pa.DataType") -> "pa.Array":
        return changed_leaves(part, kind, change)

    if kind == column.type:
        return column
    if column.offset:  # All parts of it are to begin at the same place.
        column = pa.concat_arrays([column, column[:0]])
    is_null = column.is_null()
    if pa.types.is_struct(kind):
        fields = [inside(column.field(at), each.type) for at, each in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=is_null)
    if pa.types.is_map(kind):
        keys, items = inside(column.keys, kind.key_type), inside(column.items, kind.item_type)
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=kind, mask=is_null)
    if not pa.types.is_nested(kind):
        return change(column, kind)
    values = inside(column.values, kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=is_null)
    return type(column).from_arrays(column.offsets, values, type=kind, mask=is_null)


def _part(at: slice, length: int) -> tuple[int, int]:
    start, stop, step = at.indices(length)
    if step != 1:
        raise ValueError(f"a step of {step}: columns are cut into parts without gaps")
    return start, max(0, stop - start)


def _place(at: Any, length: int) -> int:
    place: int = at.__index__()
    if not -length <= place < length:
        raise IndexError(f"record {place} of {length}")
    return place % length
