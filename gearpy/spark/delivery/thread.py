"""The thread that calls a function with one batch of finished windows after the other."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeAlias

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from gearpy.clocks import monotonic_ms, wall_ms
from gearpy.config.schema import SparkConfig
from gearpy.core.handover.handoff import (
    Call,
    Connect,
    GiveUpBatch,
    Handoff,
    HandoffBatch,
    HandoffLimits,
    Pause,
    Pressure,
    WriteDone,
    WriteIntent,
)
from gearpy.core.handover.window_log import HANDOVERS, LogPiece, LogView
from gearpy.errors import ConfigError, GearpyError, OperatorError, WindowLogDamaged, WindowLogGap
from gearpy.messages.summaries import ConsumerReport
from gearpy.spark.delivery.batch import SparkBatch
from gearpy.spark.delivery.log import BatchLog
from gearpy.spark.sessions.sessions import SessionTarget
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.windowlog.bodies import PARQUET, BatchInfo, SegmentInfo, body_of, write_body
from gearpy.windowlog.log import ReaderReport, WindowLog

Function: TypeAlias = Callable[[DataFrame, SparkBatch], object]

#: The beginning of a sink's name as a reader; the name of the sink follows.
READER_PREFIX: Final = "to_spark."

_log = logging.getLogger(__name__)

_FRAME: Final = "making the frame"
_PAUSE_MAX_MS: Final = 30_000  #: A wait before a repeated call grows no longer.
_REPORT_MS: Final = 1000  #: Other programs are told no more often how far it is.
_EXPIRE_MS: Final = 10_000  #: Old files are looked for no more often.
_LOCKS: Final[dict[str, threading.Lock]] = {}  # One for each log and sink of this process.
_LOCKS_LOCK: Final = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySpec:
    """The settings of a delivery: which log, to which function, under which limits.

    Attributes:
        lane: the lane of the log that the sink itself writes.
        retain_ms: files that were handed over are removed when they are older; None: never.
    """

    path: str
    options: dict[str, Any] | None
    name: str
    lane: str
    app: str
    operator: str
    function: Function
    target: SessionTarget
    config: SparkConfig
    retain_ms: int | None = None


class Delivery:
    """Hands over the batches that a lane of a window log shows; see `Handoff` for the promises.

    Runs on: a thread of its own, since a job of Spark takes as long as it takes. `close`
    and all questions, also of the ``backlog``, may come from any thread, and never wait for Spark.
    Restart: another one goes on, in any process; in this one it begins when this one has ended.
    """

    def __init__(self, spec: DeliverySpec, wake: Callable[[], object]) -> None:
        self._spec = spec
        self._wake = wake
        self._log = WindowLog(spec.path, storage_options=spec.options)
        self._batches = BatchLog(
            self._log.store,
            spec.name,
            log_id=lambda: self._log.schema.log if self._log.exists else "",
        )
        self._frames = BatchFrames(
            self._log,
            sink=spec.name,
            app=spec.app,
            in_memory_rows=spec.config.in_memory_max_rows,
        )
        self.backlog = Backlog(rows_max=spec.config.waiting_max_rows, wall_ms=wall_ms)
        self._view = LogView(())
        self._foreign: dict[str, int] = {}  # Ends of the lanes that are none of its business.
        self._session: SparkSession | None = None
        self._handoff: Handoff
        self._calling_since_ms: int | None = None
        self._reported_ms = 0
        self._expired_ms = 0
        self._error: BaseException | None = None  # The last exception ...
        self._raised = ""  # ... and its source.
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"spark-{spec.operator}", daemon=True
        )

    def start(self) -> None:
        """Begin; the log must have a schema before the first batch is committed."""
        self._thread.start()

    def close(self, *, wait_s: float = 0.0) -> None:
        self.backlog.close()
        if wait_s:
            self._thread.join(wait_s)

    # -- questions -------------------------------------------------------------------------

    @property
    def failure(self) -> BaseException | None:
        since_ms, most_ms = self._calling_since_ms, self._spec.config.call_max_ms
        if self._failure is not None or since_ms is None or not most_ms:
            return self._failure
        if monotonic_ms() - since_ms < most_ms:
            return None
        return OperatorError(
            operator=self._spec.operator,
            cause=f"{_name_of(self._spec.function)} was called with batch "
            f"{self._handoff.done_id + 1} and has not returned for {most_ms} ms",
        )

    def report(self) -> ConsumerReport:
        return self.backlog.report(self._spec.name)

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        with _LOCKS_LOCK:
            lock = _LOCKS.setdefault(f"{self._log.place}\n{self._spec.name}", threading.Lock())
        try:
            if not self._acquired(lock):
                return
            try:
                self._hand_over()
            finally:
                lock.release()
        except BaseException as error:  # noqa: BLE001 - the task raises it
            is_plain = isinstance(error, Exception)
            self._failure = error if is_plain else operator_error(self._spec.operator, error)
            _log.warning("%s hands over nothing more: %s", self._spec.operator, error)
            self._wake()

    def _acquired(self, lock: threading.Lock) -> bool:
        """Wait until an earlier start, in this process, has ended its last call."""
        deadline_ms = monotonic_ms() + self._spec.config.outage_max_ms
        while not self.backlog.is_closed:
            if lock.acquire(timeout=0.1):
                return True
            if monotonic_ms() > deadline_ms:
                raise GearpyError(
                    f"a call of {_name_of(self._spec.function)} that an earlier start of the sink "
                    f"has begun still runs after {self._spec.config.outage_max_ms} ms"
                )
        return False

    def _hand_over(self) -> None:
        self._batches.claim()
        done, intended = self._batches.read()
        self._look()
        is_new, config = done is None and intended is None, self._spec.config
        self._handoff = Handoff(
            HandoffLimits(
                batch_rows=config.batch_max_rows,
                attempts=config.call_attempts,
                pause_ms=config.pause_ms,
                pause_max_ms=max(config.pause_ms, _PAUSE_MAX_MS),
                outage_ms=config.outage_max_ms,
            ),
            done=done,
            intended=intended,
            begin=self._batches.begin(self._view.start()) if is_new else None,
            rng=Random(),
        )
        self.backlog.on_batch_id(self._handoff.done_id)
        self._refresh()
        self._tell_others()  # Before one of them removes files that only it has read.
        while not self.backlog.is_closed or self._handoff.was_called:
            if self.backlog.is_changed:
                self._refresh()
            match self._handoff.next(self._view, monotonic_ms()):
                case Connect():
                    try:
                        self._session = self._spec.target.connect()
                    except (ConfigError, ImportError):
                        raise
                    except USER_ERRORS as error:
                        self._lose(error)
                    else:
                        self._handoff.on_connected()
                case WriteIntent(batch):
                    self._batches.write_intent(batch)
                    self._handoff.on_intent_written()
                case Call(batch, attempt):
                    self._call(batch, attempt)
                case WriteDone(batch):
                    self._batches.write_done(batch)
                    self._handoff.on_done_written()
                    self.backlog.on_taken(batch.batch_id, batch.rows)
                    self._count()
                    if self.backlog.is_empty or monotonic_ms() - self._reported_ms >= _REPORT_MS:
                        self._tell_others()
                    self._expire()
                    self._wake()
                case Pause(until_ms):
                    if until_ms is None:
                        self.backlog.wait_for_more()
                    else:
                        self.backlog.wait_for_end((until_ms - monotonic_ms()) / 1000)
                case GiveUpBatch(because):
                    raise self._given_up(because)

    def _refresh(self) -> None:
        """Look for new files; files that are committed meanwhile are found the next time."""
        self.backlog.on_looking()
        self._look()

        # Nothing goes on if files of a batch that was begun, or of the next one, are missing.
        lane = self._spec.lane
        reached, last = self._handoff.reached.get(lane, 0), self._view.ends().get(lane, 0)
        if reached > last:
            raise GearpyError(
                f"{self._spec.name} has got lane {lane} of {self._log.place} up to file {reached}, "
                f"but the last one is {last}: files were removed by hand; to hand over all that is "
                f"there, remove {HANDOVERS}{self._spec.name}.* too"
            )
        wanted, kept = reached + 1, self._view.begins().get(lane, 0)
        if self._handoff.is_idle and kept > wanted:
            raise WindowLogGap(lane=lane, wanted=wanted, kept=kept)
        self._count()
        self._wake()

    def _look(self) -> None:
        view, lane = self._log.view(), self._spec.lane
        kept = [piece.segment for piece in view.pieces(lane)]
        self._view = LogView([*kept, *(each for each in view.hidden if each.lane == lane)])
        self._foreign = {each: last for each, last in view.ends().items() if each != lane}

    def _count(self) -> None:
        position = self._handoff.position
        start = self._view.start() if position is None else position
        ends = self._view.ends()
        is_all = self._handoff.is_idle and all(start.get(lane, 0) >= ends[lane] for lane in ends)
        self.backlog.on_looked(self._view.rows_between(start, ends), is_all=is_all)

    def _call(self, batch: HandoffBatch, attempt: int) -> None:
        assert self._session is not None, "it is connected"
        most_ms = self._spec.config.call_max_ms
        # The task checks a call that takes too long; nothing else would wake it then.
        timer = threading.Timer((most_ms + 1) / 1000, self._wake)
        timer.daemon = True
        self._calling_since_ms = monotonic_ms()
        if most_ms:
            timer.start()
        try:
            try:
                described = self._frames.describe(batch, attempt=attempt)
                frame = self._frames.frame(self._session, batch, rows=described.rows)
            except GearpyError:
                raise
            except USER_ERRORS as error:
                self._on_raised(error, batch, what=_FRAME)
                return
            try:
                self._spec.function(frame, described)
            except BaseException as error:  # noqa: BLE001 - also asyncio's, which is no Exception
                self._on_raised(error, batch, what=_name_of(self._spec.function))
            else:
                self._error = None
                self._handoff.on_called()
        finally:
            timer.cancel()
            self._calling_since_ms = None
            self._frames.drop()

    def _on_raised(self, error: BaseException, batch: HandoffBatch, *, what: str) -> None:
        if self._spec.target.is_lost:
            self._lose(error)
            return
        said = "%s: %s has raised with batch %d: %s"
        _log.warning(said, self._spec.operator, what, batch.batch_id, _brief(error))
        if self._frames.is_stale:  # Its files were made one while Spark read them.
            self._handoff.on_call_void()
            return
        self._error, self._raised = error, what
        who = what if what == _FRAME else "the function"
        self.backlog.on_trouble(f"{who} has raised: {_brief(error)}")
        self._handoff.on_call_failed(monotonic_ms())

    def _lose(self, error: BaseException) -> None:
        self._error = error
        _log.warning("%s: Spark is not there: %s", self._spec.operator, _brief(error))
        self.backlog.on_trouble(f"Spark is not there: {_brief(error)}")
        self._handoff.on_spark_lost(monotonic_ms())
        self._wake()

    def _tell_others(self) -> None:
        """Report the position, for `gear window-log` and for the removal of old files."""
        self._reported_ms = monotonic_ms()
        report = ReaderReport(
            name=f"{READER_PREFIX}{self._spec.name}",
            lanes={**self._foreign, **(self._handoff.position or {})},
            at_ms=wall_ms(),
            rows_per_s=self.backlog.report("").rows_per_s,
            batch_id=self._handoff.done_id,
            more={"kind": "to_spark", "app": self._spec.app},
        )
        try:
            self._log.report(report)
        except OSError as error:
            _log.warning("%s cannot tell how far it is: %s", self._spec.operator, error)

    def _expire(self) -> None:
        """Remove old files that were handed over; a file that was not stays, however old it is."""
        retain_ms, now_ms = self._spec.retain_ms, monotonic_ms()
        if retain_ms is None or now_ms - self._expired_ms < _EXPIRE_MS:
            return
        self._expired_ms = now_ms
        taken = {self._spec.lane: (self._handoff.position or {}).get(self._spec.lane, 0)}
        try:
            self._log.expire(taken, before_ms=wall_ms() - retain_ms)
        except OSError as error:
            _log.warning("%s cannot remove old files: %s", self._spec.operator, error)

    # -- ends ------------------------------------------------------------------------------

    def _given_up(self, because: str) -> BaseException:
        assert self._error is not None, "something has gone wrong"
        batch_id = self._handoff.done_id + 1
        if because == "spark":
            return GearpyError(
                f"Spark was not there for {self._spec.config.outage_max_ms} ms; batch {batch_id} "
                f"waits for it in {self._log.place}: {_brief(self._error)}"
            )
        error = operator_error(self._spec.operator, self._error)
        error.cause = (
            f"{self._raised} has raised {self._spec.config.call_attempts} times "
            f"with batch {batch_id}: {error.cause}"
        )
        error.record = f"batch {batch_id}"
        return error


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__) + "()"


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]:.300}" if lines else type(error).__name__


#: Spark takes some ms for each file: of more files than this, those with fewer rows become one.
_FILES_MAX: Final = 16
_FILE_ROWS: Final = 50_000
_TRIES: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BatchFrames:
    """Makes the frames of a log's batches, in one of two ways.

    Few rows travel to Spark through its connection. For more Spark reads the files of the log
    itself, which is faster; it must be able to see them.

    Runs on: the thread of the hand-over.
    """

    def __init__(self, log: WindowLog, *, sink: str, app: str, in_memory_rows: int) -> None:
        self._log = log
        self._sink = sink
        self._app = app
        self._in_memory_rows = in_memory_rows
        self._staged = ""
        self._files: list[str] = []  # Names of files that Spark reads itself.

    def key_of(self, batch_id: int) -> str:
        return f"{self._log.schema.log}-{self._sink}-{batch_id:012d}"

    def describe(self, batch: HandoffBatch, *, attempt: int) -> SparkBatch:
        """Return the facts about a batch for the user's function."""
        noted = self._noted(batch)
        starts = [each.starts for each in noted if each.starts is not None]
        ends = [each.ends for each in noted if each.ends is not None]
        return SparkBatch(
            id=batch.batch_id,
            key=self.key_of(batch.batch_id),
            app=self._app,
            sink=self._sink,
            rows=sum(each.rows for each in noted),
            windows=sum(each.windows for each in noted),
            window_start=_time(min(starts, default=None)),
            window_end=_time(max(ends, default=None)),
            attempt=attempt,
        )

    def frame(self, session: SparkSession, batch: HandoffBatch, *, rows: int) -> DataFrame:
        """Return the rows of a batch, with the columns of the log."""
        schema = StructType.fromJson(self._log.schema.spark)
        if rows <= self._in_memory_rows:
            table = self._log.read_between(batch.start, batch.end)
            return session.createDataFrame(table, schema)
        return session.read.schema(schema).parquet(*self._paths(batch))

    @property
    def is_stale(self) -> bool:
        return any(self._log.store.look(name) is None for name in self._files)

    def drop(self) -> None:
        """Remove the file that was written for a frame which is no longer needed, and forget it."""
        self._files = []
        if self._staged:
            self._log.store.remove(self._staged)
            self._staged = ""

    def _noted(self, batch: HandoffBatch) -> list[BatchInfo]:
        """Return the notes in the files of a batch; look again if a file was replaced meanwhile."""
        tries = 0
        while True:
            tries += 1
            try:
                return [
                    each
                    for piece in self._log.view().between(batch.start, batch.end)
                    for each in self._log.info(piece.segment).batches
                    if piece.first <= each.seq <= piece.last
                ]
            except WindowLogDamaged as error:
                if tries == _TRIES or self._log.store.look(error.file) is not None:
                    raise

    def _paths(self, batch: HandoffBatch) -> list[str]:
        pieces = self._log.view().between(batch.start, batch.end)
        few = len(pieces) <= _FILES_MAX
        whole: list[LogPiece] = []
        rest: list[LogPiece] = []
        for each in pieces:
            is_file = each.is_whole and body_of(each.segment.name) == PARQUET
            (whole if is_file and (few or each.rows >= _FILE_ROWS) else rest).append(each)
        self._files = [each.segment.name for each in whole]
        files = [self._log.path_of(each.segment) for each in whole]
        if not rest:
            return files
        table = pa.concat_tables([self._log.read(piece) for piece in rest])
        name = f"{HANDOVERS}{self._sink}.{batch.batch_id:012d}.parquet"
        self._log.store.remove(name)  # An earlier attempt may have left it.
        with self._log.store.create(name) as file:
            write_body(file, table, SegmentInfo(), body=PARQUET)
        self._staged = name
        return [*files, self._log.store.location(name)]


def _time(at_ms: int | None) -> datetime | None:
    if at_ms is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


_RATE_MS: Final = 10_000  #: A rate is one of about so long a time.


class Backlog:
    """Counts the rows that were committed and not handed over, and tells whether they are too many.

    Runs on: any thread.

    Invariant: rows shown after the last look count until the next one, so `is_empty` never comes
    too early.
    """

    def __init__(self, *, rows_max: int, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._changed = threading.Condition()
        self._pressure = Pressure(rows_max)
        self._looked_rows = 0  # Rows that waited at the last look ...
        self._new_rows = 0  # ... and rows shown since that look began.
        self._shown = 1  # Times; the first look is due.
        self._looking = self._looked = 0  # How many of these a look has covered.
        self._is_all = False
        self.is_closed = False
        self._batch_id = 0
        self._rows = 0
        self._rate = 0.0
        self._rated_ms = wall_ms()
        self._waiting_since_ms = 0
        self._trouble = ""

    # -- the task --------------------------------------------------------------------------

    def on_shown(self, rows: int) -> None:
        with self._changed:
            self._shown += 1
            self._new_rows += rows
            self._weigh()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    @property
    def has_room(self) -> bool:
        return not self._pressure.is_full

    @property
    def is_empty(self) -> bool:
        with self._changed:
            return self._is_all and self._looked == self._shown

    def report(self, name: str) -> ConsumerReport:
        with self._changed:
            return ConsumerReport(
                name=name,
                batch_id=self._batch_id,
                rows=self._rows,
                rows_per_s=round(self._rate, 1),
                waiting_rows=self._pressure.waiting_rows,
                waiting_since_ms=self._waiting_since_ms,
                trouble=self._trouble,
            )

    # -- the hand-over ---------------------------------------------------------------------

    @property
    def is_changed(self) -> bool:
        return self._looked != self._shown

    def on_looking(self) -> None:
        with self._changed:
            self._looking = self._shown
            self._new_rows = 0

    def on_looked(self, rows: int, *, is_all: bool) -> None:
        with self._changed:
            self._looked = self._looking
            self._looked_rows, self._is_all = rows, is_all
            self._weigh()

    def on_batch_id(self, batch_id: int) -> None:
        with self._changed:
            self._batch_id = batch_id

    def on_taken(self, batch_id: int, rows: int) -> None:
        """Note that a batch was handed over."""
        with self._changed:
            now_ms = self._wall_ms()
            self._batch_id, self._trouble = batch_id, ""
            self._rows += rows
            passed_ms = max(1, now_ms - self._rated_ms)
            weight = min(1.0, passed_ms / _RATE_MS)
            self._rate += (rows * 1000 / passed_ms - self._rate) * weight
            self._rated_ms = now_ms
            self._waiting_since_ms = 0  # Until it is weighed again.

    def on_trouble(self, what: str) -> None:
        with self._changed:
            self._trouble = what

    def wait_for_more(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._looked != self._shown)

    def wait_for_end(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, timeout=max(0.0, timeout_s))

    def _weigh(self) -> None:
        waiting = self._looked_rows + self._new_rows
        self._pressure.on_waiting(waiting)
        if not waiting:
            self._waiting_since_ms = 0
        elif not self._waiting_since_ms:
            self._waiting_since_ms = self._wall_ms()
