"""The sink for finished windows: a log that Spark and others read, each window exactly once."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args
from uuid import uuid4

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.log_columns import FIRST_ROWS_MAX, GATHERED_ROWS_MAX, LogColumns
from gearpy.columns.spark_types import exact_schema, spark_schema
from gearpy.connectors.folders.columns import checked_schema
from gearpy.connectors.folders.part_names import run_in_names
from gearpy.connectors.folders.parts import store_mistakes, target_folder
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.handover.window_log import WRITER_CHARS_MAX, is_tiny, is_writer_name
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.summaries import ConsumerReport
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.local import LocalFolder
from gearpy.task.api.interfaces import Batch, Sink, SinkContext, TransactionalWriter
from gearpy.windowlog.bodies import ARROW, PARQUET
from gearpy.windowlog.compaction import compact_newest
from gearpy.windowlog.consumers import LogConsumers
from gearpy.windowlog.lane import LaneWriter, PreparedBatch
from gearpy.windowlog.log import SCHEMA_FILE, LogSchema, WindowLog, schema_difference, schema_text
from gearpy.windowlog.replays import Replays, recalled

_log = logging.getLogger(__name__)

BodyChoice: TypeAlias = Literal["parquet", "arrow", "auto"]

_NAME: Final = "window_log_folder"
_WRITER: Final = "windows"
_CODECS: Final = ("lz4", "snappy", "zstd", "gzip", "brotli", "none")
_COMPACT_FILES_MIN: Final = 2
_EXPIRE_EVERY_S: Final = 10.0


def window_log_folder(
    path: str | Path,
    *,
    schema: Any = None,
    key: str | Sequence[str] | None = None,
    body: BodyChoice = "parquet",
    writer: str = _WRITER,
    retain: Duration | None = None,
    compact_files: int | None = None,
    compression: str = "lz4",
    storage_options: Mapping[str, Any] | None = None,
) -> Sink:
    """Write results of windows into a log for Spark and others: exactly once, whatever fails.

    All windows that have closed in an epoch become one batch, a file that is seen when the epoch is
    complete. Batches of a task are numbered without a gap, so a reader knows that it has missed
    none. What was seen stays: after a return to an older checkpoint, rows that come again are
    recognised by their window and key and left out.

    A result has the columns ``window_start``, ``window_end``, the key, the fields of its value,
    ``firing``, ``timing`` and ``retracts``. Results of joins have the window, the key, and the
    fields of both sides behind ``left_`` and ``right_``. Other records have their fields and
    ``event_time``. All types are such that Spark takes them as they are; one that it has nothing
    like is refused.

    Args:
        path: the folder, which is made if the one above exists, or a URL that fsspec knows; on a
            cluster all machines must see the same.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types, for key and value; None for that of the first epoch's. The columns that the
            log adds need not be in it.
        key: names of the columns for the parts of the key; without, ``key``, or ``key_1``,
            ``key_2`` ... for a tuple.
        body: what files are: "parquet", "arrow", or "auto" for Arrow where many tiny ones come
            fast, and Parquet else.
        writer: of the names of files. Two sinks that write into one folder need different ones.
        retain: remove files that are older, such as "7d"; None to keep all.
        compact_files: make one file of so many small ones, again and again; None to leave that to
            ``gear window-log compact``. Not for programs that read the files themselves.
        compression: of Parquet: "lz4", "snappy", "zstd", "gzip", "brotli" or "none".
        storage_options: for the file system of the URL.

    Raises:
        ConfigError: an argument cannot be meant so.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("counts")
        >>> words = app.read(gp.collection(["to", "be", "or", "not", "to", "be"]))
        >>> counts = words.key_by(str).window(gp.global_window()).count()
        >>> counts.write(gp.window_log_folder("counts", key="word"))
        >>> _ = gp.run(app)
        >>> from gearpy.windowlog.log import WindowLog
        >>> log = WindowLog("counts")
        >>> table = log.read_between({}, log.view().ends())
        >>> sorted(zip(table["word"].to_pylist(), table["value"].to_pylist()))
        [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
    """
    names = (key,) if isinstance(key, str) else tuple(key or ())
    known = checked_schema(_NAME, schema)
    options = LogOptions(
        place=str(path),
        schema=None if known is None else exact_schema(known, name=_NAME),
        key=names,
        body=body,
        writer=writer,
        retain_ms=None if retain is None else duration_ms(retain),
        compact_files=compact_files,
        compression=compression,
        storage_options=dict(storage_options or {}),
    )
    mistakes = [*options.mistakes(), *store_mistakes(_NAME, str(path))]
    if mistakes:
        raise ConfigError(*mistakes)
    return WindowLogSink(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The arguments of `window_log_folder`."""

    place: str
    schema: pa.Schema | None = None
    key: tuple[str, ...] = ()
    body: BodyChoice = "parquet"
    writer: str = _WRITER
    retain_ms: int | None = None
    compact_files: int | None = None
    compression: str = "lz4"
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    def mistakes(self) -> Sequence[str]:
        found = []
        if self.body not in get_args(BodyChoice):
            found.append(f"body is {self.body!r}, must be one of {', '.join(get_args(BodyChoice))}")
        if self.compression not in _CODECS:
            found.append(
                f"compression is {self.compression!r}, must be one of {', '.join(_CODECS)}"
            )
        if not is_writer_name(self.writer):
            found.append(
                f"writer {self.writer!r} cannot begin names of files: take letters, digits and "
                f"underscores, a letter first, {WRITER_CHARS_MAX} at most"
            )
        if self.compact_files is not None and self.compact_files < _COMPACT_FILES_MIN:
            found.append(
                f"compact_files is {self.compact_files}, must be {_COMPACT_FILES_MIN} or more"
            )
        if self.retain_ms is not None and self.retain_ms <= 0:
            found.append(f"retain is {self.retain_ms} ms: nothing would be kept")
        if len(set(self.key)) < len(self.key) or not all(self.key):
            found.append(f"key is {', '.join(self.key)!r}: give each part another name")
        return [f"{_NAME}: {each}" for each in found]


class WindowLogSink(Sink):
    """A window log with a lane for each task; see `window_log_folder`."""

    transactional = True
    waits_for_store = True
    columnar = True

    def __init__(self, options: LogOptions) -> None:
        self.options = options

    @property
    def description(self) -> str:
        place, writer = self.options.place, self.options.writer
        return f"{_NAME}({place if writer == _WRITER else f'{place}/{writer}-*'})"

    def open(self, task_index: int, parallelism: int) -> "WindowLogWriter":
        return WindowLogWriter(self.options, self.log(), task=task_index)

    def log(self) -> WindowLog:
        store = folder_at(self.options.place, self.options.storage_options, key="window log")
        if isinstance(store, LocalFolder):
            target_folder(_NAME, Path(store.place))
        return WindowLog(store)


class WindowLogWriter(TransactionalWriter):
    atomic = True

    def __init__(
        self,
        options: LogOptions,
        log: WindowLog,
        *,
        task: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock_s = clock_s
        self._options = options
        self._log = log
        self._lane = LaneWriter(
            log, writer=options.writer, task=task, compression=options.compression
        )
        self._columns = LogColumns(_NAME, schema=options.schema, key=options.key)
        self._first: list[pa.RecordBatch] = []  # They tell the schema of a log.
        self._is_begun = False  # The log; it has a schema then.
        self._is_checked = False  # Whether records have its columns.
        self._replays = Replays()
        self._about: dict[str, Any] = {}
        self._state: Mapping[str, Any] | None = None
        self._watermark_ms = MIN_MS
        self._prepared_s = -math.inf  # When the last file was.
        self._shown = 0  # Files, since compaction was thought of.
        self._expired_s = -_EXPIRE_EVERY_S
        self._tells = task == 0  # One task tells of readers, for all tasks.
        self._readers = LogConsumers(log, wall_ms)

    def consumers(self) -> Sequence[ConsumerReport]:
        return self._readers.reports() if self._tells else ()

    # -- begin -----------------------------------------------------------------------------

    def begin(self, context: SinkContext) -> None:
        self._about = {"app": context.app_name, "app_id": str(context.app_id)}
        self._columns.keys, self._columns.fields = context.keys, context.fields

    def restore(self, state: Mapping[str, Any] | None) -> None:
        self._state = state

    def recover(
        self,
        prepared: Mapping[int, PreparedBatch | None],
        *,
        epoch: int,
        run: str,
        incarnation: int,
    ) -> None:
        """Take the lane, commit prepared batches, and find batches committed since."""
        try:
            self._lane.begin(run=run_in_names(run), incarnation=incarnation, is_there=self.resumes)
            self._adopt()
            for _, each in sorted(prepared.items()):
                if each is not None:
                    self._lane.show(each)
            self._lane.clean()
            state = self._state
            state = state if state is not None and state["lane"] == self._lane.owner.id else None
            view = self._lane.number_on(behind=state["next"] - 1 if state else 0)
            # Rows that were committed after the checkpoint come again.
            since = self._lane.owner.since if state is None else state["next"]
            if state is not None and state["again"]:
                self._replays.restore(state["again"])
            lane, end = self._lane.lane, view.ends().get(self._lane.lane, 0)
            if since <= end:
                identity = self._log.schema.identity
                for rows in recalled(self._log, view, lane, since=since, identity=identity):
                    self._replays.restore(rows)
                _log.warning(
                    "%s: back to before batch %d of lane %s, so %d rows that were committed in "
                    "batches up to %d are left out when they come again",
                    _NAME,
                    since,
                    lane,
                    len(self._replays),
                    end,
                )
        except OSError as error:
            raise ConfigError(
                f"{_NAME}: cannot write {self._log.place}: {error.strerror or error}"
            ) from error

    def leave(self) -> None:
        """Refuse to end a lane that has committed rows which come again, now in other lanes."""
        if len(self._replays):
            raise GearpyError(
                f"{_NAME}: {len(self._replays)} rows of lane {self._lane.lane} in "
                f"{self._log.place} were committed after the checkpoint and come again, which "
                "only the task of this lane can leave out: keep the parallelism that the sink had"
            )

    def _adopt(self) -> None:
        if not self._log.exists:
            return
        kept = self._log.schema
        given = self._options.schema
        for each in given or ():
            difference = schema_difference(kept.arrow, pa.schema([each]), partly=True)
            if difference:
                raise ConfigError(f"{_NAME}: {self._log.place} has other columns: {difference}")
        self._columns.adopt(kept.arrow, kept.identity)
        self._replays = Replays(kept.identity)
        self._is_begun = True

    # -- write -----------------------------------------------------------------------------

    def on_watermark(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        may_gather = self._is_checked or not self._is_begun
        if may_gather and self._columns.gather(batch.values, batch.timestamps):
            if self._columns.gathered_rows >= GATHERED_ROWS_MAX:
                self._add_gathered()
            return
        self._add_gathered()  # They came before, and have the columns that were known then.
        try:
            rows = self._columns.batch_of(batch.values, batch.timestamps)
        except OperatorError as error:
            if self._is_begun:
                if not self._is_checked and not self._any_fits(batch):
                    record = error.record or "these records"
                    raise ConfigError(
                        f"{_NAME}: {self._log.place} has other columns than {record}: {error.cause}"
                    ) from error
                self._is_checked = True
            raise
        self._is_checked = self._is_begun
        self._add(rows)

    def _add_gathered(self) -> None:
        if self._columns.gathered_rows:
            self._add(self._columns.gathered())

    def _add(self, rows: pa.RecordBatch) -> None:
        if not self._is_begun:
            self._first.append(rows)
            if not self._columns.may_grow or sum(map(len, self._first)) >= FIRST_ROWS_MAX:
                self._begin_log()
            return
        if len(self._replays):
            rows = self._replays.without(rows)
        if rows.num_rows:
            self._lane.add(rows)

    def _any_fits(self, batch: Batch) -> bool:
        values, times = batch.values, batch.timestamps
        for place in range(len(values)):
            with suppress(OperatorError):
                self._columns.batch_of(values[place : place + 1], times[place : place + 1])
                return True
        return False

    def _begin_log(self) -> None:
        """Write the schema, unless another task was first, and the first records."""
        self._columns.settle()
        arrow = self._columns.schema
        assert arrow is not None
        made = LogSchema(arrow, spark_schema(arrow), uuid4().hex, wall_ms(), self._columns.identity)
        is_first = self._log.store.put_new(SCHEMA_FILE, schema_text(made))
        self._adopt()
        self._is_checked = is_first and self._log.schema.log == made.log
        first, self._first = self._first, []
        for rows in first:
            try:
                self._add(self._columns.fitted(rows))
            except (ValueError, pa.ArrowException) as error:
                raise ConfigError(
                    f"{_NAME}: {self._log.place} has other columns than these records: {error}"
                ) from error

    # -- epochs ----------------------------------------------------------------------------

    def prepare(self, epoch: int) -> PreparedBatch | None:
        self._add_gathered()
        if self._first:
            self._begin_log()
        rest = self._replays.settle()
        if rest is not None:
            self._lane.add(rest)
        watermark = self._watermark_ms if MIN_MS < self._watermark_ms < MAX_MS else None
        body = self._options.body
        if body == "auto":
            before_s, self._prepared_s = self._prepared_s, self._clock_s()
            since_ms = (self._prepared_s - before_s) * 1000
            body = ARROW if is_tiny(self._lane.rows, since_ms=since_ms) else PARQUET
        return self._lane.prepare(epoch, body=body, about=self._about, watermark=watermark)

    def snapshot(self) -> Mapping[str, Any]:
        again = self._replays.snapshot() if len(self._replays) else None
        lane = self._lane
        return {"lane": lane.owner.id, "next": lane.next_seq, "again": again}

    def commit(self, epoch: int, prepared: PreparedBatch | None) -> None:
        """Show the batch; now and then, remove and compact old ones."""
        if prepared is None:
            return
        self._lane.show(prepared)
        self._shown += 1
        files = self._options.compact_files
        if files is not None and self._shown >= files:
            self._shown = 0
            compact_newest(
                self._log,
                self._log.view(),
                self._lane.lane,
                files_min=files,
                compression=self._options.compression,
            )
        retain_ms, now_s = self._options.retain_ms, self._clock_s()
        if retain_ms is None or now_s < self._expired_s + _EXPIRE_EVERY_S:
            return
        self._expired_s = now_s
        before_ms = wall_ms() - retain_ms
        self._log.expire({self._lane.lane: self._lane.next_seq}, before_ms=before_ms)

    def close(self, *, completed: bool) -> None:
        self._lane.close()
