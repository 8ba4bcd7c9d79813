"""Workers that are lost again and again: put aside, and let back when they stay."""

from collections import deque
from typing import Final

from gearpy.ids import WorkerId

#: A worker that was lost more often within this time is put aside ...
_LOSSES_MAX: Final = 5
_WINDOW_MS: Final = 300_000
#: ... until it has stayed for so long.
STAY_MS: Final = 30_000


class WorkerFlaps:
    """Knows which workers get nothing new for a while, as each that comes and goes costs restarts.

    A worker is known by its home: the next process there has another id.

    Invariant: no more than half of the workers are put aside, and none for longer than it takes to
    stay.
    """

    def __init__(self) -> None:
        self._homes: dict[WorkerId, str] = {}  # All that are there; empty if not known.
        self._losses: dict[str, deque[int]] = {}
        self._aside: dict[WorkerId, int] = {}

    def on_worker(self, worker_id: WorkerId, home: str, now_ms: int) -> bool:
        is_new = worker_id not in self._homes
        self._homes[worker_id] = home
        losses = [each for each in self._losses.get(home, ()) if each > now_ms - _WINDOW_MS]
        is_flapping = is_new and len(losses) > _LOSSES_MAX
        if is_flapping and 2 * (len(self._aside) + 1) <= len(self._homes):
            self._aside[worker_id] = now_ms + STAY_MS
        return worker_id in self._aside

    def on_leaving(self, worker_id: WorkerId) -> None:
        if worker_id in self._homes:
            self._homes[worker_id] = ""

    def on_lost(self, worker_id: WorkerId, now_ms: int) -> None:
        self._aside.pop(worker_id, None)
        home = self._homes.pop(worker_id, "")
        if home:
            self._losses.setdefault(home, deque(maxlen=_LOSSES_MAX + 1)).append(now_ms)
        oldest_ms = now_ms - _WINDOW_MS
        self._losses = {each: at for each, at in self._losses.items() if at[-1] > oldest_ms}

    def until_ms(self, worker_id: WorkerId) -> int | None:
        return self._aside.get(worker_id)

    @property
    def next_due_ms(self) -> int | None:
        return min(self._aside.values(), default=None)

    def on_tick(self, now_ms: int) -> list[WorkerId]:
        back = [each for each, until_ms in self._aside.items() if until_ms <= now_ms]
        for worker_id in back:
            del self._aside[worker_id]
        return back
