"""Coroutines of user code, on an event loop beside the tasks: started, timed, made again."""

import asyncio
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from gearpy.core.base.attempts import Attempts, CallLimits
from gearpy.errors import ConfigError
from gearpy.transport.loop.loop import LoopThread

_log = logging.getLogger(__name__)
#: Workers that are started at once, when all those before have come to wait for something.
_SPAWN_MAX: Final = 64
#: An event loop that takes calls so late is blocked by somebody.
_BLOCKED_S: Final = 1.0

#: The function that is called with a value.
AsyncCall: TypeAlias = Callable[[Any], Awaitable[Any]]


class Outcome(NamedTuple):
    """The outcome of a call."""

    number: int
    result: Any
    error: BaseException | None = None


class Calls(Protocol):
    """The calls of one stage of one task. Used on the task's thread."""

    def start(self, calls: Sequence[tuple[int, Any]]) -> None:
        """Call the function with each value, as soon as the limits let; numbers are new ones."""
        ...

    def take(self) -> list[Outcome]:
        """Return the outcomes of calls since the last time."""
        ...

    @property
    def has_outcomes(self) -> bool:
        """Whether a result waits to be taken."""
        ...

    def close(self) -> None:
        """Cancel all running calls; no outcomes follow."""
        ...


class Coroutines(Protocol):
    """The loop on which the tasks of an executor have coroutines run."""

    def open(
        self, function: AsyncCall, limits: CallLimits, on_ready: Callable[[], object], name: str
    ) -> Calls:
        """Return the calls of a function.

        Args:
            function: of one value; called and awaited on the event loop.
            on_ready: called, on any thread, when there are outcomes to take: once for all that
                come before they are taken.
        """
        ...


class _NoCoroutines:
    """Stands for an event loop where there is none."""

    def open(
        self, function: AsyncCall, limits: CallLimits, on_ready: Callable[[], object], name: str
    ) -> Calls:
        raise ConfigError(f"{name!r} is asynchronous, but its task was made without an event loop")


NO_COROUTINES: Final[Coroutines] = _NoCoroutines()


class _Worker:
    """A coroutine that makes one call after the other."""

    __slots__ = ("is_left", "number", "task")

    def __init__(self) -> None:
        self.number = 0
        self.task: asyncio.Task[None]
        self.is_left = False  # Its further outcomes do not count.


class LoopCalls:
    """`Calls` on an event loop.

    As many workers as calls may run, each a task of the loop that makes one call after the other:
    a call that has nothing to wait for costs no task of its own.

    Runs on: `start`, `take` and `close` on the task's thread, all else on the loop's.

    Args:
        post: has a function run on the loop, soon; may be called on any thread.
        on_closed: nothing runs here any more, or will be as soon as the loop gets to it.
    """

    def __init__(
        self,
        function: AsyncCall,
        limits: CallLimits,
        *,
        rng: random.Random,
        post: Callable[[Callable[[], object]], object],
        on_ready: Callable[[], object],
        on_closed: Callable[[], object],
        name: str,
    ) -> None:
        self._function = function
        self._limits = limits
        self._attempts = Attempts(limits, rng)
        self._post = post
        self._on_ready = on_ready
        self._on_closed = on_closed
        self._name = name
        self._inbox: deque[Sequence[tuple[int, Any]]] = deque()
        self._outcomes: deque[Outcome] = deque()
        self._posted_s = 0.0  # When the loop was asked to look into the inbox; 0: it was not.
        self._is_closed = False
        self._is_spawning = False
        self._workers: set[_Worker] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    # -- on the task's thread --------------------------------------------------------------

    def start(self, calls: Sequence[tuple[int, Any]]) -> None:
        self._inbox.append(calls)
        if not self._posted_s:
            self._posted_s = time.monotonic()
            self._post(self._take_calls)

    def take(self) -> list[Outcome]:
        taken = []
        outcomes = self._outcomes
        while outcomes:
            taken.append(outcomes.popleft())
        return taken

    @property
    def has_outcomes(self) -> bool:
        return bool(self._outcomes)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._post(self._cancel_all)
            self._on_closed()

    # -- on the loop -----------------------------------------------------------------------

    def _take_calls(self) -> None:
        waited_s, self._posted_s = time.monotonic() - self._posted_s, 0.0
        if waited_s > _BLOCKED_S:
            _log.warning(
                "calls of %r had to wait %.1f s for the event loop: something blocks it; "
                "await what takes time, or use asyncio.to_thread",
                self._name,
                waited_s,
            )
        while self._inbox:
            self._attempts.add(self._inbox.popleft())
        self._begin_spawning()

    def _begin_spawning(self) -> None:
        if not self._is_spawning:
            self._is_spawning = True
            self._spawn(1)

    def _spawn(self, workers: int) -> None:
        """Start some workers, and more when these have begun and there still is work for more."""
        self._arm()
        if self._is_closed or not self._attempts.can_begin:
            self._is_spawning = False
            return
        loop = asyncio.get_running_loop()
        for _ in range(workers):
            worker = _Worker()
            worker.task = loop.create_task(self._work(worker))
            self._workers.add(worker)
        loop.call_soon(self._spawn, min(2 * workers, _SPAWN_MAX))

    async def _work(self, worker: _Worker) -> None:
        try:
            while not (worker.is_left or self._is_closed):
                call = self._attempts.begin(_now_ms())
                if call is None:
                    return
                worker.number = call[0]
                try:
                    result = await self._function(call[1])
                except GeneratorExit:
                    raise  # The loop has gone.
                except BaseException as error:  # noqa: BLE001 - theirs; a record must not wait for ever
                    if not worker.is_left:
                        self._fail(worker.number, error)
                    continue
                if not worker.is_left:
                    self._attempts.succeed(worker.number)
                    self._tell(Outcome(worker.number, result))
        finally:
            self._workers.discard(worker)

    def _fail(self, number: int, error: BaseException) -> None:
        if self._attempts.fail(number, _now_ms()):
            self._tell(Outcome(number, None, error))
        else:
            self._arm()

    def _tell(self, outcome: Outcome) -> None:
        """Hand an outcome over; those of one round of the loop are told at one go.

        Who takes them takes all, so one that is not the first was told with that. A flag would not
        do: set behind outcomes that are taken at that moment, it would stay, and the next would
        never be told.
        """
        self._outcomes.append(outcome)
        if len(self._outcomes) == 1:
            asyncio.get_running_loop().call_soon(self._on_ready)

    def _arm(self) -> None:
        """Have `_on_time` called when the next call is overdue, or is made again."""
        at_ms = self._attempts.wake_ms
        if at_ms is None or self._is_closed:
            return
        if self._timer is not None:
            if self._timer_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_ms = at_ms
        self._timer = asyncio.get_running_loop().call_at(at_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        now_ms = _now_ms()
        self._timer = None
        self._attempts.wake(now_ms)
        overdue = self._attempts.overdue(now_ms)
        if overdue:
            busy = {worker.number: worker for worker in self._workers if not worker.is_left}
            for number in overdue:
                # It may not listen, so nobody waits for it.
                busy[number].is_left = True
                busy[number].task.cancel()
                text = f"no result within {self._limits.timeout_ms} ms"
                self._fail(number, TimeoutError(text))
        self._begin_spawning()
        self._arm()

    def _cancel_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for worker in self._workers:
            worker.is_left = True
            worker.task.cancel()


class CoroutineThread:
    """`Coroutines` on an event loop in a thread of its own, as long as somebody has calls open.

    All tasks of an executor share it. It is not the transport's: user code that blocks it delays
    other user code, but no heartbeat.

    Runs on: any thread. Restart: calls of tasks that have gone are cancelled.
    """

    def __init__(self, name: str = "gearpy-coroutines") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: LoopThread | None = None
        self._open = 0

    def open(
        self, function: AsyncCall, limits: CallLimits, on_ready: Callable[[], object], name: str
    ) -> LoopCalls:
        with self._lock:
            if self._loop is None:
                self._loop = LoopThread(self._name)
                self._loop.start()
            loop = self._loop
            self._open += 1
        return LoopCalls(
            function,
            limits,
            rng=random.Random(),
            post=loop.call_soon,
            on_ready=on_ready,
            on_closed=self._on_closed,
            name=name,
        )

    def _on_closed(self) -> None:
        """Let the loop end after the last one. Nobody waits: user code may block it."""
        with self._lock:
            self._open -= 1
            if not self._open and self._loop is not None:
                self._loop.call_soon(lambda: asyncio.get_running_loop().stop())
                self._loop = None


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
