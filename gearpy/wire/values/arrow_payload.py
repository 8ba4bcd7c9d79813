"""The rows of a table <-> bytes: ``u8 padding | padding | Arrow IPC stream``.

The stream holds its schema and one record batch, whose last column has the event times; where some
are late, one more has what had been promised before each, and says so in its name. The padding puts
it at a multiple of 8 bytes of the frame: columns that begin there are used as they are, where they
were received; others are copied once.
"""

from typing import TYPE_CHECKING, Any, Final

from gearpy.errors import ConfigError, ProtocolError
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.wire.values.extensions import MALFORMED

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

#: Arrow wants its columns to begin at a multiple of this.
_ALIGNMENT: Final = 8
#: Names of the columns behind those of the table; only the last one counts.
_TIMES: Final = ""
_PROMISED: Final = "#promised"


def encode_table(table: Table, timestamps: list[int], *, lead: int) -> list[bytes | memoryview]:
    """Return a table and its times as buffers to join, behind ``lead`` bytes of others."""
    import pyarrow as pa  # noqa: PLC0415 - the table is there, so Arrow is

    batch, times = table.batch, Times.of(timestamps)
    schema = batch.schema.append(pa.field(_TIMES, pa.int64(), nullable=False))
    columns = [*batch.columns, times.array]
    if times.promised is not None:
        schema = schema.append(pa.field(_PROMISED, pa.int64(), nullable=False))
        columns.append(times.promised)
    sink = pa.BufferOutputStream()
    try:
        whole = pa.RecordBatch.from_arrays(columns, schema=schema)
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(whole)
    except pa.ArrowException as error:
        raise ConfigError(f"a table cannot be sent to another process: {error}") from error
    padding = -(lead + 1) % _ALIGNMENT
    return [bytes((padding,)) + bytes(padding), memoryview(sink.getvalue()).cast("B")]


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
    source = pa.BufferReader(buffer)
    with pa.ipc.open_stream(source) as reader:
        batch: Any = reader.read_next_batch()
        if next(iter(reader), None) is not None or source.tell() != len(view):
            raise ProtocolError("more than one batch of a table came")
    batch.validate(full=True)
    return batch


def _without_last(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return a batch without its last column, also where others have the same name."""
    import pyarrow as pa  # noqa: PLC0415 - see above

    if batch.num_columns == 1:  # No column would tell how many rows there are.
        empty = pa.array([{}] * batch.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)
    schema = batch.schema
    kept = schema.remove(len(schema) - 1)
    return pa.RecordBatch.from_arrays(batch.columns[:-1], schema=kept)
