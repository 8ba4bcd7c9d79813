"""Streams grouped by key: running aggregates, state, and the way to windows and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from gearpy.core.base.times import Duration
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import check_aggregates
from gearpy.core.window.windows import session
from gearpy.dsl.operators.groups import RollingOperator
from gearpy.dsl.operators.keyed import (
    DistinctOperator,
    PairwiseOperator,
    StateOperator,
)
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.names import (
    check_count,
    check_function,
    duration_of,
    name_of,
    no_such_step,
    step_name,
)
from gearpy.dsl.operators.operator import Dispatcher, Operator
from gearpy.dsl.operators.routes import ProcessOperator
from gearpy.dsl.streams.grouped import Grouped
from gearpy.dsl.streams.joined import Joins
from gearpy.dsl.streams.program import Program
from gearpy.dsl.streams.table_join import TableJoins
from gearpy.dsl.streams.windowed import WindowedStream, windowed
from gearpy.messages.type_variables import K, T, U
from gearpy.task.aggregates.rolling import RollingSpan
from gearpy.task.api.rejects import StepOnError
from gearpy.task.stages.stateful import StateFunction

if TYPE_CHECKING:
    from gearpy.core.window.accumulators import Aggregate
    from gearpy.core.window.windows import Windows
    from gearpy.dsl.streams.stream import Stream
    from gearpy.task.api.interfaces import Task, TaskContext
    from gearpy.task.time.late import WindowLate

S = TypeVar("S")
A = TypeVar("A")


class KeyedStream(Joins[K, T], TableJoins[K, T]):
    """Records grouped by key. Without a window, aggregates give a result after every record.

    Gearpump: `Stream.groupBy`.
    """

    def window(self, windows: Windows, *, late: WindowLate = "drop") -> WindowedStream[K, T]:
        """Cut each key's records into windows; ``late`` as in `Stream.window`.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("windows"), []
            >>> events = [gp.Message("a", 0), gp.Message("b", 5), gp.Message("a", 7)]
            >>> by_name = app.read(gp.collection(events)).key_by(lambda name: name)
            >>> by_name.window(gp.tumbling("10ms")).count().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results  # doctest: +NORMALIZE_WHITESPACE
            [WindowResult(key='a', value=2, start=0, end=10),
             WindowResult(key='b', value=1, start=0, end=10)]
        """
        of = self._grouped
        of.program.end(of.begun)
        return windowed(of.program, of.step, of.key, of.parallelism, windows=windows, late=late)

    def reduce(self, function: Callable[[T, T], T], *, name: str = "") -> Stream[tuple[K, T]]:
        """Combine each key's records one by one; gives ``(key, value)`` after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("largest"), []
            >>> by_parity = app.read(gp.collection([1, 2, 5, 4])).key_by(lambda n: n % 2)
            >>> by_parity.reduce(max).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 1), (0, 2), (1, 5), (0, 4)]
        """
        return self._grouped.reduce(function, name)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        merge: Callable[[A, A], A] | None = None,
        name: str = "",
    ) -> Stream[tuple[K, A]]:
        """Add each key's records one by one to a value; gives ``(key, value)`` after every one.

        Args:
            initial: plain data; each key begins with its own copy.
            function: gets the value and a record, returns the next value; it changes neither.
            merge: as in `WindowedStream.fold`; of no use here.
            name: for people.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("lists"), []
            >>> by_parity = app.read(gp.collection([1, 2, 3])).key_by(lambda n: n % 2)
            >>> by_parity.fold([], lambda seen, n: [*seen, n]).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, [1]), (0, [2]), (1, [1, 3])]
        """
        return self._grouped.fold(initial, function, merge, name)

    def aggregate(
        self, name: str = "", /, **aggregates: Aggregate
    ) -> Stream[tuple[K, dict[str, Any]]]:
        """Compute some aggregates for each key; gives ``(key, dict)`` after every record.

        Args:
            name: for people.
            aggregates: functions of `gearpy.agg`, by the name in the result.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("spent"), []
            >>> sales = [{"user": "a", "price": 3}, {"user": "a", "price": 5}]
            >>> by_user = app.read(gp.collection(sales)).key_by("user")
            >>> by_user.aggregate(n=gp.agg.count(), most=gp.agg.max("price")).write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> results
            [('a', {'n': 1, 'most': 3}), ('a', {'n': 2, 'most': 5})]
        """
        return self._grouped.aggregate(aggregates, name)

    def per_batch(self) -> BatchedStream[K, T]:
        """Let an aggregate give a result for each key in a batch, not after every record.

        A batch is what comes at once: up to some thousand records, or a table of
        ``streaming.columnar-batch-records`` rows. So how many results there are, and all but the
        last one of a key, may differ from run to run. For steps and sinks that take the last
        result of a key for its value.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("counted"), []
            >>> words = app.read(gp.collection(["to", "be", "to"])).key_by(lambda word: word)
            >>> words.per_batch().count().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> dict(results)
            {'to': 2, 'be': 1}
        """
        return BatchedStream(replace(self._grouped, is_per_batch=True))

    def count(self, *, name: str = "") -> Stream[tuple[K, int]]:
        """Count each key's records; gives ``(key, count)`` after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("counted"), []
            >>> words = app.read(gp.collection(["to", "be", "to"]))
            >>> words.key_by(lambda word: word).count().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('to', 1), ('be', 1), ('to', 2)]
        """
        return self._grouped.single("count", agg.count(), name)

    @overload
    def sum(self, of: str, *, name: str = "") -> Stream[tuple[K, Any]]: ...

    @overload
    def sum(self, of: Callable[[T], U], *, name: str = "") -> Stream[tuple[K, U]]: ...

    @overload
    def sum(self, of: None = None, *, name: str = "") -> Stream[tuple[K, T]]: ...

    def sum(self, of: Any = None, *, name: str = "") -> Stream[tuple[K, Any]]:
        """Add up a field, ``of(record)`` or the record for each key, after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("lengths"), []
            >>> words = app.read(gp.collection(["to", "be", "toe"]))
            >>> words.key_by(lambda word: word[0]).sum(len).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('t', 2), ('b', 2), ('t', 5)]
        """
        return self._grouped.single("sum", agg.sum(of), name)

    @overload
    def min(self, of: str, *, name: str = "") -> Stream[tuple[K, Any]]: ...

    @overload
    def min(self, of: Callable[[T], U], *, name: str = "") -> Stream[tuple[K, U]]: ...

    @overload
    def min(self, of: None = None, *, name: str = "") -> Stream[tuple[K, T]]: ...

    def min(self, of: Any = None, *, name: str = "") -> Stream[tuple[K, Any]]:
        """Give the smallest field, ``of(record)`` or record of each key, after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("least"), []
            >>> prices = app.read(gp.collection([("tea", 3), ("tea", 4), ("tea", 2)]))
            >>> by_name = prices.key_by(lambda pair: pair[0])
            >>> by_name.min(lambda pair: pair[1]).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('tea', 3), ('tea', 3), ('tea', 2)]
        """
        return self._grouped.single("min", agg.min(of), name)

    @overload
    def max(self, of: str, *, name: str = "") -> Stream[tuple[K, Any]]: ...

    @overload
    def max(self, of: Callable[[T], U], *, name: str = "") -> Stream[tuple[K, U]]: ...

    @overload
    def max(self, of: None = None, *, name: str = "") -> Stream[tuple[K, T]]: ...

    def max(self, of: Any = None, *, name: str = "") -> Stream[tuple[K, Any]]:
        """Give the largest field, ``of(record)`` or record of each key, after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("most"), []
            >>> prices = app.read(gp.collection([{"name": "tea", "price": 3}]))
            >>> prices.key_by("name").max("price").write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('tea', 3)]
        """
        return self._grouped.single("max", agg.max(of), name)

    def mean(
        self, of: str | Callable[[T], Any] | None = None, *, name: str = ""
    ) -> Stream[tuple[K, float]]:
        """Give the mean of a field, of ``of(record)`` or of the records, after every record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("means"), []
            >>> by_parity = app.read(gp.collection([1, 2, 3])).key_by(lambda n: n % 2)
            >>> by_parity.mean().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 1.0), (0, 2.0), (1, 2.0)]
        """
        return self._grouped.single("mean", agg.mean(of), name)

    def top_n(
        self,
        n: int = 0,
        by: str | Callable[[T], Any] | None = None,
        *,
        when: Literal["always", "changed"] = "always",
        name: str = "",
    ) -> Stream[tuple[K, list[T]]]:
        """Give the ``n`` largest records of each key, the largest first, after every record.

        Args:
            n: how many.
            by: the value to compare: a field, or a function of the record; else the record itself.
            when: "changed": only after a record that is among them, which costs less.
            name: for people.

        Raises:
            ConfigError: ``n`` is missing, or no number from 1; ``when`` is neither of these.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("best"), []
            >>> by_parity = app.read(gp.collection([1, 5, 3])).key_by(lambda n: n % 2)
            >>> by_parity.top_n(2).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, [1]), (1, [5, 1]), (1, [5, 3])]
        """
        return self._grouped.top(n, by, name, when)

    def distinct(self, *, within: Duration | None = None, name: str = "") -> Stream[T]:
        """Let the first record of each key pass; see `Stream.distinct`.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("firsts"), []
            >>> words = app.read(gp.collection(["to", "be", "or", "the"]))
            >>> words.key_by(lambda word: word[0]).distinct().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            ['to', 'be', 'or']
        """
        step = DistinctOperator(
            name=name or "distinct",
            given=name,
            inputs=(self._grouped.step,),
            parallelism=self._grouped.parallelism,
            key=self._grouped.key,
            within_ms=duration_of("distinct: within", within),
        )
        return self._grouped.add(step)

    unique = distinct

    def enumerate(self, start: int = 0, *, name: str = "") -> Stream[tuple[int, T]]:
        """Put before each record its number among those of its key; gives ``(number, record)``.

        Numbers go on after a restart. One number is kept for each key, for good.

        Args:
            start: the number of the first record.
            name: for people.

        Raises:
            ConfigError: ``start`` is no whole number from 0.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("visits"), []
            >>> names = app.read(gp.collection(["ann", "bob", "ann"]))
            >>> names.key_by(lambda name: name).enumerate(start=1).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 'ann'), (1, 'bob'), (2, 'ann')]
        """
        check_count("enumerate", "start", start, example="start=1", least=0)
        function = StateFunction(
            function=lambda n, record: (n + 1, (n, record)), is_flat=False, initial=start
        )
        return self._by_order("enumerate", "enumerate", function, "the next number", name)

    def pairwise(self, *, name: str = "") -> Stream[tuple[T, T]]:
        """Pair each record with the one of its key before it; the first of a key gives nothing.

        The last record of each key is kept, for good and over restarts.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("steps"), []
            >>> numbers = app.read(gp.collection([1, 2, 5, 8])).key_by(lambda n: n % 2)
            >>> numbers.pairwise().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 5), (2, 8)]
        """
        function = StateFunction(
            function=lambda last, record: ((record,), [(last[0], record)] if last else []),
            is_flat=True,
            initial=(),
        )
        return self._by_order(
            "pairwise", "pairwise", function, "the last record", name, made=PairwiseOperator
        )

    def debounce(self, gap: Duration, *, name: str = "") -> Stream[T]:
        """Give a record when no other of its key has come for a while, in event time.

        Of records that follow each other more closely only the last one passes. The last record of
        each key that is waiting is kept, over restarts, until its time is over.

        Args:
            gap: how long, such as "5s".
            name: for people.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("settled"), []
            >>> moves = [gp.Message(7, 0), gp.Message(8, 900), gp.Message(3, 5000)]
            >>> app.read(gp.collection(moves)).key_by(lambda _: "door").debounce("1s").write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> results
            [8, 3]
        """
        quiet = self.window(session(gap)).aggregate(name, record=agg.last())
        return quiet.map(lambda result: result.value["record"], name=name and f"{name} record")

    @overload
    def rolling(self, span: int | Duration, /, *, name: str = "") -> Stream[list[T]]: ...

    @overload
    def rolling(
        self, span: int | Duration, /, *, name: str = "", **aggregates: Aggregate
    ) -> Stream[tuple[K, dict[str, Any]]]: ...

    def rolling(
        self, span: int | Duration, /, *, name: str = "", **aggregates: Aggregate
    ) -> Stream[Any]:
        """Give the last records of the key after each one, or some aggregates of them.

        Without aggregates it is a list, the newest last. With them it is ``(key, dict)``, as of
        `aggregate`. By time, those records belong to it that are less than this older than the
        newest. One that comes late counts as if it had come with the newest one before it.

        The records are kept over restarts: so many for good, those of a time until it is over.

        Args:
            span: a number of records; or a time, such as "5m" or a timedelta.
            name: for people.
            aggregates: functions of `gearpy.agg`, by the name in the result.

        Raises:
            ConfigError: ``span`` is no number from 1 and no time, or some aggregate is none.

        Example:
            >>> import gearpy as gp
            >>> app, lists, means = gp.StreamApp("means"), [], []
            >>> prices = [gp.Message(3, 0), gp.Message(5, 30_000), gp.Message(10, 60_000)]
            >>> keyed = app.read(gp.collection(prices)).key_by(lambda price: "all")
            >>> keyed.rolling(2).write(gp.to_list(lists))
            >>> keyed.rolling("1m", mean=gp.agg.mean()).write(gp.to_list(means))
            >>> _ = gp.run(app)
            >>> lists
            [[3], [3, 5], [5, 10]]
            >>> means
            [('all', {'mean': 3.0}), ('all', {'mean': 4.0}), ('all', {'mean': 7.5})]
        """
        if isinstance(span, int):
            check_count("rolling", "n", span, example='rolling(10), or a time: rolling("5m")')
            of = RollingSpan(records=span)
        else:
            of = RollingSpan(time_ms=duration_of("rolling", span) or 0)
        if aggregates:
            check_aggregates(aggregates)
        step = RollingOperator(
            name=name or f"rolling({span})",
            given=name,
            inputs=(self._grouped.step,),
            parallelism=self._grouped.parallelism,
            key=self._grouped.key,
            span=of,
            aggregates=aggregates,
        )
        return self._grouped.add(step)

    @overload
    def map_with_state(
        self,
        function: Callable[[S, T], tuple[S | None, U]],
        *,
        initial: S,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    @overload
    def map_with_state(
        self,
        function: Callable[[S | None, T], tuple[S | None, U]],
        *,
        initial: None = None,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    def map_with_state(
        self,
        function: Callable[[Any, T], tuple[Any, U]],
        *,
        initial: Any = None,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]:
        """Replace each record by a function's result; the function also gets the state of its key.

        The state comes back after a restart; it is plain data, and better not changed in place.

        Args:
            function: called with the state and the record; returns the new state, or None to
                forget the key, and the result. Its event time is that of the record.
            initial: the state of a key without one; each key gets its own copy.
            ttl: a key that had no record for so long is forgotten: in event time, from its last
                record to the watermark.
            on_error: as in `map`.
            name: for people.

        Raises:
            ConfigError: ``ttl`` is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("numbered"), []
            >>> words = app.read(gp.collection(["a", "b", "a"])).key_by(lambda word: word)
            >>> numbered = words.map_with_state(lambda n, word: (n + 1, (word, n)), initial=0)
            >>> numbered.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('a', 0), ('b', 0), ('a', 1)]
        """
        return self._with_state("map_with_state", function, initial, ttl, name, on_error=on_error)

    @overload
    def flat_map_with_state(
        self,
        function: Callable[[S, T], tuple[S | None, Iterable[U]]],
        *,
        initial: S,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    @overload
    def flat_map_with_state(
        self,
        function: Callable[[S | None, T], tuple[S | None, Iterable[U]]],
        *,
        initial: None = None,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]: ...

    def flat_map_with_state(
        self,
        function: Callable[[Any, T], tuple[Any, Iterable[U]]],
        *,
        initial: Any = None,
        ttl: Duration | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]:
        """Do the same with a function that gives any number of results for a record.

        A generator is pulled only as fast as the steps behind it can take it.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("pairs"), []
            >>> numbers = app.read(gp.collection([1, 2, 3])).key_by(lambda n: "all")
            >>> pairs = numbers.flat_map_with_state(
            ...     lambda before, n: (n, [] if before is None else [(before, n)])
            ... )
            >>> pairs.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(1, 2), (2, 3)]
        """
        return self._with_state(
            "flat_map_with_state", function, initial, ttl, name, on_error=on_error
        )

    def process(
        self,
        task: Callable[[TaskContext[U]], Task[T, U]],
        *,
        parallelism: int | None = None,
        on_error: StepOnError | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> Stream[U]:
        """Hand the records to a `Task`; all records of one key go to the same of its tasks.

        In `Task.on_next`, `TaskContext.state` is that of the record's key.

        Example:
            >>> import gearpy as gp
            >>> class Latest(gp.Task):
            ...     def on_next(self, message):
            ...         latest = self.context.state.value("latest")
            ...         self.context.output(message._replace(value=(latest.get(), message.value)))
            ...         latest.set(message.value)
            >>> app, results = gp.StreamApp("changes"), []
            >>> numbers = app.read(gp.collection([1, 2, 3])).key_by(lambda n: n % 2)
            >>> numbers.process(Latest).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [(None, 1), (None, 2), (1, 3)]
        """
        check_function("process", task, of="a TaskContext, such as a Task class")
        of = self._grouped
        step = ProcessOperator(
            name=name or name_of(task),
            given=name,
            inputs=(of.step,),
            parallelism=parallelism if parallelism is not None else of.parallelism,
            key=of.key,
            task=task,
            dispatcher=dispatcher,
            on_error=on_error,
        )
        return of.add(step)

    def _by_order(
        self,
        kind: str,
        shown: str,
        function: StateFunction,
        value: str,
        name: str,
        *,
        on_error: StepOnError | None = None,
        made: type[StateOperator] = StateOperator,
    ) -> Stream[Any]:
        of = self._grouped
        step = made(
            name=name or shown,
            given=name,
            kind=kind,
            inputs=(of.step,),
            parallelism=of.parallelism,
            key=of.key,
            function=function,
            value=value,
            on_error=on_error,
        )
        return of.add(step)

    def _with_state(
        self,
        kind: str,
        function: Callable[[Any, Any], tuple[Any, Any]],
        initial: Any,
        ttl: Duration | None,
        name: str,
        *,
        on_error: StepOnError | None,
    ) -> Stream[Any]:
        check_function(kind, function, of="what is kept and a record", takes=2)
        state = StateFunction(
            function=function,
            is_flat=kind.startswith("flat"),
            initial=initial,
            ttl_ms=duration_of(f"{kind}: ttl", ttl),
        )
        return self._by_order(
            kind, step_name(kind, function), state, "a value", name, on_error=on_error
        )

    def _beside_table(self) -> tuple[Key | None, Operator, Callable[[Operator], Stream[Any]]]:
        of = self._grouped
        return of.key, of.step, of.add

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            instead = "do it before key_by(...), or behind the next step"
            raise no_such_step(
                "a stream that is grouped by key has", name, dir(type(self)), instead=instead
            )


class BatchedStream(Generic[K, T]):
    """Records grouped by key, of which an aggregate gives a result for each batch and key.

    `KeyedStream.per_batch` makes it.
    """

    def __init__(self, grouped: Grouped) -> None:
        """Take what `KeyedStream.per_batch` gives."""
        self._grouped = grouped

    def aggregate(
        self, name: str = "", /, **aggregates: Aggregate
    ) -> Stream[tuple[K, dict[str, Any]]]:
        """Compute some aggregates for each key; gives ``(key, dict)``.

        Args:
            name: for people.
            aggregates: functions of `gearpy.agg`, by the name in the result.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("spent"), []
            >>> sales = [{"user": "a", "price": 3}, {"user": "a", "price": 5}]
            >>> by_user = app.read(gp.collection(sales)).key_by("user")
            >>> by_user.per_batch().aggregate(most=gp.agg.max("price")).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> dict(results)
            {'a': {'most': 5}}
        """
        return self._grouped.aggregate(aggregates, name)

    def count(self, *, name: str = "") -> Stream[tuple[K, int]]:
        """Count each key's records; gives ``(key, count)``."""
        return self._grouped.single("count", agg.count(), name)

    def top_n(
        self, n: int = 0, by: str | Callable[[T], Any] | None = None, *, name: str = ""
    ) -> Stream[tuple[K, list[T]]]:
        """Give the ``n`` largest records of each key whose own have changed in the batch.

        Raises:
            ConfigError: ``n`` is missing, or no number from 1.
        """
        return self._grouped.top(n, by, name, "changed")


def keyed(
    program: Program, step: Operator, key: Key, parallelism: int | None
) -> KeyedStream[Any, Any]:
    begun = program.begin(
        f"key_by behind {step.name!r} ends in nothing: add a step, such as .count()"
    )
    return KeyedStream(
        Grouped(program=program, step=step, key=key, parallelism=parallelism, begun=begun)
    )
