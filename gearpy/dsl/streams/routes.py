"""Steps of a stream that lead records together, apart, to a task of the user, or to a sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, TypeGuard, overload

from gearpy.dsl.operators.names import check_count, check_function, check_name, name_of, step_name
from gearpy.dsl.operators.operator import Dispatcher, ReadOperator
from gearpy.dsl.operators.routes import (
    MergeOperator,
    ProcessOperator,
    RepartitionOperator,
    SideOperator,
    WriteOperator,
    sets_bad_aside,
)
from gearpy.dsl.streams.program import ProgramStream
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import T, U
from gearpy.task.api.interfaces import Sink, Task, TaskContext
from gearpy.task.api.rejects import OnError, StepOnError
from gearpy.task.api.sides import ERRORS
from gearpy.task.time.late import LATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import TypeIs

    from gearpy.dsl.streams.stream import Stream
    from gearpy.spark.delivery.batch import SparkBatch
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Generic

from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.routes import BranchOperator
from gearpy.dsl.streams.program import Program

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream


class RouteSteps(ProgramStream[T]):
    """Steps that lead records somewhere."""

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
            if not isinstance(other, RouteSteps):
                raise ConfigError(f"merge takes streams, not {type(other).__name__}")
            self._program.check_own("merge", other._program)
        steps = (self._step, *(other._step for other in others))
        return self._program.add(MergeOperator(name=name or "merge", given=name, inputs=steps))

    union = merge

    def repartition(self, tasks: int, *, name: str = "") -> Stream[T]:
        """Deal the records evenly to a number of tasks, in which the steps behind it run.

        Slow steps get more tasks than their source has partitions by it, and partitions of uneven
        size become even. Steps that go by key or by order give the same results with and without.

        Args:
            tasks: their number, from 1.
            name: for people.

        Raises:
            ConfigError: this is no number of tasks.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("factors"), []
            >>> numbers = app.read(gp.collection([6, 10, 15])).repartition(3)
            >>> numbers.map(lambda n: min(d for d in range(2, n) if n % d == 0)).write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> sorted(results)
            [2, 2, 3]
        """
        check_count("repartition", "the number of tasks", tasks, example="repartition(4)")
        step = RepartitionOperator(
            name=name or "repartition", given=name, inputs=(self._step,), parallelism=tasks
        )
        return self._program.add(step)

    @overload  # See `filter`.
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

    @property
    def errors(self) -> Stream[Any]:
        r"""The bad records that were set aside.

        Those of a source with ``on_bad="side"`` are each a `BadRecord`, with the watermark of
        their partition as event time. Those of a step with ``on_error="side"`` are each a
        `FailedRecord`, with the event time of the record. Each comes once, as results do.

        Raises:
            ConfigError: this stream's step sets none aside.

        Example:
            >>> import gearpy as gp, pathlib, tempfile
            >>> file = pathlib.Path(tempfile.mkdtemp(), "bids.jsonl")
            >>> _ = file.write_text('{"price": 3}\n{"price": "four"}\n')
            >>> app, good, bad = gp.StreamApp("bids"), [], []
            >>> bids = app.read(gp.jsonl(file, schema={"price": int}, on_bad="side"))
            >>> bids.write(gp.to_list(good))
            >>> bids.errors.map(lambda each: each.record).write(gp.to_list(bad))
            >>> _ = gp.run(app)
            >>> good, bad
            ([{'price': 3}], ['{"price": "four"}'])
        """
        step = self._step
        if not sets_bad_aside(step):
            how = 'on_error="side"'
            if isinstance(step, ReadOperator):
                how = 'on_bad="side" of its source, as in gp.jsonl(path, on_bad="side")'
            raise ConfigError(f"{step.name!r} sets no bad records aside: ask for it by {how}")
        return self._side(ERRORS)

    def side(self, tag: str) -> Stream[Any]:
        """Return the records that a user's task sends under a tag, beside its main output.

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
        on_error: StepOnError | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> Stream[U]:
        """Hand the records to a `Task` of one's own; the task sends the records of the new stream.

        Args:
            task: a `Task` class, or a function that makes one of a `TaskContext`.
            parallelism: number of tasks.
            on_error: as in `map`.
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
            on_error=on_error,
        )
        return self._program.add(step)

    def write(
        self,
        sink: Sink[T],
        *,
        on_error: OnError | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> None:
        """Hand the records to a sink.

        Args:
            sink: where they go.
            on_error: as in `map`, but "side": for a record that the sink cannot take.
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
            on_error=on_error,
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
            name: batches that were handed over are known by it: keep it.
            options: of `gearpy.window_log_folder`; ``retain`` is "7d", and at least until the call.

        Raises:
            ConfigError: Spark is not installed, or an argument is wrong.
        """
        from gearpy.spark.delivery.sink import SparkSink  # noqa: PLC0415 - imports pyspark

        check_function("to_spark", function, of="a frame and a batch", takes=2)
        sink = SparkSink(function, path, spark=spark, name=name, **options)
        write = WriteOperator(name=sink.description, inputs=(self._step,), sink=sink, parallelism=1)
        self._program.add(write)

    def _side(self, tag: str) -> Stream[Any]:
        return self._program.stream(SideOperator(name=tag, inputs=(self._step,), tag=tag))


class Branches(Generic[T]):
    """The streams that `Stream.branch` makes, by name: ``branches.big`` or ``branches["big"]``."""

    def __init__(self, streams: Mapping[str, Stream[T]]) -> None:
        self._streams = dict(streams)

    def __getitem__(self, name: str) -> Stream[T]:
        if name not in self._streams:
            names = ", ".join(self._streams)
            raise ConfigError(f"there is no branch {name!r}: there are {names}")
        return self._streams[name]

    def __getattr__(self, name: str) -> Stream[T]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)


def branches(
    program: Program,
    step: Operator,
    predicates: Mapping[str, Callable[[Any], object]],
    *,
    default: str | None,
    kind: str,
    shown: str,
    name: str,
) -> Branches[Any]:
    """Add the step that takes a stream apart.

    Raises:
        ConfigError: there is no predicate, one is no function, or two streams have one name.
    """
    if not predicates:
        raise ConfigError(f"{kind} has no predicates: write {kind}(big=lambda n: n > 100)")
    for tag, predicate in predicates.items():
        check_function(f"{kind}: {tag}", predicate)
    if default is not None:
        check_name(kind, "default", default, but=predicates.keys())
    step = BranchOperator(
        name=name or shown,
        given=name,
        kind=kind,
        inputs=(step,),
        predicates=predicates,
        default=default,
    )
    program.add(step)
    tags = [*predicates, *([default] if default is not None else [])]
    return Branches(
        {tag: program.stream(SideOperator(name=tag, inputs=(step,), tag=tag)) for tag in tags}
    )
