"""Runs one task again: over what was recorded of its input, or over its source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gearpy.errors import ProtocolError
from gearpy.ids import MIN_MS, SessionId, TaskId
from gearpy.messages.data import (
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    Unmanaged,
)
from gearpy.messages.summaries import ErrorCard
from gearpy.task.runtime.digest import OutputDigest
from gearpy.task.runtime.inlet import Injected
from gearpy.task.runtime.recording import LinkPlace, Recording, is_same_output
from gearpy.task.runtime.runner import TaskRunner

_SESSION: Final = SessionId(1)
#: Later than a task asks for an acknowledgement that it needs.
_ACK_MS: Final = 1000


class RerunClock:
    """The time of a run that is repeated: that of the record at hand, as it was then.

    Args:
        wall_ms: the time of a task that reads its source again, which is that of now.
    """

    def __init__(self, wall_ms: Callable[[], int] = lambda: 0) -> None:
        self._wall_ms = wall_ms
        self._then_ms = 0

    def read(self) -> int:
        return max(self._then_ms, self._wall_ms())

    def reach(self, at_ms: int) -> None:
        """Go on to a time, unless it has passed."""
        self._then_ms = max(self._then_ms, at_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDifference:
    """The first message after which a task put out something else than then.

    Attributes:
        place: number of the message in its epoch, from 1.
        then: so many records were put out ...
        now: ... and so many now; where they are equal, the records differ.
    """

    epoch: int
    place: int
    then: int
    now: int


class Rerun:
    """One task alone: its input is given by hand, its output is counted and dropped.

    It is the runner of the task as it is made for an executor; only its clock is another one.

    Args:
        runner: not opened yet, with the state that it goes on from.
        output: adds up what the task puts out.
        clock: the one that the runner was given.
        wait: lets what the task waits for go on; false when that has taken too long.

    Attributes:
        messages, records: so many were taken.
        compared: after so many messages the output was compared.
        outputs: so many records were put out.
        difference: the first one that there was.
        rejects: so many records were put aside.
        rejected: the error of the first of them; None if there is none.
    """

    def __init__(
        self,
        runner: TaskRunner,
        *,
        output: OutputDigest,
        clock: RerunClock,
        wait: Callable[[], bool] = lambda: False,
    ) -> None:
        self.messages = self.records = self.compared = self.outputs = 0
        self.difference: OutputDifference | None = None
        self.rejects = 0
        self.rejected: ErrorCard | None = None
        self._joined = 0  # Messages whose output is told with that of a later one.
        self._has_begun = False
        self._runner = runner
        self._clock = clock
        self._wait = wait
        self._digest = output
        self._seqs: dict[TaskId, int] = {}
        self._sent: dict[TaskId, int] = {}
        self._links: dict[int, LinkPlace] = {}

    def open(self) -> None:
        """Open the task, as at the start of an attempt.

        Raises:
            OperatorError: it raised; the same for all methods here.
        """
        info = self._runner.info
        for source in info.upstream:
            self._runner.receive(InitialAckRequest(_SESSION, source, info.task_id))
        self._runner.open(MIN_MS)
        if info.upstream:  # A source would read on and on.
            self._digest.in_any_order = self._runner.context.in_any_order
            self._runner.ports.listen(self._digest.add)
            self._settle()

    def run(self, recordings: Sequence[Recording]) -> None:
        """Give the task all that was recorded, epoch by epoch, and compare its output.

        Called again, it goes on with what was recorded next.
        """
        for recording in recordings:
            if self._has_begun:
                for source in self._runner.info.upstream:
                    packed = source.packed()
                    known = self._links.get(packed)
                    link = known or LinkPlace(source=packed, watermark_ms=MIN_MS, idle=False)
                    self._tell(link, recording.first)
            for link in () if self._has_begun else recording.links:
                self._links[link.source] = link
                self._tell(link, recording.first)
            self._has_begun = True
            self._digest.take()
            self._joined = 0
            for place, entry in enumerate(recording.entries, 1):
                is_last = bool(recording.failed) and place == len(recording.entries)
                self._clock.reach(entry.at_ms)
                self.messages += 1
                self.records += entry.records
                message = entry.message()
                if isinstance(message, Injected):
                    self._runner.inject(message.value, message.event_time_ms)
                else:
                    self._receive(message)
                self._settle()
                if entry.is_joined:
                    self._joined += 1
                    continue
                outputs, digest = self._digest.take()
                self.outputs += outputs
                if is_last:
                    continue
                self.compared += 1 + self._joined
                self._joined = 0
                if self.difference is None and not is_same_output(entry, outputs, digest):
                    self.difference = OutputDifference(
                        epoch=recording.epoch, place=place, then=entry.outputs, now=outputs
                    )

    def inject(self, value: bytes, event_time_ms: int) -> None:
        self._runner.inject(value, event_time_ms)
        self.records += 1
        self._settle()

    def read(self, is_enough: Callable[[int], bool]) -> None:
        """Let a task without inputs read its source.

        Args:
            is_enough: is asked now and then, with the number of records that were read.
        """
        counters = self._runner.context.counters
        before = counters.records_in
        while not is_enough(self.records):
            self._turn()
            self.records = counters.records_in - before

    def stop(self) -> None:
        """Stop the task; called once, also after it has raised."""
        self._runner.stop(completed=False)

    # --------------------------------------------------------------------------------------

    def _tell(self, link: LinkPlace, epoch: int) -> None:
        bare = DataMessage(
            session=_SESSION,
            source=TaskId.unpack(link.source),
            target=self._runner.info.task_id,
            seq=0,
            batch=Batch([], []),
            watermark_ms=link.watermark_ms,
            idle=link.idle,
            epoch=epoch,
        )
        self._receive(bare)
        self._settle()

    def _receive(self, message: DataMessage | Unmanaged) -> None:
        source = message.source
        if source not in self._runner.info.upstream:
            raise ProtocolError(f"task {source} sends nothing to task {self._runner.info.task_id}")
        if isinstance(message, DataMessage):
            self._seqs[source] = message.seq = self._seqs.get(source, 0) + 1
            message.session = _SESSION
            self._links[source.packed()] = LinkPlace(
                source=source.packed(), watermark_ms=message.watermark_ms, idle=message.idle
            )
        self._runner.receive(message)

    def _settle(self) -> None:
        runner = self._runner
        while self._turn() or (runner.task is not None and runner.task.is_working and self._wait()):
            if self._runner.is_blocked:  # It asks for an acknowledgement after a while.
                self._clock.reach(self._clock.read() + _ACK_MS)

    def _turn(self) -> bool:
        """Give one turn; return whether there may be more to do now."""
        wake_ms = self._runner.turn()
        sent, me = [*self._runner.outbox], self._runner.info.task_id
        self._runner.outbox.clear()
        for message in sent:
            if isinstance(message, DataMessage):
                self._sent[message.target] = self._sent.get(message.target, 0) + message.counted
            elif isinstance(message, AckRequest):
                received = self._sent.get(message.target, 0)
                self._runner.receive(
                    Ack(message.session, message.target, me, message.seq, received)
                )
        self._runner.snapshots.clear()
        rejected = self._runner.rejected
        if rejected and self.rejected is None:
            self.rejected = rejected[0].error
        self.rejects += len(rejected)
        rejected.clear()
        is_due = wake_ms is not None and wake_ms <= self._clock.read()
        return bool(sent) or is_due or self._runner.is_blocked
