"""The ends of a task's epochs: when one was asked for, and output that waits for the next."""

from collections import deque
from collections.abc import Iterator

from msgspec.structs import replace

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.app import SourceHalt
from gearpy.messages.data import Batch
from gearpy.messages.table import oldest_of
from gearpy.task.api.interfaces import Task


class CommitRequest:
    """The epochs that a task was told to be complete; each is shown once, but answered as often."""

    def __init__(self) -> None:
        self.answers: list[int] = []  #: Epochs that are shown; emptied by the owner.
        self._asked = 0
        self._shown = 0

    @property
    def newest(self) -> int:
        """The newest epoch that is known to be complete; 0: none."""
        return max(self._asked, self._shown)

    def ask(self, epoch: int) -> None:
        self._asked = max(self._asked, epoch)

    def show(self, task: Task | None) -> None:
        """Let the task show the results of an epoch, if it was asked to.

        The answer waits for `Task.is_delivered`.
        """
        epoch = self._asked
        if not epoch or task is None:
            return
        if epoch > self._shown:
            task.on_commit(epoch)
            self._shown = epoch
        if not task.is_delivered:
            return
        self._asked = 0
        self.answers.append(epoch)


class CutRequest:
    """Notes the requests to a task without inputs to end an epoch, perhaps by event time.

    Beside that it may have to halt at an event time, whatever epochs end meanwhile.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch - 1  #: The newest one that was asked to end.
        self._cut_ms = MAX_MS
        self._halt_ms = MAX_MS
        self._halt: SourceHalt | None = None
        self._is_last = False
        self.is_over = False  #: The last epoch that there will be has ended.
        self._is_read = False  # Nothing more is to be read, in no epoch.
        self.has_missed = False  #: A record that is not older than the cut time was sent before.

    def ask(
        self, task: Task | None, epoch: int, cut_time_ms: int | None, *, is_last: bool = False
    ) -> None:
        """Take a request; asked again for an epoch, nothing changes."""
        if epoch <= self.epoch:
            return
        self.epoch, self._is_last = epoch, is_last
        self._cut_ms = MAX_MS if cut_time_ms is None else cut_time_ms
        if cut_time_ms is not None:
            self.has_missed = task is None or not self._hold_back(task)
        elif task is not None:  # Where it is, also if it was at a cut that was given up.
            self._hold_back(task)

    def halt(self, task: Task | None, time_ms: int) -> None:
        """Have the task send nothing of an event time and later; `MAX_MS` lets it go on.

        At `MIN_MS` it reads nothing more, and its epochs end where it is.
        """
        self._is_read = time_ms == MIN_MS
        if self._is_read:
            self._halt = SourceHalt(time_ms=time_ms, state="reached")
            return
        is_able = task is None or type(task).begin_cut is not Task.begin_cut
        self._halt_ms = time_ms if is_able else MAX_MS
        self._halt = None
        if time_ms < MAX_MS:
            self._halt = SourceHalt(time_ms=time_ms, state="open" if is_able else "unable")
        if task is not None and not self._hold_back(task):
            self.has_missed = self._cut_ms < MAX_MS

    def read_at_ms(self, wanted_ms: int | None) -> int | None:
        return None if self._is_read else wanted_ms

    def begin(self, task: Task) -> None:
        if self._halt is not None:
            self.halt(task, self._halt.time_ms)

    def halted(self, task: Task | None, watermark_ms: int) -> SourceHalt | None:
        if self._halt is None or self._halt.state != "open" or task is None:
            return self._halt
        context = task.context
        if context.counters.held_records > context.limits.held_records_max:
            return replace(self._halt, state="full")
        has_reached = watermark_ms >= self._halt_ms and (self._cut_ms < MAX_MS or task.is_cut)
        return replace(self._halt, state="reached") if has_reached else self._halt

    def is_due(self, task: Task | None, epoch: int) -> bool:
        if self.epoch < epoch or task is None:
            return False
        return self._cut_ms == MAX_MS or task.is_cut

    def on_ended(self, task: Task) -> bool:
        """Let the task go on behind the end; tell whether it may have held records back."""
        was_by_time, self._cut_ms, self.has_missed = self._cut_ms < MAX_MS, MAX_MS, False
        self._hold_back(task)
        self.is_over = self.is_over or self._is_last
        return was_by_time

    def _hold_back(self, task: Task) -> bool:
        at_ms = min(self._cut_ms, self._halt_ms)
        if at_ms == MAX_MS:
            task.end_cut()
            return True
        if task.begin_cut(at_ms):
            return at_ms == self._cut_ms
        if at_ms < self._halt_ms or self._halt is None:
            return False
        self._halt, self._halt_ms = replace(self._halt, state="passed"), MAX_MS
        return self._hold_back(task)


class LaterOutput:
    """Keeps the output of an unaligned task for epochs that have not begun."""

    def __init__(self, records_max: int) -> None:
        self._records_max = records_max
        self._records = 0
        self._waiting: deque[tuple[int, Batch]] = deque()

    def add(self, epoch: int, batch: Batch) -> bool:
        self._waiting.append((epoch, batch))
        self._records += len(batch)
        return self._records > self._records_max

    def take(self, epoch: int) -> Iterator[Batch]:
        """Take out the output of an epoch and of earlier ones, in the order of output."""
        due = [each for each in self._waiting if each[0] <= epoch]
        if due:
            self._waiting = deque(each for each in self._waiting if each[0] > epoch)
            self._records -= sum(len(batch) for _, batch in due)
        return (batch for _, batch in due)

    @property
    def oldest_ms(self) -> int:
        times = (oldest_of(batch.timestamps, MAX_MS) for _, batch in self._waiting)
        return min(times, default=MAX_MS)
