"""Why a child process ended, in words."""

import re
import signal
from pathlib import Path
from typing import Final

#: Of standard error, kept to tell why a process ended. A traceback in our own log, which is left
#: out of what is told, may take half of it.
TAIL_BYTES: Final = 32 * 1024
_LAST_LINE_CHARS: Final = 300
_TEXT_CHARS: Final = 4096  # Causes travel in control messages, whose size has a limit.
_OOM_KILLS: Final = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
#: A line of gearpy's own log, as `logs.formatter` writes it; users' logs are worth telling.
_OWN_LOG: Final = re.compile(
    r'\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ gearpy\.|\{"time": "[^"]*", "level": "\w+", '
    r'"logger": "gearpy\.'
)


def exit_cause(code: int, tail: bytes, *, is_memory_short: bool = False) -> str:
    """Return why a process ended that nobody had asked to.

    Args:
        code: its exit code, or the negative number of the signal that killed it.
        tail: the end of its standard error, `TAIL_BYTES` at most; what fits a line follows in
            the first line, all of it below. Log lines of gearpy itself say nothing new.
        is_memory_short: the system has killed processes for want of memory meanwhile.
    """
    text = _last_words(tail)
    last = text.rpartition("\n")[2].strip()[:_LAST_LINE_CHARS]
    if code < 0:
        cause = _killed(-code, is_memory_short=is_memory_short)
    elif code == 0:
        cause = "exited with code 0 before it was asked to"
    else:
        cause = f"exited with code {code}"
    first = f"{cause}: {last}" if code > 0 and last else cause
    return f"{first}\n{text}" if text and text != last else first


def _last_words(tail: bytes) -> str:
    lines = tail.decode("utf-8", "replace").splitlines()
    if len(tail) >= TAIL_BYTES and len(lines) > 1:
        del lines[0]  # Its beginning is lost.
    text = "\n".join(line for line in lines if not _OWN_LOG.match(line)).strip()
    if len(text) <= _TEXT_CHARS:
        return text
    end = text[-_TEXT_CHARS:]
    whole = end.partition("\n")[2]
    return whole if len(whole) > _TEXT_CHARS // 2 else end  # One line may be very long.


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
