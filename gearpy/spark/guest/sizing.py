"""WorkerCount: how many workers a cluster inside Spark has, by what its applications need. Pure."""

import math
from collections.abc import Mapping
from typing import Final

from gearpy.ids import WorkerId

#: Slots must have been waited for so long: a worker that was lost is back sooner.
PATIENCE_MS: Final = 2000
#: A worker that was asked to end and is still there after so long counts again.
_LEAVES_MS: Final = 60_000


class WorkerCount:
    """Decides how many workers there shall be, and which of them may end.

    Slots that applications wait for bring more workers, as many as have room for them, once those
    asked for before are there. A worker on which nothing has run for a while ends, unless slots
    are waited for. Workers that Spark has no room for are asked for until nobody needs them.

    Invariant: ``wanted`` is between ``at_least`` and ``at_most``.

    Args:
        idle_ms: a worker on which nothing runs for so long may end.
    """

    def __init__(self, at_least: int, at_most: int, *, slots: int, idle_ms: int) -> None:
        self._at_least, self._at_most = at_least, at_most
        self.slots, self._idle_ms = slots, idle_ms
        self.wanted = at_least  #: How many workers there shall be.
        self._idle_since: dict[WorkerId, int] = {}
        self._leaving_until: dict[WorkerId, int] = {}
        self._wanting_since: int | None = None
        self._content_since: int | None = None

    @property
    def is_fixed(self) -> bool:
        return self._at_least == self._at_most

    def on_look(self, running: Mapping[WorkerId, int], demand: int, now_ms: int) -> list[WorkerId]:
        """Take the running workers and the demand, decide ``wanted``; return the workers to drain.

        Args:
            running: how many executors run on each worker.
            demand: slots that applications wait for, and that more workers would bring.
            now_ms: of a clock that is never set.
        """
        self._leaving_until = {
            each: until_ms
            for each, until_ms in self._leaving_until.items()
            if each in running and now_ms < until_ms
        }
        self._idle_since = {
            each: self._idle_since.get(each, now_ms)
            for each, executors in running.items()
            if not executors
        }
        there = {each: its for each, its in running.items() if each not in self._leaving_until}

        self.wanted = min(self._at_most, max(self.wanted, len(there)))
        if demand > 0:
            self._content_since, self._idle_since = None, {}
            if self._wanting_since is None or len(there) < self.wanted:
                self._wanting_since = now_ms
            elif now_ms - self._wanting_since >= PATIENCE_MS:
                more = math.ceil(demand / self.slots)
                self.wanted = min(self._at_most, self.wanted + more)
                self._wanting_since = now_ms
            return []
        self._wanting_since = None
        if self._content_since is None:
            self._content_since = now_ms
        if now_ms - self._content_since >= self._idle_ms:
            self.wanted = max(self._at_least, len(there))  # Nobody needs those that never came.
        idle = [
            each
            for each in sorted(there, reverse=True)
            if now_ms - self._idle_since.get(each, now_ms) >= self._idle_ms
        ]
        drained = idle[: max(0, len(there) - self._at_least)]
        for each in drained:
            self._leaving_until[each] = now_ms + _LEAVES_MS
        self.wanted = max(self._at_least, self.wanted - len(drained))
        return drained
