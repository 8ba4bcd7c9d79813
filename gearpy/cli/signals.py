"""Ctrl-C and SIGTERM: the first stops cleanly, the second at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from gearpy.cli.exits import INTERRUPTED

__all__ = ["stoppable"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread at the first signal; end at the second.

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

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            os._exit(INTERRUPTED)
        self._came = True
        raise KeyboardInterrupt


def _is_ours(number: int) -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(number) is not signal.SIG_IGN
