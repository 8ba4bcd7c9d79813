"""A window log as a source: batches that Spark, or another application, has handed over."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema, SchemaLike, row_schema_of
from gearpy.connectors.files.column_times import (
    TimeForm,
    TimeUnit,
    check_time_column,
    column_at,
    time_form,
    times_of,
)
from gearpy.core.base.stable_hash import stable_hash
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.core.handover.lanes import LanePlace, Lanes
from gearpy.core.handover.window_log import LogSegment, LogView, Position
from gearpy.errors import ConfigError, GearpyError, WindowLogDamaged, WindowLogGap
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times, rows_of
from gearpy.messages.type_variables import Row
from gearpy.task.api.interfaces import Source, SourceReader
from gearpy.task.sources.share import numbered_partitions
from gearpy.windowlog.bodies import BatchInfo, SegmentInfo
from gearpy.windowlog.log import WindowLog

_NAME: Final = "window_log"
_EVENT_TIME: Final = "event_time"
_WINDOW_END: Final = "window_end"
_TIMES: Final = (_EVENT_TIME, _WINDOW_END)
_TIMING: Final = "timing"
_EARLY: Final = "early"
_TRIES: Final = 5


def window_log(
    path: str | Path,
    *,
    time: str | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    schema: SchemaLike[Row] | None = None,
    rows: bool = False,
    partitions: int = 4,
    follow: bool = False,
    poll: Duration = "100ms",
    idle: Duration = "10s",
    storage_options: Mapping[str, Any] | None = None,
) -> Source[Row]:
    """Read a window log that Spark has written by `format("gearpy")`, or another application.

    Each row is read once, whatever fails; a compaction in between does not matter. Rows are
    tables, or dicts with ``rows``. What an application has written by `window_log_folder` comes as
    the columns that are in the log: `window_start`, `window_end`, the key and so on.

    Event times are those of the column ``time``. Without it they are those of `event_time`, if the
    log has that, or a millisecond before `window_end`: the last one that belongs to the window.

    The watermark moves at the end of each batch of the log: to what its writer has promised by it,
    as Spark does with the option ``watermark``; if it has not, to the newest event time in it less
    ``out_of_order``. Results of windows that had not closed yet, ``timing`` early, do not count.

    Lanes of the log are spread over the partitions, which stay the same however many writers there
    are or come to be. Where a partition has several lanes, it reads the one that is furthest
    behind in event time; and one that has nothing more holds the others back until it has been
    silent for ``idle``, as its writer may be about to commit what belongs to the same time.

    Args:
        path: the folder of the log, or its URL.
        time: column of the event time, such as "at", or "meta.ts" where it is in a record.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later batch of the same lane may go.
        schema: of the rows, as of `csv`; needed where the log is not there yet.
        rows: give dicts, and no tables.
        partitions: so many tasks can read at a time.
        follow: wait for more, without end. Otherwise what is there at the first start is read.
        poll: wait between two looks.
        idle: after so long without anything new a lane holds the others back no more.
        storage_options: for the file system of a URL.

    Raises:
        ConfigError: there is no log, or an option is not understood; also when it is built.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("make"), []
        >>> words = app.read(gp.collection(["a", "b", "a"], timestamp=lambda word: 5))
        >>> counts = words.key_by(lambda word: word).window(gp.tumbling("10s")).count()
        >>> counts.write(gp.window_log_folder("counts"))
        >>> _ = gp.run(app)
        >>> app = gp.StreamApp("read")
        >>> app.read(gp.window_log("counts")).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> sorted((row["key"], row["value"]) for row in results)
        [('a', 2), ('b', 1)]
    """
    if partitions < 1:
        raise ConfigError(f"{_NAME}: partitions is {partitions}, must be 1 or more")
    return WindowLogSource(
        WindowLog(path, storage_options=storage_options),
        time=time,
        form=time_form(_NAME, time_unit, zone),
        bound_ms=duration_ms(out_of_order),
        schema=None if schema is None else row_schema_of(schema),
        rows=rows,
        parts=partitions,
        follow=follow,
        poll_ms=duration_ms(poll),
        idle_ms=duration_ms(idle),
    )


class LogPlace(TypedDict):
    """Snapshot of a reader: of each lane the last batch read, rows of the next, the watermark."""

    lanes: Mapping[str, tuple[int, int, int]]
    until: dict[str, int] | None
    watermark_ms: int


class WindowLogSource(Source):
    """A window log; see `window_log`."""

    replayable = True

    def __init__(
        self,
        log: WindowLog,
        *,
        time: str | None,
        form: TimeForm,
        bound_ms: int,
        schema: RowSchema | None,
        rows: bool,
        parts: int,
        follow: bool,
        poll_ms: int,
        idle_ms: int,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._log = log
        self._time = time
        self._form = form
        self._bound_ms = bound_ms
        self._given = schema
        self._rows = rows
        self._parts = parts
        self._follow = follow
        self._poll_ms = poll_ms
        self._idle_ms = idle_ms
        self._now_ms = now_ms
        self.bounded = not follow
        self._up_to_now = False

    @property
    def description(self) -> str:
        return f"{_NAME}({self._log.place})"

    @property
    def schema(self) -> RowSchema | None:
        return None if self._rows else self._columns()

    @property
    def note(self) -> str:
        known = self._given is not None or self._log.exists
        return self._form.note(self._time, self._columns().arrow if known else None)

    def up_to_now(self) -> "WindowLogSource":
        other = copy(self)
        other._up_to_now, other._follow, other.bounded = True, False, True  # noqa: SLF001 - of the same class
        return other

    def partitions(self) -> Sequence[str]:
        self._columns()  # Says what is missing, before anything runs.
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: LogPlace | None) -> "WindowLogReader":
        part = int(partition)
        columns = self._columns()
        return WindowLogReader(
            self._log,
            LogTimes(columns.arrow, self._time, self._form, self._bound_ms),
            columns.arrow if self._given is not None else None,
            is_mine=lambda lane: part_of_lane(lane, self._parts) == part,
            rows=self._rows,
            follow=self._follow,
            up_to_now=self._up_to_now,
            poll_ms=self._poll_ms,
            idle_ms=self._idle_ms,
            now_ms=self._now_ms,
            resume=resume,
        )

    def _columns(self) -> RowSchema:
        columns = self._given
        if columns is None:
            if not self._log.exists:
                raise ConfigError(
                    f"{self.description}: there is no window log yet: start what writes it first, "
                    "or give schema="
                )
            columns = RowSchema(self._log.schema.arrow)
        if self._time is not None:
            check_time_column(_NAME, self._time, columns.arrow)
        elif not set(_TIMES) & set(columns.arrow.names):
            names = ", ".join(columns.arrow.names)
            raise ConfigError(f"{_NAME}: no column tells event times: give time=, one of {names}")
        return columns


class LogTimes:
    """Event times of rows, and the promise of a batch; without a column by the names of columns."""

    def __init__(
        self, schema: pa.Schema, column: str | None, form: TimeForm, bound_ms: int
    ) -> None:
        self._column = column or next(name for name in _TIMES if name in schema.names)
        self._form = form
        self._earlier_ms = int(column is None and self._column == _WINDOW_END)
        self._bound_ms = bound_ms
        self._has_early = _TIMING in schema.names

    def of(self, table: pa.Table, *, floor_ms: int) -> pa.Array:
        """Return a time for each row; of one without that of the batch before."""
        try:
            column = column_at(table, self._column).combine_chunks()
            times = times_of(column, self._form)
        except ValueError as error:
            raise ConfigError(f"{_NAME}: column {self._column!r}: {error}") from error
        if self._earlier_ms:
            times = pc.subtract(times, self._earlier_ms)
        return times.fill_null(0 if floor_ms == MIN_MS else floor_ms)

    def promised_ms(self, table: pa.Table, times: pa.Array, info: BatchInfo) -> int:
        """Return a time that no later row of the lane is older than, once these were read."""
        if info.watermark is not None:
            return info.watermark
        if self._has_early:
            times = times.filter(pc.fill_null(pc.not_equal(table.column(_TIMING), _EARLY), True))
        newest = pc.max(times).as_py()
        return MIN_MS if newest is None else newest - self._bound_ms


def part_of_lane(lane: str, parts: int) -> int:
    writer, _, task = lane.rpartition("-")
    return (stable_hash(writer) + int(task)) % parts


class WindowLogReader(SourceReader):
    def __init__(
        self,
        log: WindowLog,
        times: LogTimes,
        columns: pa.Schema | None,
        *,
        is_mine: Callable[[str], bool],
        rows: bool,
        follow: bool,
        up_to_now: bool,
        poll_ms: int,
        idle_ms: int,
        now_ms: Callable[[], int],
        resume: LogPlace | None,
    ) -> None:
        self._log = log
        self._times = times
        self._columns = columns
        self._is_mine = is_mine
        self._rows = rows
        self._follow = follow
        self._poll_ms = poll_ms
        self._now_ms = now_ms
        self._looked_ms: int | None = None
        self._view: LogView | None = None
        self._up_to_now = up_to_now
        self._until = None if resume is None or up_to_now else resume["until"]
        if not follow and self._until is None:
            self._view = log.view()
            self._until = self._mine(self._view.ends())
        self._lanes = Lanes(
            {lane: LanePlace(*place) for lane, place in (resume or {"lanes": {}})["lanes"].items()},
            watermark_ms=resume["watermark_ms"] if resume is not None else MIN_MS,
            until=None if follow else self._until,
            idle_ms=idle_ms,
            up_to_now=up_to_now,
        )
        self._open = _OpenFile()

    def read_batch(self, max_records: int) -> Batch | None:
        batch = None
        while batch is None:
            lane = self._lanes.next()
            if lane is None and self._looks():
                lane = self._lanes.next()
            if lane is None:
                break
            place = self._lanes.of(lane)
            if not self._open.has(lane, place.seq + 1):
                self._open = self._opened(lane, place.seq + 1)
            info, table = self._open.batch(place.seq + 1)
            taken = table.slice(place.row, max_records)
            times = self._times.of(taken, floor_ms=place.watermark_ms)
            if place.row + taken.num_rows < info.rows:
                self._lanes.on_rows(lane, taken.num_rows)
            else:
                floor_ms = place.watermark_ms
                whole = self._times.of(table, floor_ms=floor_ms) if place.row else times
                promised_ms = self._times.promised_ms(table, whole, info)
                self._lanes.on_batch(lane, promised_ms, now_ms=self._now_ms())
            if taken.num_rows:
                if self._columns is not None:
                    taken = taken.select(self._columns.names).cast(self._columns)
                columns = taken.combine_chunks().to_batches()[0]
                batch = (
                    Batch(rows_of(columns), times.to_pylist())
                    if self._rows
                    else Batch(Table(columns), Times(times))
                )
        self.finished = self._lanes.is_finished
        self.idle = batch is None and self._lanes.is_idle(self._now_ms())
        return batch

    def snapshot(self) -> LogPlace:
        return {
            "lanes": {
                lane: (place.seq, place.row, place.watermark_ms)
                for lane, place in sorted(self._lanes.places.items())
            },
            "until": None if self._follow or self._up_to_now else self._until,
            "watermark_ms": self.watermark_ms,
        }

    @property
    def watermark_ms(self) -> int:
        return self._lanes.watermark_ms

    @property
    def progress(self) -> tuple[int, int]:
        known = self._until or (self._mine(self._view.ends()) if self._view is not None else {})
        return sum(self._lanes.of(lane).seq for lane in known), sum(known.values())

    def close(self) -> None:
        self._open = _OpenFile()

    def _looks(self) -> bool:
        now_ms = self._now_ms()
        if self._looked_ms is not None and now_ms - self._looked_ms < self._poll_ms:
            return False
        self._looked_ms = now_ms
        self._view = self._log.view()
        starts, ends = self._mine(self._view.start()), self._mine(self._view.ends())
        for lane, place in self._lanes.places.items():
            if lane not in ends or place.seq > ends[lane]:
                raise GearpyError(
                    f"{self._log.place}: lane {lane} was read up to batch {place.seq}, and has "
                    f"{ends.get(lane, 0)} now: it is another log, so nobody knows where to go on"
                )
            wanted = place.seq + 1
            if starts[lane] >= wanted and not (
                self._until is not None and self._lanes.of(lane).seq >= self._until.get(lane, 0)
            ):
                raise WindowLogGap(lane=lane, wanted=wanted, kept=starts[lane] + 1)
        self._lanes.on_listing(starts, ends, now_ms=now_ms)
        return True

    def _mine(self, position: Position) -> dict[str, int]:
        return {lane: seq for lane, seq in position.items() if self._is_mine(lane)}

    def _opened(self, lane: str, seq: int) -> "_OpenFile":
        """Read the file with a batch into memory; another one, if it was compacted meanwhile."""
        view = self._view or self._log.view()
        for _ in range(_TRIES):
            (segment, *_), *_ = view.between({lane: seq - 1}, {lane: seq})
            found = self._log.read_file(segment)
            if found is not None:
                return _OpenFile(segment, *found)
            self._view = view = self._log.view()
        raise WindowLogDamaged(
            file=self._log.place, reason=f"files were removed {_TRIES} times while they were read"
        )


class _OpenFile:
    """The rows of a file, batch by batch."""

    def __init__(
        self,
        segment: LogSegment | None = None,
        table: pa.Table = None,
        info: SegmentInfo | None = None,
    ) -> None:
        self._lane = "" if segment is None else segment.lane
        self._table = table
        batches = () if info is None else info.batches
        self._batches = {batch.seq: batch for batch in batches}
        begins = accumulate((batch.rows for batch in batches), initial=0)
        self._begins = dict(zip(self._batches, begins, strict=False))

    def has(self, lane: str, seq: int) -> bool:
        return self._lane == lane and seq in self._batches

    def batch(self, seq: int) -> tuple[BatchInfo, pa.Table]:
        batch = self._batches[seq]
        return batch, self._table.slice(self._begins[seq], batch.rows)
