"""One task at work: a plain object without thread, socket or clock of its own.

Its owner calls `open` once, `receive` for each message, `turn` whenever there may be something
to do, and sends the messages in `outbox`, stores the snapshots in `snapshots`, keeps the records
in `rejected`. The task actor does so on a thread, the simulator in virtual time.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from gearpy.core.flow.alignment import EpochEnd
from gearpy.errors import CannotTravel, ConfigError, ProtocolError
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.app import SourceProbe, TaskClock
from gearpy.messages.data import (
    NOWHERE,
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    EncodedBatch,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Message,
    Origin,
    Unmanaged,
)
from gearpy.messages.metrics import TaskLoad
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.failure import USER_ERRORS, operator_error
from gearpy.task.api.interfaces import FINISHED, Task, TaskContext, TaskLimits
from gearpy.task.api.keyed import KeyedTask, OpenState
from gearpy.task.api.rejects import OUTPUT, Midway, OnError, RejectedRecord, Rejects
from gearpy.task.api.snapshots import TaskResume, TaskSnapshot, TaskState, encode_offsets
from gearpy.task.chain.event_gate import OrderedOutput
from gearpy.task.runtime.epoch_ends import CommitRequest, CutRequest, LaterOutput
from gearpy.task.runtime.feed import Job, TaskFeed, batch_of_messages, blame, checked_batch, reject
from gearpy.task.runtime.info import TaskInfo
from gearpy.task.runtime.inlet import Injected, Inlet
from gearpy.task.runtime.metering import MeterSettings, TaskMeter
from gearpy.task.runtime.outlet import Outlet, OutputLimits, Promises
from gearpy.task.runtime.recording import MakeRecorder, TaskPorts
from gearpy.task.time.timers import TaskTimers, Wakes, earlier_of, is_due
from gearpy.transport.loop.coroutines import NO_COROUTINES, Coroutines
from gearpy.wire.values.payload import decode_batch, decode_value

#: Messages that wait to be sent at which a turn ends: their targets can begin meanwhile, and an
#: answer that grants credit is not late by a whole turn.
OUTBOX_FULL: Final = 4
_END: Final[Any] = object()
#: How long one turn copies state of the last epoch.
_COPYING_MS: Final = 5

#: Shares of the room for one epoch: at the first the epoch is asked to end, at
#: the second a source waits until it has, looking every so often.
_FULL_SOON: Final = 0.2
_FULL: Final = 0.7
_FULL_MS: Final = 10


class TaskRunner:
    """Drives one task: its queue, its output, its watermark, its clock.

    Work is a chain of jobs, each an iterator that stops where output has filled a batch; it is
    pulled on only while every target has credit. So back-pressure holds inside a batch, inside
    the answer to one message, and while windows close. An epoch ends between two jobs: the
    state of the task is then in ``snapshots``, and all that it sends later is of the next epoch.
    Gearpump: `TaskActor`, `TaskWrapper`.

    Args:
        make: makes the user's task from its context; called by `open`.
        limits: sizes of output batches, credit, how often watermarks go out bare.
        task_limits: the limits in the context of the user's task.
        turn_ms: how long one `turn` may take, as far as user code lets go.
        open_state: makes its keyed state, when it is used.
        resume: the state to go on from; None: from the beginning.
        on_error: the policy for a record that user code raises on.
        metering, recorder: measure it and record its input, where they are given.
        probe: how a source reads; None: as always.
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
        open_state: OpenState,
        epoch: int = 1,
        resume: TaskResume | None = None,
        on_error: OnError = "fail",
        coroutines: Coroutines = NO_COROUTINES,
        metering: MeterSettings | None = None,
        recorder: MakeRecorder | None = None,
        probe: SourceProbe | None = None,
    ) -> None:
        self.info = info
        self.outbox: list[LinkMessage] = []
        self.snapshots: list[TaskSnapshot] = []  #: Its state when epochs have ended.
        self._make = make
        self._coroutines = coroutines
        self._limits, self._task_limits = limits, task_limits
        self._turn_ms = turn_ms
        self._clock_ms = clock_ms
        self._inlet = Inlet(info.task_id, info.upstream, epoch, info.first_session)
        self._outlet = Outlet(
            task_id=info.task_id,
            session=info.session,
            edges=info.edges,
            limits=limits,
            outbox=self.outbox,
            epoch=epoch,
            operator=info.operator,
        )
        self._buffer: list[Message] = OrderedOutput(self._see_late) if info.ordered else []
        self._job: Job | None = None
        self._parked: Job | None = None  # Waits until the task has room.
        self._parked_origin = NOWHERE
        self._timers, self._wakes = TaskTimers(), Wakes(wall_ms)
        self._produce_at_ms: int | None = None
        self._claimed_clock_ms, self._promises = MIN_MS, Promises(self._outlet)
        self._resume, self._metering = resume, metering
        self._meter: TaskMeter | None = None  # Made when it is open.
        self._cut = CutRequest(epoch)
        self._later = LaterOutput(task_limits.held_records_max)
        self._catches_up, self._commits = task_limits.until_caught_up, CommitRequest()
        self.committed = self._commits.answers  #: Epochs; emptied by the owner.
        self._copying: Iterator[bool] | None = None  # Copies the state of the last epoch, in steps.
        self._unfinished: TaskSnapshot | None = None  # Waits until they have copied all.
        self._is_to_be_whole = False  # The next snapshot.
        self._keyed = KeyedTask(
            f"{info.run or info.app_name}/task{info.task_id}",
            open_state,
            wall_ms=wall_ms,
            watermark_ms=lambda: self._inlet.watermarks.watermark_ms,
        )
        counters = TaskCounters()
        self._rejects = Rejects(on_error, counters, str(info.task_id), epoch)
        self.context = self._make_context(wall_ms, counters)
        self.context.probe = probe
        #: What goes between the task and its messages does so before the first one.
        self.ports = TaskPorts(
            context=self.context,
            take=self._inlet.next,
            put_out=self._outlet.emit,
            unsent=self._buffer,
            flush=self._flush,
            stored=lambda: self._commits.newest,
            busy_ns=lambda: 0 if self._meter is None else self._meter.busy_ns,
        )
        self.recorder = recorder(epoch, self.ports) if recorder and info.upstream else None
        self.task: Task | None = None
        self._feed: TaskFeed | None = None  # Made when it is open.
        self._origin = NOWHERE  # The origin of the records at hand.
        self._is_chain = self._tells_origin = True
        # The task may have no room, or let an epoch wait; it may want to be woken.
        self._may_wait = self._may_wake = True
        self._may_block = self._has_produced = False  # When asked for more; in this turn.

    def open(self, start_time_ms: int) -> None:
        self._outlet.open()
        self.context.metrics.enter()
        try:
            if self._resume is not None:
                resume, self._resume = self._resume, None
                state = TaskState.decode(resume.head)
                self.context.resume, self.context.offsets = state.task, resume.offsets
                self.context.counters.restore(state.counters)
                self._claimed_clock_ms = state.clock_ms
                self._promises.restore(state.promised_ms, state.watermark_ms)
                if self.info.upstream:
                    self._inlet.restore(self._promises.promised_ms)
                for delay_ms, payload in state.timers:
                    self._schedule(delay_ms, payload)
                self._keyed.load(resume.sections, resume.state)
            self.task = self._make(self.context)
            if not self.task.aligned:
                self._keyed.refuse()
            self.task.on_start(start_time_ms)
            self._cut.begin(self.task)
        except USER_ERRORS as error:
            self._blame(error)
        if not self.info.upstream:
            self._produce_at_ms = self._clock_ms()
        self._feed = TaskFeed(
            self.task,
            self.info,
            self.context,
            self._keyed,
            self._buffer,
            limit=self._limits.batch_records,
        )
        if self._metering is not None:
            self._meter = TaskMeter(
                self.context,
                self._metering,
                is_source=not self.info.upstream,
                is_sink=not self.info.edges,
                send=self._outlet.probe,
            )
        if not self.task.keeps_times:
            self._outlet.forget_order()
        self._is_chain = self.task.marks_late
        kind = type(self.task)
        asked = (kind.has_room, kind.may_end_epoch) != (Task.has_room, Task.may_end_epoch)
        self._may_wait = self.task.may_wait and asked
        self._may_wake = self.task.may_wake and kind.wake_ms is not Task.wake_ms
        self._may_block = self.task.produce_may_block
        self._tells_origin = self.task.aligned  # Records that wait for a later epoch have lost it.
        if not self.task.aligned:
            self._inlet.hold_nothing_back()
            self.recorder = None  # It takes records of several epochs at a time.
        if self.recorder is not None:
            self.recorder.attach()
        self._flush()

    def receive(self, message: LinkMessage) -> None:
        """Take a message from a link. Acks count at once, everything else in its turn."""
        if type(message) is Ack:
            self._outlet.on_ack(message, self._clock_ms())
        else:
            self._inlet.receive(message)  # type: ignore[arg-type] # everything but Ack

    def cut(
        self,
        epoch: int,
        cut_time_ms: int | None = None,
        *,
        is_last: bool = False,
        caught_up: bool = False,
    ) -> None:
        """Ask a task without inputs to end an epoch, and those before it, as soon as it can.

        With a cut time, when it has sent all records that are older; see `Task.begin_cut`. After
        the last one the task produces nothing more, though its stream has not ended.
        """
        if not self.info.upstream:
            self.context.has_caught_up = caught_up
            self._cut.ask(self.task, epoch, cut_time_ms, is_last=is_last)

    def halt(self, time_ms: int) -> None:
        """Have a task without inputs send nothing from this event time on; `MAX_MS`: go on."""
        if not self.info.upstream:
            self._cut.halt(self.task, time_ms)
            self.poke()

    def tell_again(self) -> None:
        self._is_to_be_whole = True

    def commit(self, epoch: int) -> None:
        self._commits.ask(epoch)

    def inject(self, value: bytes, event_time_ms: int, number: int = 0) -> None:
        self._inlet.inject(Injected(value, event_time_ms, number))

    def turn(self) -> int | None:
        self.context.metrics.enter()
        meter = self._meter
        if meter is None:
            return self._work()
        meter.begin_turn()
        try:
            return self._work()
        finally:
            meter.end_turn(self._clock_ms(), is_blocked=self._outlet.is_blocked)

    def on_unsent(self, error: CannotTravel) -> None:
        """Divide the first of messages that were not sent; do with one record as `Rejects` says."""
        if type(error.unsent[0]) is not DataMessage:
            self._blame(error)
        refuse = partial(reject, self._rejects, self.info.operator, error, place=OUTPUT)
        self.outbox[:] = self._outlet.divided(error.unsent, refuse)

    def load(self) -> TaskLoad | None:
        """Return the measurements; None before it is open. May be called on another thread."""
        if self._meter is None:
            return None
        return self._meter.load(self.info, self._inlet, self._outlet)

    def _work(self) -> int | None:
        """Work for a while.

        Returns:
            0 if there is more to do now, the monotonic ms at which there will be, or None if
            only a message can bring more.
        """
        now_ms = started_ms = self._clock_ms()
        try:
            self._commits.show(self.task)
        except USER_ERRORS as error:
            self._blame(error)
        if self._copying is not None:
            self._copy_on()
        self._inlet.pace.begin(self._clock_ms())  # To show an epoch is no work for a record.
        while not self._outlet.is_blocked:
            if self._job is None:
                self._job = self._next_job(now_ms)
                if self._job is None or self._outlet.is_blocked:
                    break
            # Pull the job once; send a batch that is full.
            assert self._job is not None
            try:
                batch = next(self._job, _END)
            except USER_ERRORS as error:
                self._blame(error)
            if batch is _END:
                self._job = None
            elif batch is not None:
                self._flush()
                self._emit(batch, now_ms)
            elif self._may_wait and self._parked is None and not (self.task and self.task.has_room):
                self._job, self._parked = None, self._job
                self._parked_origin = self._origin
            if len(self._buffer) >= self._limits.batch_records:
                self._flush()
            now_ms = self._clock_ms()
            if now_ms - started_ms >= self._turn_ms or len(self.outbox) >= OUTBOX_FULL:
                break
        self._flush()
        has_room = not self._may_wait or self.task is None or self.task.has_room
        waits = self._outlet.is_blocked or not has_room
        self._inlet.pace.end(self._clock_ms(), is_waiting=waits)
        self._outlet.on_tick(now_ms, blocks=self._may_block and is_due(self._produce_at_ms, now_ms))
        return self._next_turn_ms(now_ms)

    def clock(self) -> TaskClock:
        """Report how far the task is. The clock never moves backwards."""
        try:
            hold_ms = self.task.hold_ms if self.task is not None else MIN_MS
        except USER_ERRORS as error:
            self._blame(error)
        waits_ms = MAX_MS if self._feed is None else self._feed.oldest_ms
        hold_ms = int(min(hold_ms, waits_ms, self._later.oldest_ms))
        reached_ms = min(self._outlet.watermark_ms, self._outlet.oldest_ms, hold_ms)
        if reached_ms == MAX_MS and not self._outlet.has_ended:
            reached_ms = MAX_MS - 1
        self._claimed_clock_ms = max(self._claimed_clock_ms, reached_ms)
        counters, task = self.context.counters, self.task
        clock = TaskClock(
            task_id=self.info.task_id,
            session=self.info.session,
            clock_ms=self._claimed_clock_ms,
            watermark_ms=self._outlet.watermark_ms,
            hold_ms=hold_ms,
            idle=self._outlet.idle,
            records_in=counters.taken,
            records_out=counters.records_out,
            written_records=counters.written_records,
            late_records=counters.late_records,
            skipped_records=counters.skipped_records,
            quarantined_records=counters.quarantined_records,
            ahead_records=counters.ahead_records,
            done=counters.done,
            total=counters.total,
            newest_ms=counters.newest_ms,
            span_ms=counters.span_ms,
            consumers=() if task is None else tuple(task.consumers()),
            waits_for="" if task is None else task.waits_for,
            wants_epoch=(task is not None and task.epoch_fill > _FULL_SOON)
            or self.context.wants_epoch,
            halt=self._cut.halted(task, self._outlet.watermark_ms),
            untried=counters.untried,
        )
        if not self._catches_up:
            return clock
        is_done = bool(self.info.upstream) or (task is not None and task.is_caught_up)
        return replace(
            clock,
            caught_up=is_done and self._outlet.is_told,
            open_windows=counters.open_windows,
            records_before=counters.taken_before,
        )

    def stop(self, *, completed: bool, shows: bool = False) -> None:
        self._job = self._parked = None
        self.context.metrics.enter()
        try:
            if self.task is not None:
                try:
                    if shows:
                        self._commits.show(self.task)
                finally:
                    self.task.on_stop(completed=completed)
        except USER_ERRORS as error:
            self._blame(error)
        finally:
            self._keyed.close()

    def wake(self) -> None:
        if self.task is not None and self.task.is_woken:
            self.poke()

    def poke(self) -> None:
        if self._produce_at_ms is not None:
            self._produce_at_ms = min(self._produce_at_ms, self._clock_ms())

    @property
    def epoch(self) -> int:
        return self._outlet.epoch

    @property
    def injected(self) -> list[tuple[int, int]]:
        return self._rejects.injected

    @property
    def rejected(self) -> list[RejectedRecord]:
        return self._rejects.records

    @property
    def is_blocked(self) -> bool:
        return self._outlet.is_blocked

    @property
    def is_settled(self) -> bool:
        has_work = (self._job or self._parked or self._copying) is not None
        return not has_work and self._inlet.is_empty and self._outlet.is_settled_and_told

    @property
    def records_queued(self) -> int:
        return self._inlet.records_queued

    @property
    def _fed(self) -> TaskFeed:
        assert self._feed is not None, "open comes first"
        return self._feed

    def _next_job(self, now_ms: int) -> Job | None:
        assert self.task is not None
        if self._may_wake and self._wakes.wait_ms(self.task, self._claimed_clock_ms) == 0:
            return self._wake()
        if self._may_wait and not self._may_go_on():
            return None
        if self._parked is not None:
            job, self._parked = self._parked, None
            self._enter(self._parked_origin)
            return job
        return self._new_job(now_ms)

    def _new_job(self, now_ms: int) -> Job | None:
        assert self.task is not None
        if self._cut.epoch >= self._outlet.epoch and self._cut.is_due(self.task, self.epoch):
            self._end_epoch(self._cut.epoch)
            if self._may_wait and not self._may_go_on():
                return None
        has_room = not self._may_wait or self.task.has_room
        if has_room and (at_ms := self._timer_at_ms(now_ms)) is not None and at_ms <= now_ms:
            is_of_task = is_due(self._timers.due_ms, now_ms)
            return self._fire_timer() if is_of_task else self._fed.fire(self._keyed.due())
        message = self.ports.take()
        while message is not None:
            if (job := self._job_of(message)) is not None:
                return job
            may_go_on = not self._may_wait or self._may_go_on()
            message = self.ports.take() if may_go_on else None
        if not has_room or not is_due(self._cut.read_at_ms(self._produce_at_ms), now_ms):
            return None
        if self.task.epoch_fill > _FULL:
            self._produce_at_ms = now_ms + _FULL_MS  # The epoch has been asked to end.
            return None
        return self._produce_alone() if self._may_block else self._produce()

    def _may_go_on(self) -> bool:
        """Tell whether one that may wait takes what is next: a rest, a record, an end."""
        task = self.task
        if task is None:
            return False
        if not task.has_room:
            if self._parked is not None or not task.is_at_rest:
                return False
            return task.may_end_epoch if self._is_at_end(task) else self._inlet.is_at_promise
        return task.may_end_epoch or self._parked is not None or not self._is_at_end(task)

    def _is_at_end(self, task: Task) -> bool:
        return self._inlet.is_at_end or self._cut.is_due(task, self.epoch)

    def _job_of(self, message: object) -> Job | None:
        if type(message) is DataMessage:
            return self._process(message)
        if isinstance(message, (AckRequest, InitialAckRequest)):
            self._flush()  # The records in question have then left this task.
            answer = self._inlet.answer(message, self._clock_ms())
            if answer is not None:
                self.outbox.append(answer)
        elif isinstance(message, EpochEnd):
            self._end_epoch(message.epoch)
            return self._follow(has_moved=self._inlet.begin_epoch(self.epoch))
        elif isinstance(message, Injected):
            return self._take_injected(message)
        elif isinstance(message, Unmanaged):
            return self._take_unmanaged(message)
        elif isinstance(message, LatencyProbe) and self._meter is not None:
            self._flush()  # The records before it are then on their way.
            self._meter.take(message.sent_ns, self._clock_ms())
        return None

    def _process(self, message: DataMessage) -> Job:
        batch, is_early = message.batch, message.epoch > self._outlet.epoch
        self._enter_epoch(message.epoch)
        if type(batch) is EncodedBatch:
            origin = batch.origin
            batch = message.batch = decode_batch(batch.body, batch.count)
            batch.origin = origin
        assert type(batch) is Batch, "there is no other kind"
        if batch.values:
            if not self._is_chain:
                self.context.sees_late |= batch.has_late
                self._enter(batch.origin)
            if not (message.idle or is_early):  # Their results hold clocks back at once.
                self._set_idle(False)
            yield from self._fed.records(batch, self._inlet.watermarks.watermark_ms)
            if not self._is_chain:
                self._enter(NOWHERE)
        if is_early:
            self._enter_epoch(self._outlet.epoch)
        has_moved = self._inlet.on_processed(message, is_early=is_early)
        yield from self._follow(has_moved=has_moved)

    def _follow(self, *, has_moved: bool) -> Job:
        watermarks = self._inlet.watermarks
        if has_moved:
            yield from self._fed.advance(watermarks.watermark_ms)
            self._announce(watermarks.watermark_ms)
        self._set_idle(watermarks.is_idle)

    def _enter_epoch(self, epoch: int) -> None:
        if self.context.epoch != epoch:
            self._flush()
            self.context.epoch = self._rejects.epoch = epoch

    def _enter(self, origin: Origin) -> None:
        if origin is not self._origin:
            self._flush()
            self._origin = origin

    def _see_late(self) -> None:
        self.context.sees_late = True

    def _wake(self) -> Job:
        assert self.task is not None
        self._enter(NOWHERE)
        yield from self._wakes.wake(self.task)
        self._announce(self._promises.promised_ms)  # It passes as far as the task lets it now.

    def _produce(self) -> Job:
        assert self.task is not None
        wait_ms = self.task.produce()
        if isinstance(wait_ms, Iterator):
            wait_ms = yield from wait_ms
        if not isinstance(wait_ms, int):
            raise ConfigError(f"produce gave {wait_ms!r}: return 0, ms to wait, or FINISHED")
        self._produce_at_ms = None if wait_ms == FINISHED else self._clock_ms() + wait_ms
        self._end_if_done()

    def _produce_alone(self) -> Job | None:
        """Produce when all that came before in this turn has gone out, as it may block."""
        self._has_produced = not (self._has_produced or self.outbox or self.snapshots)
        return self._produce() if self._has_produced else None

    def _fire_timer(self) -> Job:
        assert self.task is not None
        yield from self._fed.put_out(self.task.on_timer(self._timers.pop()), "on_timer")
        self._end_if_done()

    def _end_if_done(self) -> None:
        """End the stream of a task without inputs that has nothing more to produce."""
        if not self.info.upstream and self._produce_at_ms is None and not self._timers:
            self._announce(MAX_MS)

    def _announce(self, watermark_ms: int) -> None:
        self._flush()  # Output so far comes before the promise.
        self._promises.pass_on(watermark_ms, self.task)

    def _take_unmanaged(self, message: Unmanaged) -> Job:
        assert self.task is not None
        yield from self._fed.put_out(self.task.on_unmanaged(message.value), "on_unmanaged")

    def _take_injected(self, record: Injected) -> Job:
        if record.number:
            self._rejects.injected.append((record.number, self.epoch))
        try:
            value = decode_value(record.value)
        except ProtocolError as error:
            blamed = operator_error(self.info.operator, error)
            self._rejects.take_encoded(record.value, record.event_time_ms, blamed)
            return
        if isinstance(value, Midway) and value.place == OUTPUT:
            yield Batch([value.value], [record.event_time_ms])
        else:
            batch = Batch([value], [record.event_time_ms])
            yield from self._fed.records(batch, self._inlet.watermarks.watermark_ms)

    def _end_epoch(self, epoch: int) -> None:
        # What the snapshot will not have goes out before the context is told of the epoch: links
        # may be at an earlier one still, and output would wait for it.
        assert self.task is not None
        self._flush()
        self._send_later(epoch)
        try:
            for batch in self.task.before_snapshot():
                self._emit(batch, self._clock_ms())
        except USER_ERRORS as error:
            self._blame(error)
        self.context.epoch = epoch
        self._copy_on(is_to_end=True)  # The epoch before is whole then.
        self._unfinished = self._snapshot(epoch)
        if self._copying is None:
            self._finish_snapshot()
        self._outlet.begin_epoch(epoch + 1, self._clock_ms())
        self.context.epoch = self._rejects.epoch = epoch + 1
        self._send_later(epoch + 1)
        assert self.task is not None
        if not self.info.upstream and (self._cut.on_ended(self.task) or self.task.is_woken):
            self.poke()  # Messages that were held back are sent at once.
        if self._cut.is_over:
            self._produce_at_ms = None

    def _send_later(self, epoch: int) -> None:
        for batch in self._later.take(epoch):
            self._send(batch, self._clock_ms())

    def _copy_on(self, *, is_to_end: bool = False) -> None:
        """Copy for a while, or all that is left; hand the snapshot over when it is whole."""
        if self._copying is None:
            return
        started_ms = self._clock_ms()
        try:
            for is_copying in self._copying:
                if not is_copying:
                    self._finish_snapshot()
                if not is_to_end and self._clock_ms() - started_ms >= _COPYING_MS:
                    return
        except USER_ERRORS as error:
            self._blame(error)
        self._copying = None
        self._finish_snapshot()

    def _finish_snapshot(self) -> None:
        if self._unfinished is not None:
            self.snapshots.append(self._unfinished)
            self._unfinished = None

    def _snapshot(self, epoch: int) -> TaskSnapshot:
        assert self.task is not None
        now_ms = self._clock_ms()
        try:
            is_whole = self._is_to_be_whole and self._keyed.tell_again()
            kept = self.task.snapshot()
            self._fed.tell()
            delta, self._copying = self._keyed.begin_snapshot(of_all=is_whole)
            self._is_to_be_whole = False
            state = TaskState(
                task=kept,
                counters=self.context.counters.counted(),
                watermark_ms=self._outlet.watermark_ms,
                promised_ms=self._promises.promised_ms,
                clock_ms=self._claimed_clock_ms,
                # Without anything kept the task begins as new, and sets its timers itself.
                timers=[] if kept is None else self._timers.after(now_ms),
            )
            head = state.encode(self.info.operator)
            if self._meter is not None:
                self._meter.state_bytes = len(head) + self._keyed.size_bytes
            return TaskSnapshot(
                epoch=epoch,
                head=head,
                delta=delta,
                offsets=encode_offsets(self.info.operator, self.task.offsets()),
                has_missed_cut=self._cut.has_missed,
                has_more=self.task.is_working or (self._catches_up and not self._outlet.is_told),
                is_whole=is_whole,
            )
        except USER_ERRORS as error:
            self._blame(error)

    def _flush(self) -> None:
        if not self._buffer:
            return
        try:
            self._send(self._about(batch_of_messages(self._buffer)), self._clock_ms())
        except USER_ERRORS as error:  # A partitioner may be the user's.
            self._blame(error)
        self._buffer.clear()

    def _emit(self, batch: Batch, now_ms: int) -> None:
        try:
            if not self._is_chain:
                batch = self._about(checked_batch(batch))
            if batch.values:
                self._send(batch, now_ms)
        except USER_ERRORS as error:
            self._blame(error)

    def _about(self, batch: Batch) -> Batch:
        batch.has_late = self.context.sees_late
        batch.origin = self._origin if self._tells_origin else NOWHERE
        return batch

    def _send(self, batch: Batch, now_ms: int) -> None:
        if self.context.epoch > self.epoch:
            if self._later.add(self.context.epoch, batch):
                self._inlet.hold_back()
            return
        try:
            self.ports.put_out(batch, now_ms)
            self.context.counters.records_out += len(batch.values)
        except USER_ERRORS as error:
            if not self._rejects.may_go_on:
                raise
            if len(batch) > 1:  # None was sent. Find the records that have nowhere to go.
                for at in range(len(batch)):
                    self._send(batch.part(at, at + 1), now_ms)
            else:
                message = Message(batch.values[0], batch.timestamps[0])
                reject(self._rejects, self.info.operator, error, message, place=OUTPUT)

    def _make_context(self, wall_ms: Callable[[], int], counters: TaskCounters) -> TaskContext:
        info = self.info
        return TaskContext(
            task_id=info.task_id,
            parallelism=info.parallelism,
            operator=info.operator,
            app_id=info.app_id,
            app_name=info.app_name,
            executor_id=info.executor_id,
            config=info.config or {},
            run=info.run,
            incarnation=info.session,
            sources=info.sources,
            log=logging.getLogger(f"gearpy.app.{info.app_name}.{info.operator}"),
            output=self._buffer.append,  # The list stays the same one for the task's life.
            schedule=self._schedule,
            update_watermark=self._update_watermark,
            set_idle=self._set_idle,
            send_unmanaged=self._send_unmanaged,
            upstream_min_clock=lambda: self._inlet.watermarks.watermark_ms,
            now_ms=wall_ms,
            limits=self._task_limits,
            keyed=self._keyed,
            epoch=self.epoch,
            counters=counters,
            rejects=self._rejects,
            coroutines=self._coroutines,
            is_rerun=info.is_rerun,
            worked_ms=lambda: self._inlet.pace.worked_ms(self._clock_ms()),
        )

    def _schedule(self, delay_ms: int, payload: object) -> None:
        # At least 1, so that a timer that sets itself again lets records through.
        self._timers.add(self._clock_ms() + max(1, delay_ms), payload)

    def _update_watermark(self, watermark_ms: int) -> None:
        if self.info.upstream:
            raise ConfigError("update_watermark is for tasks without inputs")
        self._announce(watermark_ms)

    def _set_idle(self, idle: bool) -> None:  # noqa: FBT001 - user-facing single flag
        self._promises.set_idle(idle, self.task)

    def _send_unmanaged(self, target: TaskId, value: Any) -> None:
        self.outbox.append(Unmanaged(self.info.session, self.info.task_id, target, value))

    def _timer_at_ms(self, now_ms: int) -> int | None:
        due_ms, key_wait_ms = self._timers.due_ms, self._keyed.wait_ms
        if due_ms is None and key_wait_ms is None:
            return None
        if self._claimed_clock_ms == MAX_MS or self._cut.is_over:
            return None  # The end may have been stored: results of a timer would be lost.
        return earlier_of(due_ms, None if key_wait_ms is None else now_ms + key_wait_ms)

    def _next_turn_ms(self, now_ms: int) -> int | None:
        assert self.task is not None
        if self._copying is not None:
            return 0
        at_ms = self._outlet.wake_ms(now_ms)
        if self._outlet.is_blocked:
            return at_ms
        if self._job is not None:
            return 0
        if self._may_wake:
            wait_ms = self._wakes.wait_ms(self.task, self._claimed_clock_ms)
            at_ms = earlier_of(at_ms, None if wait_ms is None else now_ms + wait_ms)
        if self._may_wait and not self._may_go_on():
            return at_ms
        read_at_ms = self._cut.read_at_ms(self._produce_at_ms)
        is_cut = self._cut.epoch >= self._outlet.epoch and self._cut.is_due(self.task, self.epoch)
        if self._parked is not None or self._inlet or is_cut or is_due(read_at_ms, now_ms):
            return 0
        return earlier_of(earlier_of(at_ms, read_at_ms), self._timer_at_ms(now_ms))

    def _blame(self, error: BaseException) -> NoReturn:
        blame(self.info.operator, error)
