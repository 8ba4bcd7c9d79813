"""Records of the quarantine that were given back to tasks, until an epoch has them for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gearpy.ids import TaskId
from gearpy.messages.client import QuarantinedRecord


class ReplayNews(NamedTuple):
    """The steps to take for the records of one region."""

    again: tuple[QuarantinedRecord, ...] = ()
    done: tuple[int, ...] = ()


@dataclass(slots=True)
class _Given:
    """A record, and the attempt that it was given to.

    ``from_epoch``: the first epoch that surely has it; None until its executor has it.
    """

    record: QuarantinedRecord
    task: TaskId
    attempt: int
    from_epoch: int | None = None

    def is_in(self, attempt: int, epoch: int) -> bool:
        """Tell whether an epoch of an attempt surely has it."""
        return self.attempt == attempt and self.from_epoch is not None and self.from_epoch <= epoch


class GivenBack:
    """Gives records once more that a restart would lose, as no source reads them again.

    Invariant: each record is given to an attempt once, and to a later attempt only if no epoch of
    an earlier one surely has it.
    """

    def __init__(self) -> None:
        self._given: dict[int, _Given] = {}
        self._done: dict[int, None] = {}  # Numbers are in order, and not used again.

    @property
    def done(self) -> tuple[int, ...]:
        return tuple(self._done)

    def begin(self, record: QuarantinedRecord, task: TaskId, attempt: int) -> bool:
        if record.number in self._given or record.number in self._done:
            return False
        self._given[record.number] = _Given(record, task, attempt)
        return True

    def on_taken(self, number: int, attempt: int, epoch: int) -> None:
        given = self._given.get(number)
        if given is not None and given.attempt == attempt:
            given.from_epoch = epoch

    def in_epochs(self, ended: Sequence[tuple[int, int]]) -> list[int]:
        """Return the numbers of the records that an epoch has, of these attempts and epochs."""
        return [
            number
            for number, each in self._given.items()
            if any(each.is_in(*epoch) for epoch in ended)
        ]

    def tasks(self) -> frozenset[TaskId]:
        return frozenset(each.task for each in self._given.values())

    def next_steps(self, task: TaskId, running: int | None, stored: tuple[int, int]) -> ReplayNews:
        """Return the steps to take for the records of a task."""
        mine = {n: each for n, each in self._given.items() if each.task == task}
        done = tuple(number for number, each in mine.items() if each.is_in(*stored))
        for number in done:
            del self._given[number]
            self._done[number] = None
        again = []
        for number in mine.keys() - done:
            each = mine[number]
            if running is not None and running != each.attempt:
                each.attempt, each.from_epoch = running, None
                again.append(each.record)
        return ReplayNews(tuple(sorted(again, key=lambda each: each.number)), done)
