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
from itertools import chain
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
    lane_name,
    segment_name,
    segments_of,
)
from gearpy.errors import ConfigError, GearpyError
from gearpy.spark.source.options import WriteOptions
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.local import LocalFolder
from gearpy.windowlog.bodies import BatchNotes, SegmentInfo, write_body
from gearpy.windowlog.log import SCHEMA_FILE, LogSchema, WindowLog, schema_difference, schema_text

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
    if not log.exists:  # Another writer may make it first.
        log.store.make(*LOG_FOLDERS)
        made = LogSchema(wanted, spark_schema(wanted), log=uuid4().hex, created_ms=wall_ms())
        log.store.put_new(SCHEMA_FILE, schema_text(made))
    kept = log.schema.arrow
    if set(kept.names) == set(wanted.names):
        kept = pa.schema([kept.field(name) for name in wanted.names])
    difference = schema_difference(kept, wanted)
    if difference:
        raise ConfigError(f"window log {log.place} has other columns: {difference}")


def write_part(
    log: WindowLog, options: WriteOptions, run: str, batches: Iterable[pa.RecordBatch]
) -> Part:
    """Write the batches of a task; nothing is left of them if that fails."""
    kept: list[pa.RecordBatch] = []
    left = iter(batches)
    for batch in left:
        kept.append(batch)
        if sum(each.nbytes for each in kept) > _INLINE_BYTES:
            break
    else:  # Few batches travel as bytes.
        target = io.BytesIO()
        rows = _write_all(target, kept)
        return Part(rows, data=target.getvalue() if rows else b"")
    store, name = log.store, f"{_prefix(options, run)}{uuid4().hex}.part"
    try:
        with store.create(PENDING + name) as file:
            rows = _write_all(file, chain(kept, left))
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
    store, lane = log.store, lane_name(options.writer, _TASK)
    run, number = delivery.run, delivery.number
    with _alone(store, lane):
        view, ledger = log.view(), _Ledger(store, lane)
        if pieces := view.pieces(lane):
            last = pieces[-1].segment
            if not last.run.startswith(_RUNS):
                raise ConfigError(
                    f"window log: lane {lane} is written by a gearpy application: give Spark's "
                    "writer another name, by option writer"
                )
            # A crash can have prevented the note of the last batch, and of no other.
            is_single = last.run.startswith(_SINGLE)
            missing = None if is_single else _CLAIM.commit(ledger.read(last.run), last.epoch)
            if missing is not None:
                ledger.note(last.run, missing, last.last)

        # A batch that can come only once is not noted.
        entry = None if number is None else _CLAIM.commit(ledger.read(run), number)
        segment = None
        if (number is None or entry is not None) and any(part.rows for part in delivery.parts):
            segment = _written(log, options, delivery, seq=view.ends().get(lane, 0) + 1)
            if entry is not None:
                ledger.note(run, entry, segment.first)

        # Parts of tasks that were killed or given up go, too.
        prefix = _prefix(options, run)
        for name in store.names(PENDING):
            if name.startswith(prefix):
                store.remove(PENDING + name)
    return segment


class _Ledger:
    """The entries of runs in a lane: the last batch that each has committed."""

    def __init__(self, store: Folder, lane: str) -> None:
        self._store = store
        self._lane = lane

    def read(self, run: str) -> LedgerEntry:
        text = self._store.read(f"{OWNERS}{self._lane}.{run}.json")
        return LedgerEntry(_CLAIM.owner, -1 if text is None else int(json.loads(text)["batch"]))

    def note(self, run: str, entry: LedgerEntry, seq: int) -> None:
        text = json.dumps({"batch": entry.committed, "seq": seq, "at_ms": wall_ms()})
        self._store.put(f"{OWNERS}{self._lane}.{run}.json", text.encode())


def _written(
    log: WindowLog, options: WriteOptions, delivery: SourceDelivery, *, seq: int
) -> LogSegment:
    """Write all parts as one file, and commit it."""
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
        notes = BatchNotes()
        for batch in table.to_batches():
            notes.add(batch)
        info = SegmentInfo(
            app="spark",
            app_id=delivery.run,
            run=delivery.run,
            writer=options.writer,
            task=_TASK,
            epoch=number,
            batches=(notes.info(seq=seq, epoch=number, watermark=_watermark_ms(table, options)),),
        )
        with store.create(pending) as file:
            write_body(file, table, info, body=options.body)
            store.sync(file)
    if not store.move(pending, to=name):
        raise GearpyError(
            f"window log {log.place}: what batch {number} was written to has been removed: another "
            f"writer has the same txnAppId, or checkpoint; nothing of the batch was committed"
        )
    store.sync_names()
    (segment,) = segments_of([name])
    return segment


def _watermark_ms(table: pa.Table, options: WriteOptions) -> int | None:
    """Return the watermark behind a batch; None if the writer was not told to give one."""
    name = options.watermark
    if name is None:
        return None
    if name not in table.schema.names:
        raise ConfigError(
            f'format "gearpy": option watermark is {name!r}, which is no column: there are '
            f"{', '.join(table.schema.names)}"
        )
    try:
        times = times_of(table.column(name).combine_chunks())
    except ValueError as error:
        raise ConfigError(f'format "gearpy": option watermark: column {name!r}: {error}') from error
    newest = pc.max(times).as_py()
    if newest is None:
        return None
    # The last time that belongs to a window is before its end.
    return int(newest) - options.out_of_order_ms - (name == _WINDOW_END)


# -- parts -------------------------------------------------------------------------------------


def _prefix(options: WriteOptions, run: str) -> str:
    return f"{lane_name(options.writer, _TASK)}.{run}."


def _write_all(file: Any, batches: Iterable[pa.RecordBatch]) -> int:
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
    sources: list[Any] = []
    for part in (part for part in parts if part.rows):
        if not part.name:
            sources.append(pa.BufferReader(part.data))
        elif isinstance(store, LocalFolder):
            sources.append(pa.memory_map(store.location(PENDING + part.name)))
        else:
            sources.append(store.open(PENDING + part.name))
    try:
        yield [pa.ipc.open_file(source).read_all() for source in sources]
    finally:
        for source in sources:
            source.close()


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
            # The lock is given up when the file is closed, or the process ends.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
