"""Stages that keep nothing: branches, and lines in the log."""

from collections.abc import Callable, Iterator
from typing import Any

from gearpy.messages.data import Batch
from gearpy.task.api.failure import USER_ERRORS, shown
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.sides import Side
from gearpy.task.chain.stage import Stage


class BranchStage(Stage):
    """Wraps each record for the side output of the first predicate that is true of it.

    The last stage of its chain, since its output is wrapped.

    Args:
        predicates: with the tag under which a record leaves the task; "" drops it.
        default: tag for records that no predicate is true of; "" drops them.
    """

    def __init__(
        self,
        context: TaskContext,
        name: str,
        predicates: list[tuple[Callable[[Any], object], str]],
        default: str,
    ) -> None:
        self.name = name
        self._rejects = context.rejects
        self._predicates = predicates
        self._default = default

    def process(self, batch: Batch) -> Iterator[Batch]:
        out: list[Any] = []
        times: list[int] = []
        for record, time in zip(batch.values, batch.timestamps, strict=True):
            try:
                tag = self._default
                for holds, name in self._predicates:
                    if holds(record):
                        tag = name
                        break
            except USER_ERRORS as error:
                self._rejects.blame(self.name, error, record, time, place=self.place)
                continue
            if tag:
                out.append(Side(tag, record))
                times.append(time)
        if out:
            yield batch.giving(out, times)


class LogStage(Stage):
    """Writes a line to the log for the first of every so many records, and passes all on.

    Args:
        level: of the lines; a number of `logging`.
    """

    def __init__(self, context: TaskContext, name: str, *, level: int, every: int) -> None:
        self.name = name
        self._log = context.log
        self._level = level
        self._every = every
        self._passed = 0

    def process(self, batch: Batch) -> Iterator[Batch]:
        if self._log.isEnabledFor(self._level):
            for at in range(-self._passed % self._every, len(batch), self._every):
                record, time = shown(batch.values[at]), batch.timestamps[at]
                self._log.log(self._level, "%s: %s at %d", self.name, record, time)
        self._passed += len(batch)
        yield batch
