"""How tests wait for something that sends no signal, such as a status or a file."""

import faulthandler
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

DEADLINE_S: Final = 90  #: On a machine that does ten times what it can at once.
_STDERR: Final = 2
_PAUSE_S: Final = 0.01


def eventually(
    holds: Callable[[], Any],
    what: str = "",
    *,
    within_s: float = DEADLINE_S,
    every_s: float = _PAUSE_S,
) -> Any:
    """Ask again and again until something holds; return it."""
    deadline_s, pause = time.monotonic() + within_s, threading.Event()
    while not (found := holds()):
        assert time.monotonic() < deadline_s, f"it did not come true in time: {what}"
        pause.wait(every_s)
    return found


def take_time(seconds: float) -> None:
    """Let the test that runs take so long from now on; pytest takes it for hung sooner."""
    if "PYTEST_CURRENT_TEST" in os.environ:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
