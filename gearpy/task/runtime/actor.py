"""A task as an actor: its mailbox, its thread, its way to the network, around a `TaskRunner`."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from gearpy.actor.api import BatchActor, Cancellable, Ref
from gearpy.errors import CannotTravel, GearpyError, MailboxFull, OperatorError
from gearpy.ids import MAX_MS, TaskId
from gearpy.messages.app import FailureKind, TaskClock
from gearpy.messages.data import (
    Ack,
    AckRequest,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Unmanaged,
)
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.failure import card_of, kind_of
from gearpy.task.api.snapshots import TaskSnapshot
from gearpy.task.runtime.recording import Recording
from gearpy.task.runtime.runner import TaskRunner
from gearpy.task.runtime.turns import TurnBoard, named_turn
from gearpy.transport.api import Transport
from gearpy.wire.values.class_names import PROGRAM

_log = logging.getLogger(__name__)

#: A clock that stays the same is told this often.
_POST_AGAIN_MS: Final = 1000


class StartTask(Struct, frozen=True):
    """Open at this event time and run; a task without inputs halts at ``halt_ms``."""

    start_time_ms: int
    halt_ms: int = MAX_MS


class StopTask(Struct, frozen=True):
    """Stop the user's task and do nothing more."""

    completed: bool


class CutEpoch(Struct, frozen=True):
    """A task without inputs: end this epoch; see `TaskRunner.cut`. Others need not be told."""

    epoch: int
    cut_time_ms: int | None = None
    is_last: bool = False
    caught_up: bool = False


class HaltTask(Struct, frozen=True):
    """A task without inputs: send nothing of this event time or later; see `TaskRunner.halt`."""

    time_ms: int


class CommitTask(Struct, frozen=True):
    """Tells a task that an epoch, and all before it, are complete."""

    epoch: int


class TellAgain(Struct, frozen=True):
    """Hand over all of the keyed state at the next end of an epoch; what was stored is damaged."""


class InjectMessage(Struct, frozen=True):
    """Process this record, encoded as it was in quarantine, beside the records from the links."""

    value: bytes
    event_time_ms: int
    number: int = 0


class _Turn(Struct, frozen=True):
    """Gives a task a turn, as there may be work."""


class _Signal(Struct, frozen=True):
    """Something has happened outside of the task that it waits for."""


class _Wake(Struct, frozen=True):
    """The time has come that the runner waits for."""


_ForRunner: TypeAlias = CutEpoch | HaltTask | CommitTask | TellAgain | InjectMessage
TaskMessage: TypeAlias = LinkMessage | StartTask | StopTask | _ForRunner | _Turn | _Signal | _Wake
_TURN = _Turn()
_SIGNAL = _Signal()
_WAKE = _Wake()
_LINK_MESSAGES = frozenset(
    {DataMessage, Ack, AckRequest, InitialAckRequest, LatencyProbe, Unmanaged}
)


class TaskEvents(Protocol):
    """Receives the events of a task actor for its executor. Called on the task's thread."""

    def on_task_started(self, task_id: TaskId) -> None: ...

    def on_task_failed(self, task_id: TaskId, error: ErrorCard, kind: FailureKind) -> None:
        """The task raised or lost messages, and does nothing more."""
        ...

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        """The task was stopped; ``error`` is the exception of its `on_stop`."""
        ...

    def on_task_snapshot(self, task_id: TaskId, snapshot: TaskSnapshot) -> None: ...

    def on_task_committed(self, task_id: TaskId, epoch: int) -> None: ...

    def on_record_quarantined(
        self, task_id: TaskId, value: bytes, event_time_ms: int, card: ErrorCard
    ) -> None:
        """User code raised on a record; `InjectMessage` gives it to the task once more."""
        ...

    def on_record_injected(self, task_id: TaskId, number: int, epoch: int) -> None:
        """The task has taken the record of an `InjectMessage`, in this epoch."""
        ...

    def on_task_recorded(self, task_id: TaskId, recording: Recording) -> None:
        """All that the task took in an epoch, or until it failed."""
        ...


class ClockBoard:
    """The latest clock of each task of an executor, posted by tasks and collected on a timer.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self.turns = TurnBoard()
        self._lock = Lock()
        self._posted: dict[TaskId, TaskClock] = {}

    def post(self, clock: TaskClock) -> None:
        with self._lock:
            self._posted[clock.task_id] = clock

    def collect(self) -> tuple[TaskClock, ...]:
        """Take the clocks that were posted since the last time."""
        with self._lock:
            posted, self._posted = self._posted, {}
        return tuple(posted.values())


class TaskActor(BatchActor[TaskMessage]):
    """Feeds a runner from a mailbox, gives it turns, sends its output.

    Runs on: the executor's shared dispatcher, or a thread of its own if its processor asks.
    Restart: none; a task that fails is reported and started anew by the app master.
    Gearpump: `TaskActor`.
    """

    def __init__(
        self,
        runner: TaskRunner,
        transport: Transport,
        events: TaskEvents,
        board: ClockBoard,
        *,
        clock_ms: Callable[[], int],
        report_interval_ms: int,
    ) -> None:
        self._runner = runner
        self._transport = transport
        self._events = events
        self._board = board
        self._clock_ms = clock_ms
        self._report_interval_ms = report_interval_ms
        self._report_at_ms = 0
        self._posted: TaskClock | None = None
        self._post_again_ms = 0
        self._task_id = runner.info.task_id
        self._running = False
        self._stopped = False
        self._may_block = False
        self._wake: Cancellable | None = None
        self._wake_at_ms: int | None = None
        self._turn_queued = False
        self._named_work = named_turn(TaskActor._work, runner.info.operator)

    def receive_batch(self, messages: list[TaskMessage]) -> None:
        turns = self._board.turns
        turns.begin(self._task_id, self._clock_ms())
        try:
            self._named_work(self, messages)
        finally:
            turns.end(self._task_id)

    def _work(self, messages: list[TaskMessage]) -> None:
        if self._stopped:
            self._answer_stop(messages)
            return
        PROGRAM.set(self._runner.info.program)
        try:
            for message in messages:
                self._take(message)
            if self._running:
                wake_ms = self._runner.turn()
                while self._runner.outbox:
                    try:
                        self._transport.send(self._runner.outbox)
                        self._runner.outbox.clear()
                    except CannotTravel as error:
                        self._runner.on_unsent(error)
                if self._runner.snapshots or self._runner.rejected or self._runner.committed:
                    # Records before snapshots: an epoch that is stored has all of its own.
                    for record in self._runner.rejected:
                        self._events.on_record_quarantined(
                            self._task_id, record.value, record.event_time_ms, record.error
                        )
                    for number, epoch in self._runner.injected:
                        self._events.on_record_injected(self._task_id, number, epoch)
                    self._runner.injected.clear()
                    for snapshot in self._runner.snapshots:
                        self._events.on_task_snapshot(self._task_id, snapshot)
                    for epoch in self._runner.committed:
                        self._events.on_task_committed(self._task_id, epoch)
                    self._runner.snapshots.clear()
                    self._runner.committed.clear()
                    self._runner.rejected.clear()
                    self._hand_over_recordings()
                now_ms = self._clock_ms()
                # Its clock at rest, or while it blocks, must be true for as long as that lasts.
                rests = wake_ms is None or wake_ms > now_ms or self._may_block
                if rests or now_ms >= self._report_at_ms:
                    self._report_at_ms = now_ms + self._report_interval_ms
                    self._post_clock(now_ms)
                self._plan_turn(wake_ms, now_ms)
        except GearpyError as error:
            self._running = False
            self._stopped = True
            self._post_last_clock()
            where = (
                error.operator if isinstance(error, OperatorError) else self._runner.info.operator
            )
            recorder, is_source = self._runner.recorder, not self._runner.info.upstream
            can_repeat = is_source or (recorder is not None and recorder.leads_here)
            epoch = self._runner.epoch if can_repeat else 0
            card = card_of(error, operator=where, task=str(self._task_id), epoch=epoch)
            if recorder is not None:
                recorder.fail(self._runner.epoch, card.cause)
                self._hand_over_recordings()
            self._events.on_task_failed(self._task_id, card, kind_of(error))
            try:
                self._runner.stop(completed=False)
            except OperatorError as second:
                _log.warning("task %s failed, and then its stop: %s", self._task_id, second)
            self._answer_stop(messages)

    def on_stop(self) -> None:
        error = self._stop_task(completed=False)
        if error is not None:
            _log.warning("task %s failed as it was stopped: %s", self._task_id, error.cause)

    def _take(self, message: TaskMessage) -> None:
        if type(message) in _LINK_MESSAGES:
            if not self._stopped:
                self._runner.receive(message)  # type: ignore[arg-type] # it is one of a link
        elif isinstance(message, _Wake):
            self._wake_at_ms = None
        elif isinstance(message, StartTask) and not self._stopped:
            if not self._running:  # Asked again, it only answers again.
                self._runner.context.wake = partial(_signal, self.context.self_ref)
                self._runner.halt(message.halt_ms)
                self._runner.open(message.start_time_ms)
                self._running = True
                assert self._runner.task is not None, "it is open"
                self._may_block = self._runner.task.produce_may_block
            self._events.on_task_started(self._task_id)
        elif isinstance(message, StopTask):
            error = self._stop_task(completed=message.completed)
            self._events.on_task_stopped(self._task_id, error)
        elif isinstance(message, CutEpoch):
            cut_ms, is_last = message.cut_time_ms, message.is_last
            self._runner.cut(message.epoch, cut_ms, is_last=is_last, caught_up=message.caught_up)
        elif isinstance(message, HaltTask):
            self._runner.halt(message.time_ms)
        elif isinstance(message, CommitTask):
            self._runner.commit(message.epoch)
        elif isinstance(message, TellAgain):
            self._runner.tell_again()
        elif isinstance(message, InjectMessage):
            self._runner.inject(message.value, message.event_time_ms, message.number)
        elif isinstance(message, _Turn):
            self._turn_queued = False
        elif isinstance(message, _Signal):
            self._runner.wake()

    def _hand_over_recordings(self) -> None:
        recordings = self._runner.ports.recorded
        for recording in recordings:
            self._events.on_task_recorded(self._task_id, recording)
        recordings.clear()

    def _post_clock(self, now_ms: int) -> None:
        clock = self._runner.clock()
        # A source that is asked again and again, and gives nothing, wakes nobody.
        if clock != self._posted or now_ms >= self._post_again_ms:
            self._posted, self._post_again_ms = clock, now_ms + _POST_AGAIN_MS
            self._board.post(clock)

    def _plan_turn(self, wake_ms: int | None, now_ms: int) -> None:
        if wake_ms is None:
            return
        if wake_ms <= now_ms:
            if not self._turn_queued:
                self._turn_queued = True
                self.context.schedule_self(_TURN)
        elif self._wake_at_ms is None or self._wake_at_ms > wake_ms:
            if self._wake is not None:
                self._wake.cancel()
            self._wake_at_ms = wake_ms
            self._wake = self.context.schedule_once(wake_ms - now_ms, _WAKE)

    def _answer_stop(self, messages: list[TaskMessage]) -> None:
        if any(isinstance(message, StopTask) for message in messages):
            self._events.on_task_stopped(self._task_id, None)

    def _post_last_clock(self) -> None:
        with suppress(GearpyError):  # The user's `hold_ms` may raise; the end goes on.
            self._board.post(self._runner.clock())

    def _stop_task(self, *, completed: bool) -> ErrorCard | None:
        if self._stopped:
            return None
        was_running, self._stopped, self._running = self._running, True, False
        self._post_last_clock()
        try:
            self._runner.stop(completed=completed, shows=was_running)
        except OperatorError as error:
            return card_of(error, task=str(self._task_id))
        return None


def _signal(task: Ref[TaskMessage]) -> None:
    with suppress(MailboxFull):  # Then it takes one anyway.
        task.tell(_SIGNAL)
