"""Stages at the edge of rows and columns, and the user's own functions over columns."""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from gearpy.columns.row_schema import RowSchema, as_table, inferred_schema
from gearpy.columns.workable import workable_batch
from gearpy.core.base.fields import rows_of_pairs
from gearpy.distribution import require
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Batch
from gearpy.messages.late_time import LateTime, promise_of
from gearpy.messages.table import Table, Times
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.window_result import WindowResult, rows_in
from gearpy.task.chain.stage import Stage

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from gearpy.columns.log_columns import LogColumns

Form: TypeAlias = Literal["arrow", "pandas", "polars"]

#: The forms that a user's function over columns may take and give.
FORMS: Final[tuple[Form, ...]] = ("arrow", "pandas", "polars")


class RowsStage(Stage):
    """Takes tables, yields rows, in portions that a task hands on at a time.

    Args:
        schema: the schema of the rows; None: dicts.
    """

    def __init__(self, context: TaskContext, name: str, schema: RowSchema | None) -> None:
        self.name = name
        self._schema = schema
        self._makes = schema is not None and schema.row_type is not None
        self._rejects = context.rejects
        self._rows_max = max(1, context.limits.batch_records)

    def process(self, batch: Batch) -> Iterator[Batch]:
        values, timestamps = batch.values, batch.timestamps
        if self._makes and type(values) is list and set(map(type, values)) == {dict}:
            assert self._schema is not None
            values = as_table(values, RowSchema(self._schema.arrow))  # Out of quarantine.
        if type(values) is not Table:
            yield batch
            return
        for start in range(0, len(values), self._rows_max):
            stop = start + self._rows_max
            rows, times = self._converted(values[start:stop], timestamps[start:stop])
            if rows:
                yield batch.giving(rows, times)

    def _converted(self, part: Table, timestamps: list[int]) -> tuple[list[Any], list[int]]:
        """Return rows; if the row class refuses one, each row is looked at alone."""
        try:
            return list(rows_in(part, self._schema)), list(timestamps)
        except USER_ERRORS as error:
            if len(part) == 1:
                record, at_ms = part[0], timestamps[0]
                blamed = operator_error(self.name, error, record=record, event_time_ms=at_ms)
                if blamed is error:
                    blamed = _blamed(self.name, error)
                try:
                    self._rejects.take(record, at_ms, blamed, place=self.place)
                except OperatorError as raised:
                    raise raised from error
                return [], []
        rows, times = list[Any](), list[int]()
        for place in range(len(part)):
            row, time = self._converted(part[place : place + 1], timestamps[place : place + 1])
            rows += row
            times += time
        return rows, times


class TableStage(Stage):
    """Takes rows, yields a table.

    Without a schema it is that of the first rows, as long as rows fit, and then that of those
    which did not. Results of windows have the columns that files have of them.

    Args:
        schema: the schema of the rows; None: found out.
    """

    def __init__(self, context: TaskContext, name: str, schema: RowSchema | None) -> None:
        self.name = name
        self._schema = schema
        self._is_given = schema is not None
        self._columns: LogColumns | None = None  # Of results of windows.
        self._rejects = context.rejects

    def process(self, batch: Batch) -> Iterator[Batch]:
        values = batch.values
        if not values:
            return
        try:
            table = values if type(values) is Table else self._table(values)
        except USER_ERRORS as error:
            yield from self._without_bad(batch, error)
        else:
            yield batch.giving(table, Times.of(batch.timestamps))

    def _table(self, values: list[Any]) -> Table:
        if self._is_given:
            return as_table(values, self._schema)
        if isinstance(values[0], WindowResult):
            return self._results(values)
        values = [*rows_of_pairs(values)]
        if self._schema is not None:
            try:
                return as_table(values, self._schema)
            except OperatorError:
                pass  # Other rows than before; their schema is found out anew.
        self._schema = inferred_schema(values)
        return as_table(values, self._schema)

    def _results(self, values: list[Any]) -> Table:
        from gearpy.columns.log_columns import LogColumns  # noqa: PLC0415 - it loads Arrow
        from gearpy.columns.results import marked  # noqa: PLC0415 - the same

        columns = self._columns = self._columns or LogColumns(self.name)
        batch, own = columns.batch_of(values), 4
        keys = len(columns.identity) - own  # The others are of the log.
        is_single = "value" in batch.schema.names
        return Table(batch.cast(marked(batch.schema, keys, is_single=is_single)))

    def _without_bad(self, batch: Batch, error: BaseException) -> Iterator[Batch]:
        """Go on behind the rows that do not fit, if that is the policy."""
        if len(batch) > 1 and self._rejects.may_go_on:
            for start, stop in _halves(len(batch)):
                yield from self.process(batch.part(start, stop))
            return
        blamed = _blamed(self.name, error)
        if len(batch) > 1:
            raise blamed from error
        self._rejects.take(batch.values[0], batch.timestamps[0], blamed, place=self.place)


class ColumnsStage(Stage):
    """The base of steps over columns: gives a table for each one that comes.

    When it raises, and the policy is to go on without a record, it is called again with parts of
    the table, down to a single row, which is then dropped. So it may be called with a row more
    than once.
    """

    #: Whether it looks for the row to blame, too, where the policy is to fail.
    finds_bad = False

    def __init__(self, context: TaskContext, name: str) -> None:
        self.name = name
        self._rejects = context.rejects

    def process(self, batch: Batch) -> Iterator[Batch]:
        if batch.values:
            yield from self._results(batch, as_table(batch.values), Times.of(batch.timestamps))

    def _called(self, table: Table, times: Times) -> tuple[Table, Times] | None:
        raise NotImplementedError

    def _cause(self, error: BaseException, record: Any) -> BaseException:
        """Return the error that a row is to blame for, which was found by one over columns."""
        return error

    def _results(self, batch: Batch, table: Table, times: Times) -> Iterator[Batch]:
        try:
            result = self._called(table, times)
        except USER_ERRORS as error:
            yield from self._without_bad(batch, table, times, error)
        else:
            if result is not None:
                yield batch.giving(*result)

    def _without_bad(
        self, batch: Batch, table: Table, times: Times, error: BaseException
    ) -> Iterator[Batch]:
        is_alone = len(table) == 1
        if not is_alone and (self.finds_bad or self._rejects.may_go_on):
            for start, stop in _halves(len(table)):
                yield from self._results(batch, table[start:stop], times[start:stop])
            return
        if not is_alone:
            raise operator_error(self.name, error) from error
        record, time = table[0], times[0]
        error = self._cause(error, record)
        blamed = operator_error(self.name, error, record=record, event_time_ms=time)
        try:
            self._rejects.take(record, time, blamed, place=self.place)
        except OperatorError as raised:
            raise raised from error


class MapBatchesStage(ColumnsStage):
    """Calls a user's function with tables, and yields the tables it returns.

    The function gives as many rows as it was given, and row for row they keep their event times;
    or it gives None or no rows at all. To leave rows out or add some, it needs the event times as
    a column.

    Args:
        function: takes and returns a `pyarrow.RecordBatch`, or a data frame.
        times: name of a column of event times, ms as int64, which the function is given, beside
            those of the stream, and returns; None: it gets none.
        gives: has the columns that it must return; None: whichever there are.

    Raises:
        ConfigError: there is no such form, or its library is not installed.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        function: Callable[[Any], Any],
        form: Form = "arrow",
        *,
        times: str | None = None,
        gives: RowSchema | None = None,
    ) -> None:
        if form not in FORMS:
            raise ConfigError(f"{name}: form is {form!r}, must be one of {', '.join(FORMS)}")
        if form != "arrow":
            require(name, form)
        super().__init__(context, name)
        self._function = function
        self._form = form
        self._times = times
        self.keeps_times = times is None  #: Else the function may return others.
        self._gives = gives
        self._schema: RowSchema | None = None  # That of the last table.

    def process(self, batch: Batch) -> Iterator[Batch]:
        if not batch.values:
            return
        table, times = as_table(batch.values, self._schema), Times.of(batch.timestamps)
        if self._schema is None or self._schema.arrow is not table.batch.schema:
            self._schema = RowSchema(table.batch.schema)
        if self._times is None or times.promised is None:
            yield from self._results(batch, table, times)
            return
        for start, stop in _alike(times):
            yield from self._results(batch, table[start:stop], times[start:stop])

    def _called(self, table: Table, times: Times) -> tuple[Table, Times] | None:
        from gearpy.columns.results import unmarked  # noqa: PLC0415 - it loads Arrow

        given = table.batch.replace_schema_metadata(unmarked(table.batch.schema).metadata)
        if self._times is not None:
            name = self._times
            if name in given.schema.names:
                raise ConfigError(
                    f"there is a column {name!r} already: choose another name for the times"
                )
            given = given.append_column(name, times.array)
        result = self._function(_INTO[self._form](given))
        batch = _record_batch(result, self._form)
        if batch is None or not batch.num_rows:
            return None
        batch = workable_batch(batch)
        if self._gives is not None:
            _check_columns(batch, self._gives)
        if self._times is not None:
            return _without_column(batch, self._times, promised_ms=_promise(times[0]))
        if batch.num_rows != len(times):
            raise ConfigError(
                f"the function gave {batch.num_rows} rows for {len(times)}, so nobody knows their "
                'event times: give as many, or ask for a column of them with times="event_time" '
                "and return it, too"
            )
        return Table(batch), times


def _halves(count: int) -> Sequence[tuple[int, int]]:
    return (0, count // 2), (count // 2, count)


def _blamed(operator: str, error: BaseException) -> OperatorError:
    """Name the step in an error that knows only which value does not fit."""
    blamed = operator_error(operator, error)
    if isinstance(error, OperatorError):
        return OperatorError(operator=operator, cause=error.cause, record=error.record)
    return blamed


# -- input and output of functions -------------------------------------------------------------


def _check_columns(batch: "pa.RecordBatch", promised: RowSchema) -> None:
    """Blame the function for a column that is missing, not the step behind it."""
    names = batch.schema.names
    missing = [repr(name) for name in promised.arrow.names if name not in names]
    if missing:
        raise ConfigError(
            f"the function returned no column {', '.join(missing)}, which is in the schema= of "
            f"what it returns: there are {', '.join(names) or 'none'}"
        )


def _alike(times: Times) -> Iterator[tuple[int, int]]:
    """Yield where rows begin and end that are late against one promise, or not late.

    Which rows of the result are of which that were given, nobody can tell but so.
    """
    start = 0
    for _, same in groupby(map(_promise, times)):
        stop = start + len(list(same))
        yield start, stop
        start = stop


def _promise(time_ms: int) -> int | None:
    return promise_of(time_ms) if type(time_ms) is LateTime else None


def _without_column(
    batch: "pa.RecordBatch", name: str, *, promised_ms: int | None
) -> tuple[Table, Times]:
    import pyarrow as pa  # noqa: PLC0415 - the batch is there, so Arrow is
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

    if name not in batch.schema.names:
        raise ConfigError(
            f"the function returned no column {name!r}, which has the event times: there are "
            f"{', '.join(batch.schema.names) or 'none'}"
        )
    try:
        times = Times(batch.column(name).cast(pa.int64()))
        if promised_ms is not None:
            times = Times(times.array, pc.max_element_wise(times.array, promised_ms))
    except pa.ArrowException as error:
        raise ConfigError(f"column {name!r} has no event times in ms: {error}") from error
    return Table(batch.drop_columns([name])), times


def _record_batch(result: Any, form: Form) -> "pa.RecordBatch | None":
    import pyarrow as pa  # noqa: PLC0415 - the function was given columns

    if result is None or isinstance(result, pa.RecordBatch):
        return result
    if form != "arrow" and not isinstance(result, pa.Table):
        result = _FROM[form](result)
    if isinstance(result, pa.RecordBatch):
        return result
    if isinstance(result, pa.Table):
        batches = result.combine_chunks().to_batches()
        return batches[0] if batches else None
    raise ConfigError(f"the function returned a {type(result).__name__}: {_ADVICE[form]}")


def _from_pandas(result: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - the function was given columns

    if not isinstance(result, import_module("pandas").DataFrame):
        return result
    return pa.RecordBatch.from_pandas(result, preserve_index=False).replace_schema_metadata(None)


_INTO: Final[dict[Form, Callable[[Any], Any]]] = {
    "arrow": lambda batch: batch,
    "pandas": lambda batch: batch.to_pandas(),
    "polars": lambda batch: import_module("polars").from_arrow(batch),
}
_FROM: Final[dict[Form, Callable[[Any], Any]]] = {
    "pandas": _from_pandas,
    "polars": lambda frame: (
        frame.to_arrow() if isinstance(frame, import_module("polars").DataFrame) else frame
    ),
}
_ADVICE: Final[dict[Form, str]] = {
    "arrow": "give a pyarrow.RecordBatch or Table, or None",
    "pandas": "give a pandas.DataFrame, or None",
    "polars": "give a polars.DataFrame, or None",
}
