"""Ctrl-C and SIGTERM while an application runs in this process."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
#: What comes so soon is the same signal: `timeout` sends it to a process and then to its group.
_SAME_S: Final = 0.5
_DEFAULTS: Final = (signal.SIG_DFL, signal.default_int_handler)


class StopSignals:
    """Notes the first stop signal for its readers; a second signal acts at once.

    A context manager: signals are taken between its beginning and end, in the main thread. Python
    runs a handler there, so nothing here needs a lock.

    Args:
        on_second: called with the number of a second signal; by default it raises
            `KeyboardInterrupt`, which goes on from wherever the main thread is.
        replaces: tells of the handler that a signal has whether this one takes its place; by
            default it does where a program has set none of its own.
    """

    def __init__(
        self,
        *,
        on_second: Callable[[int], None] | None = None,
        replaces: Callable[[Any], bool] = lambda handler: handler in _DEFAULTS,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.number: int | None = None  #: The first signal.
        self._on_second = on_second or _interrupt
        self._replaces = replaces
        self._clock_s = clock_s
        self._came_s = 0.0
        self._before: dict[signal.Signals, Any] = {}

    def ask(self, number: int) -> None:
        if self.number is None:
            self.number, self._came_s = number, self._clock_s()
        elif self._clock_s() - self._came_s >= _SAME_S:
            self._on_second(number)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if self._replaces(before):
                    self._before[number] = before
                    signal.signal(number, lambda number, _: self.ask(number))
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()


def _interrupt(_number: int) -> None:
    raise KeyboardInterrupt
