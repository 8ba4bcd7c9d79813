"""Shows the parts that tasks have written as one batch of a log, once. Knows no Spark.

The rows that a task has written are a *part*: no reader sees it until the driver has made one file
of all parts and moved it into its place. Before that, a crash leaves nothing to be seen; after it,
the batch is recognised when Spark delivers it again: by the name of the file, or by a note of the
last batch of each query, which is made before anything else is written into the lane.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any, Final, NamedTuple
from uuid import uuid4

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.spark_types import exact_schema, spark_schema
from gearpy.connectors.files.column_times import times_of
from gearpy.core.handover.ledger import LedgerClaim, LedgerEntry
from gearpy.core.handover.window_log import (
    LOG_FOLDERS,
    OWNERS,
    PENDING,
    LogSegment,
    LogView,
    lane_name,
    segment_name,
    segments_of,
)
from gearpy.errors import ConfigError, GearpyError
from gearpy.spark.source.options import WriteOptions
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.local import LocalFolder
from gearpy.windowlog.bodies import BatchInfo, BatchNotes, SegmentInfo, write_body
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.schema import SCHEMA_FILE, LogSchema, schema_difference, schema_text

_TASK: Final = 0  # One lane has all batches of a writer.
#: The lock lets one driver at a time write, so each run has but one owner.
_CLAIM: Final = LedgerClaim(owner=1, since=0, writer="window log")
_INLINE_BYTES: Final = 1 << 18  # A part that is not larger travels with the message of its task.
_QUERY: Final = "sparkquery-"
_TRANSACTION: Final = "sparktxn-"
_SINGLE: Final = "sparkonce-"
_RUNS: Final = (_QUERY, _TRANSACTION, _SINGLE)
_WINDOW_END: Final = "window_end"


class Part(NamedTuple):
    """The rows of one task: the name of a pending file, or the bytes themselves."""

    rows: int
    name: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDelivery:
    """A batch as Spark hands it over.

    Attributes:
        run: the run that delivers it; see `query_run`, `transaction_run` and `single_run`.
        number: grows from batch to batch of a run; None for a run that has only one.
    """

    run: str
    number: int | None
    parts: Sequence[Part]


def query_run(query: str) -> str:
    return f"{_QUERY}{query}"


def transaction_run(application: str) -> str:
    return f"{_TRANSACTION}{sha256(application.encode()).hexdigest()[:32]}"


def single_run() -> str:
    return f"{_SINGLE}{uuid4().hex}"


def begin_log(log: WindowLog, schema: pa.Schema) -> None:
    """Make the log, if it is not there, and check the columns.

    Raises:
        ConfigError: it has other columns, or Spark's have no place in a log.
    """
    wanted = exact_schema(schema, name='format "gearpy"')
    kept = log.schema.arrow if log.exists else _begun(log, wanted)
    difference = schema_difference(_in_order(kept, wanted), wanted)
    if difference:
        raise ConfigError(f"window log {log.place} has other columns: {difference}")


def _begun(log: WindowLog, wanted: pa.Schema) -> pa.Schema:
    """Make a new log; return its columns, or those of a writer that made it first."""
    log.store.make(*LOG_FOLDERS)
    schema = LogSchema(wanted, spark_schema(wanted), log=uuid4().hex, created_ms=wall_ms())
    log.store.put_new(SCHEMA_FILE, schema_text(schema))
    return log.schema.arrow


def _in_order(kept: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    if set(kept.names) != set(wanted.names):
        return kept
    return pa.schema([kept.field(name) for name in wanted.names])


def write_part(
    log: WindowLog, options: WriteOptions, run: str, batches: Iterable[pa.RecordBatch]
) -> Part:
    """Write the batches of a task; nothing is left of them if that fails."""
    rows, data, rest = _first_bytes(batches)
    if rest is None:
        return Part(rows, data=data if rows else b"")
    store, name = log.store, f"{_prefix(options, run)}{uuid4().hex}.part"
    try:
        with store.create(PENDING + name) as file:
            rows = _write_all(file, rest)
    except BaseException:
        store.remove(PENDING + name)
        raise
    return Part(rows, name)


def drop_parts(log: WindowLog, parts: Iterable[Part]) -> None:
    for part in parts:
        if part.name:
            log.store.remove(PENDING + part.name)


def show(log: WindowLog, options: WriteOptions, delivery: SourceDelivery) -> LogSegment | None:
    """Let readers see a batch as one batch of the lane; None if it was there, or has no rows.

    Raises:
        GearpyError: another writer that goes by the same name has removed what was written.
    """
    lane = lane_name(options.writer, _TASK)
    run, number = delivery.run, delivery.number
    with _alone(log.store, lane):
        view = log.view()
        ledger = _Ledger(log.store, lane)
        _note_last(view, ledger)
        # A batch that can come only once is not noted.
        entry = None if number is None else _CLAIM.commit(ledger.read(run), number)
        segment = None
        if (number is None or entry is not None) and any(part.rows for part in delivery.parts):
            segment = _written(log, options, delivery, seq=view.ends().get(lane, 0) + 1)
            if entry is not None:
                ledger.note(run, entry, segment.first)
        _clear(log.store, options, delivery)
    return segment


class _Ledger:
    """The entries of runs in a lane: the last batch that each has committed."""

    def __init__(self, store: Folder, lane: str) -> None:
        self._store = store
        self.lane = lane

    def read(self, run: str) -> LedgerEntry:
        text = self._store.read(self._file(run))
        return LedgerEntry(_CLAIM.owner, -1 if text is None else int(json.loads(text)["batch"]))

    def note(self, run: str, entry: LedgerEntry, seq: int) -> None:
        text = json.dumps({"batch": entry.committed, "seq": seq, "at_ms": wall_ms()})
        self._store.put(self._file(run), text.encode())

    def _file(self, run: str) -> str:
        return f"{OWNERS}{self.lane}.{run}.json"


def _note_last(view: LogView, ledger: _Ledger) -> None:
    """Make up for a note that a crash has prevented. Only that of the last batch can be missing.

    Raises:
        ConfigError: the lane is another writer's.
    """
    pieces = view.pieces(ledger.lane)
    if not pieces:
        return
    last = pieces[-1].segment
    if not last.run.startswith(_RUNS):
        raise ConfigError(
            f"window log: lane {ledger.lane} is written by a gearpy application: give Spark's "
            "writer another name, by option writer"
        )
    if not last.run.startswith(_SINGLE):
        entry = _CLAIM.commit(ledger.read(last.run), last.epoch)
        if entry is not None:
            ledger.note(last.run, entry, last.last)


def _written(
    log: WindowLog, options: WriteOptions, delivery: SourceDelivery, *, seq: int
) -> LogSegment:
    """Write all parts as one file, and show it."""
    store, number = log.store, delivery.number or 0
    with _tables(store, delivery.parts) as tables:
        names = log.schema.arrow.names
        table = pa.concat_tables([each.select(names) for each in tables]).cast(log.schema.arrow)
        name = segment_name(
            lane_name(options.writer, _TASK),
            first=seq,
            last=seq,
            rows=table.num_rows,
            epoch=number,
            run=delivery.run,
            incarnation=_CLAIM.owner,
            body=options.body,
        )
        pending = f"{PENDING}{_prefix(options, delivery.run)}{uuid4().hex}.whole"
        info = SegmentInfo(
            app="spark",
            app_id=delivery.run,
            run=delivery.run,
            writer=options.writer,
            task=_TASK,
            epoch=number,
            batches=(_noted(table, options, seq=seq, number=number),),
        )
        with store.create(pending) as file:
            write_body(file, table, info, body=options.body)
            store.sync(file)
    if not store.move(pending, to=name):
        raise GearpyError(
            f"window log {log.place}: what batch {number} was written to has been removed: another "
            f"writer has the same txnAppId, or checkpoint; nothing of the batch was shown"
        )
    store.sync_names()
    (segment,) = segments_of([name])
    return segment


def _noted(table: pa.Table, options: WriteOptions, *, seq: int, number: int) -> BatchInfo:
    notes = BatchNotes()
    for batch in table.to_batches():
        notes.add(batch)
    return notes.info(seq=seq, epoch=number, watermark=_watermark_ms(table, options))


def _watermark_ms(table: pa.Table, options: WriteOptions) -> int | None:
    """Return the watermark behind a batch; None if the writer was not told to give one."""
    if options.watermark is None:
        return None
    newest = pc.max(_times(table, options.watermark)).as_py()
    if newest is None:
        return None
    # The last time that belongs to a window is before its end.
    return int(newest) - options.out_of_order_ms - (options.watermark == _WINDOW_END)


def _times(table: pa.Table, name: str) -> pa.Array:
    if name not in table.schema.names:
        raise ConfigError(
            f'format "gearpy": option watermark is {name!r}, which is no column: there are '
            f"{', '.join(table.schema.names)}"
        )
    try:
        return times_of(table.column(name).combine_chunks())
    except ValueError as error:
        raise ConfigError(f'format "gearpy": option watermark: column {name!r}: {error}') from error


# -- parts -------------------------------------------------------------------------------------


def _prefix(options: WriteOptions, run: str) -> str:
    return f"{lane_name(options.writer, _TASK)}.{run}."


def _first_bytes(
    batches: Iterable[pa.RecordBatch],
) -> tuple[int, bytes, Iterator[pa.RecordBatch] | None]:
    """Return rows and bytes of few batches; if there is more, all batches to write elsewhere."""
    kept: list[pa.RecordBatch] = []
    left = iter(batches)
    for batch in left:
        kept.append(batch)
        if sum(each.nbytes for each in kept) > _INLINE_BYTES:
            return 0, b"", _chained(kept, left)
    target = io.BytesIO()
    rows = _write_all(target, iter(kept))
    return rows, target.getvalue(), None


def _chained(
    first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from first
    yield from rest


def _write_all(file: Any, batches: Iterator[pa.RecordBatch]) -> int:
    rows, writer = 0, None
    for batch in batches:
        writer = writer or pa.ipc.new_file(file, batch.schema)
        writer.write_batch(batch)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return rows


@contextmanager
def _tables(store: Folder, parts: Sequence[Part]) -> Iterator[list[pa.Table]]:
    """Open the parts of tasks. On a disk they are mapped: they may be larger than memory."""
    sources = [_source(store, part) for part in parts if part.rows]
    try:
        yield [pa.ipc.open_file(source).read_all() for source in sources]
    finally:
        for source in sources:
            source.close()


def _source(store: Folder, part: Part) -> Any:
    if not part.name:
        return pa.BufferReader(part.data)
    if isinstance(store, LocalFolder):
        return pa.memory_map(store.location(PENDING + part.name))
    return store.open(PENDING + part.name)


def _clear(store: Folder, options: WriteOptions, delivery: SourceDelivery) -> None:
    """Remove the parts that this run has left, also those of tasks that were killed or given up."""
    prefix = _prefix(options, delivery.run)
    for name in store.names(PENDING):
        if name.startswith(prefix):
            store.remove(PENDING + name)


# -- one at a time -----------------------------------------------------------------------------


@contextmanager
def _alone(store: Folder, lane: str) -> Iterator[None]:
    """Let one process at a time write a lane, where there is a disk and a lock for it."""
    if not isinstance(store, LocalFolder):
        yield
        return
    with open(store.location(f"{OWNERS}{lane}.lock"), "ab") as file:  # noqa: PTH123 - as the store has it
        with suppress(ImportError):  # There is none on Windows.
            fcntl = import_module("fcntl")
            fcntl.flock(
                file, fcntl.LOCK_EX
            )  # Given up when the file is closed, or the process ends.
        yield
