"""Functions for ``mapInArrow``, by which Spark's Python workers run a plan.

A function reads its input (partitions of a source, columns, pieces of an aggregate, windows that
SQL has aggregated), runs some steps, and gives its output (columns, pieces, records as bytes).
All steps between two exchanges run in one such function. Without Spark: nothing here imports it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.row_schema import RowSchema
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.spark.query.groups import Combiner, Merger
from gearpy.spark.query.plan import TIME, BatchStep, GroupStep, RowsStep
from gearpy.task.api.interfaces import Source, TaskContext, TaskLimits
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.window_result import result_of
from gearpy.task.chain.fused import fused_stages
from gearpy.task.chain.stage import Stage
from gearpy.task.stages.tables import MapBatchesStage, RowsStage, TableStage
from gearpy.wire.values.forms import RecordType
from gearpy.wire.values.payload import decode_batch, encode_batch
from gearpy.wire.values.records import DEFAULT_REGISTRY

if TYPE_CHECKING:
    from gearpy.spark.query.sql import SqlGroup

PIECES: Final = pa.schema(
    [("bucket", pa.int32()), ("at", pa.int64()), ("entries", pa.int32()), ("body", pa.binary())]
)
RECORDS: Final = pa.schema([("entries", pa.int32()), ("body", pa.binary())])

_READ_ROWS: Final = 4096
_READ_TABLE_ROWS: Final = 65_536
_RECORDS_MAX: Final = 4096
#: Pieces of one part of the input are numbered, and stand behind those of the parts before.
_PIECES_OF_PART: Final = 1 << 32

Batches = Iterator[pa.RecordBatch]


class _In(Protocol):
    """Reads the input of a function, part by part: the part's number, and its columns."""

    def parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]: ...


class _Out(Protocol):
    """Makes Arrow batches of the results of the steps."""

    def batches(self, parts: Iterable[tuple[int, Iterable[Batch]]]) -> Batches: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One function for ``mapInArrow``.

    Attributes:
        records: how classes travel that are not known where it runs, by their names.
    """

    reads: _In
    steps: tuple[RowsStep | BatchStep, ...] = ()
    gives: _Out
    records: Mapping[str, RecordType] = field(default_factory=dict)

    def __call__(self, batches: Batches) -> Batches:
        for record in self.records.values():
            DEFAULT_REGISTRY.adopt(record)
        yield from self.gives.batches(self._parts(batches))

    def _parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]:
        steps = self.steps
        stages: list[Stage] = []
        for step in steps:
            if isinstance(step, RowsStep):
                stages.append(_Rows(step.takes))
                stages += fused_stages(step.operators, limit=_RECORDS_MAX)
            else:
                stages.append(TableStage(_context(), step.name, step.takes))
                stages.append(
                    MapBatchesStage(
                        _context(),
                        step.name,
                        step.function,
                        step.form,
                        times=step.times,
                        gives=step.gives,
                    )
                )

        for number, part in self.reads.parts(batches):
            yield number, _passed(stages, part)


def _passed(stages: Sequence[Stage], batches: Iterable[Batch]) -> Iterator[Batch]:
    if not stages:
        yield from batches
        return
    first, *rest = stages
    for batch in batches:
        if len(batch):
            yield from _passed(rest, first.process(batch))


# -- the steps -------------------------------------------------------------------------------------


class _Rows(Stage):
    """Makes rows of tables, and lets rows pass."""

    def __init__(self, takes: RowSchema | None) -> None:
        self._stage = RowsStage(_context(), "rows", takes)

    def process(self, batch: Batch) -> Iterator[Batch]:
        return self._stage.process(batch) if type(batch.values) is Table else iter((batch,))


def _context() -> TaskContext:
    limits = TaskLimits(batch_records=_RECORDS_MAX)
    return cast("TaskContext", SimpleNamespace(rejects=Rejects(), limits=limits))


# -- input -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionsIn:
    """Partitions of a source, by their numbers in a column ``id``: each is a part."""

    source: Source
    names: Sequence[str]

    def parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield number, self._read(self.names[number])

    def _read(self, name: str) -> Iterator[Batch]:
        size = _READ_ROWS if self.source.schema is None else _READ_TABLE_ROWS
        reader = self.source.open(name, None)
        try:
            while not reader.finished:
                batch = reader.read_batch(size)
                if batch is not None and len(batch):
                    yield batch
        finally:
            reader.close()


@dataclass(frozen=True, slots=True)
class ColumnsIn:
    """Columns with event times; their order is not known."""

    schema: pa.Schema

    def parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]:
        yield 0, (self._columns(batch) for batch in batches if batch.num_rows)

    def _columns(self, batch: pa.RecordBatch) -> Batch:
        times = Times(batch.column(TIME).cast(pa.int64()))
        columns = [batch.column(each.name).cast(each.type) for each in self.schema]
        return Batch(Table(pa.RecordBatch.from_arrays(columns, schema=self.schema)), times)


@dataclass(frozen=True, slots=True)
class PiecesIn:
    """Pieces of an aggregate, all of some keys."""

    step: GroupStep

    def parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]:
        merger = Merger(self.step)
        pieces: list[tuple[int, int, bytes]] = []
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("at", "entries", "body"))
            pieces += zip(*columns, strict=True)
        for _, entries, body in sorted(pieces, key=lambda piece: piece[0]):
            merger.add(entries, body)
        yield 0, merger.results()


@dataclass(frozen=True, slots=True)
class WindowsIn:
    """Windows that SQL has aggregated."""

    group: "SqlGroup"

    def parts(self, batches: Batches) -> Iterator[tuple[int, Iterable[Batch]]]:
        yield 0, (self.rows(batch) for batch in batches if batch.num_rows)

    def rows(self, batch: pa.RecordBatch) -> Batch:
        keys, values, starts, ends = self.group.cells(batch)
        rows = [
            result_of((key, value, start, end, 0, "on-time", False))
            for key, value, start, end in zip(keys, values, starts, ends, strict=True)
        ]
        return Batch(rows, [end - 1 for end in ends])


# -- output ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnsOut:
    """Some columns, of the types that Spark has, and event times."""

    schema: pa.Schema

    def batches(self, parts: Iterable[tuple[int, Iterable[Batch]]]) -> Batches:
        schema = self.schema.append(pa.field(TIME, pa.int64()))
        for _, batches in parts:
            for batch in batches:
                table, times = batch.values, Times.of(batch.timestamps)
                assert type(table) is Table, "these steps give columns"
                arrays = [table.batch.column(each.name).cast(each.type) for each in self.schema]
                yield pa.RecordBatch.from_arrays([*arrays, times.array], schema=schema)


@dataclass(frozen=True, slots=True)
class PiecesOut:
    """Makes pieces of an aggregate out of each part of the input."""

    step: GroupStep
    buckets: int

    def batches(self, parts: Iterable[tuple[int, Iterable[Batch]]]) -> Batches:
        for number, batches in parts:
            combiner = Combiner(self.step, self.buckets)
            rows = _Rows(self.step.takes)
            for batch in batches:
                for each in rows.process(batch):
                    combiner.add(each.values, each.timestamps)
            for at, piece in enumerate(combiner.pieces(), number * _PIECES_OF_PART):
                yield _row(PIECES, piece.bucket, at, piece.entries, piece.body)


@dataclass(frozen=True, slots=True)
class RecordsOut:
    """Records with their event times, as bytes: exactly as they are."""

    takes: RowSchema | None = None

    def batches(self, parts: Iterable[tuple[int, Iterable[Batch]]]) -> Batches:
        for batch in _rows_of(parts, self.takes):
            body = b"".join(encode_batch(batch.values, batch.timestamps))
            yield _row(RECORDS, len(batch), body)


@dataclass(frozen=True, slots=True)
class TableOut:
    """Records as the columns of a table that people read.

    Attributes:
        make: returns the columns of some records with their event times.
        takes: the schema by which columns become rows, where columns come.
    """

    make: Callable[[list[Any], list[int]], pa.RecordBatch]
    takes: RowSchema | None = None

    def batches(self, parts: Iterable[tuple[int, Iterable[Batch]]]) -> Batches:
        for batch in _rows_of(parts, self.takes):
            yield self.make(batch.values, batch.timestamps)


def decoded(table: pa.Table) -> Iterator[Batch]:
    columns = (table.column(name).to_pylist() for name in RECORDS.names)
    for count, body in zip(*columns, strict=True):
        yield decode_batch(body, count)


def _rows_of(
    parts: Iterable[tuple[int, Iterable[Batch]]], takes: RowSchema | None
) -> Iterator[Batch]:
    rows = _Rows(takes)
    for _, batches in parts:
        for batch in batches:
            for each in rows.process(batch):
                if each.values:
                    yield Batch(list(each.values), list(each.timestamps))


def _row(schema: pa.Schema, *cells: Any) -> pa.RecordBatch:
    arrays = [pa.array([cell], field.type) for cell, field in zip(cells, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
