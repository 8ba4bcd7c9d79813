"""Files of a window log: Parquet or Arrow, with a note of the batches that are in them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.errors import WindowLogDamaged

Body: TypeAlias = Literal["parquet", "arrow"]

PARQUET: Final[Body] = "parquet"
ARROW: Final[Body] = "arrow"

_KEY: Final = b"gearpy"
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
        """Return the content of a note; unknown keys stay in ``more``.

        Raises:
            ValueError: it is no note.
        """
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
    """Write a table and the note of its batches into an empty file.

    Args:
        compression: a codec of Parquet; Arrow files are written as they are in memory.
    """
    if body == PARQUET:
        parquet = ParquetBody(file, table.schema, compression)
        parquet.write(table)
        parquet.finish(info)
        return
    schema = table.schema.with_metadata({_KEY: info.to_json()})
    with pa_ipc.new_file(file, schema) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))


def read_body(file: BinaryIO, *, body: Body, name: str) -> tuple[pa.Table, SegmentInfo]:
    """Return the table of a file, and its note.

    Raises:
        WindowLogDamaged: it is no such file.
        OSError: it cannot be read.
    """
    try:
        if body == ARROW:
            reader = pa_ipc.open_file(file)
            table = reader.read_all()
            table.validate(full=True)  # To use offsets that lie outside ends the process.
            return table.replace_schema_metadata(None), _info(reader.schema.metadata)
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        # To wake other threads takes longer than to read a few rows.
        table = parquet.read(use_threads=parquet.metadata.num_rows >= _THREADS_ROWS_MIN)
        return table.replace_schema_metadata(None), _info(parquet.metadata.metadata)
    except OSError as error:
        if "checksum" in str(error):
            raise _damage(name, error) from error
        raise
    except _ERRORS as error:
        raise _damage(name, error) from error


def read_info(file: BinaryIO, *, body: Body, name: str) -> SegmentInfo:
    """Return the note of a file.

    Raises:
        WindowLogDamaged: it is no such file.
        OSError: it cannot be read.
    """
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
