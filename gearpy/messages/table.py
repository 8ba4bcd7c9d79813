"""Records as columns: what `Batch.values` and `Batch.timestamps` are on the columnar path.

To the type checker both are lists, which they are for rows, the rule: they have a length, parts
and an order like one. Nothing is ever appended to them. Who may meet either asks ``type(values)
is Table``. Arrow is loaded by whoever makes the first table.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, overload

from gearpy.errors import ConfigError

__all__ = ["ROWS_PER_CREDIT", "Table", "Times", "credit_of", "newest_of", "oldest_of", "rows_of"]

#: So many rows of a table count for flow control as one record. What a row of a column takes, of
#: time and of memory, is about so much less than what a record of its own takes.
ROWS_PER_CREDIT: Final = 64

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
        """How much memory the rows take; exactly, as far as Arrow knows."""
        return int(self.batch.nbytes)

    def take(self, places: "pa.Array") -> "Table":
        """Return the rows at these places, in this order."""
        return Table(self.batch.take(places))

    def filter(self, mask: "pa.BooleanArray") -> "Table":
        """Return the rows where the mask is true."""
        return Table(self.batch.filter(mask))


class Times(_Times):
    """Event times in ms as one `pyarrow.Int64Array`. Immutable.

    Raises:
        ConfigError: the array is of another type, or a time is missing.
    """

    __slots__ = ("array",)

    def __init__(self, array: "pa.Array") -> None:
        import pyarrow as pa  # noqa: PLC0415 - whoever made the array has loaded it

        if array.type != pa.int64() or array.null_count:
            raise ConfigError(
                f"event times are {array.type} with {array.null_count} nulls: give int64 "
                "milliseconds since the epoch, one for each record"
            )
        self.array = array

    @classmethod
    def of(cls, times: Iterable[int]) -> "Times":
        """Make an array of some times.

        Raises:
            ConfigError: one is no int64.
        """
        import pyarrow as pa  # noqa: PLC0415 - who needs no columns needs no Arrow

        if isinstance(times, Times):
            return times
        listed = list(times)
        for wrong in (time for time in listed if type(time) is not int):
            raise ConfigError(f"timestamp {wrong!r} is no int: give ms since the epoch")
        try:
            return cls(pa.array(listed, pa.int64()))
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
            return Times(self.array.slice(start, length))
        return self.array[_place(at, len(self))].as_py()

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.to_pylist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Times):
            return bool(self.array.equals(other.array))
        return NotImplemented

    __hash__ = None  # Like that of a list.

    def __repr__(self) -> str:
        return f"Times({len(self)})"

    def take(self, places: "pa.Array") -> "Times":
        """Return the times at these places, in this order."""
        return Times(self.array.take(places))

    def filter(self, mask: "pa.BooleanArray") -> "Times":
        """Return the times where the mask is true."""
        return Times(self.array.filter(mask))

    def bounds(self) -> tuple[int, int]:
        """Return the oldest and the newest time; there is at least one."""
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

        found = pc.min_max(self.array)
        return found["min"].as_py(), found["max"].as_py()


def credit_of(values: list[Any]) -> int:
    """Return what flow control counts for some records; both ends of a link ask here."""
    if type(values) is Table:
        return -(-len(values) // ROWS_PER_CREDIT)
    return len(values)


def oldest_of(timestamps: list[int], default: int) -> int:
    """Return the oldest time, or the default where there is none."""
    if type(timestamps) is Times:
        return timestamps.bounds()[0] if len(timestamps) else default
    return min(timestamps, default=default)


def newest_of(timestamps: list[int], default: int) -> int:
    """Return the newest time, or the default where there is none."""
    if type(timestamps) is Times:
        return timestamps.bounds()[1] if len(timestamps) else default
    return max(timestamps, default=default)


def rows_of(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """Return the rows of a record batch as dicts; a map in a column as a dict, too."""
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    return rows


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
