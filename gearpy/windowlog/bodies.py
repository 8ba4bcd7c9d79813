"""Files of a window log: Parquet or Arrow, with a note of the batches that are in them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.errors import WindowLogDamaged

Body: TypeAlias = Literal["parquet", "arrow"]

PARQUET: Final[Body] = "parquet"
ARROW: Final[Body] = "arrow"

_KEY: Final = b"gearpy"
_US_PER_MS: Final = 1000
_PRIMES: Final = (0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D)
_NULL: Final = -1  #: Counts as this number.
_SIGN: Final = 1 << 63
_BITS: Final = (1 << 64) - 1
_BOUNDS: Final = ("window_start", "window_end")
_FIRING: Final = "firing"
_GROUP_ROWS: Final = 1 << 20
_THREADS_ROWS_MIN: Final = 10_000
_ERRORS: Final = (
    pa.ArrowException,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    RecursionError,
)


class BatchInfo(NamedTuple):
    """The note of a file on one of its batches.

    Attributes:
        starts: the oldest start of a window in it, in ms; None if there is none.
        ends: the newest end of a window in it, in ms; None if there is none.
        windows: how many there are, by start, end and firing.
        watermark: how far event time had come behind it, in ms; None if nobody said so.
        run: that wrote it; empty for that of the file.
    """

    seq: int
    rows: int
    epoch: int
    starts: int | None = None
    ends: int | None = None
    windows: int = 0
    watermark: int | None = None
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """The note of a file on itself; of a compacted file, that of its newest part."""

    app: str = ""
    app_id: str = ""
    run: str = ""
    writer: str = ""
    task: int = 0
    epoch: int = 0
    batches: Sequence[BatchInfo] = ()
    more: dict[str, Any] = field(default_factory=dict)  #: Notes of others.

    def to_json(self) -> bytes:
        known = {name: getattr(self, name) for name in self.__slots__ if name != "more"}
        known["batches"] = [each._asdict() for each in self.batches]
        return json.dumps({**self.more, **known}, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "SegmentInfo":
        found = json.loads(text)
        names = [name for name in cls.__dataclass_fields__ if name != "more"]
        known = {name: found.pop(name) for name in names if name in found}
        known["batches"] = tuple(
            BatchInfo(**{name: each[name] for name in BatchInfo._fields if name in each})
            for each in known.get("batches", ())
        )
        return cls(**known, more=found)


def body_of(name: str) -> Body:
    return ARROW if name.endswith(".arrow") else PARQUET


class ParquetBody:
    """A file of Parquet that is being written."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str) -> None:
        timed = [name for name in ("window_start", "window_end") if name in schema.names]
        self._writer = pq.ParquetWriter(
            file,
            schema,
            compression=compression,
            write_page_checksum=True,
            write_statistics=timed or False,
            use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)],
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=_GROUP_ROWS)

    def finish(self, info: SegmentInfo) -> None:
        self._writer.add_key_value_metadata({_KEY.decode(): info.to_json().decode()})
        self._writer.close()

    def abandon(self) -> None:
        with suppress(OSError):
            self._writer.close()


def write_body(
    file: BinaryIO, table: pa.Table, info: SegmentInfo, *, body: Body, compression: str = "none"
) -> None:
    if body == PARQUET:
        parquet = ParquetBody(file, table.schema, compression)
        parquet.write(table)
        parquet.finish(info)
        return
    schema = table.schema.with_metadata({_KEY: info.to_json()})
    with pa_ipc.new_file(file, schema) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))


def read_body(file: BinaryIO, *, body: Body, name: str) -> tuple[pa.Table, SegmentInfo]:
    """Raises `WindowLogDamaged` where it is no such file, `OSError` where it cannot be read."""
    try:
        if body == ARROW:
            reader = pa_ipc.open_file(file)
            table = reader.read_all()
            table.validate(full=True)  # Offsets that lie outside would end the process.
            return table.replace_schema_metadata(None), _info(reader.schema.metadata)
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        # A few rows are read before other threads are awake.
        table = parquet.read(use_threads=parquet.metadata.num_rows >= _THREADS_ROWS_MIN)
        return table.replace_schema_metadata(None), _info(parquet.metadata.metadata)
    except OSError as error:
        if "checksum" in str(error):
            raise _damage(name, error) from error
        raise
    except _ERRORS as error:
        raise _damage(name, error) from error


def read_info(file: BinaryIO, *, body: Body, name: str) -> SegmentInfo:
    try:
        if body == ARROW:
            return _info(pa_ipc.open_file(file).schema.metadata)
        return _info(pq.read_metadata(file).metadata)
    except OSError:
        raise
    except _ERRORS as error:
        raise _damage(name, error) from error


def _info(metadata: dict[bytes, bytes] | None) -> SegmentInfo:
    return SegmentInfo.from_json((metadata or {})[_KEY])


def _damage(name: str, error: Exception) -> WindowLogDamaged:
    reason = str(error) if isinstance(error, pa.ArrowException) else repr(error)
    return WindowLogDamaged(file=name, reason=f"it cannot be read: {reason:.300}")


class BatchNotes:
    """Gathers the note of a file on a batch while its rows come: rows, times and windows."""

    def __init__(self) -> None:
        self.rows = 0
        self._starts: int | None = None
        self._ends: int | None = None
        # Windows as one number each: those of parts that have a single one; else of each part.
        self._single: set[int] = set()
        self._windows: list[pa.Array] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        types = {each.name: each.type for each in batch.schema}
        are_windows = all(name in types and pa.types.is_timestamp(types[name]) for name in _BOUNDS)
        if not batch.num_rows or not are_windows:
            return
        columns = [batch.column(name).view(pa.int64()) for name in _BOUNDS]
        if _FIRING in types and pa.types.is_integer(types[_FIRING]):
            columns.append(batch.column(_FIRING).cast(pa.int64()))
        bounds = [pc.min_max(column).as_py() for column in columns]
        starts, ends = bounds[0]["min"], bounds[1]["max"]
        if starts is not None:
            starts //= _US_PER_MS
            self._starts = starts if self._starts is None else min(self._starts, starts)
        if ends is not None:
            ends //= _US_PER_MS
            self._ends = ends if self._ends is None else max(self._ends, ends)
        numbers: list[int] = []
        for column, bound in zip(columns, bounds, strict=True):
            if column.null_count == len(column):
                numbers.append(_NULL)
            elif bound["min"] == bound["max"] and not column.null_count:
                numbers.append(bound["min"])
        # One number for each row that others than of one window hardly share.
        if len(numbers) == len(columns):
            one = 0
            for number in numbers:  # Products overflow as those of Arrow do.
                one = one * _PRIMES[0] ^ number * _PRIMES[1]
            self._single.add((one + _SIGN & _BITS) - _SIGN)
        else:
            mixed: Any = pa.scalar(0, pa.int64())
            for column in columns:
                filled = pc.multiply(pc.fill_null(column, _NULL), _PRIMES[1])
                mixed = pc.bit_wise_xor(pc.multiply(mixed, _PRIMES[0]), filled)
            self._windows.append(pc.unique(mixed))

    def info(self, *, seq: int, epoch: int, watermark: int | None) -> BatchInfo:
        count = len(self._single)
        if self._windows:
            parts = [*self._windows, pa.array(sorted(self._single), pa.int64())]
            count = pc.count_distinct(pa.chunked_array(parts)).as_py()
        return BatchInfo(seq, self.rows, epoch, self._starts, self._ends, count, watermark)
