"""Calls of slow functions: how many at once, how long, and how many retries."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from random import Random


class CallLimits(Struct, frozen=True, kw_only=True):
    """The limits of calls.

    Attributes:
        timeout_ms: of each attempt; None: as long as it takes.
        retries: attempts after the first one that failed.
        backoff_ms: before the first retry; twice as long before each further one, ...
        backoff_max_ms: ... up to this. All are spread by half of themselves, up and down.
    """

    concurrency: int = 100
    timeout_ms: int | None = 30_000
    retries: int = 0
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000

    def __post_init__(self) -> None:
        mistakes = [
            f"{name} is {value!r}, must be {what}"
            for name, value, least, what in (
                ("concurrency", self.concurrency, 1, "at least 1"),
                ("timeout", 1 if self.timeout_ms is None else self.timeout_ms, 1, "1 ms or more"),
                ("retries", self.retries, 0, "0 or more"),
                ("backoff_ms", self.backoff_ms, 0, "0 or more"),
                ("backoff_max_ms", self.backoff_max_ms, self.backoff_ms, "backoff_ms or more"),
            )
            if type(value) is not int or value < least
        ]
        if mistakes:
            raise ConfigError(*mistakes)


class Attempts:
    """Says which call begins next, which takes too long, and which is made again.

    A call that waits to be made again is not counted as one that runs, so others run meanwhile.

    Invariant: no more than ``concurrency`` run at any time; each call is begun at least once and
    at most ``1 + retries`` times, and is over once.
    """

    def __init__(self, limits: CallLimits, rng: "Random") -> None:
        self._limits = limits
        self._rng = rng
        self._waiting: deque[tuple[int, Any]] = deque()  # Number and what the call gets.
        self._running: OrderedDict[int, tuple[Any, int]] = OrderedDict()  # The oldest comes first.
        self._again: list[tuple[int, int, Any]] = []  # Heap: when, number, what it gets.
        self._failed: dict[int, int] = {}  # How often, by number.

    def add(self, calls: Sequence[tuple[int, Any]]) -> None:
        self._waiting.extend(calls)

    def begin(self, now_ms: int) -> tuple[int, Any] | None:
        if not self._waiting or len(self._running) >= self._limits.concurrency:
            return None
        call = self._waiting.popleft()
        timeout_ms = self._limits.timeout_ms
        self._running[call[0]] = (call[1], 0 if timeout_ms is None else now_ms + timeout_ms)
        return call

    def succeed(self, number: int) -> None:
        del self._running[number]
        if self._failed:
            self._failed.pop(number, None)

    def fail(self, number: int, now_ms: int) -> bool:
        """Learn that a call has failed; return whether it is over. If not, it is made again."""
        value, _ = self._running.pop(number)
        failed = self._failed[number] = self._failed.get(number, 0) + 1
        if failed > self._limits.retries:
            del self._failed[number]
            return True
        limits = self._limits
        # The exponent has a limit too: nobody waits for the power of a million.
        pause_ms: int = min(limits.backoff_ms * 2 ** min(failed - 1, 62), limits.backoff_max_ms)
        spread = 0.5 + self._rng.random()
        heappush(
            self._again,
            (now_ms + min(round(pause_ms * spread), limits.backoff_max_ms), number, value),
        )
        return False

    def overdue(self, now_ms: int) -> list[int]:
        found = []
        if self._limits.timeout_ms is not None:
            for number, (_, deadline_ms) in self._running.items():
                if deadline_ms > now_ms:
                    break
                found.append(number)
        return found

    def wake(self, now_ms: int) -> None:
        while self._again and self._again[0][0] <= now_ms:
            _, number, value = heappop(self._again)
            self._waiting.append((number, value))

    @property
    def can_begin(self) -> bool:
        return bool(self._waiting) and len(self._running) < self._limits.concurrency

    @property
    def wake_ms(self) -> int | None:
        times = [self._again[0][0]] if self._again else []
        if self._running and self._limits.timeout_ms is not None:
            times.append(next(iter(self._running.values()))[1])
        return min(times, default=None)
