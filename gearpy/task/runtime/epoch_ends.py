"""The ends of a task's epochs: when one was asked for, and output that waits for the next."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from gearpy.ids import MAX_MS
from gearpy.messages.table import oldest_of
from gearpy.task.api.interfaces import Task


class CommitRequest:
    """Which epochs a task was told to be complete; each is shown once, but answered as often."""

    def __init__(self) -> None:
        self._asked = 0
        self._shown = 0

    def ask(self, epoch: int) -> None:
        """Take a request."""
        self._asked = max(self._asked, epoch)

    @property
    def is_due(self) -> bool:
        """Whether a request waits for an answer."""
        return self._asked > 0

    def show(self, task: Task) -> int | None:
        """Let the task show the results of an epoch.

        Returns:
            Which one; None as long as the answer has to wait for `Task.is_delivered`.
        """
        epoch = self._asked
        if epoch > self._shown:
            task.on_commit(epoch)
            self._shown = epoch
        if not task.is_delivered:
            return None
        self._asked = 0
        return epoch


class CutRequest:
    """Notes the requests to a task without inputs to end an epoch, perhaps by event time."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch - 1  #: The newest one that was asked to end.
        self._is_by_time = False
        self._is_last = False
        self.is_over = False  #: The last epoch that there will be has ended.
        self.has_missed = False  #: A record that is not older than the cut time was sent before.

    def ask(
        self, task: Task | None, epoch: int, cut_time_ms: int | None, *, is_last: bool = False
    ) -> None:
        """Take a request; asked again for an epoch, nothing changes."""
        if epoch <= self.epoch:
            return
        self.epoch, self._is_last = epoch, is_last
        self._is_by_time = cut_time_ms is not None
        if cut_time_ms is not None:
            self.has_missed = task is None or not task.begin_cut(cut_time_ms)
        elif task is not None:  # Where it is, also if it was at a cut that was given up.
            task.end_cut()

    def is_due(self, task: Task | None, epoch: int) -> bool:
        """Tell whether the epoch that the task is in was asked to end, and may end now."""
        return self.epoch >= epoch and task is not None and task.is_cut

    def on_ended(self, task: Task) -> bool:
        """Let the task go on behind the end; tell whether it may have held records back."""
        was_by_time, self._is_by_time, self.has_missed = self._is_by_time, False, False
        task.end_cut()
        self.is_over = self.is_over or self._is_last
        return was_by_time


class LaterOutput:
    """Keeps the output of an unaligned task for epochs that have not begun."""

    def __init__(self, records_max: int) -> None:
        self._records_max = records_max
        self._records = 0
        self._waiting: deque[tuple[int, list[Any], list[int]]] = deque()

    def add(self, epoch: int, values: list[Any], timestamps: list[int]) -> bool:
        """Keep output for an epoch; tell whether it is too much, though it is kept."""
        self._waiting.append((epoch, values, timestamps))
        self._records += len(values)
        return self._records > self._records_max

    def take(self, epoch: int) -> Iterator[tuple[list[Any], list[int]]]:
        """Take out the output of an epoch and of earlier ones, in the order of output."""
        due = [each for each in self._waiting if each[0] <= epoch]
        if due:
            self._waiting = deque(each for each in self._waiting if each[0] > epoch)
            self._records -= sum(len(values) for _, values, _ in due)
        return ((values, times) for _, values, times in due)

    @property
    def oldest_ms(self) -> int:
        """The oldest event time that waits; `MAX_MS` if nothing does."""
        return min((oldest_of(times, MAX_MS) for _, _, times in self._waiting), default=MAX_MS)
