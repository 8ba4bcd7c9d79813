"""Feeds a task with records and event time, past bad records if that is the policy.

Its key timers come between them. What it gives back is checked here, too.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NoReturn, TypeAlias

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.messages.late_time import check_times, late_places, promise_of
from gearpy.messages.table import Table, Times
from gearpy.state.kinds.timers import KeyTimer
from gearpy.task.api.failure import (
    USER_ERRORS,
    ProgramFailure,
    complete,
    operator_error,
    outputs_of,
)
from gearpy.task.api.interfaces import Task, TaskContext
from gearpy.task.api.keyed import KeyedTask
from gearpy.task.api.rejects import Rejects
from gearpy.task.chain.event_gate import EventGate, OrderedOutput, late_message, marked_late
from gearpy.task.runtime.info import TaskInfo

#: Work that can be left and taken up again: at a batch to send, or None when enough was put out.
Job: TypeAlias = Iterator[Batch | None]

_NO_TIMERS: Final = (
    "a task with keeps_times = True and on_batch gets several records at once, between which no "
    "timer on event time could fire: set keeps_times = False, or override on_next"
)

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
        self._kept = 0  # Output before that of the record at hand.
        self._has_timers_between = False  # The task takes batches, but key timers come between.
        self._takes_whole = False  # It sets none, so several records may be in such a batch.
        self._counts_taken = not info.edges and not task.counts_output
        self._counters = context.counters
        self._operator = info.operator
        self._rejects = context.rejects
        self._on_next = self._opened(info)
        takes_batches = type(task).on_batch is not Task.on_batch
        by_message = self._patiently if context.rejects.may_go_on else self._by_message
        #: Makes a job of a batch.
        self._drive: Callable[[Batch], Job] = self._by_batch if takes_batches else by_message
        # A task that looks after late records itself, counts what it puts out, and has no timers
        # between its records, gets each batch as it is.
        is_plain = task.marks_late and not self._counts_taken and self._gate is None
        self._driven = self._drive if is_plain else self._driven_with_care

    def _opened(self, info: TaskInfo) -> Callable[[Message], Any]:
        """Return the function to call with each record, which from now on may have to wait."""
        task, keyed = self._task, self._keyed
        if not (info.ordered and task.aligned):
            return keyed.keyed(task.on_next, info.key)
        self._gate = EventGate(self._context, info.key, waits="all")
        self._gate.restore(0, info.operator)
        self._has_timers_between = type(task).on_batch is not Task.on_batch
        self._context.state.goes_by_records()
        # A record to blame must be alone.
        self._takes_whole = task.keeps_times and not self._context.rejects.may_go_on
        if self._has_timers_between and task.keeps_times:
            self._context.state.timers.refuse_event(_NO_TIMERS)
        assert isinstance(self._buffer, OrderedOutput)
        return keyed.in_order(task.on_next, task.on_key_timer, info.key, self._buffer, self._begin)

    def _begin(self) -> None:
        self._kept = len(self._buffer)

    def records(self, batch: Batch, watermark_ms: int) -> Job:
        """Hand over records that came, now or when event time has passed them."""
        self._counters.records_in += len(batch.values)
        if self._gate is None:
            return self._driven(batch)
        return self._in_order(self._gate, batch, watermark_ms)

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

    def _in_order(self, gate: EventGate, batch: Batch, watermark_ms: int) -> Job:
        batch = gate.take(batch)
        if batch.values:
            yield from self._driven(batch)
        if len(gate):
            yield from self._driven_in_order(gate, watermark_ms)

    def _driven_in_order(self, gate: EventGate, watermark_ms: int) -> Job:
        """Hand over the records that event time has passed, key timers between them."""
        for at_ms, batch in gate.due(watermark_ms):
            if at_ms == MIN_MS:
                yield from self._driven(batch)
                continue
            self._keyed.reach(at_ms)
            yield from self._driven(batch)
            self._keyed.reach(None)

    def _driven_with_care(self, batch: Batch) -> Job:
        counters = self._counters
        before = counters.skipped_records + counters.quarantined_records
        if self._has_timers_between:
            assert isinstance(self._buffer, OrderedOutput)
            for part in [batch] if self._takes_whole else map(Batch.of, batch.messages()):
                first = next(part.messages())
                yield from self.fire(self._keyed.until(first))
                self._keyed.enter(first)
                yield from self._buffer.marked(self._drive(part))
        elif self._gate is None and batch.has_late and not self._task.marks_late:
            # Hand over late records one by one, so that what follows from each is late as it is.
            values, times, start = batch.values, batch.timestamps, 0
            for at in late_places(times):
                if start < at:
                    yield from self._drive(Batch(values[start:at], times[start:at]))
                late = Batch([values[at]], [times[at]])
                yield from self._marked(self._drive(late), promise_of(times[at]))
                start = at + 1
            if start < len(values):
                yield from self._drive(Batch(values[start:], times[start:]))
        else:
            yield from self._drive(batch)
        if self._counts_taken:
            dropped = counters.skipped_records + counters.quarantined_records - before
            taken = len(batch) - dropped
            counters.records_out += taken
            counters.written_records += taken

    def _marked(self, job: Job, promised_ms: int) -> Job:
        buffer, seen = self._buffer, len(self._buffer)
        for output in chain(job, [None]):
            buffer[seen:] = [late_message(message, promised_ms) for message in buffer[seen:]]
            if output is not None:
                output = marked_late(output, promised_ms)  # noqa: PLW2901 - the same records
            yield output
            seen = len(buffer)

    # -- the three ways to give the task its records ----------------------------------------

    def _by_message(self, batch: Batch) -> Job:
        """Call `on_next` until it raises."""
        on_next, buffer, limit = self._on_next, self._buffer, self._limit
        message = more = None
        try:
            for message in self._keyed.messages(batch):
                more = on_next(message)
                if more is not None:
                    for extra in more:
                        buffer.append(extra)
                        if len(buffer) >= limit:
                            yield None
                elif len(buffer) >= limit:
                    yield None
        except ProgramFailure as failure:
            blame(self._operator, failure.error)
        except USER_ERRORS as error:
            self._check_returned(more, message)
            blame(self._operator, error, message)

    def _patiently(self, batch: Batch) -> Job:
        """Call `on_next`; go on behind a record on which it raises."""
        on_next, buffer, limit = self._on_next, self._buffer, self._limit
        for message in self._keyed.messages(batch):
            self._kept = len(buffer)
            more: Any = None
            try:
                more = on_next(message)
                for extra in more if more is not None else ():
                    buffer.append(extra)
                    if len(buffer) >= limit:
                        yield None
                        self._kept = 0  # The buffer was sent.
            except ProgramFailure as failure:  # The record is not to blame.
                blame(self._operator, failure.error)
            except USER_ERRORS as error:
                del buffer[self._kept :]
                self._check_returned(more, message)  # Lest each one is dropped without a word.
                reject(self._rejects, self._operator, error, message)
            if len(buffer) >= limit:
                yield None

    def _check_returned(self, returned: Any, message: Message | None) -> None:
        """Fail if `on_next` gave back what is no output, whatever record it was about."""
        try:
            outputs_of(returned, "on_next")
        except ProgramFailure as failure:
            blame(self._operator, failure.error, message)

    def _by_batch(self, batch: Batch) -> Job:
        try:
            outputs = self._task.on_batch(batch)
            if outputs is not None:
                yield from outputs
        except USER_ERRORS as error:
            # The bad one of many is not known, and those before it were taken. A chain has
            # looked after its records itself.
            if len(batch) > 1 or isinstance(error, OperatorError):
                raise
            reject(self._rejects, self._operator, error, *batch.messages())


def blame(operator: str, error: BaseException, message: Message | None = None) -> NoReturn:
    """Raise an error of user code as an `OperatorError`, with the record if there is one."""
    if isinstance(error, OperatorError):
        complete(error)
        raise error
    if message is None:
        raise operator_error(operator, error) from error
    raise operator_error(
        operator, error, record=message.value, event_time_ms=message.timestamp
    ) from error


def reject(
    rejects: Rejects, operator: str, error: BaseException, message: Message, *, place: int = 0
) -> None:
    """Drop the record on which user code raised, if that is the policy, else `blame` it."""
    try:
        blame(operator, error, message)
    except OperatorError as blamed:
        rejects.take(message.value, message.timestamp, blamed, place=place)


# -- output of user code -----------------------------------------------------------------------


def batch_of_messages(messages: Sequence[Any]) -> Batch:
    wrong = set(map(type, messages)) - {Message}
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise ConfigError(
            f"output takes Message(value, timestamp), got {names}: yield messages, or return a list"
        )
    values, timestamps = zip(*messages, strict=True)
    check_times(timestamps)
    return Batch(list(values), list(timestamps))


def checked_batch(batch: Any) -> Batch:
    """Return a batch that user code has given as one of its own."""
    if not isinstance(batch, Batch):
        raise ConfigError(f"yield Batch(values, timestamps), not {type(batch).__name__}")
    values, times = len(batch.values), len(batch.timestamps)
    if values != times:
        raise ConfigError(f"a batch has {values} values but {times} timestamps")
    check_times(batch.timestamps)
    is_table = type(batch.values) is Table
    return Batch(batch.values, Times.of(batch.timestamps) if is_table else batch.timestamps)
