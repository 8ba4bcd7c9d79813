"""The input side of a task: messages that came in and are not processed yet."""

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from gearpy.core.flow.alignment import EpochEnd, LinkAlignment
from gearpy.core.flow.link import ReceiverCounts
from gearpy.core.flow.pace import WorkPace
from gearpy.core.window.watermark import WatermarkTracker
from gearpy.ids import FIRST_SESSION, SessionId, TaskId
from gearpy.messages.data import (
    Ack,
    AckRequest,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    Unmanaged,
)

#: The messages that come on links.
QueuedMessage: TypeAlias = DataMessage | InitialAckRequest | AckRequest | LatencyProbe | Unmanaged


class Injected(Struct, frozen=True):
    """A record given by hand: its value, encoded, and its event time.

    ``number``: of those whose epoch is to be told; 0 of others.
    """

    value: bytes
    event_time_ms: int
    number: int = 0


class Inlet:
    """Checks messages, queues them epoch by epoch, answers ack requests in their turn.

    Ack requests stand in the same queue as the records, so an `Ack` says that everything sent
    before the question was processed. A link that has ended the epoch waits until all have; then
    an `EpochEnd` stands in the queue. Gearpump: `TaskActor`'s queue and `SecurityChecker`.
    """

    def __init__(
        self,
        task_id: TaskId,
        upstream: Iterable[TaskId],
        epoch: int,
        first_session: SessionId = FIRST_SESSION,
    ) -> None:
        self._task_id = task_id
        self._counts = ReceiverCounts(first_session)
        self._queue: deque[QueuedMessage | EpochEnd | Injected] = deque()
        self._links = list(upstream)
        #: None stands where a link has ended an epoch.
        self._alignment: LinkAlignment[QueuedMessage | None] = LinkAlignment(self._links, epoch)
        self.watermarks = WatermarkTracker(self._links)
        self.pace = WorkPace()
        self.records_queued = 0
        self.bytes_taken = 0
        #: The promises of links in epochs that have not begun.
        self._promises: dict[tuple[int, TaskId], tuple[int, bool]] = {}

    def hold_nothing_back(self) -> None:
        epoch = self._alignment.epoch
        self._alignment = LinkAlignment(self._links, epoch, is_holding_back=False)

    def hold_back(self) -> None:
        """Let records of later epochs wait, until the one at hand has ended."""
        self._alignment.hold_back()

    def restore(self, watermark_ms: int) -> None:
        self.watermarks = WatermarkTracker(self._links, watermark_ms)

    def receive(self, message: QueuedMessage) -> None:
        """Queue a message; data of stale sessions and duplicates are dropped."""
        if type(message) is DataMessage:
            verdict = self._counts.on_data(message.source, message.session, message.seq)
            if verdict != "accept":
                return
            self.records_queued += len(message.batch)
            epoch: int | None = message.epoch
        elif type(message) is InitialAckRequest and not self._counts.on_open(
            message.source, message.session
        ):
            return
        else:
            epoch = None
        if self._alignment.passes(message.source, epoch):
            self._queue.append(message)
            return
        taken: QueuedMessage | None = message
        if type(message) is DataMessage and not message.batch:
            before = self._alignment.newest.get(message.source, message.epoch)
            if before < message.epoch:
                # With it the link has ended an epoch: what it promises was promised in that one.
                # So all tasks of a step have closed the same windows when the epoch ends.
                message.epoch = before
                if self._alignment.take(message.source, message, before):
                    self._queue.append(message)
                taken = None
        self._queue.extend(filter(None, self._alignment.take(message.source, taken, epoch)))

    def inject(self, record: Injected) -> None:
        self._queue.append(record)

    def next(self) -> QueuedMessage | EpochEnd | Injected | None:
        return self._queue.popleft() if self._queue else None

    @property
    def is_at_end(self) -> bool:
        return bool(self._queue) and isinstance(self._queue[0], EpochEnd)

    @property
    def is_at_promise(self) -> bool:
        """Tell whether the oldest message is a question, or says no more than the event time."""
        message = self._queue[0] if self._queue else None
        if type(message) is DataMessage:
            return not message.batch
        return isinstance(message, (AckRequest, InitialAckRequest, LatencyProbe))

    def on_processed(self, message: DataMessage, *, is_early: bool = False) -> bool:
        """Count a data message whose records are processed; return whether the watermark moved.

        A promise in an epoch that has not begun counts when it begins. Else this task, and tasks
        behind it, would be further at the end of an epoch than records that are read again after.
        """
        credit = message.batch.credit
        self.records_queued -= len(message.batch)
        self.bytes_taken += message.size_bytes
        self._counts.on_processed(message.source, message.session, credit or 1)
        self.pace.on_taken(message.source, credit)
        if is_early:
            self._promises[message.epoch, message.source] = (message.watermark_ms, message.idle)
            return False
        return self.watermarks.on_link(message.source, message.watermark_ms, idle=message.idle)

    def begin_epoch(self, epoch: int) -> bool:
        moved = False
        due = [each for each in self._promises if each[0] <= epoch]
        # Idle links last: while others are still to be counted, not all of them are idle.
        for key in sorted(due, key=lambda each: (each[0], self._promises[each][1], each[1])):
            watermark_ms, idle = self._promises.pop(key)
            moved |= self.watermarks.on_link(key[1], watermark_ms, idle=idle)
        return moved

    def answer(self, request: AckRequest | InitialAckRequest, now_ms: int) -> Ack | None:
        """Answer an ack request whose turn has come; None for a session that is over."""
        processed = self._counts.processed(request.source, request.session)
        if processed is None:
            return None
        return Ack(
            session=request.session,
            source=self._task_id,
            target=request.source,
            seq=request.seq if isinstance(request, AckRequest) else 0,
            received=processed,
            room=self.pace.room(now_ms),
        )

    @property
    def is_empty(self) -> bool:
        return not self._queue and not self._alignment.is_holding

    def __bool__(self) -> bool:
        return bool(self._queue)
