"""A lookup by a slow function, shared by all callers that ask for the same key at one time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gearpy.core.base.copies import own
from gearpy.core.base.one_key import one_if_key
from gearpy.core.flow.lookup_cache import LookupAnswer, LookupCache


class SharedLookup:
    """Answers from a cache; one caller looks up a missing key, and the others wait for it.

    If the lookup fails, it fails for all of them. If it is cancelled, one of them goes on.

    Runs on: one event loop.
    """

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        size: int,
        ttl_ms: int | None,
        now_ms: Callable[[], int],
    ) -> None:
        self._function = function
        self._cache: LookupCache[asyncio.Future[LookupAnswer | None]] = LookupCache(size, ttl_ms)
        self._now_ms = now_ms

    async def ask(self, key: Any) -> Any:
        """Return a copy of the value of a key; raises the error of the function."""
        place = one_if_key(key)
        while (known := self._cache.find(place, self._now_ms())) is None:
            waiter = asyncio.get_running_loop().create_future()
            if not self._cache.ask(place, waiter):
                return await self._look_up(key, place)
            known = await waiter
            if known is not None:
                break
        return own(known.value)

    async def _look_up(self, key: Any, place: Any) -> Any:
        try:
            value = await self._function(key)
        except BaseException as error:
            for waiter in self._cache.give_up(place):
                if waiter.done():
                    continue
                # `StopIteration` cannot stand in a future; a waiter may as well look it up itself.
                if isinstance(error, Exception) and not isinstance(error, StopIteration):
                    waiter.set_exception(error)
                else:
                    waiter.set_result(None)
            raise
        for waiter in self._cache.answer(place, value, self._now_ms()):
            if not waiter.done():
                waiter.set_result(LookupAnswer(value))
        return own(value)
