"""The timers of an actor, and one thread that calls functions when they are due."""

import logging
import threading
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic
from typing import Final, Protocol

from gearpy.actor.mailbox import Mailbox
from gearpy.errors import ConfigError

_log = logging.getLogger("gearpy.actor")

#: Cancelled timers that may stay in the heap; more are cleared when they are the majority.
_CANCELLED_MAX: Final = 64


class Cancellable(Protocol):
    """Something that will happen later unless cancelled."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """Calls functions later.

    They must be quick, and are not called after `Cancellable.cancel`, unless under way by then.
    """

    def call_later(self, delay_ms: int, call: Callable[[], object], /) -> Cancellable: ...

    def call_every(self, interval_ms: int, call: Callable[[], object], /) -> Cancellable:
        """Call at a fixed rate, first after ``interval_ms``; late calls are not made up for."""
        ...


class ActorTimer:
    """A timer of an actor. It fires by a system message, one at a time.

    Whether it still counts is decided in the actor's turn, so that nothing arrives after
    `cancel` or after the end of the actor.
    """

    __slots__ = ("_handle", "_inbox", "_is_active", "_is_queued", "_once", "_others", "_receive")

    def __init__(
        self,
        inbox: Mailbox,
        others: "set[ActorTimer]",
        receive: Callable[[], object],
        *,
        once: bool,
    ) -> None:
        self._inbox = inbox
        self._others = others
        self._receive = receive
        self._once = once
        self._is_queued = False
        self._is_active = True
        self._handle: Cancellable | None = None
        others.add(self)

    def start(self, timers: Timers, delay_ms: int) -> None:
        begin = timers.call_later if self._once else timers.call_every
        self._handle = begin(delay_ms, self._fire)

    def cancel(self) -> None:
        self._is_active = False
        self._others.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self) -> None:
        if self._is_active and not self._is_queued:
            self._is_queued = True
            self._inbox.put_system(self._on_turn)

    def _on_turn(self) -> None:
        self._is_queued = False
        if self._is_active:
            if self._once:
                self.cancel()
            self._receive()


class _Timer:
    """One call to make; ``interval_ms`` is 0 when it is made once."""

    __slots__ = ("_timers", "call", "interval_ms")

    def __init__(self, timers: "TimerThread", call: Callable[[], object], interval_ms: int) -> None:
        self._timers = timers
        self.call: Callable[[], object] | None = call  # None when cancelled, or made.
        self.interval_ms = interval_ms

    def cancel(self) -> None:
        self._timers.cancel(self)


class TimerThread:
    """`Timers` on real time.

    Runs on: `call_later` and `call_every` on any thread; the calls on one daemon thread, which
    starts with the first of them. What a call raises is logged.
    """

    def __init__(self, name: str = "gearpy-timers") -> None:
        self._name = name
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, _Timer]] = []
        self._numbers = count()  # Equal times keep their order.
        self._cancelled = 0
        self._is_started = False
        self._is_open = True

    def call_later(self, delay_ms: int, call: Callable[[], object], /) -> Cancellable:
        return self._add(max(delay_ms, 0), call, interval_ms=0)

    def call_every(self, interval_ms: int, call: Callable[[], object], /) -> Cancellable:
        if interval_ms < 1:
            raise ConfigError(f"timer interval is {interval_ms} ms, must be at least 1")
        return self._add(interval_ms, call, interval_ms=interval_ms)

    def cancel(self, timer: _Timer) -> None:
        with self._changed:
            if timer.call is None:
                return
            timer.call = None
            self._cancelled += 1
            if self._cancelled > max(_CANCELLED_MAX, len(self._heap) // 2):
                self._heap = [entry for entry in self._heap if entry[2].call is not None]
                heapify(self._heap)
                self._cancelled = 0

    def close(self) -> None:
        with self._changed:
            self._is_open = False
            self._heap.clear()
            self._changed.notify()

    def _add(self, delay_ms: int, call: Callable[[], object], *, interval_ms: int) -> _Timer:
        timer = _Timer(self, call, interval_ms)
        with self._changed:
            if self._is_open and not self._is_started:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._is_started = True
            self._push(monotonic() + delay_ms / 1000, timer)
            if self._heap and self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _push(self, due_s: float, timer: _Timer) -> None:
        if self._is_open:
            heappush(self._heap, (due_s, next(self._numbers), timer))

    def _run(self) -> None:
        while (call := self._next_call()) is not None:
            try:
                call()
            except BaseException:  # noqa: BLE001 - the thread serves other actors too
                _log.exception("a timer failed, ignored")

    def _next_call(self) -> Callable[[], object] | None:
        with self._changed:
            while self._is_open:
                wait_s = self._heap[0][0] - monotonic() if self._heap else None
                if wait_s is not None and wait_s <= 0:
                    call = self._pop()
                    if call is not None:
                        return call
                else:
                    self._changed.wait(wait_s)
            return None

    def _pop(self) -> Callable[[], object] | None:
        due_s, _, timer = heappop(self._heap)
        call = timer.call
        if call is None:
            self._cancelled -= 1
            return None
        if timer.interval_ms:
            # Beats of all timers come together, so that a process at rest wakes less often.
            now_ms = round(max(due_s, monotonic()) * 1000)
            self._push((now_ms // timer.interval_ms + 1) * timer.interval_ms / 1000, timer)
        else:
            timer.call = None
        return call
