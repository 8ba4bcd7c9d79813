"""Feeds a task with records and event time, and with its key timers between them."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.late_time import late_places, promise_of
from gearpy.state.kinds.timers import KeyTimer
from gearpy.task.api.failure import ProgramFailure, outputs_of
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.task.api.keyed import KeyedTask
from gearpy.task.chain.event_gate import EventGate, OrderedOutput, late_message, marked_late
from gearpy.task.runtime.driving import Job, driver_of
from gearpy.task.runtime.info import TaskInfo

#: Key timers of which a task is told until others may go on, as they need not put anything out.
_TIMERS_AT_ONCE: Final = 1 << 9


class TaskFeed:
    """Gives a task its records, in the order of event time where it asks for that.

    Args:
        task: has started.
        keyed: its keyed state, whose timers come between the records.
        buffer: its output; emptied by its owner whenever a job is left.
        limit: records in the buffer at which a job is left.
    """

    def __init__(
        self,
        task: Task,
        info: TaskInfo,
        context: TaskContext,
        keyed: KeyedTask,
        buffer: list[Message],
        *,
        limit: int,
    ) -> None:
        self._task = task
        self._context = context
        self._keyed = keyed
        self._buffer = buffer
        self._limit = limit
        self._gate: EventGate | None = None  # Where records are to come by event time.
        self._has_timers_between = False  # The task takes batches, but key timers come between.
        self._counts_taken = not info.edges and not task.counts_output
        self._counters = context.counters
        self._drive = driver_of(
            task,
            buffer,
            limit=limit,
            operator=info.operator,
            rejects=context.rejects,
            on_next=self._on_next(info),
        )

    def _on_next(self, info: TaskInfo) -> Callable[[Message], Any]:
        """Return the function to call with each record, which from now on may have to wait."""
        task, keyed = self._task, self._keyed
        if not (info.ordered and task.aligned):
            return keyed.keyed(task.on_next, info.key)
        self._gate = EventGate(self._context, info.key, waits="all")
        self._gate.restore(0, info.operator)
        self._has_timers_between = type(task).on_batch is not Task.on_batch
        self._context.state.goes_by_records()
        assert isinstance(self._buffer, OrderedOutput)
        return keyed.in_order(task.on_next, task.on_key_timer, info.key, self._buffer.reach)

    def records(self, batch: Batch, watermark_ms: int) -> Job:
        """Hand over records that came, now or when event time has passed them."""
        self._counters.records_in += len(batch.values)
        if self._gate is None:
            yield from self._driven(batch)
            return
        values, timestamps = self._gate.take(batch.values, batch.timestamps)
        if values:
            yield from self._driven(Batch(values, timestamps))
        if len(self._gate):
            yield from self._driven_in_order(self._gate, watermark_ms)

    def advance(self, watermark_ms: int) -> Job:
        """Hand over all that waited for event time: records, timers, and the watermark itself."""
        if self._gate is not None and len(self._gate):
            yield from self._driven_in_order(self._gate, watermark_ms)
        if not self._task.keeps_state_until_told:
            yield from self.fire(self._keyed.advance(watermark_ms))
        outputs = self._task.on_watermark(watermark_ms)
        if outputs is not None:
            yield from outputs
        if self._task.keeps_state_until_told:
            yield from self.fire(self._keyed.advance(watermark_ms))

    def fire(self, timers: Iterator[KeyTimer]) -> Job:
        for number, timer in enumerate(timers, 1):
            yield from self.put_out(self._task.on_key_timer(timer), "on_key_timer")
            if number % _TIMERS_AT_ONCE == 0:
                yield None

    def put_out(self, returned: Any, method: str) -> Job:
        """Put out the messages that a method of the task gave back."""
        try:
            messages = outputs_of(returned, method)
        except ProgramFailure as failure:
            raise failure.error from None
        for message in messages:
            self._buffer.append(message)
            if len(self._buffer) >= self._limit:
                yield None

    def tell(self) -> None:
        if self._gate is not None:
            self._gate.tell()

    @property
    def oldest_ms(self) -> int:
        return MAX_MS if self._gate is None else self._gate.first_ms

    def _driven_in_order(self, gate: EventGate, watermark_ms: int) -> Job:
        """Hand over the records that event time has passed, key timers between them."""
        for at_ms, values, timestamps in gate.due(watermark_ms):
            if at_ms == MIN_MS:
                yield from self._driven(Batch(values, timestamps))
                continue
            self._keyed.reach(at_ms)
            yield from self._driven(Batch(values, timestamps))
            self._keyed.reach(None)

    def _driven(self, batch: Batch) -> Job:
        counters = self._counters
        before = counters.skipped_records + counters.quarantined_records
        if self._has_timers_between:
            assert isinstance(self._buffer, OrderedOutput)
            for message in batch.messages():
                yield from self.fire(self._keyed.until(message))
                self._keyed.enter(message)
                yield from self._buffer.marked(self._drive(Batch.of(message)))
        elif self._gate is None and self._context.sees_late and not self._task.marks_late:
            yield from self._driven_apart(batch)
        else:
            yield from self._drive(batch)
        if self._counts_taken:
            dropped = counters.skipped_records + counters.quarantined_records - before
            counters.records_out += len(batch.values) - dropped

    def _driven_apart(self, batch: Batch) -> Job:
        """Hand over late records one by one, so that what follows from each is late as it is."""
        values, times, start = batch.values, batch.timestamps, 0
        for at in late_places(times):
            if start < at:
                yield from self._drive(Batch(values[start:at], times[start:at]))
            late = Batch([values[at]], [times[at]])
            yield from self._marked(self._drive(late), promise_of(times[at]))
            start = at + 1
        if start < len(values):
            yield from self._drive(Batch(values[start:], times[start:]))

    def _marked(self, job: Job, promised_ms: int) -> Job:
        buffer, seen = self._buffer, len(self._buffer)
        for output in chain(job, [None]):
            buffer[seen:] = [late_message(message, promised_ms) for message in buffer[seen:]]
            if output is not None:
                output.timestamps = marked_late(output.timestamps, promised_ms)
            yield output
            seen = len(buffer)
