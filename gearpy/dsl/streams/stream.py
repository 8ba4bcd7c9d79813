"""Streams: all that a user can write of ungrouped records. Gearpump: `Stream`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from gearpy.core.base.times import Duration
from gearpy.core.scaling.bounds import checked_bounds
from gearpy.core.window.windows import Windows
from gearpy.dsl.operators.keyed import PlaceOperator
from gearpy.dsl.operators.keys import EVERYTHING, ITSELF, Key, KeyLike, key_of
from gearpy.dsl.operators.names import check_count, no_such_step
from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.routes import SideOperator
from gearpy.dsl.streams.asynchronous import Asynchronous
from gearpy.dsl.streams.keyed import KeyedStream, keyed
from gearpy.dsl.streams.previews import Previews
from gearpy.dsl.streams.records import RecordSteps
from gearpy.dsl.streams.routes import RouteSteps
from gearpy.dsl.streams.table_join import TableJoins
from gearpy.dsl.streams.windowed import WindowedStream, windowed
from gearpy.errors import ConfigError, NoSuchStep
from gearpy.expressions.expr import Expr
from gearpy.messages.summaries import ScaleBounds
from gearpy.messages.type_variables import K, T
from gearpy.task.api.interfaces import Source
from gearpy.task.time.late import WindowLate


class Stream(RecordSteps[T], RouteSteps[T], Asynchronous[T], TableJoins[Any, T], Previews[T]):
    """Records of type ``T``, each with an event time, without an end unless the source has one.

    All methods take a ``name``: it is displayed, and the state of a step is found by it
    when the program has changed.
    """

    @overload
    def key_by(
        self, key: Callable[[T], K], /, *, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[K, T]: ...

    @overload
    def key_by(
        self, key: str | Expr, /, *, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[Any, T]: ...

    @overload
    def key_by(
        self,
        first: str | Expr,
        second: str | Expr,
        /,
        *more: str | Expr,
        parallelism: int | None = None,
        ordered: bool = True,
    ) -> KeyedStream[tuple[Any, ...], T]: ...

    def key_by(
        self, *key: KeyLike, parallelism: int | None = None, ordered: bool = True
    ) -> KeyedStream[Any, T]:
        """Group by key: the next step sees all records of one key in one of its tasks.

        Args:
            key: a function of the record alone, which may run more than once for a record; or
                names of fields and expressions, of which several make a tuple. By these columns
                stay columns.
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

    def scale(self, least: int, most: int, *, busy: float = 0.7) -> Stream[T]:
        """Let a cluster choose how many tasks the step before has, by how busy they are.

        The step begins with the tasks that it says, and the steps in its chain have as many. Each
        change is an update of the running application; see ``gear app history``. A run in this
        process changes nothing.

        Args:
            least: the fewest tasks.
            most: the most tasks; of a source, no more than it has partitions.
            busy: the share of its time that each task should work, from 0.1 to 0.9.

        Raises:
            ConfigError: these are no bounds, or there is no step before that could be scaled.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("visits"), []
            >>> pages = app.read(gp.collection(["a", "b", "a"])).key_by(str)
            >>> pages.count(name="visits").scale(1, 8).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> sorted(results)
            [('a', 1), ('a', 2), ('b', 1)]
        """
        step = self._step
        if isinstance(step, SideOperator):
            raise ConfigError("scale: a side output has no tasks: scale the step that makes it")
        bounds = ScaleBounds(least=least, most=most, busy=busy)
        self._program.bounds[step] = checked_bounds(step.name, bounds)
        return self

    def sql(
        self,
        query: str,
        /,
        *,
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        **tables: Stream[Any] | Source[Any],
    ) -> Stream[dict[str, Any]]:
        """Return the rows of a query in SQL, in which this stream is the table ``this``.

        Args:
            query: one ``SELECT``; see `StreamApp.sql`.
            functions: functions of yours by the names that they have in the query.
            tables: other streams or sources by their names in the query.

        Raises:
            ConfigError: see `StreamApp.sql`.

        Example:
            >>> import gearpy as gp
            >>> sales = gp.StreamApp("sums").read(gp.rows([{"n": 1}, {"n": 2}]))
            >>> sales.sql("select sum(n) as total from this").to_list()
            [{'total': 3}]
        """
        # The room of SQL is above: it calls what streams have.
        planned = import_module("gearpy.sql.streams").stream_of
        named = {"this": self, **tables}
        found: Stream[dict[str, Any]] = planned(self._program, query, named, functions)
        return found

    def window(self, windows: Windows, *, late: WindowLate = "drop") -> WindowedStream[None, T]:
        """Cut the whole stream into windows; the next step runs in one task.

        Args:
            windows: which ones, such as ``gp.tumbling("10s")``.
            late: the rule for a record that comes when its window takes none any more: "drop"
                it; "restamp" it, so that it counts in the window that is open; or "side", which
                puts it into `Stream.late` of the results. It is counted always.

        Raises:
            ConfigError: these are no windows, or ``late`` is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("all"), []
            >>> events = [gp.Message("a", 0), gp.Message("b", 5), gp.Message("a", 12)]
            >>> app.read(gp.collection(events)).window(gp.tumbling("10ms")).count().write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> [(result.start, result.value) for result in results]
            [(0, 2), (10, 1)]
        """
        return windowed(self._program, self._step, None, 1, windows=windows, late=late)

    def distinct(
        self,
        key: str | Expr | Callable[[T], object] | None = None,
        *,
        within: Duration | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[T]:
        """Let the first record of each key pass, and drop its later records.

        Args:
            key: a field, an expression or a function of the record; if not given, the record
                itself, of which a dict needs a source that tells its columns.
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
        by = _all_of(self._step) if key is None else key_of("distinct", (key,))
        grouped = keyed(self._program, self._step, by, parallelism)
        return grouped.distinct(within=within, name=name)

    unique = distinct

    def take(self, n: int, *, ordered: bool = True, name: str = "") -> Stream[T]:
        """Let the first ``n`` records of the whole stream pass, and drop all others.

        One task counts them, however many tasks there are before and behind, and its count comes
        back after a restart. Sources are still read to their end, since what they have left may
        decide about other steps, and about which records are the first.

        Args:
            n: how many.
            ordered: the first ones by event time, when the watermark has passed them; if false, as
                they come, at once, which may be others in another run.
            name: for people.

        Raises:
            ConfigError: ``n`` is no number from 0.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("head"), []
            >>> app.read(gp.collection("abcd")).take(2).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            ['a', 'b']
        """
        return self._at_places("take", n, name, ordered=ordered)

    def skip(self, n: int, *, ordered: bool = True, name: str = "") -> Stream[T]:
        """Drop the first ``n`` records of the whole stream, and let all others pass; see `take`.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("tail"), []
            >>> app.read(gp.collection("abcd")).skip(3).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            ['d']
        """
        return self._at_places("skip", n, name, ordered=ordered)

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            grouped = {each for each in dir(KeyedStream) if not each.startswith("_")}
            if name in grouped:
                window = f", or .window(...).{name}(...)" if hasattr(WindowedStream, name) else ""
                raise NoSuchStep(
                    f"a stream has no {name!r} before its records are grouped: write "
                    f".key_by(...).{name}(...){window}"
                )
            known = {*dir(type(self)), *grouped}
            raise no_such_step("a stream has", name, sorted(known), instead="")

    def _at_places(
        self, kind: Literal["take", "skip"], n: int, name: str, *, ordered: bool
    ) -> Stream[T]:
        check_count(kind, "n", n, example="10", least=0)
        step = PlaceOperator(
            name=name or f"{kind}({n})",
            given=name,
            kind=kind,
            inputs=(self._step,),
            parallelism=1,
            key=replace(EVERYTHING, is_ordered=ordered),
            count=n,
        )
        return self._program.add(step)

    def _beside_table(self) -> tuple[Key | None, Operator, Callable[[Operator], Stream[Any]]]:
        return None, self._step, self._program.add


def _all_of(step: Operator) -> Key:
    """Return the key of records that are equal; dicts are by all of their columns, if known."""
    try:
        schema = step.schema_given(declared=False)
    except ConfigError:  # Told with all other mistakes, when the application is made.
        schema = None
    if schema is None or schema.row_type is not None or not schema.arrow.names:
        return ITSELF
    return key_of("distinct", schema.arrow.names)
