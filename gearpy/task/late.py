"""Late records of a source: older than what their own partition had promised before them.

Whether a record is late depends on the records before it in its partition and on nothing else,
least of all on how many are read at a time. So a replay finds the same ones again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from operator import le
from typing import Any, Final, Literal, TypeAlias

from gearpy.errors import ConfigError
from gearpy.task.counters import TaskCounters
from gearpy.task.sides import Side

__all__ = [
    "LATE",
    "SOURCE_LATE",
    "WINDOW_LATE",
    "LateRecords",
    "Portion",
    "SourceLate",
    "WindowLate",
    "check_late",
]

SourceLate: TypeAlias = Literal["keep", "drop", "restamp", "side"]
WindowLate: TypeAlias = Literal["drop", "restamp", "side"]

SOURCE_LATE: Final[tuple[SourceLate, ...]] = ("keep", "drop", "restamp", "side")
WINDOW_LATE: Final[tuple[WindowLate, ...]] = ("drop", "restamp", "side")
#: What plans and messages call the side output for late records.
LATE: Final = "late"


@dataclass(frozen=True, slots=True)
class Portion:
    """Some records of one partition in their order, and what it promised around them.

    Attributes:
        before_ms: promised before the first one: no record is older, late ones excepted.
        after_ms: promised behind the last one.
        out_of_order_ms: the promise is the newest event time less this. None: it has moved at
            the end, so far as anybody knows.
    """

    values: list[Any]
    timestamps: list[int]
    before_ms: int
    after_ms: int
    out_of_order_ms: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_in_order(self) -> bool:
        """Whether no record is older than the one before it, or than the promise; none is late."""
        times = self.timestamps
        return times[0] >= self.before_ms and all(map(le, times, islice(times, 1, None)))

    def promised(self) -> Sequence[int]:
        """Return what was promised before each record; never falls."""
        bound_ms = self.out_of_order_ms
        if bound_ms is None or self.after_ms <= self.before_ms:
            return [self.before_ms] * len(self.values)
        newest = accumulate(self.timestamps[:-1], max, initial=self.before_ms + bound_ms)
        return [time_ms - bound_ms for time_ms in newest]


class LateRecords:
    """Finds late records, counts them, and does with them as a policy says.

    Args:
        policy: "keep" lets them pass, and does not count them, since windows will; "drop" leaves
            them out; "restamp" gives them the time that was promised; "side" wraps them for a
            side output.
        counters: of the task.
        tag: of the side output.
    """

    def __init__(self, policy: SourceLate, counters: TaskCounters, tag: str = LATE) -> None:
        self._policy = policy
        self._counters = counters
        self._tag = tag

    @property
    def sets_aside(self) -> bool:
        """Whether what `judge` returns may have records of the side output."""
        return self._policy == "side"

    def judge(self, portion: Portion) -> Portion:
        """Return the portion as it goes on; may be empty."""
        if self._policy == "keep" or portion.is_in_order:
            return portion
        promised = portion.promised()
        pairs = zip(portion.timestamps, promised, strict=True)
        late = [at for at, (time_ms, least_ms) in enumerate(pairs) if time_ms < least_ms]
        if not late:
            return portion
        self._counters.late_records += len(late)
        return (
            self._without(portion, late)
            if self._policy == "drop"
            else self._changed(portion, late, promised)
        )

    def _without(self, portion: Portion, late: list[int]) -> Portion:
        dropped = set(late)
        kept = [at for at in range(len(portion)) if at not in dropped]
        return replace(
            portion,
            values=[portion.values[at] for at in kept],
            timestamps=[portion.timestamps[at] for at in kept],
        )

    def _changed(self, portion: Portion, late: list[int], promised: Sequence[int]) -> Portion:
        values, timestamps = list(portion.values), list(portion.timestamps)
        for at in late:
            if self._policy == "side":
                values[at] = Side(self._tag, values[at])
            else:
                timestamps[at] = promised[at]
        return replace(portion, values=values, timestamps=timestamps)


def check_late(policy: str, allowed: Sequence[str]) -> None:
    """Refuse a policy for late records that is none.

    Raises:
        ConfigError: it is none of those allowed.
    """
    if policy not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ConfigError(f"late={policy!r} is unknown: use one of {names}")
