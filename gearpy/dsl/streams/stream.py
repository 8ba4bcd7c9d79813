"""What users write: streams of records, and the steps that they go through. Gearpump: `Stream`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, TypeGuard, overload

from gearpy.core.base.times import Duration
from gearpy.core.window.windows import Windows
from gearpy.dsl.operators.keys import ITSELF, Key, KeyLike, key_of
from gearpy.dsl.operators.names import (
    check_count,
    check_function,
    check_name,
    checked,
    name_of,
    no_such_step,
    step_name,
)
from gearpy.dsl.operators.operator import Dispatcher, Operator
from gearpy.dsl.operators.records import BatchOperator, FunctionOperator, LogOperator
from gearpy.dsl.operators.routes import MergeOperator, ProcessOperator, SideOperator, WriteOperator
from gearpy.dsl.streams.asynchronous import Asynchronous
from gearpy.dsl.streams.branches import Branches, branches
from gearpy.dsl.streams.keyed import KeyedStream, keyed
from gearpy.dsl.streams.table_join import TableJoins
from gearpy.dsl.streams.windowed import WindowedStream, windowed
from gearpy.errors import ConfigError, NoSuchStep
from gearpy.messages.type_variables import K, Row, T, U
from gearpy.task.api.interfaces import Sink, Task, TaskContext
from gearpy.task.chain.fused import RowOperator
from gearpy.task.columns.row_schema import SchemaLike, row_schema_of
from gearpy.task.stages.tables import FORMS, Form
from gearpy.task.time.late import LATE, WindowLate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import TypeIs

    from gearpy.spark.delivery.batch import SparkBatch

__all__ = ["Stream"]


#: What only streams have that are grouped by key ...
_NEED_A_KEY: Final = frozenset(
    {"map_with_state", "flat_map_with_state", "join", "cogroup"}
    | {"join_interval", "join_asof", "join_latest"}
)
#: ... or that are in windows.
_NEED_GROUPS: Final = frozenset(
    {"aggregate", "count", "sum", "min", "max", "mean", "top_n", "reduce", "fold"}
)
#: Numbers of `logging`, by their names.
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Stream(Asynchronous[T], TableJoins[Any, T]):
    """Records of type ``T``, each with an event time, without an end unless the source has one.

    All methods take a ``name``: it is shown to people, and what a step keeps is found by it when
    the program has changed.
    """

    def map(self, function: Callable[[T], U], *, name: str = "") -> Stream[U]:
        """Replace each record by ``function(record)``; its event time stays.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("squares"), []
            >>> app.read(gp.collection([1, 2, 3])).map(lambda n: n * n).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 4, 9]
        """
        return self._row("map", function, name)

    @overload  # For mypy, which tells what is wrong in a lambda as the first overload sees it.
    def filter(self, predicate: Callable[[T], Never], *, name: str = "") -> Stream[T]: ...

    @overload
    def filter(self, predicate: Callable[[T], TypeGuard[U]], *, name: str = "") -> Stream[U]: ...

    @overload
    def filter(self, predicate: Callable[[T], TypeIs[U]], *, name: str = "") -> Stream[U]: ...

    @overload
    def filter(self, predicate: Callable[[T], object], *, name: str = "") -> Stream[T]: ...

    def filter(self, predicate: Callable[[T], object], *, name: str = "") -> Stream[Any]:
        """Keep the records for which the predicate is true.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("odd"), []
            >>> odd = app.read(gp.collection([1, 2, 3])).filter(lambda n: n % 2)
            >>> odd.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 3]
        """
        return self._row("filter", predicate, name)

    def flat_map(self, function: Callable[[T], Iterable[U]], *, name: str = "") -> Stream[U]:
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
        return self._row("flat_map", function, name)

    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        schema: SchemaLike[Row] | None = None,
        takes: SchemaLike[Any] | None = None,
        form: Form = "arrow",
        times: str | None = None,
        name: str = "",
    ) -> Stream[Row]:
        """Replace batches of records in columns by what a function makes of them.

        Steps behind it that take rows get dicts, or what ``schema`` says. The function returns as
        many rows as it gets, in their order, as event times stay in their places; or none.

        Args:
            function: gets and returns a `pyarrow.RecordBatch`, or what ``form`` says.
            schema: of what it returns: a dataclass, NamedTuple or TypedDict class, a dict of names
                and types, or a `pyarrow.Schema`. Without it, it is as it comes.
            takes: the same of what it gets, for streams that come in rows and do not say.
            form: "arrow"; "pandas" or "polars" for a function over data frames.
            times: name of a column of event times, in ms, which the function gets and returns in
                addition; then it may leave rows out, and add some.
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

    @overload
    def key_by(
        self, key: Callable[[T], K], /, *, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[K, T]: ...

    @overload
    def key_by(
        self, key: str, /, *, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[Any, T]: ...

    @overload
    def key_by(
        self,
        first: str,
        second: str,
        /,
        *more: str,
        parallelism: int | None = None,
        ordered: bool = True,
    ) -> KeyedStream[tuple[Any, ...], T]: ...

    def key_by(
        self, *key: KeyLike, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[Any, T]:
        """Group by key: the next step sees all records of one key in one of its tasks.

        Args:
            key: a function of the record alone, which may run more than once for a record; or
                names of fields, of which several make a tuple. By names columns stay columns.
            parallelism: tasks of the next step.
            ordered: where the next step sees in which order a key's records come, it gets them by
                event time, and timers between them, when the watermark has passed them; if false,
                at once, as they come, which may be otherwise in another run.

        Raises:
            ConfigError: it is neither.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("visits"), []
            >>> visits = [{"user": "a", "page": 1}, {"user": "b", "page": 1}]
            >>> by_page = app.read(gp.collection(visits)).key_by("page")
            >>> by_page.count().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 1), (1, 2)]
        """
        by = replace(key_of("key_by", key), is_ordered=ordered)
        return keyed(self._program, self._step, by, parallelism)

    group_by = key_by

    def window(self, windows: Windows, *, late: WindowLate = "drop") -> WindowedStream[None, T]:
        """Cut the whole stream into windows; the next step runs in one task.

        Args:
            windows: which ones, such as ``gp.tumbling("10s")``.
            late: what to do with a record that comes when its window takes none any more: "drop"
                it; "restamp" it, so that it counts in the window that is open; or "side", which
                puts it into `Stream.late` of the results. It is counted always.

        Raises:
            ConfigError: these are no windows, or ``late`` is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("all"), []
            >>> events = [gp.Message("a", 0), gp.Message("b", 5), gp.Message("a", 12)]
            >>> app.read(gp.collection(events)).window(gp.tumbling(10)).count().write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> [(result.start, result.value) for result in results]
            [(0, 2), (10, 1)]
        """
        return windowed(self._program, self._step, None, 1, windows=windows, late=late)

    def distinct(
        self,
        key: str | Callable[[T], object] | None = None,
        *,
        within: Duration | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[T]:
        """Let the first record of each key pass, and drop what comes again.

        Args:
            key: a field, or a function of the record; the record itself if not given.
            within: a key may pass again so long after it has passed, in event time; what is kept
                for it is freed then. Without it, each key is kept for good.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: ``key`` or ``within`` is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("different"), []
            >>> app.read(gp.collection(["a", "b", "a"])).distinct().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            ['a', 'b']
        """
        by = ITSELF if key is None else key_of("distinct", (key,))
        grouped = keyed(self._program, self._step, by, parallelism)
        return grouped.distinct(within=within, name=name)

    unique = distinct

    def merge(self, *others: Stream[U], name: str = "") -> Stream[T | U]:
        """Return one stream of the records of this and the others.

        Raises:
            ConfigError: one of them belongs to another application, or is no stream.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("both"), []
            >>> evens, odds = app.read(gp.collection([2, 4])), app.read(gp.collection([1]))
            >>> evens.merge(odds).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> sorted(results)
            [1, 2, 4]
        """
        for other in others:
            if not isinstance(other, Stream):
                raise ConfigError(f"merge takes streams, not {type(other).__name__}")
            self._program.check_own("merge", other._program)
        steps = (self._step, *(other._step for other in others))
        return self._program.add(MergeOperator(name=name or "merge", given=name, inputs=steps))

    union = merge

    @overload  # As of `filter`.
    def split(
        self, predicate: Callable[[T], Never], *, name: str = ""
    ) -> tuple[Stream[T], Stream[T]]: ...

    @overload
    def split(
        self, predicate: Callable[[T], TypeIs[U]], *, name: str = ""
    ) -> tuple[Stream[U], Stream[T]]: ...

    @overload
    def split(
        self, predicate: Callable[[T], TypeGuard[U]], *, name: str = ""
    ) -> tuple[Stream[U], Stream[T]]: ...

    @overload
    def split(
        self, predicate: Callable[[T], object], *, name: str = ""
    ) -> tuple[Stream[T], Stream[T]]: ...

    def split(
        self, predicate: Callable[[T], object], *, name: str = ""
    ) -> tuple[Stream[Any], Stream[T]]:
        """Return two streams: of the records for which a predicate is true, and of the rest.

        Example:
            >>> import gearpy as gp
            >>> app, small, rest = gp.StreamApp("sizes"), [], []
            >>> below, above = app.read(gp.collection([1, 20, 3])).split(lambda n: n < 10)
            >>> below.write(gp.to_list(small))
            >>> above.write(gp.to_list(rest))
            >>> _ = gp.run(app)
            >>> small, rest
            ([1, 3], [20])
        """
        check_function("split", predicate)
        both = branches(
            self._program,
            self._step,
            {"yes": predicate},
            default="no",
            kind="split",
            shown=step_name("split", predicate),
            name=name,
        )
        return both["yes"], both["no"]

    def branch(
        self,
        name: str = "",
        /,
        *,
        default: str | None = "default",
        **predicates: Callable[[T], object],
    ) -> Branches[T]:
        """Put each record into one of several streams: of the first predicate that is true of it.

        Args:
            name: for people.
            default: name of the stream of the rest; None drops them.
            predicates: by the name of the stream.

        Raises:
            ConfigError: there are no predicates, or one is no function.

        Example:
            >>> import gearpy as gp
            >>> app, small, rest = gp.StreamApp("branches"), [], []
            >>> sizes = app.read(gp.collection([1, 20, 300])).branch(
            ...     small=lambda n: n < 10, middle=lambda n: n < 100
            ... )
            >>> sizes.small.write(gp.to_list(small))
            >>> sizes.default.write(gp.to_list(rest))
            >>> _ = gp.run(app)
            >>> small, rest
            ([1], [300])
        """
        return branches(
            self._program,
            self._step,
            predicates,
            default=default,
            kind="branch",
            shown=f"branch({', '.join(predicates)})",
            name=name,
        )

    @property
    def late(self) -> Stream[Any]:
        """The late records that were set aside; of ``read`` or ``window`` with ``late="side"``.

        Raises:
            ConfigError: this stream's step sets none aside.
        """
        if getattr(self._step, "late", "") != "side":
            raise ConfigError(
                f"{self._step.name!r} sets no late records aside: "
                'ask for it by late="side" in read() or window()'
            )
        return self._side(LATE)

    def side(self, tag: str) -> Stream[Any]:
        """Return what a task of one's own sends beside its main output, under a tag.

        It sends it by ``context.output_to(tag, message)``, or in a message whose value is
        ``gp.Side(tag, value)``.

        Raises:
            ConfigError: this is not the stream behind `process`, or the tag is empty.

        Example:
            >>> import gearpy as gp
            >>> class Parse(gp.Task):
            ...     def on_next(self, message):
            ...         if message.value.isdigit():
            ...             yield message._replace(value=int(message.value))
            ...         else:
            ...             self.context.output_to("bad", message)
            >>> app, good, bad = gp.StreamApp("parsed"), [], []
            >>> numbers = app.read(gp.collection(["1", "x", "2"])).process(Parse)
            >>> numbers.write(gp.to_list(good))
            >>> numbers.side("bad").write(gp.to_list(bad))
            >>> _ = gp.run(app)
            >>> good, bad
            ([1, 2], ['x'])
        """
        if not isinstance(self._step, ProcessOperator):
            raise ConfigError(
                f"{self._step.name!r} has no side outputs: ask for them behind process(...)"
            )
        check_name("side", "the tag", tag)
        return self._side(tag)

    def process(
        self,
        task: Callable[[TaskContext[U]], Task[T, U]],
        *,
        parallelism: int | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> Stream[U]:
        """Hand the records to a `Task` of one's own; the stream behind it is what it sends.

        Args:
            task: a `Task` class, or a function that makes one of a `TaskContext`.
            parallelism: number of tasks.
            name: for people.
            dispatcher: "pinned" for code that blocks.

        Example:
            >>> import gearpy as gp
            >>> class Twice(gp.Task):
            ...     def on_next(self, message):
            ...         return [message, message]
            >>> app, results = gp.StreamApp("twice"), []
            >>> app.read(gp.collection([1, 2])).process(Twice).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1, 1, 2, 2]
        """
        check_function("process", task, of="a TaskContext, such as a Task class")
        step = ProcessOperator(
            name=name or name_of(task),
            given=name,
            inputs=(self._step,),
            parallelism=parallelism,
            task=task,
            dispatcher=dispatcher,
        )
        return self._program.add(step)

    def write(self, sink: Sink[T], *, name: str = "", dispatcher: Dispatcher = "default") -> None:
        """Hand the records to a sink.

        Args:
            sink: where they go.
            name: for people.
            dispatcher: "pinned" gives a sink that blocks threads of its own, so that other
                tasks of the executor go on meanwhile.

        Raises:
            ConfigError: it is no sink.
        """
        if not isinstance(sink, Sink):
            raise ConfigError(f"write takes a sink such as gp.console(), not {sink!r}")
        step = WriteOperator(
            name=name or sink.description,
            given=name,
            inputs=(self._step,),
            sink=sink,
            dispatcher=dispatcher,
        )
        self._program.add(step)

    def to_spark(
        self,
        function: Callable[[DataFrame, SparkBatch], object],
        path: str,
        *,
        spark: Any = None,
        name: str = "spark",
        **options: Any,
    ) -> None:
        """Call a function with the records as a frame of Spark, whenever an epoch has brought some.

        ``function(df, batch)`` runs on Spark's driver, in the process of the task, in a thread of
        its own: with all that has come since its last call, and never with one window at a time.
        Each record is in one batch. A batch may come again after a failure, with the same number,
        key and rows: `gearpy.spark.overwrite(df, table, batch)` is a write that may be repeated.

        Args:
            function: gets a ``pyspark.sql.DataFrame`` and a `gearpy.spark.SparkBatch`.
            path: of the window log that keeps the records, a folder or URL; see
                `gearpy.window_log_folder`. If Spark runs elsewhere, it must see the same.
            spark: nothing: a session on this machine. Or the URL of a master or of a Spark Connect
                server, or a function that returns a session. A session itself cannot be had again
                when it ends, nor taken to another process.
            name: what was handed over is known by it: keep it.
            options: of `gearpy.window_log_folder`; ``retain`` is "7d", and at least until the call.

        Raises:
            ConfigError: Spark is not installed, or an argument is wrong.
        """
        from gearpy.spark.delivery.sink import SparkSink  # noqa: PLC0415 - imports pyspark

        check_function("to_spark", function, of="a frame and a batch", takes=2)
        sink = SparkSink(function, path, spark=spark, name=name, **options)
        write = WriteOperator(name=sink.description, inputs=(self._step,), sink=sink, parallelism=1)
        self._program.add(write)

    if not TYPE_CHECKING:  # Else a checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            if name in _NEED_A_KEY or name in _NEED_GROUPS:
                window = f", or .window(...).{name}(...)" if name in _NEED_GROUPS else ""
                raise NoSuchStep(
                    f"a stream has no {name!r} before its records are grouped: write "
                    f".key_by(...).{name}(...){window}"
                )
            known = {*dir(type(self)), *_NEED_A_KEY, *_NEED_GROUPS}
            raise no_such_step("a stream has", name, sorted(known), instead="")

    def _row(self, kind: Any, function: Callable[[Any], Any], name: str) -> Stream[Any]:
        check_function(kind, function)
        operator = RowOperator(kind, name or step_name(kind, function), function)
        return self._add_row(operator, kind, name)

    def _add_row(self, operator: RowOperator, kind: str, given: str) -> Stream[Any]:
        step = FunctionOperator(
            name=operator.name, given=given, kind=kind, inputs=(self._step,), operator=operator
        )
        return self._program.add(step)

    @property
    def _table_key(self) -> None:
        return None

    def _beside_table(
        self, keys: tuple[Key, Key], make: Callable[[Operator, tuple[Key, Key]], Operator]
    ) -> Stream[Any]:
        return self._program.add(make(self._step, keys))

    def _side(self, tag: str) -> Stream[Any]:
        return self._program.stream(SideOperator(name=tag, inputs=(self._step,), tag=tag))
