"""Keys of the hand-off to Spark; see `schema` for the others."""

from dataclasses import dataclass
from typing import Final

from gearpy.config.setting import setting

__all__ = ["SparkConfig"]

_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConfig:
    """How finished windows are handed to a function that runs on Spark."""

    batch_max_rows: int = setting(
        "batch-max-rows",
        1_000_000,
        "rows",
        "One call of the function gets no more, unless what one epoch has brought is more already.",
        high=1_000_000_000,
    )
    in_memory_max_rows: int = setting(
        "in-memory-max-rows",
        50_000,
        "rows",
        "So many rows go to Spark through its connection; more are read by Spark from files, which "
        "it must be able to see.",
        low=0,
        high=10_000_000,
    )
    waiting_max_rows: int = setting(
        "waiting-max-rows",
        5_000_000,
        "rows",
        "When so many finished rows wait for the function, the stream waits too, until there are "
        "half as many.",
        high=1_000_000_000_000,
    )
    call_attempts: int = setting(
        "call-attempts",
        5,
        "calls",
        "When the function raises it is called again with the same rows, so often in all; then the "
        "sink fails.",
        high=1_000_000,
    )
    pause_ms: int = setting(
        "pause-ms",
        500,
        "ms",
        "Wait before the first call that is a repetition, or before Spark is looked for again; "
        "twice as long after each further failure.",
        low=1,
        high=_DAY_MS,
    )
    pause_max_ms: int = setting(
        "pause-max-ms",
        30_000,
        "ms",
        "These waits grow no longer than that.",
        low=1,
        high=_DAY_MS,
    )
    outage_max_ms: int = setting(
        "outage-max-ms",
        600_000,
        "ms",
        "Spark may be away, or end in each call, for so long; then the sink fails.",
        high=_DAY_MS,
    )
    call_max_ms: int = setting(
        "call-max-ms",
        3_600_000,
        "ms",
        "A call that takes longer counts as stuck, and the sink fails; 0 for no limit.",
        low=0,
        high=_DAY_MS,
    )
