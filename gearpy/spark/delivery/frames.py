"""A batch of a window log as a frame of Spark, and the facts about its windows."""

from datetime import UTC, datetime, timedelta
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from gearpy.core.handover.handoff import HandoffBatch
from gearpy.core.handover.window_log import HANDOVERS, LogPiece
from gearpy.errors import WindowLogDamaged
from gearpy.spark.delivery.batch import SparkBatch
from gearpy.windowlog.bodies import PARQUET, BatchInfo, SegmentInfo, body_of, write_body
from gearpy.windowlog.log import WindowLog

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
