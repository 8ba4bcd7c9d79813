"""The backlog: how much waits to be handed over; the task and the hand-over both use it."""

import threading
from collections.abc import Callable
from typing import Final

from gearpy.core.handover.handoff import Pressure
from gearpy.messages.summaries import ConsumerReport

_RATE_MS: Final = 10_000  #: A rate is one of about so long a time.


class Backlog:
    """Counts the rows that were committed and not handed over, and tells whether they are too many.

    Runs on: any thread.

    Invariant: rows shown after the last look count until the next one, so `is_empty` never comes
    too early.
    """

    def __init__(self, *, rows_max: int, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._changed = threading.Condition()
        self._pressure = Pressure(rows_max)
        self._looked_rows = 0  # Rows that waited at the last look ...
        self._new_rows = 0  # ... and rows shown since that look began.
        self._shown = 1  # Times; the first look is due.
        self._looking = self._looked = 0  # How many of these a look has covered.
        self._is_all = False
        self.is_closed = False
        self._batch_id = 0
        self._rows = 0
        self._rate = 0.0
        self._rated_ms = wall_ms()
        self._waiting_since_ms = 0
        self._trouble = ""

    # -- the task --------------------------------------------------------------------------

    def on_shown(self, rows: int) -> None:
        with self._changed:
            self._shown += 1
            self._new_rows += rows
            self._weigh()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    @property
    def has_room(self) -> bool:
        return not self._pressure.is_full

    @property
    def is_empty(self) -> bool:
        with self._changed:
            return self._is_all and self._looked == self._shown

    def report(self, name: str) -> ConsumerReport:
        with self._changed:
            return ConsumerReport(
                name=name,
                batch_id=self._batch_id,
                rows=self._rows,
                rows_per_s=round(self._rate, 1),
                waiting_rows=self._pressure.waiting_rows,
                waiting_since_ms=self._waiting_since_ms,
                trouble=self._trouble,
            )

    # -- the hand-over ---------------------------------------------------------------------

    @property
    def is_changed(self) -> bool:
        return self._looked != self._shown

    def on_looking(self) -> None:
        with self._changed:
            self._looking = self._shown
            self._new_rows = 0

    def on_looked(self, rows: int, *, is_all: bool) -> None:
        with self._changed:
            self._looked = self._looking
            self._looked_rows, self._is_all = rows, is_all
            self._weigh()

    def on_batch_id(self, batch_id: int) -> None:
        with self._changed:
            self._batch_id = batch_id

    def on_taken(self, batch_id: int, rows: int) -> None:
        """Note that a batch was handed over."""
        with self._changed:
            now_ms = self._wall_ms()
            self._batch_id, self._trouble = batch_id, ""
            self._rows += rows
            passed_ms = max(1, now_ms - self._rated_ms)
            weight = min(1.0, passed_ms / _RATE_MS)
            self._rate += (rows * 1000 / passed_ms - self._rate) * weight
            self._rated_ms = now_ms
            self._waiting_since_ms = 0  # Until it is weighed again.

    def on_trouble(self, what: str) -> None:
        with self._changed:
            self._trouble = what

    def wait_for_more(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._looked != self._shown)

    def wait_for_end(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, timeout=max(0.0, timeout_s))

    def _weigh(self) -> None:
        waiting = self._looked_rows + self._new_rows
        self._pressure.on_waiting(waiting)
        if not waiting:
            self._waiting_since_ms = 0
        elif not self._waiting_since_ms:
            self._waiting_since_ms = self._wall_ms()
