"""Enrichment: a user's coroutine function looks up each record's key."""

from collections.abc import Callable
from typing import Any

from gearpy.task.stages.asynchronous import AsyncFunction, CoroutineFunction, Lookup


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

    Raises:
        ConfigError: the function is no coroutine function, or a number is wrong.
    """
    lookup = Lookup(key, cache, ttl_ms, combine)
    return AsyncFunction(function, concurrency, ordered, timeout_ms, retries, lookup)
