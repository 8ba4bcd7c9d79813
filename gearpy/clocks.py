"""The two clocks of a machine, in ms. What decides is given the time, and imports neither."""

import time
from typing import Final

_NS_PER_MS: Final = 1_000_000


def wall_ms() -> int:
    """Return the wall time in ms since the epoch."""
    return time.time_ns() // _NS_PER_MS


def monotonic_ms() -> int:
    """Return a time in ms that never goes backwards."""
    return time.monotonic_ns() // _NS_PER_MS
