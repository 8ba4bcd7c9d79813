"""Joins of a stream that is grouped by key with another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from gearpy.core.base.times import Duration
from gearpy.core.join.asof import Direction
from gearpy.core.join.sides import How
from gearpy.core.window.windows import Windows
from gearpy.dsl.operators.joins import JoinOperator
from gearpy.dsl.operators.names import checked
from gearpy.dsl.operators.operator import stream_text
from gearpy.dsl.streams.grouped import Grouped
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import K, T, U
from gearpy.task.api.window_result import CoGroup, JoinResult
from gearpy.task.joins.streams import JoinSpec

if TYPE_CHECKING:
    from gearpy.dsl.streams.keyed import KeyedStream
    from gearpy.dsl.streams.stream import Stream

R = TypeVar("R")


class _StepOptions(TypedDict, total=False):
    parallelism: int | None
    name: str


class _IntervalOptions(_StepOptions, total=False):
    before: Duration
    after: Duration


class _AsofOptions(_StepOptions, total=False):
    tolerance: Duration | None
    direction: Direction


class Joins(Generic[K, T]):
    """Joins of two streams that are grouped by key.

    Records with equal keys meet in one task. A record waits for a partner as long as one can
    come by event time, and no longer; records that come later than that are counted and dropped.
    A side without a partner is None, unless ``how`` leaves such records out: "inner" has pairs
    only, "left" all records of this stream, "right" all of the other one, "outer" all of both.

    Args:
        grouped: this stream.
    """

    def __init__(self, grouped: Grouped) -> None:
        self._grouped = grouped

    def __repr__(self) -> str:
        return stream_text(self, self._grouped.step)

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["inner"] = "inner",
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T, R]]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["left"],
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T, R | None]]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["right"],
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T | None, R]]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["outer"],
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T | None, R | None]]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["inner"] = "inner",
        combine: Callable[[T, R], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["left"],
        combine: Callable[[T, R | None], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["right"],
        combine: Callable[[T | None, R], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    @overload
    def join(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        how: Literal["outer"],
        combine: Callable[[T | None, R | None], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    def join(
        self,
        right: KeyedStream[Any, Any],
        windows: Windows,
        *,
        how: How = "inner",
        combine: Callable[[Any, Any], Any] | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Pair all records of a key that are in the same window; results come when it closes.

        Args:
            right: the other stream, grouped by keys of the same kind.
            windows: tumbling, sliding, session or global ones, without a trigger.
            how: which records without a partner come out, too.
            combine: makes the result of both records; a `JoinResult` if not given.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: the streams cannot be joined so.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("paid"), []
            >>> orders = app.read(gp.collection([{"id": 1, "item": "tea"}])).key_by("id")
            >>> payments = app.read(gp.collection([{"id": 1, "paid": 3}])).key_by("id")
            >>> both = orders.join(
            ...     payments,
            ...     gp.tumbling("1m"),
            ...     combine=lambda order, payment: (order["item"], payment["paid"]),
            ... )
            >>> both.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('tea', 3)]
        """
        with checked("join"):
            spec = JoinSpec.over(windows, how=how, combine=combine)
        return self._joined("join", right, spec, parallelism, name)

    def cogroup(
        self,
        right: KeyedStream[K, R],
        windows: Windows,
        *,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[CoGroup[K, T, R]]:
        """Gather all records of a key in a window, of both streams; one `CoGroup` when it closes.

        Args:
            right: the other stream, grouped by keys of the same kind.
            windows: tumbling, sliding, session or global ones, without a trigger.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: the streams cannot be joined so.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("gathered"), []
            >>> clicks = app.read(gp.collection(["a1", "a2", "b1"])).key_by(lambda text: text[0])
            >>> views = app.read(gp.collection(["a9"])).key_by(lambda text: text[0])
            >>> together = clicks.cogroup(views, gp.tumbling("10ms"))
            >>> together.map(lambda found: found[:3]).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> sorted(results)
            [('a', ['a1', 'a2'], ['a9']), ('b', ['b1'], [])]
        """
        with checked("cogroup"):
            spec = JoinSpec.cogroup(windows)
        return self._joined("cogroup", right, spec, parallelism, name)

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"] = "inner",
        combine: None = None,
        **options: Unpack[_IntervalOptions],
    ) -> Stream[JoinResult[K, T, R]]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"],
        combine: None = None,
        **options: Unpack[_IntervalOptions],
    ) -> Stream[JoinResult[K, T, R | None]]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["right"],
        combine: None = None,
        **options: Unpack[_IntervalOptions],
    ) -> Stream[JoinResult[K, T | None, R]]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["outer"],
        combine: None = None,
        **options: Unpack[_IntervalOptions],
    ) -> Stream[JoinResult[K, T | None, R | None]]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"] = "inner",
        combine: Callable[[T, R], U],
        **options: Unpack[_IntervalOptions],
    ) -> Stream[U]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"],
        combine: Callable[[T, R | None], U],
        **options: Unpack[_IntervalOptions],
    ) -> Stream[U]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["right"],
        combine: Callable[[T | None, R], U],
        **options: Unpack[_IntervalOptions],
    ) -> Stream[U]: ...

    @overload
    def join_interval(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["outer"],
        combine: Callable[[T | None, R | None], U],
        **options: Unpack[_IntervalOptions],
    ) -> Stream[U]: ...

    def join_interval(
        self,
        right: KeyedStream[Any, Any],
        *,
        before: Duration = "0s",
        after: Duration = "0s",
        how: How = "inner",
        combine: Callable[[Any, Any], Any] | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Pair each record with those of the other stream that are near it in event time.

        Near are those from ``before`` before it to ``after`` after it. A pair comes as soon as both
        are there, a record without a partner when none can come any more.

        Args:
            right: the other stream, grouped by keys of the same kind.
            before: how much older a partner may be.
            after: how much newer it may be.
            how: which records without a partner come out, too.
            combine: makes the result of both records; a `JoinResult` if not given.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: the streams cannot be joined so.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("near"), []
            >>> def read(*events):
            ...     return app.read(gp.collection(events)).key_by(lambda text: text[0])
            >>> shown = read(gp.Message("a shown", 0), gp.Message("b shown", 0))
            >>> clicked = read(gp.Message("a clicked", 4), gp.Message("b clicked", 40))
            >>> near = shown.join_interval(clicked, after="10ms")
            >>> near.map(lambda pair: (pair.left, pair.right)).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('a shown', 'a clicked')]
        """
        with checked("join_interval"):
            spec = JoinSpec.interval(before=before, after=after, how=how, combine=combine)
        return self._joined("join_interval", right, spec, parallelism, name)

    @overload
    def join_asof(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"] = "left",
        combine: None = None,
        **options: Unpack[_AsofOptions],
    ) -> Stream[JoinResult[K, T, R | None]]: ...

    @overload
    def join_asof(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"],
        combine: None = None,
        **options: Unpack[_AsofOptions],
    ) -> Stream[JoinResult[K, T, R]]: ...

    @overload
    def join_asof(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"] = "left",
        combine: Callable[[T, R | None], U],
        **options: Unpack[_AsofOptions],
    ) -> Stream[U]: ...

    @overload
    def join_asof(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"],
        combine: Callable[[T, R], U],
        **options: Unpack[_AsofOptions],
    ) -> Stream[U]: ...

    def join_asof(
        self,
        right: KeyedStream[Any, Any],
        *,
        tolerance: Duration | None = None,
        direction: Direction = "backward",
        how: Literal["left", "inner"] = "left",
        combine: Callable[[Any, Any], Any] | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Pair each record with the one of the other stream that is nearest to it in event time.

        Args:
            right: the other stream, grouped by keys of the same kind.
            tolerance: how far away it may be; as far as it likes if not given.
            direction: "backward" for one that is not newer, "forward" for one that is not older,
                or "nearest".
            how: which records without a partner come out, too.
            combine: makes the result of both records; a `JoinResult` if not given.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: the streams cannot be joined so.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("quoted"), []
            >>> def read(*events):
            ...     return app.read(gp.collection(events)).key_by(lambda pair: pair[0])
            >>> trades = read(gp.Message(("tea", "sold"), 7))
            >>> quotes = read(gp.Message(("tea", 3), 1), gp.Message(("tea", 4), 6))
            >>> quoted = trades.join_asof(quotes, combine=lambda trade, quote: (*trade, quote[1]))
            >>> quoted.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('tea', 'sold', 4)]
        """
        with checked("join_asof"):
            spec = JoinSpec.asof(tolerance=tolerance, direction=direction, how=how, combine=combine)
        return self._joined("join_asof", right, spec, parallelism, name)

    @overload
    def join_latest(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"] = "left",
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T, R | None]]: ...

    @overload
    def join_latest(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"],
        combine: None = None,
        **options: Unpack[_StepOptions],
    ) -> Stream[JoinResult[K, T, R]]: ...

    @overload
    def join_latest(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["left"] = "left",
        combine: Callable[[T, R | None], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    @overload
    def join_latest(
        self,
        right: KeyedStream[K, R],
        *,
        how: Literal["inner"],
        combine: Callable[[T, R], U],
        **options: Unpack[_StepOptions],
    ) -> Stream[U]: ...

    def join_latest(
        self,
        right: KeyedStream[Any, Any],
        *,
        how: Literal["left", "inner"] = "left",
        combine: Callable[[Any, Any], Any] | None = None,
        parallelism: int | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Pair each record with the newest record of its key in the other stream.

        The other stream is a table: the newest record of a key by event time counts, None deletes.
        It is looked up when the watermark has passed a record; with ``ordered=False`` in `key_by`
        of a stream, when the record comes, so that the result depends on which came first.

        Args:
            right: the table, grouped by keys of the same kind.
            how: which records without a partner come out, too.
            combine: makes the result of both records; a `JoinResult` if not given.
            parallelism: number of tasks.
            name: for people.

        Raises:
            ConfigError: the streams cannot be joined so.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("enriched"), []
            >>> visits = app.read(gp.collection([{"user": 1, "page": "home"}])).key_by("user")
            >>> nobody = app.read(gp.collection([])).key_by("user")
            >>> found = visits.join_latest(
            ...     nobody, combine=lambda visit, user: (visit["page"], user)
            ... )
            >>> found.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [('home', None)]
        """
        with checked("join_latest"):
            spec = JoinSpec.latest(how=how, combine=combine)
        return self._joined("join_latest", right, spec, parallelism, name)

    def _joined(
        self,
        kind: str,
        right: KeyedStream[Any, Any],
        spec: JoinSpec,
        parallelism: int | None,
        name: str,
    ) -> Stream[Any]:
        if not isinstance(right, Joins):
            raise ConfigError(
                f"{kind} takes another stream that is grouped by key, not "
                f"{type(right).__name__}: write {kind}(other.key_by(...), ...)"
            )
        left, other = self._grouped, right._grouped  # noqa: SLF001 - of the same class
        left.program.check_own(kind, other.program)
        assert left.key is not None
        assert other.key is not None
        step = JoinOperator(
            name=name or kind,
            given=name,
            kind=kind,
            inputs=(left.step, other.step),
            parallelism=parallelism if parallelism is not None else left.parallelism,
            left_key=left.key,
            right_key=other.key,
            spec=spec,
        )
        other.program.end(other.begun)
        return left.add(step)
