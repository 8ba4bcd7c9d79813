"""An application in the stream language: it reads sources into streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakKeyDictionary

from gearpy.core.app.hosts import slot_wishes, with_hosts
from gearpy.core.base.times import Duration
from gearpy.dsl.lower.lower import lower
from gearpy.dsl.operators.names import check_parallelism, duration_of, no_such_step
from gearpy.dsl.operators.operator import Operator, ReadOperator
from gearpy.dsl.operators.records import AsyncOperator, BatchOperator, LogOperator
from gearpy.dsl.operators.routes import ProcessOperator, WriteOperator, errors_unread
from gearpy.dsl.streams.program import Program
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError
from gearpy.messages.cluster import SlotPriority, SlotRelaxation
from gearpy.messages.summaries import Until
from gearpy.messages.type_variables import T
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import Source
from gearpy.task.sources.task import WHEN_IDLE, WhenIdle
from gearpy.task.stages.plan import physical_plan
from gearpy.task.time.late import SOURCE_LATE, SourceLate, check_late

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

#: Steps that write, or may do so in the user's code, though they give records, too.
_EFFECTS: Final = (WriteOperator, LogOperator, ProcessOperator, AsyncOperator, BatchOperator)
#: The steps of which applications were built, as they were written.
_written: Final[WeakKeyDictionary[StreamApplication, StreamApp]] = WeakKeyDictionary()


def written_as(application: StreamApplication) -> StreamApp | None:
    """Return the program of an application of this process; None for a graph by hand."""
    return _written.get(application)


class StreamApp:
    """An application in the stream language. Gearpump: `StreamApp`.

    Every method of a stream adds a step and returns the stream behind it; nothing runs until the
    application is run or submitted.

    Args:
        name: letters, digits, ``_ - .``; unique among the running applications of a cluster.
        parallelism: tasks of each operator that does not say otherwise; None: one, or in a run on
            several processes as many as those.
        localities: for the name of a step, the machines that its tasks may be on, such as
            ``{"parse": ["machine1", "machine2"]}``; `application.localities` counts more.
        hosts: the machines that all others may be on; `application.hosts` counts more.
        priority: "high" gets slots before "normal", and that before "low"; likewise.
        relaxation: "one-worker" has all executors on one worker, "any" has not; likewise.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("double")
        >>> results: list[int] = []
        >>> app.read(gp.collection([1, 2, 3])).map(lambda n: n * 2).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [2, 4, 6]
    """

    def __init__(
        self,
        name: str,
        *,
        parallelism: int | None = None,
        localities: Mapping[str, Sequence[str]] = MappingProxyType({}),
        hosts: Sequence[str] = (),
        priority: SlotPriority = "",
        relaxation: SlotRelaxation = "",
    ) -> None:
        check_parallelism(f"StreamApp({name!r})", parallelism)
        self.name = name
        self.parallelism = parallelism or 1
        self._is_open = parallelism is None
        self.wishes = slot_wishes(hosts=hosts, priority=priority, relaxation=relaxation)
        self.localities = {step: tuple(hosts) for step, hosts in localities.items()}
        self._program = Program(name, Stream, parallelism=self.parallelism)

    def __repr__(self) -> str:
        count = len(self._program.steps)
        return f"<StreamApp {self.name!r}: {count} {'step' if count == 1 else 'steps'}>"

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise no_such_step("an application has", name, dir(type(self)), instead="")

    def _repr_html_(self) -> str:
        from gearpy.views.notebook import mistakes_html  # noqa: PLC0415 - only in notebooks

        try:
            return physical_plan(self.build())._repr_html_()
        except ConfigError as error:
            return mistakes_html(self.name, error.mistakes)

    def read(
        self,
        source: Source[T],
        *,
        parallelism: int | None = None,
        name: str = "",
        late: SourceLate = "keep",
        idle_after: Duration | None = None,
        when_idle: WhenIdle = "hold",
        max_ahead: Duration | None = None,
    ) -> Stream[T]:
        """Return the stream of a source's records.

        Args:
            source: the source to read.
            parallelism: number of tasks that share its partitions.
            name: for people, and to find its state by when the program has changed.
            late: the rule for a record that is older than its partition has promised by the
                records before it: "keep" it, and let windows decide; "drop" it; "restamp" it with
                the time that was promised; or "side", which puts it into `Stream.late`. All but
                the first count it.
            idle_after: a partition that has given nothing for so long holds event time back no
                longer, until it gives again. Without it, the source alone decides.
            when_idle: the rule for event time of idle partitions. "hold": it stands still when
                all are, where the furthest one was: windows behind that stay open. "advance": it
                follows the clock on the wall, ``idle_after`` behind it, so that windows close on
                silent input. This is for event times of now: results then depend on when records
                arrive, a replay may find other records late, and older records than that are late
                when they come.
            max_ahead: a record whose event time is further ahead of the clock on the wall does not
                move event time, so that one of the year 9999 does not make all others late. It is
                left out, or with ``late="side"`` put into `Stream.late`, and counted as ahead.

        Raises:
            ConfigError: ``source`` is none, or ``late``, ``idle_after`` or ``when_idle`` is not
                understood; or ``when_idle="advance"`` has no ``idle_after``.
        """
        if not isinstance(source, Source):
            raise ConfigError(f'read takes a source such as gp.files("*.txt"), not {source!r}')
        check_late(late, SOURCE_LATE)
        if when_idle not in WHEN_IDLE:
            raise ConfigError(
                f"read: when_idle is {when_idle!r}, must be one of {', '.join(WHEN_IDLE)}"
            )
        if when_idle == "advance" and idle_after is None:
            raise ConfigError(
                'read: when_idle="advance" needs to know after how long a partition is idle: add, '
                'for example, idle_after="5s"'
            )
        step = ReadOperator(
            name=name or source.description,
            given=name,
            source=source,
            parallelism=parallelism,
            late=late,
            idle_after_ms=duration_of("read: idle_after", idle_after),
            when_idle=when_idle,
            max_ahead_ms=duration_of("read: max_ahead", max_ahead),
        )
        return self._program.add(step)

    def sql(
        self,
        query: str,
        /,
        *,
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        **tables: Stream[Any] | Source[Any],
    ) -> Stream[dict[str, Any]]:
        """Return the rows of a query in SQL as a stream, whose schema is that of the query.

        It becomes steps of the stream language, with the same results and guarantees. See the page
        on SQL.

        Args:
            query: one ``SELECT``. Of names that are none of ``tables``, those in quotes are files,
                such as ``FROM 'sales/*.parquet'``.
            functions: functions of yours by the names that they have in the query; their
                annotations say what they return.
            tables: streams of this application, or sources, by their names in the query.

        Raises:
            ConfigError: it is no query, names what is not there, or cannot be done on a stream; it
                has the line and column in the text.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("large"), []
            >>> sales = gp.rows([{"shop": "north", "price": 3}, {"shop": "south", "price": 5}])
            >>> app.sql("select shop from sales where price > 4", sales=sales).write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> results
            [{'shop': 'south'}]
        """
        # The room of SQL is above: it calls what streams have.
        planned = import_module("gearpy.sql.streams").stream_of
        found: Stream[dict[str, Any]] = planned(self._program, query, tables, functions)
        return found

    @property
    def plan(self) -> tuple[Operator, ...]:
        """The steps as they were written, inputs before the steps that read them."""
        return tuple(self._program.steps)

    def build(self) -> StreamApplication:
        """Return the graph that will run.

        Raises:
            ConfigError: it cannot run; all mistakes at once.
        """
        return self.scaled({})

    def scaled(self, scale: Mapping[str, int], *, until: Until = "end") -> StreamApplication:
        """Return the graph that will run, with other numbers of tasks than the program says.

        Args:
            scale: the tasks of steps, by id or name.
            until: "caught-up": it ends when it has read what is there; see `Source.up_to_now`.

        Raises:
            ConfigError: it cannot run, or there is no such step; all mistakes at once.
        """
        return self._planned(scale, until, 1)

    def _planned(self, scale: Mapping[str, int], until: Until, processes: int) -> StreamApplication:
        application = lower(
            self.name,
            self._program.steps,
            parallelism=None if self._is_open else self.parallelism,
            processes=processes,
            mistakes=[*self._program.mistakes, *errors_unread(self._program.steps)],
            scale=scale,
            bounds=self._program.bounds,
            until=until,
        )
        application.dag = with_hosts(application.dag, self.localities)
        application.wishes = self.wishes
        if not any(isinstance(each, _EFFECTS) or each.kind == "inspect" for each in self.plan):
            application.of_no_use = (
                f"nothing comes of application {self.name!r}: end its streams with .write(...), "
                "such as .write(gp.console()); or with .inspect(...) of a function that is called "
                "for what it does"
            )
        application.plan_spread = partial(self._planned, scale, until)
        _written[application] = self
        return application

    def to_spark_frame(self, spark: SparkSession, *, sink: str | int | None = None) -> DataFrame:
        """Return the records of a sink as a Spark query over all records of the source.

        It has the columns that a window log of the stream has: the window, the key, the value and
        how it fired, or the fields of records and their ``event_time``. Types are those of the
        first records, for which a part of the query runs at once.

        Only programs that go straight from one bounded source to the sink have one: by functions
        over records or batches, and windows of event time with aggregates. Spark's workers read
        the source, so they must see the same files; the program's functions are sent to them.

        Args:
            spark: a session, such as `gearpy.spark.session()` gives; of Spark Connect, too.
            sink: name of the step that writes, or its number; not needed if there is only one.

        Raises:
            ConfigError: a step is not among these; names it, and says why. Or there is no record
                to tell the columns.
        """
        from gearpy.dsl.plan.linear import linear_plan  # noqa: PLC0415 - only who has Spark needs it
        from gearpy.spark.query.frame import spark_table  # noqa: PLC0415 - the same

        return spark_table(spark, linear_plan(self.name, self.plan, sink))
