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
#: Whoever has waited a second may wait a tenth more: to ask costs as much as what is asked for.
_PAUSE_MAX_S: Final = 0.1


def eventually(
    holds: Callable[[], Any],
    what: str = "",
    *,
    within_s: float = DEADLINE_S,
    every_s: float = _PAUSE_S,
) -> Any:
    """Ask again and again until something holds, less and less often; return it."""
    began_s, pause = time.monotonic(), threading.Event()
    while not (found := holds()):
        waited_s = time.monotonic() - began_s
        assert waited_s < within_s, f"it did not come true in time: {what}"
        pause.wait(max(every_s, min(waited_s / 8, _PAUSE_MAX_S)))
    return found


def take_time(seconds: float) -> None:
    """Let the test that runs take so long from now on; pytest takes it for hung sooner."""
    if "PYTEST_CURRENT_TEST" in os.environ:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
