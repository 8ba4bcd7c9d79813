"""What users write: an application of streams.

Every method adds a step to the plan and returns the stream behind it; nothing runs until the
application is run or submitted. Gearpump: `Stream`, `StreamApp`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

from gearpy.core.times import Duration, duration_ms
from gearpy.core.window import WindowAssigner
from gearpy.dsl.lower import lower
from gearpy.dsl.plan import (
    Dispatcher,
    FoldNode,
    MergeNode,
    Node,
    ProcessNode,
    ReadNode,
    RowNode,
    SideNode,
    StateNode,
    WriteNode,
)
from gearpy.errors import ConfigError
from gearpy.task.aggregate import Fold, WindowResult
from gearpy.task.api import Sink, Source
from gearpy.task.application import StreamApplication, TaskFactory
from gearpy.task.fused import RowOperator
from gearpy.task.late import LATE, SOURCE_LATE, WINDOW_LATE, SourceLate, WindowLate, check_late
from gearpy.task.stateful import StateFunction

__all__ = ["KeyedStream", "Stream", "StreamApp", "WindowedStream"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
S = TypeVar("S")


class StreamApp:
    """An application in the stream language.

    Args:
        name: letters, digits, ``_ - .``; unique among the running applications of a cluster.
        parallelism: tasks of each operator that does not say otherwise.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("double")
        >>> results: list[int] = []
        >>> app.read(gp.collection([1, 2, 3])).map(lambda n: n * 2).write(gp.memory(results))
        >>> _ = gp.run(app)
        >>> results
        [2, 4, 6]
    """

    def __init__(self, name: str, *, parallelism: int = 1) -> None:
        self.name = name
        self.parallelism = parallelism
        self._nodes: list[Node] = []

    def read(
        self,
        source: Source,
        *,
        parallelism: int | None = None,
        name: str = "",
        late: SourceLate = "keep",
        idle_after: Duration | None = None,
    ) -> "Stream[Any]":
        """Return the stream of a source's records.

        Args:
            source: what to read.
            parallelism: number of tasks that share its partitions.
            name: for people.
            late: what to do with a record that is older than its partition has promised by the
                records before it: "keep" it, and let windows decide; "drop" it; "restamp" it with
                the time that was promised; or "side", which puts it into `Stream.late`. All but
                the first count it.
            idle_after: a partition that has given nothing for so long holds event time back no
                longer, until it gives again. Without it, what the source says counts alone.

        Raises:
            ConfigError: ``late`` or ``idle_after`` is not understood.
        """
        check_late(late, SOURCE_LATE)
        node = ReadNode(
            name=name or source.description,
            source=source,
            parallelism=parallelism,
            late=late,
            idle_after_ms=_ms(idle_after),
        )
        return Stream(self, self._add(node))

    def build(self) -> StreamApplication:
        """Return the graph that will run.

        Raises:
            ConfigError: it cannot run; all mistakes at once.
        """
        return lower(self.name, self._nodes, parallelism=self.parallelism)

    def _add(self, node: Node) -> Node:
        self._nodes.append(node)
        return node


class Stream(Generic[T]):
    """Records of type ``T``, each with an event time, without an end unless the source has one."""

    def __init__(self, app: StreamApp, node: Node) -> None:
        self._app = app
        self._node = node

    def map(self, function: Callable[[T], U], *, name: str = "") -> "Stream[U]":
        """Replace each record by ``function(record)``; its event time stays."""
        return self._row("map", function, name)

    def filter(self, predicate: Callable[[T], object], *, name: str = "") -> "Stream[T]":
        """Keep the records for which the predicate is true."""
        return self._row("filter", predicate, name)

    def flat_map(self, function: Callable[[T], Iterable[U]], *, name: str = "") -> "Stream[U]":
        """Replace each record by all that ``function(record)`` gives.

        A generator is pulled only as fast as the steps behind it can take it.
        """
        return self._row("flat_map", function, name)

    def key_by(
        self, key: Callable[[T], K], *, parallelism: int | None = None
    ) -> "KeyedStream[K, T]":
        """Group by key: the next step sees all records of one key in one of its tasks.

        Args:
            key: a function of the record alone; it may run more than once for a record.
            parallelism: tasks of the next step.
        """
        return KeyedStream(self._app, self._node, key, parallelism)

    def window(
        self, windows: WindowAssigner, *, late: WindowLate = "drop"
    ) -> "WindowedStream[None, T]":
        """Cut the whole stream into windows; the next step runs in one task.

        Args:
            windows: which ones, such as ``gp.tumbling("10s")``.
            late: what to do with a record whose window has closed: "drop" it; "restamp" it, so
                that it counts in the window that is open; or "side", which puts it into
                `Stream.late` of the results. It is counted always.
        """
        return WindowedStream(self._app, self._node, None, 1, windows=windows, late=late)

    @property
    def late(self) -> "Stream[Any]":
        """The late records that were set aside; of ``read`` or ``window`` with ``late="side"``.

        Raises:
            ConfigError: this stream's step sets none aside.
        """
        if getattr(self._node, "late", "") != "side":
            raise ConfigError(
                f"{self._node.name!r} sets no late records aside: "
                'ask for it by late="side" in read() or window()'
            )
        return Stream(self._app, SideNode(name=LATE, inputs=(self._node,), tag=LATE))

    def merge(self, *others: "Stream[T]", name: str = "") -> "Stream[T]":
        """Return one stream of the records of this and the others.

        Raises:
            ConfigError: one of them belongs to another application.
        """
        for other in others:
            if other._app is not self._app:
                raise ConfigError(
                    f"merge joins streams of one application, but one is of {self._app.name!r} "
                    f"and one of {other._app.name!r}: read both with the same StreamApp"
                )
        node = MergeNode(
            name=name or "merge", inputs=(self._node, *(other._node for other in others))
        )
        return Stream(self._app, self._app._add(node))

    def process(
        self,
        task: TaskFactory,
        *,
        parallelism: int | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> "Stream[Any]":
        """Hand the records to a `Task` of one's own; the stream behind it is what it sends.

        Args:
            task: a `Task` class, or a function that makes one of a `TaskContext`.
            parallelism: number of tasks.
            name: for people.
            dispatcher: "pinned" for code that blocks.
        """
        node = ProcessNode(
            name=name or _name_of(task),
            inputs=(self._node,),
            parallelism=parallelism,
            task=task,
            dispatcher=dispatcher,
        )
        return Stream(self._app, self._app._add(node))

    def write(self, sink: Sink, *, name: str = "", dispatcher: Dispatcher = "default") -> None:
        """Hand the records to a sink.

        Args:
            sink: where they go.
            name: for people.
            dispatcher: "pinned" gives a sink that blocks threads of its own, so that other
                tasks of the executor go on meanwhile.
        """
        node = WriteNode(
            name=name or sink.description,
            inputs=(self._node,),
            sink=sink,
            dispatcher=dispatcher,
        )
        self._app._add(node)

    def _row(self, kind: Any, function: Callable[[Any], Any], name: str) -> "Stream[Any]":
        name = name or f"{kind}({_name_of(function)})"
        node = RowNode(name=name, inputs=(self._node,), operator=RowOperator(kind, name, function))
        return Stream(self._app, self._app._add(node))


class _GroupedStream(Generic[K, T]):
    """Records that an aggregate takes together: by key, by window, or both."""

    def __init__(
        self,
        app: StreamApp,
        node: Node,
        key: Callable[[T], K] | None,
        parallelism: int | None,
        *,
        windows: WindowAssigner | None = None,
        late: WindowLate = "drop",
    ) -> None:
        check_late(late, WINDOW_LATE)
        self._app = app
        self._node = node
        self._key = key
        self._parallelism = parallelism
        self._windows = windows
        self._late = late

    def _fold(self, fold: Fold, name: str) -> "Stream[Any]":
        node = FoldNode(
            name=name,
            inputs=(self._node,),
            parallelism=self._parallelism,
            key=self._key,
            windows=self._windows,
            fold=fold,
            late=self._late,
        )
        return Stream(self._app, self._app._add(node))


class KeyedStream(_GroupedStream[K, T]):
    """Records grouped by key. Without a window, aggregates run on and on."""

    def window(
        self, windows: WindowAssigner, *, late: WindowLate = "drop"
    ) -> "WindowedStream[K, T]":
        """Cut each key's records into windows; ``late`` as in `Stream.window`."""
        return WindowedStream(
            self._app, self._node, self._key, self._parallelism, windows=windows, late=late
        )

    def reduce(self, function: Callable[[T, T], T], *, name: str = "") -> "Stream[tuple[K, T]]":
        """Combine each key's records one by one; gives ``(key, value)`` after every record."""
        return self._fold(_reduce(function), name or f"reduce({_name_of(function)})")

    def count(self, *, name: str = "") -> "Stream[tuple[K, int]]":
        """Count each key's records; gives ``(key, count)`` after every record."""
        return self._fold(_COUNT, name or "count")

    def sum(
        self, of: Callable[[T], Any] | None = None, *, name: str = ""
    ) -> "Stream[tuple[K, Any]]":
        """Add up ``of(record)`` (the record itself) for each key, after every record."""
        return self._fold(_sum(of), name or "sum")

    def map_with_state(
        self,
        function: Callable[[S, T], tuple[S | None, U]],
        *,
        initial: S | None = None,
        ttl: Duration | None = None,
        name: str = "",
    ) -> "Stream[U]":
        """Replace each record by what a function makes of it and of what it has kept for its key.

        What is kept comes back after a restart; it is plain data, and better not changed in place.

        Args:
            function: called with what is kept and the record; returns what to keep, or None to
                forget the key, and the result. Its event time is that of the record.
            initial: what is there for a key that nothing is kept for; each gets its own copy.
            ttl: a key that had no record for so long is forgotten: in event time, from its last
                record to the watermark.
            name: for people.

        Raises:
            ConfigError: ``ttl`` is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("numbered"), []
            >>> words = app.read(gp.collection(["a", "b", "a"])).key_by(lambda word: word)
            >>> numbered = words.map_with_state(lambda n, word: (n + 1, (word, n)), initial=0)
            >>> numbered.write(gp.memory(results))
            >>> _ = gp.run(app)
            >>> results
            [('a', 0), ('b', 0), ('a', 1)]
        """
        return self._with_state(
            StateFunction(function=function, is_flat=False, initial=initial, ttl_ms=_ms(ttl)),
            name or f"map_with_state({_name_of(function)})",
        )

    def flat_map_with_state(
        self,
        function: Callable[[S, T], tuple[S | None, Iterable[U]]],
        *,
        initial: S | None = None,
        ttl: Duration | None = None,
        name: str = "",
    ) -> "Stream[U]":
        """Do the same with a function that gives any number of results for a record.

        A generator is pulled only as fast as the steps behind it can take it.
        """
        return self._with_state(
            StateFunction(function=function, is_flat=True, initial=initial, ttl_ms=_ms(ttl)),
            name or f"flat_map_with_state({_name_of(function)})",
        )

    def process(
        self,
        task: TaskFactory,
        *,
        parallelism: int | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> "Stream[Any]":
        """Hand the records to a `Task`; all records of one key go to the same of its tasks.

        In `Task.on_next`, `TaskContext.state` is that of the record's key.
        """
        node = ProcessNode(
            name=name or _name_of(task),
            inputs=(self._node,),
            parallelism=parallelism if parallelism is not None else self._parallelism,
            task=task,
            key=self._key,
            dispatcher=dispatcher,
        )
        return Stream(self._app, self._app._add(node))

    def _with_state(self, function: StateFunction, name: str) -> "Stream[Any]":
        assert self._key is not None
        node = StateNode(
            name=name,
            inputs=(self._node,),
            parallelism=self._parallelism,
            key=self._key,
            function=function,
        )
        return Stream(self._app, self._app._add(node))


class WindowedStream(_GroupedStream[K, T]):
    """Records by key and window; an aggregate gives one `WindowResult` for each of them.

    A window's results come when the watermark has reached its end; records for it that come later
    are late.
    """

    def reduce(
        self, function: Callable[[T, T], T], *, name: str = ""
    ) -> "Stream[WindowResult[K, T]]":
        """Combine the records one by one."""
        return self._fold(_reduce(function), name or f"window_reduce({_name_of(function)})")

    def count(self, *, name: str = "") -> "Stream[WindowResult[K, int]]":
        """Count the records."""
        return self._fold(_COUNT, name or "window_count")

    def sum(
        self, of: Callable[[T], Any] | None = None, *, name: str = ""
    ) -> "Stream[WindowResult[K, Any]]":
        """Add up ``of(record)``, or the records themselves."""
        return self._fold(_sum(of), name or "window_sum")


def _name_of(function: object) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return cast("str", name).rpartition("<locals>.")[2].replace("<lambda>", "lambda")


def _ms(duration: Duration | None) -> int | None:
    return None if duration is None else duration_ms(duration)


def _reduce(function: Callable[[Any, Any], Any]) -> Fold:
    return Fold(kind="fold", first=lambda record: record, add=function)


def _sum(of: Callable[[Any], Any] | None) -> Fold:
    if of is None:
        return Fold(kind="fold", first=lambda record: record, add=lambda total, r: total + r)
    return Fold(kind="fold", first=of, add=lambda total, record: total + of(record))


_COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)
