"""Measures the process at hand: memory, CPU, garbage collections, threads, files."""

import gc
import os
import threading
import time
from functools import cache
from typing import Any, Final

from gearpy.clocks import wall_ms
from gearpy.messages.metrics import ProcessSample

_PROC: Final = "/proc/self"


class ProcessMeter:
    """Measures this process; counts the pauses of its garbage collections from here on.

    Runs on: any thread.
    """

    def __init__(
        self,
    ) -> None:
        self._started_ms = wall_ms() - int(_age_s() * 1000)
        self._began_s: float | None = None
        self._pause_s = 0.0
        self._collections = 0
        self._unknown_messages = 0

    def count_unknown_message(self) -> None:
        self._unknown_messages += 1

    def on_gc(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._began_s = time.perf_counter()
        elif self._began_s is not None:
            self._pause_s += time.perf_counter() - self._began_s
            self._began_s = None
            self._collections += 1

    def sample(self) -> ProcessSample:
        times = os.times()
        return ProcessSample(
            pid=os.getpid(),
            started_ms=self._started_ms,
            rss_bytes=_rss_bytes(),
            cpu_s=times.user + times.system,
            gc_collections=self._collections,
            gc_pause_s=self._pause_s,
            threads=threading.active_count(),
            open_files=_open_files(),
            unknown_messages=self._unknown_messages,
        )


@cache
def process_meter() -> ProcessMeter:
    meter = ProcessMeter()
    gc.callbacks.append(meter.on_gc)
    return meter


def _rss_bytes() -> int:
    try:
        with open(f"{_PROC}/statm", encoding="ascii") as file:  # noqa: PTH123 - of the kernel
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return -1  # There is no /proc, as on macOS.


def _open_files() -> int:
    try:
        return len(os.listdir(f"{_PROC}/fd")) - 1  # noqa: PTH208 - only the number; one is ours
    except OSError:
        return -1


def _age_s() -> float:
    """Return for how long the process has run; 0 where that is not known."""
    try:
        with open(f"{_PROC}/stat", encoding="utf-8") as file:  # noqa: PTH123 - of the kernel
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
