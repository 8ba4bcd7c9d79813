"""Steps of a stream whose functions are coroutines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gearpy.core.base.times import Duration
from gearpy.dsl.operators.keys import key_of
from gearpy.dsl.operators.names import check_function, checked, duration_of, step_name
from gearpy.dsl.operators.records import AsyncOperator
from gearpy.dsl.streams.program import ProgramStream
from gearpy.messages.type_variables import K, T, U
from gearpy.task.api.rejects import StepOnError
from gearpy.task.stages.asynchronous import AsyncFunction, lookup_function

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream

V = TypeVar("V")


class Asynchronous(ProgramStream[T]):
    """Steps of streams with coroutines, which run on an event loop of the executor.

    Records in flight hold event time back. They are in the snapshot, and the function is called
    with them again after a restart: at least once with each. An error that no further attempt has
    mended counts like any other of the user's code.
    """

    def map_async(
        self,
        function: Callable[[T], Awaitable[U]],
        *,
        concurrency: int = 100,
        ordered: bool = True,
        timeout: Duration | None = "30s",
        retries: int = 0,
        on_error: StepOnError | None = None,
        name: str = "",
    ) -> Stream[U]:
        """Replace each record by the result of a coroutine, many at a time.

        Args:
            function: an ``async def`` of a record.
            concurrency: how many of a task's records are under way at most.
            ordered: results come in the order of the records; else as soon as they are there.
            timeout: an attempt that takes longer has failed; None: as long as it takes.
            retries: further attempts after the first.
            on_error: as in `map`, behind the last attempt.
            name: for people.

        Raises:
            ConfigError: it is no coroutine function, or a number is wrong.

        Example:
            >>> import gearpy as gp
            >>> async def fetch(n):
            ...     return n * 10
            >>> app, results = gp.StreamApp("fetched"), []
            >>> app.read(gp.collection([1, 2, 3])).map_async(fetch).write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [10, 20, 30]
        """
        check_function("map_async", function, awaits=True)
        with checked("map_async"):
            asynchronous = AsyncFunction(
                function,
                concurrency=concurrency,
                ordered=ordered,
                timeout_ms=duration_of("timeout", timeout),
                retries=retries,
            )
        return self._asynchronous("map_async", asynchronous, name, on_error)

    @overload
    def lookup(
        self,
        function: Callable[[K], Awaitable[V]],
        *,
        key: str | Callable[[T], K],
        combine: None = None,
        cache: int = 10_000,
        ttl: Duration | None = "5m",
        concurrency: int = 100,
        ordered: bool = True,
        timeout: Duration | None = "30s",
        retries: int = 0,
        name: str = "",
    ) -> Stream[tuple[T, V]]: ...

    @overload
    def lookup(
        self,
        function: Callable[[K], Awaitable[V]],
        *,
        key: str | Callable[[T], K],
        combine: Callable[[T, V], U],
        cache: int = 10_000,
        ttl: Duration | None = "5m",
        concurrency: int = 100,
        ordered: bool = True,
        timeout: Duration | None = "30s",
        retries: int = 0,
        name: str = "",
    ) -> Stream[U]: ...

    def lookup(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        key: str | Callable[[Any], Any],
        combine: Callable[[Any, Any], Any] | None = None,
        cache: int = 10_000,
        ttl: Duration | None = "5m",
        concurrency: int = 100,
        ordered: bool = True,
        timeout: Duration | None = "30s",
        retries: int = 0,
        name: str = "",
    ) -> Stream[Any]:
        """Pair each record with the answer of a coroutine for its key.

        Answers, None too, are kept by each task for a while. Records with equal keys that come at
        the same time share one call.

        Args:
            function: an ``async def`` of a key.
            key: a field, or a function of the record.
            combine: makes the result of a record and the answer; a pair if not given.
            cache: answers that each task keeps, those used last; 0: none.
            ttl: how long one counts, by wall time; None: for ever.
            concurrency: as in `map_async`, like all that follows.
            ordered: results come in the order of the records.
            timeout: of an attempt.
            retries: further attempts after the first.
            name: for people.

        Raises:
            ConfigError: it is no coroutine function, or something else is not understood.

        Example:
            >>> import gearpy as gp
            >>> async def country_of(user):
            ...     return {"ada": "UK", "blaise": "FR"}.get(user)
            >>> app, results = gp.StreamApp("countries"), []
            >>> visits = app.read(gp.collection([{"user": "ada"}, {"user": "nobody"}]))
            >>> found = visits.lookup(
            ...     country_of, key="user", combine=lambda visit, country: {**visit, "in": country}
            ... )
            >>> found.write(gp.to_list(results))
            >>> _ = gp.run(app)
            >>> results
            [{'user': 'ada', 'in': 'UK'}, {'user': 'nobody', 'in': None}]
        """
        check_function("lookup", function, of="a key", awaits=True)
        if combine is not None:
            check_function("lookup: combine", combine, of="a record and what was found", takes=2)
        by = key_of("lookup", (key,))
        with checked("lookup"):
            asynchronous = lookup_function(
                function,
                by.function,
                cache=cache,
                ttl_ms=duration_of("ttl", ttl),
                combine=combine,
                concurrency=concurrency,
                ordered=ordered,
                timeout_ms=duration_of("timeout", timeout),
                retries=retries,
            )
        return self._asynchronous("lookup", asynchronous, name)

    def _asynchronous(
        self,
        kind: str,
        asynchronous: AsyncFunction,
        name: str,
        on_error: StepOnError | None = None,
    ) -> Stream[Any]:
        step = AsyncOperator(
            name=name or step_name(kind, asynchronous.function),
            given=name,
            kind=kind,
            inputs=(self._step,),
            function=asynchronous,
            on_error=on_error,
        )
        return self._program.add(step)
