"""Gathers the note of a file on a batch while its rows come."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.windowlog.bodies import BatchInfo

_US_PER_MS: Final = 1000
_PRIMES: Final = (0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D)
_NULL: Final = -1  #: Counts as this number.
_SIGN: Final = 1 << 63
_BITS: Final = (1 << 64) - 1
_BOUNDS: Final = ("window_start", "window_end")
_FIRING: Final = "firing"


class BatchNotes:
    """Rows, times and windows of the next batch."""

    def __init__(self) -> None:
        self.rows = 0
        self._starts: int | None = None
        self._ends: int | None = None
        # Windows as one number each: those of parts that have a single one; else of each part.
        self._single: set[int] = set()
        self._windows: list[pa.Array] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if batch.num_rows and _has_windows(batch.schema):
            self._add_windows(batch)

    def info(self, *, seq: int, epoch: int, watermark: int | None) -> BatchInfo:
        count = len(self._single)
        if self._windows:
            parts = [*self._windows, pa.array(sorted(self._single), pa.int64())]
            count = pc.count_distinct(pa.chunked_array(parts)).as_py()
        return BatchInfo(seq, self.rows, epoch, self._starts, self._ends, count, watermark)

    def _add_windows(self, batch: pa.RecordBatch) -> None:
        names = list(_BOUNDS) + ([_FIRING] if _has_firings(batch.schema) else [])
        columns = [_numbers(batch.column(name)) for name in names]
        bounds = [pc.min_max(column).as_py() for column in columns]
        self._starts = _least(self._starts, _ms_of(bounds[0]["min"]))
        self._ends = _greatest(self._ends, _ms_of(bounds[1]["max"]))
        single = [_single(column, bound) for column, bound in zip(columns, bounds, strict=True)]
        numbers = [number for number in single if number is not None]
        if len(numbers) == len(single):
            self._single.add(_mixed_one(numbers))
        else:
            self._windows.append(pc.unique(_mixed(columns)))


def _numbers(column: pa.Array) -> pa.Array:
    is_time = pa.types.is_timestamp(column.type)
    return column.view(pa.int64()) if is_time else column.cast(pa.int64())


def _single(column: pa.Array, bound: Mapping[str, int | None]) -> int | None:
    if column.null_count == len(column):
        return _NULL
    return bound["min"] if bound["min"] == bound["max"] and not column.null_count else None


def _mixed(columns: Sequence[pa.Array]) -> pa.Array:
    """Return one number for each row that others than of one window hardly share."""
    mixed: Any = pa.scalar(0, pa.int64())
    for column in columns:
        filled = pc.fill_null(column, _NULL)
        mixed = pc.bit_wise_xor(pc.multiply(mixed, _PRIMES[0]), pc.multiply(filled, _PRIMES[1]))
    return mixed


def _mixed_one(numbers: Sequence[int]) -> int:
    """Return the same for the numbers of one row; products overflow as those of Arrow do."""
    mixed = 0
    for number in numbers:
        mixed = _int64(_int64(mixed * _PRIMES[0]) ^ _int64(number * _PRIMES[1]))
    return mixed


def _int64(number: int) -> int:
    return (number + _SIGN & _BITS) - _SIGN


def _ms_of(time_us: int | None) -> int | None:
    return None if time_us is None else time_us // _US_PER_MS


def _has_windows(schema: pa.Schema) -> bool:
    return all(
        name in schema.names and pa.types.is_timestamp(schema.field(name).type) for name in _BOUNDS
    )


def _has_firings(schema: pa.Schema) -> bool:
    return _FIRING in schema.names and pa.types.is_integer(schema.field(_FIRING).type)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _greatest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
