"""What users write: an application of streams.

Every method adds a step to the plan and returns the stream behind it; nothing runs until the
application is run or submitted. Gearpump: `Stream`, `StreamApp`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

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
    WriteNode,
)
from gearpy.errors import ConfigError
from gearpy.task.aggregate import Fold, WindowResult
from gearpy.task.api import Sink, Source
from gearpy.task.application import StreamApplication, TaskFactory
from gearpy.task.fused import RowOperator

__all__ = ["KeyedStream", "Stream", "StreamApp", "WindowedStream"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")


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
        self, source: Source, *, parallelism: int | None = None, name: str = ""
    ) -> "Stream[Any]":
        """Return the stream of a source's records."""
        node = ReadNode(name=name or source.description, source=source, parallelism=parallelism)
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

    def window(self, windows: WindowAssigner) -> "WindowedStream[None, T]":
        """Cut the whole stream into windows; the next step runs in one task."""
        return WindowedStream(self._app, self._node, None, 1, windows)

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
        windows: WindowAssigner | None = None,
    ) -> None:
        self._app = app
        self._node = node
        self._key = key
        self._parallelism = parallelism
        self._windows = windows

    def _fold(self, fold: Fold, name: str) -> "Stream[Any]":
        node = FoldNode(
            name=name,
            inputs=(self._node,),
            parallelism=self._parallelism,
            key=self._key,
            windows=self._windows,
            fold=fold,
        )
        return Stream(self._app, self._app._add(node))


class KeyedStream(_GroupedStream[K, T]):
    """Records grouped by key. Without a window, aggregates run on and on."""

    def window(self, windows: WindowAssigner) -> "WindowedStream[K, T]":
        """Cut each key's records into windows."""
        return WindowedStream(self._app, self._node, self._key, self._parallelism, windows)

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

    def process(
        self,
        task: TaskFactory,
        *,
        parallelism: int | None = None,
        name: str = "",
        dispatcher: Dispatcher = "default",
    ) -> "Stream[Any]":
        """Hand the records to a `Task`; all records of one key go to the same of its tasks."""
        node = ProcessNode(
            name=name or _name_of(task),
            inputs=(self._node,),
            parallelism=parallelism if parallelism is not None else self._parallelism,
            task=task,
            key=self._key,
            dispatcher=dispatcher,
        )
        return Stream(self._app, self._app._add(node))


class WindowedStream(_GroupedStream[K, T]):
    """Records by key and window; an aggregate gives one `WindowResult` for each of them.

    A window's results come when the watermark has reached its end; later records for it are
    dropped and counted as late.
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


def _reduce(function: Callable[[Any, Any], Any]) -> Fold:
    return Fold(kind="fold", first=lambda record: record, add=function)


def _sum(of: Callable[[Any], Any] | None) -> Fold:
    if of is None:
        return Fold(kind="fold", first=lambda record: record, add=lambda total, r: total + r)
    return Fold(kind="fold", first=of, add=lambda total, record: total + of(record))


_COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)
