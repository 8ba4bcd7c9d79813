"""Why a child process ended, in words."""

import re
import signal
from pathlib import Path
from typing import Final

__all__ = ["exit_cause", "oom_kills"]

_LAST_LINE_CHARS: Final = 300
_OOM_KILLS: Final = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


def exit_cause(code: int, tail: bytes, *, is_memory_short: bool = False) -> str:
    """Return why a process ended that nobody had asked to.

    Args:
        code: its exit code, or the negative number of the signal that killed it.
        tail: the end of its standard error; what fits a line follows in the first line, all
            of it below.
        is_memory_short: the system has killed processes for want of memory meanwhile.
    """
    text = tail.decode("utf-8", "replace").strip()
    last = text.rpartition("\n")[2].strip()[:_LAST_LINE_CHARS]
    if code < 0:
        cause = _killed(-code, is_memory_short=is_memory_short)
    elif code == 0:
        cause = "exited with code 0 before it was asked to"
    else:
        cause = f"exited with code {code}"
    first = f"{cause}: {last}" if code > 0 and last else cause
    return f"{first}\n{text}" if text and text != last else first


def _killed(number: int, *, is_memory_short: bool) -> str:
    if number == signal.SIGKILL and is_memory_short:
        return "killed by signal 9: maybe out of memory"
    try:
        name = signal.Signals(number).name
    except ValueError:  # A real-time signal.
        return f"killed by signal {number}"
    return f"killed by signal {number} ({name})"


def oom_kills() -> int:
    """Return how many processes this machine has killed for want of memory; 0 if unknown."""
    try:
        match = _OOM_KILLS.search(Path("/proc/vmstat").read_bytes())
    except OSError:
        return 0
    return int(match[1]) if match else 0
