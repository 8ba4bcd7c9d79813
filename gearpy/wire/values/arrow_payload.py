"""The rows of a table <-> bytes: ``u8 padding | padding | Arrow IPC stream``.

The stream holds its schema and one record batch, whose last column has the event times; where some
are late, one more has what had been promised before each, and says so in its name. The padding puts
it at a multiple of 8 bytes of the frame: columns that begin there are used as they are, where they
were received; others are copied once.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from gearpy.errors import ConfigError, ProtocolError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, with_leaves
from gearpy.wire.values.extensions import MALFORMED

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: Arrow wants its columns to begin at a multiple of this.
_ALIGNMENT: Final = 8
#: Names of the columns behind those of the table; only the last one counts.
_TIMES: Final = ""
_PROMISED: Final = "#promised"
_HEAD_BYTES: Final = 8  # Of a message, with the number of bytes that follow.
#: The end of a stream.
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


@lru_cache(maxsize=512)
def _schema_of(encoded: bytes) -> "tuple[pa.Schema, bool]":
    """Return a schema, and whether dictionaries come behind it."""
    import pyarrow as pa  # noqa: PLC0415 - there is a schema, so Arrow is there

    has_dictionary = False

    def look(leaf: "pa.DataType") -> "pa.DataType":
        nonlocal has_dictionary
        has_dictionary |= pa.types.is_dictionary(leaf)
        return leaf

    schema = pa.ipc.read_schema(pa.py_buffer(encoded))
    for kind in schema.types:
        with_leaves(kind, look)
    return schema, has_dictionary


@lru_cache(maxsize=256)
def _schema_sent(encoded: bytes, *, is_late: bool) -> bytes:
    """Return a schema with columns of times as it is sent; b"" if dictionaries come behind.

    It is given as bytes, as schemas that differ in their metadata alone are equal.
    """
    schema, has_dictionary = _schema_of(encoded)
    for field in _fields_of_times()[: 1 + is_late]:
        schema = schema.append(field)
    return b"" if has_dictionary else bytes(schema.serialize())


@cache
def _fields_of_times() -> "tuple[pa.Field, pa.Field]":
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there

    times, promised = (pa.field(each, pa.int64(), nullable=False) for each in (_TIMES, _PROMISED))
    return times, promised


def encode_table(table: Table, timestamps: list[int], *, lead: int) -> list[bytes | memoryview]:
    """Return a table and its times as buffers to join, behind ``lead`` bytes of others."""
    import pyarrow as pa  # noqa: PLC0415 - the table is there, so Arrow is

    batch, times = table.batch, Times.of(timestamps)
    padding = -(lead + 1) % _ALIGNMENT
    head = bytes((padding,)) + bytes(padding)
    try:
        of_rows = batch.schema.serialize().to_pybytes()
        encoded = _schema_sent(of_rows, is_late=times.promised is not None)
        of_times, of_promises = _fields_of_times()
        whole = batch.append_column(of_times, times.array)
        if times.promised is not None:
            whole = whole.append_column(of_promises, times.promised)
        if encoded:
            # As a stream has it, but in memory of just its size, without a second copy.
            return [head + encoded, memoryview(whole.serialize()).cast("B"), _END]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_batch(whole)
    except pa.ArrowException as error:
        raise ConfigError(f"a table cannot be sent to another process: {error}") from error
    return [head, memoryview(sink.getvalue()).cast("B")]


def decode_table(body: memoryview, count: int) -> Batch:
    """Return the ``count`` rows that `encode_table` made into ``body``; they share its memory."""
    import pyarrow as pa  # noqa: PLC0415 - Arrow is loaded for columns only

    try:
        batch = _read(body[1 + body[0] :])
        promised = None
        if batch.schema.names[-1] == _PROMISED:
            promised, batch = batch.column(batch.num_columns - 1), _without_last(batch)
            Times(promised)  # It checks them.
        times = batch.column(batch.num_columns - 1)
        if batch.num_rows != count or times.type != pa.int64() or times.null_count:
            raise ProtocolError(
                f"a table of {batch.num_rows} rows with {times.type} event times, "
                f"{times.null_count} of them missing, came for {count} rows"
            )
        table = Table(_without_last(batch))
        return Batch(table, Times(times, promised), has_late=promised is not None)
    except (*MALFORMED, pa.ArrowException, EOFError, StopIteration) as error:
        raise ProtocolError(f"malformed table of {count} rows: {error}") from error


def _read(view: memoryview) -> "pa.RecordBatch":
    """Return the only batch of a stream, checked: Arrow trusts the columns' own metadata."""
    import pyarrow as pa  # noqa: PLC0415 - see above

    buffer = pa.py_buffer(view)
    if buffer.address % _ALIGNMENT:
        buffer = pa.py_buffer(bytes(view))
    end = _HEAD_BYTES + int.from_bytes(view[4:_HEAD_BYTES], "little")
    schema, has_dictionary = _schema_of(bytes(view[:end]))
    batch: Any = None
    if not has_dictionary:  # Most schemas came before, and to read one takes as long as 1000 rows.
        source = pa.BufferReader(buffer.slice(end))
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(source), schema)
        is_whole = bytes(view[end + source.tell() :]) == _END
    else:
        source = pa.BufferReader(buffer)
        with pa.ipc.open_stream(source) as reader:
            batch = reader.read_next_batch()
            is_whole = next(iter(reader), None) is None and source.tell() == len(view)
    if not is_whole:
        raise ProtocolError("more than one batch of a table came")
    batch.validate(full=True)
    return batch


def _without_last(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return a batch without its last column, also where others have the same name."""
    import pyarrow as pa  # noqa: PLC0415 - see above

    if batch.num_columns == 1:  # No column would tell how many rows there are.
        empty = pa.array([{}] * batch.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)
    return batch.remove_column(batch.num_columns - 1)
