"""How often a region ends an epoch: often enough for restarts, seldom enough for the work."""

from typing import Final, Literal, TypeAlias

PacePolicy: TypeAlias = Literal["fixed", "max-overhead", "max-replay"]

#: What storing takes is believed at once when it rises, and by this part of it when it falls.
_FALL: Final = 4
_WHOLE: Final = 100  # Percent.


class EpochPace:
    """Decides when the next epoch may begin to end, from the time it took to store the last ones.

    ``fixed``: an interval after the one before. ``max-overhead``: later if the time in which epochs
    are stored would be more than so many percent of all time. ``max-replay``: as late as it can be
    while a restart at the worst moment, just before the next epoch is stored, repeats no more than
    so much work. Gearpump takes an interval, whatever storing costs.

    Invariant: between two epochs that are complete lies at least the interval.
    """

    def __init__(
        self,
        *,
        policy: PacePolicy,
        interval_ms: int,
        max_overhead_percent: int,
        max_replay_ms: int,
    ) -> None:
        assert 1 <= max_overhead_percent <= _WHOLE, max_overhead_percent
        self._policy: PacePolicy = policy
        self._interval_ms = interval_ms
        self._max_overhead_percent = max_overhead_percent
        self._max_replay_ms = max_replay_ms
        self._took_ms = 0
        self.last_took_ms = 0  #: To store the last epoch.

    def first_ms(self, now_ms: int) -> int:
        """Return when the first epoch of an attempt may begin to end that runs from now on."""
        return now_ms + self._wait_ms()

    def on_complete(self, *, began_ms: int, now_ms: int) -> int:
        """Note the duration of an epoch; return when the next one may begin to end."""
        self.last_took_ms = took_ms = now_ms - began_ms
        self._took_ms = max(took_ms, self._took_ms - (self._took_ms - took_ms) // _FALL)
        return max(began_ms + self._wait_ms(), now_ms + self._pause_ms(took_ms))

    def _wait_ms(self) -> int:
        """Return the time from one beginning to the next."""
        if self._policy != "max-replay":
            return self._interval_ms
        return max(self._interval_ms, self._max_replay_ms - self._took_ms)

    def _pause_ms(self, took_ms: int) -> int:
        """Return the pause in which no epoch may be stored, after storing took this long."""
        if self._policy != "max-overhead":
            return 0
        percent = self._max_overhead_percent
        return -(-took_ms * (_WHOLE - percent) // percent)
