"""Streams in windows: records are aggregated by window, and perhaps by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from gearpy.core.window import aggregates as agg
from gearpy.core.window.windows import Windows
from gearpy.dsl.operators.names import no_such_step
from gearpy.dsl.operators.operator import stream_text
from gearpy.dsl.streams.grouped import Grouped
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import K, T, U
from gearpy.task.time.late import WINDOW_LATE, WindowLate, check_late

if TYPE_CHECKING:
    from gearpy.core.window.accumulators import Aggregate
    from gearpy.dsl.operators.keys import Key
    from gearpy.dsl.operators.operator import Operator
    from gearpy.dsl.streams.program import Program
    from gearpy.dsl.streams.stream import Stream
    from gearpy.task.api.window_result import WindowResult

A = TypeVar("A")


class WindowedStream(Generic[K, T]):
    """Records by key and window; an aggregate gives a `WindowResult` for each of them.

    By default a window's result comes when the watermark has reached its end; records for it that
    come later are late. A trigger, and lateness that is allowed, are said with the windows:
    ``gp.tumbling("1m").triggering(...).allowed_lateness("5s")``. The key is None where there is
    none.

    Of each window and key one value is kept, not the records. Gearpump: `WindowStream`.
    """

    def __init__(self, grouped: Grouped) -> None:
        self._grouped = grouped

    def __repr__(self) -> str:
        return stream_text(self, self._grouped.step)

    def reduce(
        self, function: Callable[[T, T], T], *, name: str = ""
    ) -> Stream[WindowResult[K, T]]:
        """Combine the records one by one; the first one begins.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("longest"), []
            >>> words = app.read(gp.collection(["to", "be", "not"])).window(gp.global_window())
            >>> longest = words.reduce(lambda a, b: max(a, b, key=len))
            >>> longest.map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            ['not']
        """
        return self._grouped.reduce(function, name)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        merge: Callable[[A, A], A] | None = None,
        name: str = "",
    ) -> Stream[WindowResult[K, A]]:
        """Add the records one by one to a value, which is ``initial`` at first.

        Args:
            initial: plain data; each key and window begins with its own copy.
            function: gets the value and a record, returns the next value.
            merge: makes one of two such values, each perhaps of many records. Session windows need
                it, since two of them become one when a record comes between.
            name: for people.

        Raises:
            ConfigError: the windows are sessions, and there is no ``merge``.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("letters"), []
            >>> words = app.read(gp.collection(["to", "be"])).window(gp.global_window())
            >>> lengths = words.fold(0, lambda total, word: total + len(word))
            >>> lengths.map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [4]
        """
        return self._grouped.fold(initial, function, merge, name)

    def aggregate(
        self, name: str = "", /, **aggregates: Aggregate
    ) -> Stream[WindowResult[K, dict[str, Any]]]:
        """Compute some aggregates; the value is a dict of them by name.

        Where the records come in columns and the key is given by names, so is this computed.

        Args:
            name: for people.
            aggregates: functions of `gearpy.agg`, by the name in the result.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("sales"), []
            >>> sales = app.read(gp.collection([{"price": 3}, {"price": 5}]))
            >>> totals = sales.window(gp.global_window()).aggregate(
            ...     n=gp.agg.count(), total=gp.agg.sum("price")
            ... )
            >>> totals.map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [{'n': 2, 'total': 8}]
        """
        return self._grouped.aggregate(aggregates, name)

    def count(self, *, name: str = "") -> Stream[WindowResult[K, int]]:
        """Count the records.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("counted"), []
            >>> events = [gp.Message("a", 0), gp.Message("b", 5), gp.Message("a", 12)]
            >>> windows = app.read(gp.collection(events)).window(gp.tumbling("10ms"))
            >>> windows.count().write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results  # doctest: +NORMALIZE_WHITESPACE
            [WindowResult(key=None, value=2, start=0, end=10),
             WindowResult(key=None, value=1, start=10, end=20)]
        """
        return self._grouped.single("count", agg.count(), name)

    @overload
    def sum(self, of: str, *, name: str = "") -> Stream[WindowResult[K, Any]]: ...

    @overload
    def sum(self, of: Callable[[T], U], *, name: str = "") -> Stream[WindowResult[K, U]]: ...

    @overload
    def sum(self, of: None = None, *, name: str = "") -> Stream[WindowResult[K, T]]: ...

    def sum(self, of: Any = None, *, name: str = "") -> Stream[WindowResult[K, Any]]:
        """Add up a field, or ``of(record)``, or the records themselves.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("total"), []
            >>> windows = app.read(gp.collection(["to", "not"])).window(gp.global_window())
            >>> windows.sum(len).map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [5]
        """
        return self._grouped.single("sum", agg.sum(of), name)

    @overload
    def min(self, of: str, *, name: str = "") -> Stream[WindowResult[K, Any]]: ...

    @overload
    def min(self, of: Callable[[T], U], *, name: str = "") -> Stream[WindowResult[K, U]]: ...

    @overload
    def min(self, of: None = None, *, name: str = "") -> Stream[WindowResult[K, T]]: ...

    def min(self, of: Any = None, *, name: str = "") -> Stream[WindowResult[K, Any]]:
        """Give the smallest field, ``of(record)`` or record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("least"), []
            >>> windows = app.read(gp.collection([3, 1, 2])).window(gp.global_window())
            >>> windows.min().map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [1]
        """
        return self._grouped.single("min", agg.min(of), name)

    @overload
    def max(self, of: str, *, name: str = "") -> Stream[WindowResult[K, Any]]: ...

    @overload
    def max(self, of: Callable[[T], U], *, name: str = "") -> Stream[WindowResult[K, U]]: ...

    @overload
    def max(self, of: None = None, *, name: str = "") -> Stream[WindowResult[K, T]]: ...

    def max(self, of: Any = None, *, name: str = "") -> Stream[WindowResult[K, Any]]:
        """Give the largest field, ``of(record)`` or record.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("most"), []
            >>> windows = app.read(gp.collection(["to", "not"])).window(gp.global_window())
            >>> windows.max(len).map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [3]
        """
        return self._grouped.single("max", agg.max(of), name)

    def mean(
        self, of: str | Callable[[T], Any] | None = None, *, name: str = ""
    ) -> Stream[WindowResult[K, float]]:
        """Give the mean of a field, of ``of(record)`` or of the records.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("average"), []
            >>> windows = app.read(gp.collection([1, 2, 6])).window(gp.global_window())
            >>> windows.mean().map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [3.0]
        """
        return self._grouped.single("mean", agg.mean(of), name)

    def top_n(
        self, n: int = 0, by: str | Callable[[T], Any] | None = None, *, name: str = ""
    ) -> Stream[WindowResult[K, list[T]]]:
        """Give the ``n`` records that are largest by a field, by ``by(record)`` or themselves.

        They come in order, the largest first.

        Raises:
            ConfigError: ``n`` is missing, or no number from 1.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("best"), []
            >>> windows = app.read(gp.collection([3, 1, 4, 1, 5])).window(gp.global_window())
            >>> windows.top_n(2).map(lambda result: result.value).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [[5, 4]]
        """
        return self._grouped.top(n, by, name)

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            instead = (
                f"end the window with an aggregate first, such as .window(...).count().{name}(...)"
            )
            raise no_such_step("windows have", name, dir(type(self)), instead=instead)


def windowed(
    program: Program,
    step: Operator,
    key: Key | None,
    parallelism: int | None,
    *,
    windows: Windows,
    late: WindowLate,
) -> WindowedStream[Any, Any]:
    if not isinstance(windows, Windows):
        raise ConfigError(f'window takes windows such as gp.tumbling("10s"), not {windows!r}')
    check_late(late, WINDOW_LATE)
    begun = program.begin(
        f"window behind {step.name!r} ends in nothing: add an aggregate, such as .count()"
    )
    return WindowedStream(
        Grouped(
            program=program,
            step=step,
            key=key,
            parallelism=parallelism,
            windows=windows,
            late=late,
            begun=begun,
        )
    )
