"""Ctrl-C and SIGTERM: the first stops cleanly, the second at once.

While an application runs in this process `gearpy.cluster.embedded.signals` takes them.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from gearpy.cli.terminal.exits import exit_code_of_signal

__all__ = ["Stopped", "end_at_signals", "stoppable"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def end_at_signals() -> None:
    """End this process at Ctrl-C and SIGTERM from now on, as one that was interrupted.

    For the time before and after `stoppable`, while modules are loaded, or threads are waited for.
    """
    for number in filter(_is_ours, _SIGNALS):
        signal.signal(number, lambda number, _frame: os._exit(exit_code_of_signal(number)))


class Stopped(KeyboardInterrupt):
    """A signal has come, with this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` in the main thread at the first signal; end at the second.

    A signal that the parent process chose to ignore stays ignored.
    """
    handle = _Handler()
    before = {number: signal.getsignal(number) for number in _SIGNALS if _is_ours(number)}
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class _Handler:
    def __init__(self) -> None:
        self._came = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._came:
            os._exit(exit_code_of_signal(number))
        self._came = True
        raise Stopped(number)


def _is_ours(number: int) -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(number) is not signal.SIG_IGN
