"""Decides when a region ends an epoch, and at which event time, if its sources agree on one."""

from typing import Final, Literal, TypeAlias

from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.app import TaskClock

#: A pause is this part of what is owed, so that one slow epoch holds up results for a while only.
_SPREAD: Final = 8
_WHOLE: Final = 100  # Percent.


class EpochPace:
    """Decides when the next epoch may begin to end, from what storing the last ones took.

    That is an interval after the one before, or later, so that epochs take at most so many percent
    of all time in the long run. Gearpump takes an interval, whatever storing costs.

    Invariant: between two epochs that are complete lies at least the interval.
    """

    def __init__(self, *, interval_ms: int, max_overhead_percent: int) -> None:
        assert 1 <= max_overhead_percent <= _WHOLE, max_overhead_percent
        self._interval_ms = interval_ms
        self._max_overhead_percent = max_overhead_percent
        self.last_took_ms = 0  #: From the cut of the last epoch until it was stored.
        self._done_ms = 0  # When it was complete.
        self._owed_ms = 0  # Pauses that there have not been yet.

    def first_ms(self, now_ms: int) -> int:
        return now_ms + self._interval_ms

    def on_complete(self, *, began_ms: int, now_ms: int, storing_ms: int) -> int:
        """Note the duration of an epoch; return when the next one may begin to end.

        An epoch waits for the records before it, too. That is no work: only storing counts.
        """
        self.last_took_ms, percent = now_ms - began_ms, self._max_overhead_percent
        paused_ms, self._done_ms = now_ms - storing_ms - self._done_ms, now_ms
        asked_ms = -(-storing_ms * (_WHOLE - percent) // percent)
        self._owed_ms = max(0, self._owed_ms - paused_ms) + asked_ms
        return max(began_ms + self._interval_ms, now_ms + -(-self._owed_ms // _SPREAD))


EpochCut: TypeAlias = Literal["position", "event-time"]

#: The lead is halved after so many epochs for which it was enough.
_MET_UNTIL_LESS: Final = 8
_LEAD_FACTOR_MAX: Final = 1 << 16
#: After an epoch that was given up, so many at most end by position before another event time.
_POSITIONS_MAX: Final = 1024


class CutTimes:
    """Chooses cut times for the sources of one region, ahead of all that was read.

    The *lead* is the event time between two reports, doubled when that was not enough, up to a
    multiple of an interval longer than any disorder. Gearpump: `CheckpointManager`, where each task
    chooses for itself, so that an idle one holds up all.

    Invariant: cut times rise, and each is later than every event time that was reported.
    """

    def __init__(self, *, newest_ms: int = MIN_MS) -> None:
        self._last_ms = newest_ms
        self._newest: dict[TaskId, int] = {}
        self._span: dict[TaskId, int] = {}
        self._seen_ms = MIN_MS  # The newest event time when the last epoch began to end.
        self._advance_ms = 0
        self._lead_factor = 2
        self._met = 0
        self._positions = 0  # So many epochs in a row after one that was given up.
        self._positions_left = 0

    def on_restart(self) -> None:
        self._newest, self._span = {}, {}
        self._seen_ms = MIN_MS

    def on_clock(self, clock: TaskClock) -> None:
        if clock.newest_ms == MIN_MS:
            return
        before_ms = self._newest.get(clock.task_id, clock.newest_ms)
        self._newest[clock.task_id] = max(before_ms, clock.newest_ms)
        self._span[clock.task_id] = clock.span_ms
        self._advance_ms = max(self._advance_ms, clock.newest_ms - before_ms)

    def next_ms(self) -> int | None:
        """Return the event time at which the next epoch ends; None: sources end it where they are.

        That is so when nothing newer was read since the last epoch: where time stands still, no
        source would ever come to a later one.
        """
        newest_ms = max(self._newest.values(), default=MIN_MS)
        is_new, self._seen_ms = newest_ms > self._seen_ms, newest_ms
        if self._positions_left:
            self._positions_left -= 1
            return None
        if not is_new:
            return None
        lead_ms = max(1, self._advance_ms) * self._lead_factor
        self._advance_ms //= 2  # Recent progress counts more than old progress.
        # A power of two: a multiple of a longer interval is one of all shorter ones.
        interval_ms = 1 << max(self._span.values(), default=0).bit_length()
        cut_time_ms = (max(newest_ms + lead_ms, self._last_ms) // interval_ms + 1) * interval_ms
        if cut_time_ms >= MAX_MS:
            return None
        self._last_ms = cut_time_ms
        return cut_time_ms

    def on_complete(self, *, has_missed: bool) -> None:
        """Learn whether a cut time was early enough for all sources."""
        self._positions = 0
        self._met = 0 if has_missed else self._met + 1
        if has_missed:
            self._lead_factor = min(2 * self._lead_factor, _LEAD_FACTOR_MAX)
        elif self._met >= _MET_UNTIL_LESS:
            self._met, self._lead_factor = 0, max(1, self._lead_factor // 2)

    def on_aborted(self) -> None:
        """Note that sources have not reached a cut time.

        One wrong record of the far future is enough for that. The next epochs end by position, more
        of them each time, so that there is something to go back to.
        """
        self._positions = min(max(1, 2 * self._positions), _POSITIONS_MAX)
        self._positions_left = self._positions
