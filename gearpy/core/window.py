"""Windows over event time. A window is ``[start_ms, end_ms)``.

Gearpump: `Windows`, `WindowFunction`. It fires once the watermark has reached its end.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from gearpy.core.times import duration_ms
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS

__all__ = ["GlobalWindows", "TumblingWindows", "WindowAssigner", "global_window", "tumbling"]


class WindowAssigner(Protocol):
    """Says which window a record belongs to."""

    def start_of(self, timestamp_ms: int) -> int:
        """Return the start of the window that holds this event time."""
        ...

    def end_of(self, start_ms: int) -> int:
        """Return the end of the window that starts at ``start_ms``."""
        ...


@dataclass(frozen=True, slots=True)
class TumblingWindows:
    """Windows of one size, side by side. Gearpump: `FixedWindows`.

    ``offset_ms`` moves their boundaries away from the epoch. Right for negative times, too.
    The last window ends with time itself, so that it closes, too.
    """

    size_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise ConfigError(f"window size is {self.size_ms} ms, must be more than 0")

    def start_of(self, timestamp_ms: int) -> int:
        """Return the start of the window that holds this event time."""
        return timestamp_ms - (timestamp_ms - self.offset_ms) % self.size_ms

    def end_of(self, start_ms: int) -> int:
        """Return the end of the window that starts at ``start_ms``."""
        return min(start_ms + self.size_ms, MAX_MS)


@dataclass(frozen=True, slots=True)
class GlobalWindows:
    """One window over everything; it closes when the stream ends. Gearpump: `GlobalWindows`."""

    def start_of(self, timestamp_ms: int) -> int:
        """Return the start of time."""
        return MIN_MS

    def end_of(self, start_ms: int) -> int:
        """Return the end of time."""
        return MAX_MS


def tumbling(size: str | timedelta | int, *, offset: str | timedelta | int = 0) -> TumblingWindows:
    """Return windows of one size, side by side: ``tumbling("10s")``; a number is in ms.

    Raises:
        ConfigError: not a duration, or no more than 0.
    """
    return TumblingWindows(duration_ms(size), duration_ms(offset))


def global_window() -> GlobalWindows:
    """Return the one window over everything; it closes when the stream ends."""
    return GlobalWindows()
