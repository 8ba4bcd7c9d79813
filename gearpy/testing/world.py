"""Virtual time and chance: everything that will happen, in an order that a seed decides."""

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Final

_START_MS: Final = 1_000_000
_READINGS_PER_MS: Final = 8


class WorldTimer:
    """An act to come, unless it is cancelled; a `Cancellable`."""

    __slots__ = ("act", "is_cancelled")

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """Lets acts happen in the order of their time; among equals the seed decides.

    The same seed gives the same run, as long as nothing else is asked for time or chance.

    Args:
        seed: of ``rng``, which all that is in the world shares.
        start_ms: the time at the beginning.
        readings_per_ms: time goes on by a ms when tasks have looked at the clock so often.
    """

    def __init__(
        self, seed: int, *, start_ms: int = _START_MS, readings_per_ms: int = _READINGS_PER_MS
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self._random = self.rng.random
        self.now_ms = self._start_ms = start_ms
        self.events = 0
        self._readings = 0
        self._readings_per_ms = readings_per_ms
        self._heap: list[tuple[int, float, int, WorldTimer]] = []
        self._ids = count()

    @property
    def elapsed_ms(self) -> int:
        return self.now_ms - self._start_ms

    @property
    def next_ms(self) -> int | None:
        """The time of the next act; None if nothing will ever happen."""
        while self._heap and self._heap[0][3].is_cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def read_clock(self) -> int:
        """Return the time to a task; it passes with the work of tasks, too, so that turns end."""
        self._readings += 1
        if self._readings % self._readings_per_ms == 0:
            self.now_ms += 1
        return self.now_ms

    def later(self, delay_ms: int, act: Callable[[], object]) -> WorldTimer:
        return self.at(self.now_ms + delay_ms, act)

    def at(self, at_ms: int, act: Callable[[], object]) -> WorldTimer:
        """Plan an act for a time; for now, if that has passed."""
        timer = WorldTimer(act)
        due_ms = max(at_ms, self.now_ms)
        heapq.heappush(self._heap, (due_ms, self._random(), next(self._ids), timer))
        return timer

    def clear(self) -> None:
        self._heap.clear()

    def step(self) -> bool:
        heap = self._heap
        while heap:
            at_ms, _, _, timer = heapq.heappop(heap)
            if not timer.is_cancelled:
                self.now_ms = max(self.now_ms, at_ms)
                self.events += 1
                timer.act()
                return True
        return False

    def pass_until(self, until_ms: int) -> None:
        while (at_ms := self.next_ms) is not None and at_ms <= until_ms:
            self.step()
        self.now_ms = max(self.now_ms, until_ms)

    def run(self, until: Callable[[], bool], *, within_ms: int) -> bool:
        """Let acts happen until something holds; False when it does not within the time."""
        deadline_ms = self.now_ms + within_ms
        while not until():
            if self.now_ms > deadline_ms or not self.step():
                return until()
        return True
