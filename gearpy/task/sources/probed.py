"""How much a source task reads while an input is looked for that ends processes.

See `gearpy.core.app.deadly.probing`, which decides; here it is done.
"""

from collections import Counter
from typing import Final

from gearpy.core.app.deadly.probing import quota
from gearpy.messages.app import LeftOut, SourceProbe
from gearpy.task.api.interfaces import TaskContext

#: Asks for the end of the epoch, and lets the task do what it does without reading.
_WANTS_EPOCH: Final = 0.5


class ProbedReading:
    """Counts the records that are read, and has the epoch end when that is enough.

    Nothing is read before the epoch with what was read last is complete.
    """

    def __init__(self, probe: SourceProbe, context: TaskContext) -> None:
        self._probe = probe
        self._context = context
        self._epochs = 0  # Complete ones behind which it reads on.
        self._epoch = context.epoch  # In which it has read last.
        self._read = Counter[str]()  # Since then, by partition.
        self.leaves_out: LeftOut = probe.leaves_out  #: What is still to be left out.

    @property
    def cause(self) -> str:
        return self._probe.cause

    @property
    def is_over(self) -> bool:
        return self._quota is None

    @property
    def epoch_fill(self) -> float:
        if self._context.epoch > self._epoch or self.leaves_out or (limit := self._quota) is None:
            return 0.0
        names = self._probe.partitions
        if names is None:
            return _WANTS_EPOCH if self._read.total() >= limit else 0.0
        return _WANTS_EPOCH if all(self._read[each] >= limit for each in names) else 0.0

    def room(self, partition: str, wanted: int) -> int:
        names = self._probe.partitions
        if self.leaves_out:
            return 1 if names is not None and partition in names else 0
        limit = self._quota
        if limit is None:
            return wanted
        if names is None:
            return min(wanted, limit - self._read.total())
        return min(wanted, limit - self._read[partition]) if partition in names else 0

    def on_read(self, partition: str, count: int) -> None:
        self._epoch, self.leaves_out = self._context.epoch, ""
        self._read[partition] += count

    def on_commit(self, epoch: int) -> None:
        if epoch >= self._epoch:
            self._epochs += 1
            self._read.clear()

    @property
    def _quota(self) -> int | None:
        return 0 if self._probe.leaves_out else quota(self._probe.records, self._epochs)
