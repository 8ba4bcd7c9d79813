"""The stage that calls a user's coroutine function with each record, many at a time."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from gearpy.core.base.attempts import CallLimits
from gearpy.core.flow.async_window import AsyncWindow
from gearpy.core.flow.lookup_cache import LookupCache
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.late_time import late_places, late_time, promise_of
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.stage import Stage
from gearpy.transport.loop.coroutines import Calls
from gearpy.transport.loop.shared_lookup import SharedLookup

CoroutineFunction: TypeAlias = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Enrichment: a function is called with a key of each record, and its answer is kept.

    Each task has a cache of its own, in memory, which is empty after a restart. Records with equal
    keys that come at the same time share one call, and its failure. The answer None is
    kept, too.

    Attributes:
        key: gives the key of a record; it can be hashed.
        cache: answers kept, those used last; 0: none.
        ttl_ms: how long one counts, by wall time; None: for ever.
        combine: makes a result of a record and the answer; None: they are a pair.
    """

    key: Callable[[Any], Any]
    cache: int = 10_000
    ttl_ms: int | None = 300_000
    combine: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        LookupCache(self.cache, self.ttl_ms)  # It checks them.

    def bind(self, function: CoroutineFunction, now_ms: Callable[[], int]) -> CoroutineFunction:
        ask = SharedLookup(function, size=self.cache, ttl_ms=self.ttl_ms, now_ms=now_ms).ask
        key, combine = self.key, self.combine

        async def look_up(record: Any) -> Any:
            found = await ask(key(record))
            return (record, found) if combine is None else combine(record, found)

        return look_up


@dataclass(frozen=True, slots=True)
class AsyncFunction:
    """A user's coroutine function of a record, and how to call it.

    Attributes:
        function: returns the result of the record.
        concurrency: records in flight at most, where input comes in small batches; as the rest of
            a batch waits inside. Never more calls run at once.
        ordered: results come in the order of the records.
        timeout_ms: of each attempt; None: as long as it takes.
        retries: attempts after the first one that failed.
        lookup: the function is one of a key of the record.
    """

    function: CoroutineFunction
    concurrency: int = 100
    ordered: bool = True
    timeout_ms: int | None = 30_000
    retries: int = 0
    lookup: Lookup | None = None

    def __post_init__(self) -> None:
        mistakes = []
        if not is_coroutine_function(self.function):
            inner = _innermost(self.function)
            name = getattr(inner, "__qualname__", repr(inner))
            mistakes.append(
                f"{name} is no coroutine function: define it with `async def`, or use `map` for a "
                "function that returns at once"
            )
        try:
            self.limits  # noqa: B018 - it checks them
        except ConfigError as error:
            mistakes += error.mistakes
        if mistakes:
            raise ConfigError(*mistakes)

    @property
    def limits(self) -> CallLimits:
        return CallLimits(
            concurrency=self.concurrency, timeout_ms=self.timeout_ms, retries=self.retries
        )


def is_coroutine_function(function: Any) -> bool:
    """Tell whether a call gives something to await; also of a partial, and of an object."""
    inner = _innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
        getattr(type(inner), "__call__", None)  # noqa: B004 - of the type, as Python finds it
    )


def _innermost(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


class AsyncStage(Stage):
    """Calls a coroutine function with records, on the executor's event loop for user code.

    Records in flight hold the clock and are in snapshots, across the ends of epochs; after a
    restart the function is called with them again. A watermark passes when no older record is in
    flight, so a result is late only where its record was. The rest of a batch waits here while
    as many as may are in flight; then no more input is taken.

    A call that has failed for good rejects its record.

    Args:
        context: of the task; has the event loop.
    """

    defers = True

    def __init__(self, context: TaskContext, name: str, function: AsyncFunction) -> None:
        self.name = name
        self._context = context
        self._rejects = context.rejects
        self._function = function
        self._limit = context.limits.batch_records
        self._window = AsyncWindow(function.concurrency, ordered=function.ordered)
        self._calls: Calls | None = None
        self._has_late = False  # Records in flight may be late.

    def process(self, batch: Batch) -> Iterator[Batch]:
        self._has_late |= batch.has_late
        self._begin(batch.values, batch.timestamps)
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._window.advance(watermark_ms)
        return iter(())

    def release(self) -> Iterator[Batch]:
        assert self._calls is not None, "restore comes first"
        window = self._window
        for number, result, error in self._calls.take():
            if error is None:
                window.finish(number, result)
            else:
                held = self._window.fail(number)
                if held is not None:
                    self._rejects.blame(
                        self.name, error, held.value, held.time_ms, place=self.place
                    )
        while window.is_ready:
            values, times = window.release(self._limit)
            yield Batch(values, times, self._has_late)

    def snapshot(self) -> list[Any]:
        window = self._window
        held = list(window.held())
        return [
            window.watermark_ms,
            window.passed_ms,
            [each.value for each in held],
            [each.time_ms for each in held],
            [promise_of(each.time_ms) for each in held],
        ]

    def restore(self, state: list[Any] | None) -> None:
        function, lookup = self._function.function, self._function.lookup
        if lookup is not None:
            function = lookup.bind(function, self._context.now_ms)
        self._calls = self._context.coroutines.open(
            self._context.metrics.bound(function),
            self._function.limits,
            self._context.wake,
            self.name,
        )
        watermark_ms, passed_ms, values, plain, promises = state or (MIN_MS, MIN_MS, [], [], [])
        times = list(map(late_time, plain, promises))
        self._has_late = bool(late_places(times))
        self._window.restore(watermark_ms, passed_ms)
        self._begin(values, times)

    def close(self, *, completed: bool) -> None:
        if self._calls is not None:
            self._calls.close()

    @property
    def has_room(self) -> bool:
        return self._window.has_room

    @property
    def is_ready(self) -> bool:
        return self._calls is not None and (self._calls.has_outcomes or self._window.is_ready)

    @property
    def is_working(self) -> bool:
        return any(True for _ in self._window.held())

    @property
    def passed_ms(self) -> int:
        return self._window.passed_ms

    @property
    def hold_ms(self) -> int:
        return self._window.hold_ms

    def _begin(self, values: list[Any], timestamps: list[int]) -> None:
        assert self._calls is not None, "restore comes first"
        if values:
            self._calls.start(list(self._window.take(values, timestamps)))


def lookup_function(
    function: CoroutineFunction,
    key: Callable[[Any], Any],
    *,
    cache: int = 10_000,
    ttl_ms: int | None = 300_000,
    combine: Callable[[Any, Any], Any] | None = None,
    concurrency: int = 100,
    ordered: bool = True,
    timeout_ms: int | None = 30_000,
    retries: int = 0,
) -> AsyncFunction:
    """Return the function by which an `AsyncStage` looks something up for each record.

    Args:
        function: returns the answer for a key.
        key: see `Lookup`, also for the next ones.
        cache: answers kept by each task.
        ttl_ms: how long one counts.
        combine: makes a result of a record and the answer; None: they are a pair.
        concurrency: see `AsyncFunction`, also for the next ones.
        ordered: results come in the order of the records.
        timeout_ms: of each attempt; it counts for records that wait for another's call, too.
        retries: attempts after the first one that failed.
    """
    lookup = Lookup(key, cache, ttl_ms, combine)
    return AsyncFunction(function, concurrency, ordered, timeout_ms, retries, lookup)
