"""Steps of a stream over single records, or batches of them, that keep nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, TypeGuard, overload

from gearpy.columns.row_schema import SchemaLike, row_schema_of
from gearpy.core.base.fields import value_getter
from gearpy.distribution import require
from gearpy.dsl.operators.expressions import (
    ColumnsOperator,
    ConditionOperator,
    expression_text,
)
from gearpy.dsl.operators.names import check_count, check_function, checked, step_name
from gearpy.dsl.operators.records import BatchOperator, FunctionOperator, LogOperator
from gearpy.dsl.streams.program import ProgramStream
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr, condition_of, expression_of
from gearpy.messages.type_variables import Row, T, U
from gearpy.task.api.rejects import StepOnError
from gearpy.task.chain.fused import RowOperator
from gearpy.task.stages.tables import FORMS, Form

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from gearpy.dsl.streams.stream import Stream

#: Numbers of `logging`, by their names.
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class RecordSteps(ProgramStream[T]):
    """Steps over single records."""

    def map(
        self, function: Callable[[T], U], *, on_error: StepOnError | None = None, name: str = ""
    ) -> Stream[U]:
        """Replace each record by ``function(record)``; its event time stays.

        Args:
            function: of a record.
            on_error: what becomes of a record on which it raises: "fail", "skip", "quarantine",
                or "side", which puts it into the stream ``errors`` as a `FailedRecord`. Without
                it, ``application.on-error`` says so for all steps.
            name: for people.

        Raises:
            ConfigError: ``on_error`` is none of these.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("squares"), []
            >>> app.read(gp.collection([1, 2, 3])).map(lambda n: n * n).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 4, 9]
        """
        return self._row("map", function, name, on_error)

    @overload  # For mypy, which tells what is wrong in a lambda as the first overload sees it.
    def filter(
        self,
        predicate: Callable[[T], Never],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[T]: ...

    @overload
    def filter(
        self, predicate: Expr, *, on_error: StepOnError | None = None, name: str = ""
    ) -> Stream[T]: ...

    @overload
    def filter(
        self,
        predicate: Callable[[T], TypeGuard[U]],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    @overload
    def filter(
        self,
        predicate: Callable[[T], TypeIs[U]],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    @overload
    def filter(
        self,
        predicate: Callable[[T], object],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[T]: ...

    def filter(
        self,
        predicate: Expr | Callable[[T], object],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Keep the records for which the predicate is true.

        Args:
            predicate: a function of a record, or an expression such as ``gp.col("price") > 3``,
                which is computed over columns where the stream has these. A record of which it is
                neither true nor false, as a value is missing, is left out.
            on_error: as in `map`.
            name: for people.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("odd"), []
            >>> odd = app.read(gp.collection([1, 2, 3])).filter(lambda n: n % 2)
            >>> odd.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 3]
        """
        if isinstance(predicate, str):
            raise ConfigError(
                f"filter({predicate!r}): give an expression, such as filter(gp.col('price') > 3), "
                "or a function of a record"
            )
        if not isinstance(predicate, Expr):
            return self._row("filter", predicate, name, on_error)
        step = ConditionOperator(
            name=name or f"filter({expression_text([predicate])})",
            given=name,
            inputs=(self._step,),
            expressions=(Expr(condition_of(predicate)),),
            on_error=on_error,
        )
        return self._program.add(step)

    def select(
        self, *columns: str | Expr, on_error: StepOnError | None = None, **named: Any
    ) -> Stream[dict[str, Any]]:
        """Make records of some columns: dicts, or columns where the stream has these.

        Args:
            columns: names, or expressions, which `Expr.alias` gives a name.
            on_error: as in `map`.
            named: more of them by the names that they get; a text is the name of a column, another
                plain value stands in all records.

        Raises:
            ConfigError: there is no column, or two of one name.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("net"), []
            >>> sales = app.read(gp.rows([{"shop": "north", "price": 3}]))
            >>> sales.select("shop", net=gp.col("price") * 0.5).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [{'shop': 'north', 'net': 1.5}]
        """
        return self._columns("select", columns, named, on_error)

    def with_columns(
        self, *columns: Expr, on_error: StepOnError | None = None, **named: Any
    ) -> Stream[dict[str, Any]]:
        """Add columns to those that there are, or replace some of these; as `select` otherwise.

        All are computed of the record as it came: none sees another one that is new.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("net"), []
            >>> sales = app.read(gp.rows([{"shop": "north", "price": 3}]))
            >>> sales.with_columns(net=gp.col("price") * 0.5).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [{'shop': 'north', 'price': 3, 'net': 1.5}]
        """
        return self._columns("with_columns", columns, named, on_error)

    def _columns(
        self,
        kind: str,
        columns: tuple[str | Expr, ...],
        named: Mapping[str, Any],
        on_error: StepOnError | None,
    ) -> Stream[dict[str, Any]]:
        given_columns: tuple[Any, ...] = columns
        wrong = [each for each in given_columns if not isinstance(each, str | Expr)]
        if wrong or not (columns or named):
            given = repr(wrong[0]) if wrong else "nothing"
            raise ConfigError(
                f"{kind} takes names of columns and expressions, not {given}: write "
                f'{kind}(gp.col("price"), net=gp.col("price") * 0.5)'
            )
        with checked(kind):
            made = [expression_of(each) for each in columns]
            made += [expression_of(each).alias(name) for name, each in named.items()]
        names = [each.name for each in made]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(
                f"{kind} makes two columns {twice[0]!r}: give one another name by .alias(...)"
            )
        step = ColumnsOperator(
            name=f"{kind}({expression_text(made)})",
            kind=kind,
            inputs=(self._step,),
            expressions=tuple(made),
            keeps_columns=kind == "with_columns",
            on_error=on_error,
        )
        return self._program.add(step)

    def flat_map(
        self,
        function: Callable[[T], Iterable[U]],
        *,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]:
        """Replace each record by all that ``function(record)`` gives.

        A generator is pulled only as fast as the steps behind it can take it.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("words"), []
            >>> app.read(gp.collection(["to be", "or"])).flat_map(str.split).write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> results
            ['to', 'be', 'or']
        """
        return self._row("flat_map", function, name, on_error)

    @overload  # `T` is invariant, so each kind of record has its own.
    def flatten(self: RecordSteps[list[U]], *, name: str = "") -> Stream[U]: ...

    @overload
    def flatten(self: RecordSteps[tuple[U, ...]], *, name: str = "") -> Stream[U]: ...

    @overload
    def flatten(self: RecordSteps[Iterable[U]], *, name: str = "") -> Stream[U]: ...

    @overload
    def flatten(self, *, name: str = "") -> Stream[Any]: ...

    def flatten(self, *, name: str = "") -> Stream[Any]:
        """Replace each record, such as a list, by all that is in it.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("flat"), []
            >>> app.read(gp.collection([[1, 2], [], [3]])).flatten().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 2, 3]
        """
        return self._add_row(RowOperator("flat_map", name or "flatten", iter), "flatten", name)

    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        schema: SchemaLike[Row] | None = None,
        takes: SchemaLike[Any] | None = None,
        form: Form = "arrow",
        times: str | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[Row]:
        """Replace batches of records in columns by the results of a function.

        Steps behind it that take rows get dicts, or rows of ``schema``. The function returns as
        many rows as it gets, in their order, as event times stay in their places; or none.

        Args:
            function: gets and returns a `pyarrow.RecordBatch`, or another ``form``.
            schema: of its results: a dataclass, NamedTuple or TypedDict class, a dict of names
                and types, or a `pyarrow.Schema`. Without it, it is as it comes.
            takes: the same of its input, for streams in rows that have no schema.
            form: "arrow"; "pandas" or "polars" for a function over data frames.
            times: name of a column of event times, in ms, which the function gets and returns in
                addition; then it may leave rows out, and add some.
            on_error: as in `map`; the bad record of a batch is looked for.
            name: for people.

        Raises:
            ConfigError: a schema or the form is not understood.

        Example:
            >>> import gearpy as gp
            >>> import pyarrow.compute as pc
            >>> def double(batch):
            ...     return batch.set_column(0, "n", pc.multiply(batch.column("n"), 2))
            >>> app, results = gp.StreamApp("doubled"), []
            >>> numbers = app.read(gp.collection([{"n": 1}, {"n": 2}]))
            >>> numbers.map_batches(double).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [{'n': 2}, {'n': 4}]
        """
        check_function("map_batches", function, of="a batch of records")
        if form not in FORMS:
            raise ConfigError(f"map_batches: form is {form!r}, must be one of {', '.join(FORMS)}")
        if form != "arrow":
            require("map_batches", form)
        with checked("map_batches"):
            given = None if takes is None else row_schema_of(takes)
            returned = None if schema is None else row_schema_of(schema)
        step = BatchOperator(
            name=name or step_name("map_batches", function),
            given=name,
            inputs=(self._step,),
            function=function,
            form=form,
            times=times,
            takes=given,
            gives=returned,
            on_error=on_error,
        )
        return self._program.add(step)

    def inspect(self, function: Callable[[T], object], *, name: str = "") -> Stream[T]:
        """Call a function with each record, and pass the record on.

        Example:
            >>> import gearpy as gp
            >>> app, seen, results = gp.StreamApp("seen"), [], []
            >>> numbers = app.read(gp.collection([1, 2])).inspect(seen.append)
            >>> numbers.map(str).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> seen, results
            ([1, 2], ['1', '2'])
        """
        check_function("inspect", function)

        def inspect(record: T) -> T:
            function(record)
            return record

        name_shown = name or step_name("inspect", function)
        return self._add_row(RowOperator("map", name_shown, inspect), "inspect", name)

    tap = inspect

    def log(self, level: str | int = "info", *, every: int = 1, name: str = "") -> Stream[T]:
        """Write records to the log of the application, and pass all on.

        Args:
            level: "debug", "info", "warning", "error", or a number of `logging`.
            every: one line for so many records of a task.
            name: stands in each line.

        Raises:
            ConfigError: the level is not known, or ``every`` is no number from 1.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("logged"), []
            >>> app.read(gp.collection([1, 2])).log("debug", every=1000).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 2]
        """
        number = _LEVELS.get(level) if isinstance(level, str) else level
        if type(number) is not int:
            raise ConfigError(f"log: level is {level!r}, must be one of {', '.join(_LEVELS)}")
        check_count("log", "every", every, example="every=1000")
        step = LogOperator(
            name=name or "log", given=name, inputs=(self._step,), level=number, every=every
        )
        return self._program.add(step)

    def _row(
        self, kind: Any, function: Callable[[Any], Any], name: str, on_error: StepOnError | None
    ) -> Stream[Any]:
        check_function(kind, function)
        operator = RowOperator(kind, name or step_name(kind, function), value_getter(function))
        return self._add_row(operator, kind, name, on_error)

    def _add_row(
        self, operator: RowOperator, kind: str, given: str, on_error: StepOnError | None = None
    ) -> Stream[Any]:
        step = FunctionOperator(
            name=operator.name,
            given=given,
            kind=kind,
            inputs=(self._step,),
            operator=operator,
            on_error=on_error,
        )
        return self._program.add(step)
