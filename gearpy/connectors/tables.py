"""Tables in memory, and tables made by a function at a given rate, as sources."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, overload

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema, SchemaLike, inferred_schema, row_schema_of
from gearpy.columns.workable import note_of
from gearpy.connectors.files.column_times import (
    TimeForm,
    TimeUnit,
    check_time_column,
    column_at,
    time_form,
    times_of,
)
from gearpy.connectors.files.stamps import CountPlace, OrderedReader
from gearpy.connectors.files.tables import conformed
from gearpy.connectors.streams.generator import (
    Pace,
    check_generator,
    one_by_one,
    share_of,
    takes_part,
)
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError, OperatorError
from gearpy.expressions.expr import Expr
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.messages.type_variables import Row, T
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import Source
from gearpy.task.sources.share import numbered_partitions

#: Columns that pandas makes of an index.
_UNNAMED_INDEX: Final = re.compile(r"__index_level_\d+__")
_MAKE: Final = "generate_tables(make)"
#: Few: on a busy machine a table is late at times, and small ones are to be joined.
_ONE_BY_ONE: Final = 16


@overload
def rows(
    data: Iterable[T],
    *,
    schema: None = None,
    time: str | Expr | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    partitions: int = 1,
) -> Source[T]: ...


@overload
def rows(
    data: object,
    *,
    schema: SchemaLike[Row] | None = None,
    time: str | Expr | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    partitions: int = 1,
) -> Source[Row]: ...


def rows(
    data: object,
    *,
    schema: object = None,
    time: str | Expr | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    partitions: int = 1,
) -> Source:
    """Read the rows of a table in memory, then end.

    Args:
        data: rows that are dicts, dataclasses or NamedTuples; or a table, which is any object of
            Arrow's interface for Python (``__arrow_c_stream__``, ``__arrow_c_array__``): a data
            frame of Polars or pandas, a relation of DuckDB, a `pyarrow.Table`, `RecordBatch` or
            `RecordBatchReader`. It is read at once; of an index of pandas without a name
            nothing is read.
        schema: of the rows; by default found out.
        time: column of the event time, or an expression of it; without it rows have the time 0,
            the Unix epoch.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later row of the same partition may be.
        partitions: number of parts, one behind the other, that can be read in parallel.

    Raises:
        ConfigError: it is no table, or the column is not there or has no event times.
        OperatorError: a row does not fit the schema.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("numbers"), []
        >>> numbers = app.read(gp.rows([{"n": 1}, {"n": 2}])).window(gp.global_window())
        >>> numbers.aggregate(total=gp.agg.sum("n")).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results[0].value
        {'total': 3}
    """
    if partitions < 1:
        raise ConfigError(f"rows: partitions is {partitions}, must be 1 or more")
    note, table = "", _as_table(data)
    if table is not None:
        note = note_of(table.schema)
        known = row_schema_of(table.schema if schema is None else schema)
        batches = table.combine_chunks().to_batches()
        batch = batches[0] if batches else known.table([])
        try:
            batch = conformed(batch, known.arrow)
        except ValueError as error:
            raise ConfigError(f"rows: {error}") from error
    else:
        if isinstance(data, str | bytes | dict) or not isinstance(data, Iterable):
            raise ConfigError(
                f"rows() got {data!r:.100}: give a table, such as a pyarrow.Table or a data frame, "
                "or rows that are dicts, dataclasses or NamedTuples"
            )
        listed = list(data)
        if schema is None and not listed:
            raise ConfigError("rows: there are no rows that would tell the columns: give schema=")
        known = inferred_schema(listed) if schema is None else row_schema_of(schema)
        batch = known.table(listed)
    form = time_form("rows", time_unit, zone)
    times = _times("rows", batch, time, form)
    bound_ms = duration_ms(out_of_order)
    note = "; ".join(filter(None, [note, form.note(time, batch.schema)]))
    source = TableSource(known, batch, times, parts=partitions, bound_ms=bound_ms, note=note)
    source.time_column = None if isinstance(time, Expr) else time or ""
    return source


def _as_table(data: object) -> pa.Table | None:
    """Return the columns of another library's table; None if it is none."""
    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"):
        return None
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise ConfigError(f"rows: a {type(data).__name__} gives no table: {error}") from error
    if b"pandas" not in (table.schema.metadata or {}):
        return table
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name)]
    return table.drop_columns(unnamed).replace_schema_metadata(None)


def generate_tables(
    make: Callable[..., Iterable[Any]],
    *,
    schema: SchemaLike[Row],
    time: str | Expr | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    rate: float | None = None,
    limit: int | None = None,
    partitions: int = 1,
    out_of_order: Duration = "0s",
) -> Source[Row]:
    """Read the record batches that a function's iterator gives; ends when it ends, or at the limit.

    What `generate` says of resuming, partitions and rate holds here, too; rate and limit count
    rows.

    Args:
        make: returns an iterable of `pyarrow.RecordBatch` or `Table`. If it has a parameter it is
            called with the number of the partition.
        schema: of the batches.
        time: column of the event time, or an expression of it; without it rows have the time at
            which they were made.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        rate: rows per second of all partitions together; without it as fast as they are taken.
        limit: number of rows of all partitions together.
        partitions: number of iterators that can be read in parallel.
        out_of_order: how far back in time a later row of the same partition may be.

    Raises:
        ConfigError: an option is not understood, or the column is not there.

    Example:
        >>> import gearpy as gp
        >>> import pyarrow
        >>> def make():
        ...     yield pyarrow.RecordBatch.from_pydict({"n": [1, 2, 3]})
        >>> app, results = gp.StreamApp("made"), []
        >>> made = app.read(gp.generate_tables(make, schema={"n": int}, limit=2))
        >>> made.write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [{'n': 1}, {'n': 2}]
    """
    name = "generate_tables"
    check_generator(name, make, rate=rate, limit=limit, parts=partitions)
    known = row_schema_of(schema)
    form = time_form(name, time_unit, zone)
    if time is not None:
        check_time_column(name, time, known.arrow)
    return _MadeTables(
        make,
        known,
        time=time,
        form=form,
        rate=rate,
        limit=limit,
        parts=partitions,
        bound_ms=duration_ms(out_of_order),
    )


class TableSource(Source):
    """A table in memory; see `rows`."""

    replayable = True
    bounded = True
    schema: RowSchema | None = None
    note = ""

    def __init__(
        self,
        schema: RowSchema,
        batch: pa.RecordBatch,
        times: Times,
        *,
        parts: int,
        bound_ms: int,
        note: str = "",
    ) -> None:
        self.schema = schema
        self._batch = batch
        self._times = times
        self._parts = parts
        self._bound_ms = bound_ms
        self.note = note

    @property
    def description(self) -> str:
        return f"rows({self._batch.num_rows})"

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: CountPlace | None) -> "TableReader":
        rows = self._batch.num_rows
        ends = [rows * part // self._parts for part in range(self._parts + 1)]
        start, stop = list(pairwise(ends))[int(partition)]
        return TableReader(
            Table(self._batch.slice(start, stop - start)),
            self._times[start:stop],
            bound_ms=self._bound_ms,
            resume=resume,
        )


class TableReader(OrderedReader[Any]):
    """Reads one part of a table from a position on."""

    def __init__(
        self, rows: Table, times: Times, *, bound_ms: int, resume: CountPlace | None
    ) -> None:
        self._rows = rows
        self._times = times
        self.out_of_order_ms = bound_ms
        self._order = BoundedOutOfOrder(bound_ms)
        self._order.watermark_ms = resume["watermark_ms"] if resume else MIN_MS
        self._position = resume["position"] if resume else 0

    def read_batch(self, max_records: int) -> Batch | None:
        stop = self._position + max_records
        rows, times = self._rows[self._position : stop], self._times[self._position : stop]
        self._position += len(rows)
        self.finished = self._position >= len(self._rows)
        if not len(rows):
            return None
        self._order.on_records([times.bounds()[1]])
        return Batch(rows, times)

    def snapshot(self) -> CountPlace:
        return {"position": self._position, "watermark_ms": self.watermark_ms}

    @property
    def progress(self) -> tuple[int, int]:
        return self._position, len(self._rows)


class _MadeTables(Source):
    replayable = calls_program = True
    schema: RowSchema | None = None

    def __init__(
        self,
        make: Callable[..., Iterable[Any]],
        schema: RowSchema,
        *,
        time: str | Expr | None,
        form: TimeForm,
        rate: float | None,
        limit: int | None,
        parts: int,
        bound_ms: int,
    ) -> None:
        self.bounded = limit is not None
        self._make = make
        self._takes_part = takes_part(make)
        self.schema = schema
        self._arrow = schema.arrow
        self._time = time
        self.time_column = None if isinstance(time, Expr) else time or ""
        self._form = form
        self._rate = rate
        self._limit = limit
        self._parts = parts
        self._bound_ms = bound_ms
        self.is_by_arrival = time is None

    @property
    def note(self) -> str:
        return self._form.note(self._time, self._arrow)

    @property
    def description(self) -> str:
        name = getattr(self._make, "__name__", type(self._make).__name__)
        return f"generate_tables({name})"

    def partitions(self) -> Sequence[str]:
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: CountPlace | None) -> "_MadeReader":
        part = int(partition)
        return _MadeReader(
            self._batches(part),
            self._stamped,
            limit=None if self._limit is None else share_of(self._limit, part, self._parts),
            pace=None if self._rate is None else Pace(self._rate / self._parts),
            bound_ms=None if self._time is None else self._bound_ms,
            resume=resume,
        )

    def _batches(self, part: int) -> Iterator[pa.RecordBatch]:
        try:
            made = self._make(part) if self._takes_part else self._make()
            for item in made:
                yield from self._fitting(item)
        except OperatorError:
            raise
        except Exception as error:
            raise operator_error(_MAKE, error) from error

    def _fitting(self, item: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(item, pa.RecordBatch | pa.Table):
            raise TypeError(
                f"gave a {type(item).__name__}: give pyarrow.RecordBatch, or use generate()"
            )
        batches = item.to_batches() if isinstance(item, pa.Table) else [item]
        for batch in batches:
            missing = [name for name in self._arrow.names if name not in batch.schema.names]
            if missing:
                raise ValueError(
                    f"there is no column {missing[0]!r}: there are {', '.join(batch.schema.names)}"
                )
            yield conformed(batch, self._arrow)

    def _stamped(self, batch: pa.RecordBatch) -> Times | None:
        return None if self._time is None else _times(_MAKE, batch, self._time, self._form)


class _MadeReader(OrderedReader[Any]):
    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        stamped: Callable[[pa.RecordBatch], Times | None],
        *,
        limit: int | None,
        pace: Pace | None,
        bound_ms: int | None,
        resume: CountPlace | None,
    ) -> None:
        self._batches = batches
        self._stamped = stamped
        self._limit = limit
        self._pace = pace
        self.out_of_order_ms = bound_ms
        self.is_by_arrival = bound_ms is None
        self._order = BoundedOutOfOrder(bound_ms or 0)
        self._order.watermark_ms = resume["watermark_ms"] if resume else MIN_MS
        self._rest: pa.RecordBatch | None = None
        self._position = resume["position"] if resume else 0
        self._to_skip = self._position
        self._one_by_one = 0  # So many tables come one by one.

    def read_batch(self, max_records: int) -> Batch | None:
        wanted = max_records
        if self._limit is not None:
            wanted = min(wanted, self._limit - self._position)
        if wanted <= 0 or not self._has_rows():
            self.finished = True
            return None
        assert self._rest is not None
        wanted = min(wanted, self._rest.num_rows)
        going = wanted
        if self._pace is not None:
            going = self._pace.take(wall_ms(), wanted)
            self.pause_ms = self._pace.pause_ms(in_tables=True)
        if not going:
            return None
        taken, self._rest = self._rest.slice(0, going), self._rest.slice(going)
        self._position += going
        self.finished = self._limit is not None and self._position >= self._limit
        return Batch(Table(taken), self._times(taken))

    def snapshot(self) -> CountPlace:
        return {"position": self._position, "watermark_ms": self.watermark_ms}

    @property
    def progress(self) -> tuple[int, int]:
        return self._position, self._limit or 0

    def close(self) -> None:
        self._batches = iter(())
        self._rest = None

    def _has_rows(self) -> bool:
        while self._rest is None or not self._rest.num_rows:
            before_ms = wall_ms()
            batch = next(self._batches, None)
            if self._pace is None:
                took_ms = wall_ms() - before_ms
                self._one_by_one = one_by_one(self._one_by_one, took_ms, _ONE_BY_ONE)
                self.may_wait = self._one_by_one > 0
            if batch is None:
                return False
            skipped = min(self._to_skip, batch.num_rows)
            self._to_skip -= skipped
            self._rest = batch.slice(skipped)
        return True

    def _times(self, batch: pa.RecordBatch) -> Times:
        times = self._stamped(batch)
        if times is None:
            self._order.on_records([wall_ms()])
            return Times(pa.repeat(pa.scalar(self.watermark_ms, pa.int64()), batch.num_rows))
        self._order.on_records([times.bounds()[1]])
        return times


def _times(operator: str, batch: pa.RecordBatch, name: str | Expr | None, form: TimeForm) -> Times:
    if name is None:
        return Times(pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows))
    check_time_column(operator, name, batch.schema)
    try:
        return Times(times_of(column_at(batch, name), form))
    except (pa.ArrowException, ArithmeticError, ValueError, ConfigError) as error:
        raise ConfigError(f"{operator}: column {name!r}: {error}") from error
