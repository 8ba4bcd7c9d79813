"""A wait on the main thread that a signal ends for certain."""

import threading
import time
from typing import Final

_TURN_S: Final = 0.5


def wait_interruptibly(event: threading.Event, timeout_s: float | None = None) -> bool:
    """Wait as `Event.wait` does, but so that handlers of signals run soon.

    The system may give a signal to any thread of the process, and wakes only that one. Python runs
    the handler on the main thread, as soon as that runs again: so it must not sleep for good.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = _TURN_S if end_s is None else min(_TURN_S, end_s - time.monotonic())
        if event.wait(left_s):
            return True
        if end_s is not None and time.monotonic() >= end_s:
            return False
