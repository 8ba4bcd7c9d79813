"""The input side of a task: what came in and is not processed yet."""

from collections import deque
from collections.abc import Iterable

from gearpy.core.flow import ReceiverCounts
from gearpy.core.watermark import WatermarkTracker
from gearpy.ids import TaskId
from gearpy.messages.data import (
    Ack,
    AckRequest,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    Unmanaged,
)

__all__ = ["Inlet", "QueuedMessage"]

QueuedMessage = DataMessage | InitialAckRequest | AckRequest | LatencyProbe | Unmanaged


class Inlet:
    """Checks what arrives, queues it, answers ack requests in their turn.

    Ack requests stand in the same queue as the records, so an `Ack` says that everything sent
    before the question was processed. Gearpump: `TaskActor`'s queue and `SecurityChecker`.
    """

    def __init__(self, task_id: TaskId, upstream: Iterable[TaskId]) -> None:
        self._task_id = task_id
        self._counts = ReceiverCounts()
        self._queue: deque[QueuedMessage] = deque()
        self.watermarks = WatermarkTracker(upstream)
        self.records_queued = 0

    def receive(self, message: QueuedMessage) -> None:
        """Queue a message; data of stale sessions and duplicates are dropped and counted.

        Raises:
            MessageLost: a gap in the sequence numbers of a link.
        """
        if type(message) is DataMessage:
            verdict = self._counts.on_data(message.source, message.session, message.seq)
            if verdict != "accept":
                return
            self.records_queued += len(message.batch)
        elif type(message) is InitialAckRequest and not self._counts.on_open(
            message.source, message.session
        ):
            return
        self._queue.append(message)

    def next(self) -> QueuedMessage | None:
        """Take the oldest message."""
        return self._queue.popleft() if self._queue else None

    def on_processed(self, message: DataMessage) -> bool:
        """Count a data message whose records are processed; return whether the watermark moved."""
        self.records_queued -= len(message.batch)
        self._counts.on_processed(message.source, message.session, message.counted)
        return self.watermarks.on_link(message.source, message.watermark_ms, idle=message.idle)

    def answer(self, request: AckRequest | InitialAckRequest) -> Ack | None:
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
        )

    @property
    def stale(self) -> int:
        """Messages of stale sessions that were dropped."""
        return self._counts.stale

    @property
    def duplicates(self) -> int:
        """Messages that came twice; the second was dropped."""
        return self._counts.duplicates

    def __bool__(self) -> bool:
        return bool(self._queue)
