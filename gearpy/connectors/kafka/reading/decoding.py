"""Makes batches of the records of a partition: values, event times, the fate of bad ones."""

from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.connectors.files.line_formats import read_json_lines
from gearpy.connectors.files.tables import (
    ARROW_ERRORS,
    BadRows,
    FilePiece,
    Fit,
    OnBad,
    fitting_parts,
)
from gearpy.connectors.json_checks import NOT_AN_OBJECT, cause_of
from gearpy.connectors.kafka.reading.raw import BETWEEN, JoinedBodies, Raw, RawColumns, are_apart
from gearpy.connectors.kafka.registry import RegistryAway
from gearpy.connectors.kafka.values import ValueForm
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, newest_of
from gearpy.task.api.sides import BadRecord, SetAside
from gearpy.wire.values.records import register_record

_NOT_ONE: Final = "is not one object of JSON"
_OF_PARSER: Final = frozenset({_NOT_ONE, NOT_AN_OBJECT})
_NO_VALUE: Final = "there is no value: the record deletes its key"

#: Columns that `KafkaRecord` has as fields; a table has them beside those of its schema.
RECORD_COLUMNS: Final = pa.schema(
    [
        ("kafka_key", pa.binary()),
        ("kafka_timestamp", pa.int64()),
        ("kafka_topic", pa.string()),
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
        ("kafka_headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
    ]
)


class KafkaRecord(NamedTuple):
    """A record of a topic with all that Kafka knows of it.

    Attributes:
        value: as ``value=`` of the source says.
        key: as ``key=`` of the source says; None where there is none.
        timestamp: Kafka's time of the record, in ms since the epoch.
        topic: its name.
        partition: number of the partition in the topic.
        offset: place in the partition.
        headers: names and values, in their order.
    """

    value: Any
    key: Any
    timestamp: int
    topic: str
    partition: int
    offset: int
    headers: tuple[tuple[str, bytes | None], ...]


register_record(KafkaRecord, "gearpy.KafkaRecord")


class Begun(NamedTuple):
    """Records whose values are being parsed: ``rows`` waits for them, and returns or raises."""

    raw: Raw
    rows: Callable[[], pa.RecordBatch]
    is_done: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The way in which records are read; the same for all partitions.

    Attributes:
        schema: of the tables to give, without `RECORD_COLUMNS`; None for rows.
        has_time: whether values tell event times; without it they are those of Kafka.
        records: whether `KafkaRecord`s are given, or tables with their columns.
        bound_ms: how far event times are out of order.
        starts_ms: records with an older event time are left out.
    """

    operator: str
    form: ValueForm
    key_form: ValueForm
    schema: RowSchema | None
    fit: Fit
    has_time: bool
    records: bool
    on_bad: OnBad
    bound_ms: int
    starts_ms: int

    @property
    def columns(self) -> RawColumns:
        return RawColumns(
            times=self.records or not self.has_time, rest=self.records, joins=self.joins
        )

    @property
    def joins(self) -> bool:
        """Whether values are parsed many at a time, without an object of Python for each."""
        return self.schema is not None and self.form.name == "json"

    def begin(self) -> None:
        self.form.begin(self.operator)
        self.key_form.begin(self.operator)


class RecordDecoder:
    def __init__(
        self, reading: Reading, topic: str, partition: int, watermark_ms: int = MIN_MS
    ) -> None:
        self._reading = reading
        self._topic = topic
        self._partition = partition
        self._order = BoundedOutOfOrder(reading.bound_ms)
        self._order.watermark_ms = watermark_ms
        self._aside = SetAside()
        self._bad = BadRows(reading.operator, f"{topic}/{partition}", reading.on_bad, self._aside)

    @property
    def skipped(self) -> int:
        return self._bad.skipped

    def take_bad(self) -> Sequence[BadRecord]:
        return self._aside.take()

    @property
    def watermark_ms(self) -> int:
        return self._order.watermark_ms

    def begin(self, raw: Raw, executor: Executor) -> Begun:
        """Have values parsed while the caller goes on; nobody may change the records meanwhile."""
        rows = executor.submit(_json_rows, raw.bodies, self._reading.fit.schema)
        return Begun(raw, rows.result, rows.done)

    def batch(self, raw: Raw, rows: Callable[[], pa.RecordBatch] | None = None) -> Batch | None:
        """Return the batch of some records, whose rows may be parsed; None if none is left."""
        try:
            pieces = [self._piece(raw, rows)]
        except ARROW_ERRORS:
            pieces = self._without_bad(raw)
        piece = _joined([piece for piece in pieces if len(piece)])
        batch = None if piece is None else self._started(piece)
        if batch is not None:
            self._order.on_records([newest_of(batch.timestamps, MIN_MS)])
        return batch

    def _without_bad(self, raw: Raw) -> list[FilePiece]:
        reading, mark = self._reading, self._bad.mark
        raw = raw.part(0, len(raw))  # Its values can be read one by one.

        def on_bad(at: int, error: Exception) -> None:
            body, cause = raw.bodies[at], str(error)
            is_of_parser = isinstance(error, pa.ArrowException) or cause in _OF_PARSER
            if body is not None and reading.joins and is_of_parser:
                cause = cause_of(body, reading.fit.schema, read_json_lines)
            time_ms = None if reading.has_time else int(raw.times[at])
            self._bad.take(f"offset {raw.offsets[at]}", cause, body, time_ms=time_ms)

        def make(places: Sequence[int]) -> FilePiece:
            assert isinstance(places, range)
            return self._piece(raw.part(places.start, places.stop))

        try:
            return list(fitting_parts(range(len(raw)), make, on_bad))
        except RegistryAway:  # All of them are decoded again.
            self._bad.go_back(mark)
            raise

    def _piece(self, raw: Raw, rows: Callable[[], pa.RecordBatch] | None = None) -> FilePiece:
        reading = self._reading
        values = self._values(raw) if rows is None else rows()
        piece = reading.fit.piece(values)
        times = piece.times if reading.has_time else raw.times
        if not reading.records:
            return FilePiece(piece.values, times)
        if reading.schema is not None:
            count = len(raw)
            headers = [[{"name": n, "value": v} for n, v in each] for each in raw.headers]
            made = [
                raw.keys,
                raw.times,
                pa.repeat(self._topic, count),
                pa.repeat(pa.scalar(self._partition, pa.int32()), count),
                raw.offsets,
                headers,
            ]
            columns = [
                each if isinstance(each, pa.Array) else pa.array(each, field.type)
                for each, field in zip(made, RECORD_COLUMNS, strict=True)
            ]
            schema = pa.schema([*piece.values.schema, *RECORD_COLUMNS])
            columns = [*piece.values.columns, *columns]
            return FilePiece(pa.RecordBatch.from_arrays(columns, schema=schema), times)
        try:
            keys = reading.key_form.decode(raw.keys)
        except ARROW_ERRORS as error:
            raise ValueError(f"the key: {error}") from error
        topic, number = self._topic, self._partition
        records = [
            KafkaRecord(value, key, time, topic, number, offset, headers)
            for value, key, time, offset, headers in zip(
                piece.values, keys, raw.times, raw.offsets, raw.headers, strict=True
            )
        ]
        return FilePiece(records, times)

    def _values(self, raw: Raw) -> Any:
        reading = self._reading
        if reading.schema is None:
            return reading.form.decode(raw.bodies)
        if reading.joins:
            return _json_rows(raw.bodies, reading.fit.schema)
        if None in raw.bodies:
            raise ValueError(_NO_VALUE)
        values = reading.form.decode(raw.bodies)
        try:
            return RowSchema(reading.fit.schema).table(values)
        except OperatorError as error:
            raise ValueError(error.cause) from error

    def _started(self, piece: FilePiece) -> Batch | None:
        starts_ms = self._reading.starts_ms
        values: Any = piece.values
        times: Any = piece.times
        if self._reading.schema is None:
            listed = times if isinstance(times, list) else times.to_pylist()
            if starts_ms > MIN_MS and min(listed) < starts_ms:
                kept = [at for at, time in enumerate(listed) if time >= starts_ms]
                values, listed = [values[at] for at in kept], [listed[at] for at in kept]
            return Batch(values, listed) if values else None
        column = times
        if isinstance(times, list):
            body = pa.py_buffer(array("q", times))
            column = pa.Array.from_buffers(pa.int64(), len(times), [None, body])
        if starts_ms > MIN_MS and pc.min(column).as_py() < starts_ms:
            mask = pc.greater_equal(column, starts_ms)
            values, column = values.filter(mask), column.filter(mask)
        return Batch(Table(values), Times(column)) if len(column) else None


def _json_rows(bodies: Sequence[bytes | None], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of objects in JSON, without an object of Python for each."""
    if isinstance(bodies, JoinedBodies):
        joined = BETWEEN.join(bodies.pieces)
    elif None in bodies:
        raise ValueError(_NO_VALUE)
    else:
        joined = BETWEEN.join([body.strip() for body in bodies if body is not None])
        if not are_apart(joined, len(bodies)):
            raise ValueError(_NOT_ONE)
    rows = read_json_lines(joined, schema)
    if rows.num_rows != len(bodies):
        raise ValueError(_NOT_ONE)
    return rows


def _joined(pieces: Sequence[FilePiece]) -> FilePiece | None:
    if len(pieces) < 2:  # noqa: PLR2004 - nothing to join
        return pieces[0] if pieces else None
    if isinstance(pieces[0].values, list):
        values: Any = [value for piece in pieces for value in piece.values]
    else:
        table = pa.Table.from_batches([piece.values for piece in pieces])
        (values,) = table.combine_chunks().to_batches()
    times: list[Any] = [piece.times for piece in pieces]
    if isinstance(times[0], list):
        return FilePiece(values, [time for each in times for time in each])
    return FilePiece(values, pa.concat_arrays(times))
