"""An event loop in virtual time, without a thread: for simulations."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import ceil
from random import Random
from typing import Any, Final, cast

from gearpy.core.base.attempts import CallLimits
from gearpy.transport.loop.coroutines import AsyncCall, LoopCalls

_log = logging.getLogger(__name__)
_EPSILON_S: Final = 1e-6
#: Rounds of what is ready after which time goes on, so that nobody who never waits stops it.
_ROUNDS_MAX: Final = 10_000

_Later = Callable[[int, Callable[[], object]], object]


class VirtualLoop:
    """Runs coroutines that wait for each other and for time; there are no sockets and no threads.

    Has those methods of `asyncio.AbstractEventLoop` that need neither.
    """

    def __init__(self, now_ms: Callable[[], int], later: _Later) -> None:
        self._now_ms = now_ms
        self._later = later
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._ids = count()
        self._is_planned = False

    def run(self) -> None:
        self._is_planned = False
        now_s = self.time() + _EPSILON_S
        while self._timers and self._timers[0][0] <= now_s:
            self._ready.append(heappop(self._timers)[2])
        before = asyncio._get_running_loop()  # noqa: SLF001 - how an event loop says so
        asyncio._set_running_loop(cast("Any", self))  # noqa: SLF001
        try:
            for _ in range(_ROUNDS_MAX):
                if not self._ready:
                    break
                for _ in range(len(self._ready)):
                    handle = self._ready.popleft()
                    if not handle.cancelled():
                        handle._run()  # noqa: SLF001
        finally:
            asyncio._set_running_loop(before)  # noqa: SLF001
        if self._ready:
            self._plan(1)

    def time(self) -> float:
        return self._now_ms() / 1000

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, cast("Any", self), context)
        self._ready.append(handle)
        if not self.is_running():
            self._plan(0)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, cast("Any", self), context)
        heappush(self._timers, (when, next(self._ids), handle))
        delay_s = max(0.0, when - self.time() - _EPSILON_S)
        self._later(ceil(delay_s * 1000), self.run)
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=cast("Any", self))

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        return asyncio.Task(coro, loop=cast("Any", self), name=name, context=context)

    def run_in_executor(self, _executor: Any, func: Any, *args: Any) -> "asyncio.Future[Any]":
        """Call the function at once; there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the awaiting task gets it
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        running: object = asyncio._get_running_loop()  # noqa: SLF001
        return running is self

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Log an error that nobody awaited; tasks killed with their process are no news."""
        if "was destroyed" not in context.get("message", ""):
            _log.error(
                "in a coroutine: %s", context.get("message"), exc_info=context.get("exception")
            )

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave the timer until its time has come."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"an event loop in virtual time has no {name}: no I/O in simulations")

    def _plan(self, delay_ms: int) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._later(delay_ms, self.run)


class VirtualCoroutines:
    """`Coroutines` on a `VirtualLoop`."""

    def __init__(self, now_ms: Callable[[], int], later: _Later, rng: Random) -> None:
        self._loop = VirtualLoop(now_ms, later)
        self._rng = rng
        self._calls: list[LoopCalls] = []

    def open(
        self, function: AsyncCall, limits: CallLimits, on_ready: Callable[[], object], name: str
    ) -> LoopCalls:
        calls = LoopCalls(
            function,
            limits,
            rng=self._rng,
            post=self._loop.call_soon,
            on_ready=on_ready,
            on_closed=lambda: None,
            name=name,
        )
        self._calls.append(calls)
        return calls

    def kill(self) -> None:
        """Cancel everything now, as the process ends."""
        for calls in self._calls:
            calls.close()
        self._calls.clear()
        self._loop.run()
