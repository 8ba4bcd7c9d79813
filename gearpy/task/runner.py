"""One task at work: a plain object without thread, socket or clock of its own.

Whoever owns it calls `open` once, `receive` for what arrives, `turn` whenever there may be
something to do, and sends what has gathered in `outbox`. The task actor does so on a thread,
the simulator in virtual time.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS, AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    EncodedBatch,
    InitialAckRequest,
    LinkMessage,
    Message,
    Unmanaged,
)
from gearpy.task.api import FINISHED, Task, TaskContext, TaskLimits
from gearpy.task.failure import USER_ERRORS, complete, operator_error
from gearpy.task.inlet import Inlet
from gearpy.task.outlet import Outlet, OutputEdge, OutputLimits
from gearpy.task.output import Columns, columns_of_batch, columns_of_messages
from gearpy.task.timers import Timers
from gearpy.wire.payload import decode_batch

__all__ = ["TaskInfo", "TaskRunner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Who a task is and what it is connected to."""

    task_id: TaskId
    session: SessionId
    parallelism: int
    operator: str
    upstream: Sequence[TaskId]
    edges: Sequence[OutputEdge]
    app_id: AppId = AppId(0)
    app_name: str = ""
    executor_id: ExecutorId = ExecutorId(0)
    config: Mapping[str, Any] | None = None


class TaskRunner:
    """Drives one task: its queue, its output, its watermark, its clock.

    Work is a chain of jobs, each an iterator that stops where output has filled a batch; it is
    pulled on only while every target has credit. So back-pressure holds inside a batch, inside
    the answer to one message, and while windows close. Gearpump: `TaskActor`, `TaskWrapper`.

    Args:
        info: who the task is.
        make: makes the user's task from its context; called by `open`.
        limits: sizes of output batches, credit, how often watermarks go out bare.
        task_limits: what the user's task may ask its context about.
        turn_ms: how long one `turn` may take, as far as user code lets go.
        clock_ms: monotonic ms.
        wall_ms: ms since the epoch.
    """

    def __init__(
        self,
        info: TaskInfo,
        make: Callable[[TaskContext], Task],
        *,
        limits: OutputLimits,
        task_limits: TaskLimits,
        turn_ms: int,
        clock_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self.info = info
        self.outbox: list[LinkMessage] = []
        self._make = make
        self._limits = limits
        self._task_limits = task_limits
        self._turn_ms = turn_ms
        self._clock_ms = clock_ms
        self._inlet = Inlet(info.task_id, info.upstream)
        self._outlet = Outlet(
            task_id=info.task_id,
            session=info.session,
            edges=info.edges,
            limits=limits,
            outbox=self.outbox,
        )
        self._buffer: list[Message] = []
        self._job: Iterator[Batch | None] | None = None
        self._timers = Timers()
        self._produce_at_ms: int | None = None
        self._claimed_clock_ms = MIN_MS
        self.context = self._make_context(wall_ms)
        self.task: Task | None = None
        self._counts_taken = False
        self._drive: Callable[[Batch], Iterator[Batch | None]] = self._drive_messages

    def open(self, start_time_ms: int) -> None:
        """Open the links, make the user's task and start it."""
        self._outlet.open()
        try:
            self.task = self._make(self.context)
            self.task.on_start(start_time_ms)
        except USER_ERRORS as error:
            self._blame(error)
        if not self.info.upstream:
            self._produce_at_ms = self._clock_ms()
        if type(self.task).on_batch is not Task.on_batch:
            self._drive = self._drive_batch
        self._counts_taken = not self.info.edges and not self.task.counts_output
        self._flush()

    def receive(self, message: LinkMessage) -> None:
        """Take a message from a link. Acks count at once, everything else in its turn.

        Raises:
            MessageLost: the link has lost messages.
        """
        if type(message) is Ack:
            self._outlet.on_ack(message, self._clock_ms())
        else:
            self._inlet.receive(message)  # type: ignore[arg-type] # everything but Ack

    def turn(self) -> int | None:
        """Work for a while.

        Returns:
            0 if there is more to do now, the monotonic ms at which there will be, or None if
            only a message can bring more.

        Raises:
            OperatorError: user code raised.
        """
        now_ms = started_ms = self._clock_ms()
        while not self._outlet.is_blocked:
            if self._job is None:
                self._job = self._next_job(now_ms)
                if self._job is None or self._outlet.is_blocked:
                    break
            self._step(now_ms)
            now_ms = self._clock_ms()
            if now_ms - started_ms >= self._turn_ms:
                break
        self._flush()
        self._outlet.on_tick(now_ms)
        return self._next_turn_ms(now_ms)

    def clock(self) -> TaskClock:
        """Report how far the task is. The clock never moves backwards."""
        counters = self.context.counters
        self._claimed_clock_ms = max(self._claimed_clock_ms, self._reached_ms())
        return TaskClock(
            task_id=self.info.task_id,
            session=self.info.session,
            clock_ms=self._claimed_clock_ms,
            watermark_ms=self._outlet.watermark_ms,
            idle=self._outlet.idle,
            records_in=counters.records_in,
            records_out=counters.records_out,
            late_records=counters.late_records,
            done=counters.done,
            total=counters.total,
        )

    def stop(self, *, completed: bool) -> None:
        """Stop the user's task; called once, after the last turn."""
        self._job = None
        if self.task is not None:
            try:
                self.task.on_stop(completed=completed)
            except USER_ERRORS as error:
                self._blame(error)

    def poke(self) -> None:
        """Call `Task.produce` in the next turn, however long it said to wait."""
        if self._produce_at_ms is not None:
            self._produce_at_ms = min(self._produce_at_ms, self._clock_ms())

    @property
    def is_blocked(self) -> bool:
        """Whether the task waits for room downstream."""
        return self._outlet.is_blocked

    @property
    def is_settled(self) -> bool:
        """Whether all that came in was processed, and all that went out told and acknowledged."""
        return self._job is None and not self._inlet and self._outlet.is_settled_and_told

    @property
    def records_queued(self) -> int:
        """Records that came in and are not processed."""
        return self._inlet.records_queued

    def _next_job(self, now_ms: int) -> Iterator[Batch | None] | None:
        if _is_due(self._timers.due_ms, now_ms):
            return self._fire_timer()
        message = self._inlet.next()
        while message is not None:
            job = self._job_of(message)
            if job is not None:
                return job
            message = self._inlet.next()
        if _is_due(self._produce_at_ms, now_ms):
            return self._produce()
        return None

    def _job_of(self, message: object) -> Iterator[Batch | None] | None:
        if type(message) is DataMessage:
            return self._process(message)
        if isinstance(message, (AckRequest, InitialAckRequest)):
            self._flush()  # What it asks about has then left this task.
            answer = self._inlet.answer(message)
            if answer is not None:
                self.outbox.append(answer)
        elif isinstance(message, Unmanaged):
            return self._take_unmanaged(message)
        return None

    def _process(self, message: DataMessage) -> Iterator[Batch | None]:
        batch = message.batch
        if isinstance(batch, EncodedBatch):
            batch = message.batch = decode_batch(batch.body, batch.count)
        if batch.values:
            if not message.idle:  # What follows from these records holds clocks back at once.
                self._outlet.announce(self._outlet.watermark_ms, idle=False)
            self.context.counters.records_in += len(batch.values)
            yield from self._drive(batch)
            if self._counts_taken:
                self.context.counters.records_out += len(batch.values)
        if self._inlet.on_processed(message):
            yield from self._advance(self._inlet.watermarks.watermark_ms)
        self._outlet.announce(self._outlet.watermark_ms, idle=self._inlet.watermarks.is_idle)

    def _drive_messages(self, batch: Batch) -> Iterator[Batch | None]:
        assert self.task is not None
        on_next, buffer, limit = self.task.on_next, self._buffer, self._limits.batch_records
        message = None
        try:
            for message in batch.messages():
                more = on_next(message)
                if more is not None:
                    for extra in more:
                        buffer.append(extra)
                        if len(buffer) >= limit:
                            yield None
                elif len(buffer) >= limit:
                    yield None
        except USER_ERRORS as error:
            self._blame(error, message)

    def _drive_batch(self, batch: Batch) -> Iterator[Batch | None]:
        assert self.task is not None
        outputs = self.task.on_batch(batch)
        if outputs is not None:
            yield from outputs

    def _advance(self, watermark_ms: int) -> Iterator[Batch | None]:
        assert self.task is not None
        outputs = self.task.on_watermark(watermark_ms)
        if outputs is not None:
            yield from outputs
        self._announce(watermark_ms)

    def _produce(self) -> Iterator[Batch | None]:
        assert self.task is not None
        wait_ms = self.task.produce()
        if isinstance(wait_ms, Iterator):
            wait_ms = yield from wait_ms
        if not isinstance(wait_ms, int):
            raise ConfigError(f"produce gave {wait_ms!r}: return 0, ms to wait, or FINISHED")
        self._produce_at_ms = None if wait_ms == FINISHED else self._clock_ms() + wait_ms
        self._end_if_done()

    def _fire_timer(self) -> Iterator[Batch | None]:
        assert self.task is not None
        self.task.on_timer(self._timers.pop())
        self._end_if_done()
        yield from ()

    def _end_if_done(self) -> None:
        """End the stream of a task without inputs that has nothing more to produce."""
        if not self.info.upstream and self._produce_at_ms is None and not self._timers:
            self._announce(MAX_MS)

    def _announce(self, watermark_ms: int) -> None:
        self._flush()  # What was put out so far comes before the promise.
        self._outlet.announce(watermark_ms, idle=self._outlet.idle)

    def _take_unmanaged(self, message: Unmanaged) -> Iterator[Batch | None]:
        assert self.task is not None
        self.task.on_unmanaged(message.value)
        yield from ()

    def _step(self, now_ms: int) -> None:
        """Pull the job once; send what has filled a batch."""
        assert self._job is not None
        try:
            batch = next(self._job, _END)
        except USER_ERRORS as error:
            self._blame(error)
        if batch is _END:
            self._job = None
        elif batch is not None:
            self._flush()
            self._emit(columns_of_batch, batch, now_ms)
        if len(self._buffer) >= self._limits.batch_records:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._emit(columns_of_messages, self._buffer, self._clock_ms())
            self._buffer.clear()

    def _emit(self, columns_of: Callable[[Any], Columns], output: Any, now_ms: int) -> None:
        try:
            values, timestamps = columns_of(output)
            if values:
                self.context.counters.records_out += len(values)
                self._outlet.emit(values, timestamps, now_ms)
        except USER_ERRORS as error:  # A partitioner may be the user's.
            self._blame(error)

    def _make_context(self, wall_ms: Callable[[], int]) -> TaskContext:
        info = self.info
        return TaskContext(
            task_id=info.task_id,
            parallelism=info.parallelism,
            operator=info.operator,
            app_id=info.app_id,
            app_name=info.app_name,
            executor_id=info.executor_id,
            output=self._buffer.append,  # The list stays the same one for the task's life.
            schedule=self._schedule,
            update_watermark=self._update_watermark,
            set_idle=self._set_idle,
            send_unmanaged=self._send_unmanaged,
            upstream_min_clock=lambda: self._inlet.watermarks.watermark_ms,
            now_ms=wall_ms,
            limits=self._task_limits,
            log=logging.getLogger(f"gearpy.app.{info.app_name}.{info.operator}"),
            config=info.config or {},
        )

    def _schedule(self, delay_ms: int, payload: object) -> None:
        # At least 1, so that a timer that sets itself again lets records through.
        self._timers.add(self._clock_ms() + max(1, delay_ms), payload)

    def _update_watermark(self, watermark_ms: int) -> None:
        if self.info.upstream:
            raise ConfigError("update_watermark is for tasks without inputs")
        self._announce(watermark_ms)

    def _set_idle(self, idle: bool) -> None:  # noqa: FBT001 - user-facing single flag
        self._outlet.announce(self._outlet.watermark_ms, idle=idle)

    def _send_unmanaged(self, target: TaskId, value: Any) -> None:
        self.outbox.append(Unmanaged(self.info.session, self.info.task_id, target, value))

    def _next_turn_ms(self, now_ms: int) -> int | None:
        waits = [self._outlet.wake_ms(now_ms)]
        if not self._outlet.is_blocked:
            if self._job is not None or self._inlet or _is_due(self._produce_at_ms, now_ms):
                return 0
            waits += [self._produce_at_ms, self._timers.due_ms]
        return min((at for at in waits if at is not None), default=None)

    def _reached_ms(self) -> int:
        try:
            hold_ms = self.task.hold_ms if self.task is not None else MIN_MS
        except USER_ERRORS as error:
            self._blame(error)
        reached_ms = min(self._outlet.watermark_ms, self._outlet.oldest_ms, hold_ms)
        if reached_ms == MAX_MS and not self._outlet.is_settled:
            return MAX_MS - 1
        return reached_ms

    def _blame(self, error: BaseException, message: Message | None = None) -> NoReturn:
        if isinstance(error, OperatorError):
            complete(error)
            raise error
        operator = self.info.operator
        if message is None:
            raise operator_error(operator, error) from error
        raise operator_error(
            operator, error, record=message.value, event_time_ms=message.timestamp
        ) from error


def _is_due(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms


_END: Any = object()
