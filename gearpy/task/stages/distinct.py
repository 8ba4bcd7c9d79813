"""The stage that lets the first record of each key pass."""

from collections.abc import Iterator
from typing import Any

from gearpy.ids import MAX_MS
from gearpy.task.aggregates.fold import KeyFunction
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.output import Columns
from gearpy.task.chain.step_state import step_state


class DistinctStage:
    """Passes a record on if there was none of its key before, or none near it in event time.

    Of each key the event time of the newest record that has passed is kept: for good, or until the
    watermark is ``within_ms`` past it. So one that is later than that may pass again.

    Invariant: a record that passes is at least ``within_ms`` away from the time kept for its key.

    Args:
        context: has the state.
        name: for people; the state is found without it.
        key: gives the key of a record; the records must come by it.
        within_ms: None for good.
    """

    hold_ms = MAX_MS
    place = 0

    def __init__(
        self, context: TaskContext, name: str, key: KeyFunction, within_ms: int | None = None
    ) -> None:
        self.name = name
        self._rejects = context.rejects
        self._key = key
        self._within_ms = MAX_MS if within_ms is None else within_ms
        self._context = context
        self._ttl_ms = within_ms

    def process(self, values: list[Any], timestamps: list[int]) -> Iterator[Columns]:
        """Yield the records that are the first of their key."""
        out: list[Any] = []
        times: list[int] = []
        for record, time in zip(values, timestamps, strict=True):
            try:
                if self._is_first(record, time):
                    out.append(record)
                    times.append(time)
            except USER_ERRORS as error:
                blamed = operator_error(self.name, error, record=record, event_time_ms=time)
                self._rejects.take(record, time, blamed, place=self.place)
        if out:
            yield out, times

    def on_watermark(self, watermark_ms: int) -> Iterator[Columns]:
        """Nothing waits."""
        return iter(())

    def snapshot(self) -> None:
        """Keep nothing here: the keyed state is stored by itself."""

    def restore(self, state: Any) -> None:
        """Find keyed state."""
        self._state = step_state(self._context, "distinct", self.place)
        self._passed = self._state.value("passed", ttl=self._ttl_ms)

    def close(self, *, completed: bool) -> None:
        """Nothing to release."""

    def _is_first(self, record: Any, time: int) -> bool:
        self._state.key = self._key(record)
        self._state.time_ms = time
        passed = self._passed.get()
        if passed is not None and abs(time - passed) < self._within_ms:
            return False
        self._passed.set(time if passed is None else max(time, passed))
        return True
