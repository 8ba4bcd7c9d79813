"""The epochs of a `Simulation`: asked for, stored, committed, given up, gone back to.

Coordinator, store and sinks' commits in one, with their failures. In a cluster that is the
work of `RegionEpochs`, `EpochFiles` and `CommitRound`; see `ClusterSimulation`, which runs those.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from gearpy.core.epoch.epochs import Cut
from gearpy.core.epoch.pace import CutTimes, EpochCut
from gearpy.ids import MAX_MS, TaskId
from gearpy.messages.app import TaskClock
from gearpy.task.api.snapshots import TaskResume, TaskSnapshot

_RETAINED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFaults:
    """The faults of epochs in a simulation. Shares are from 0 to 1.

    Attributes:
        store_ms: an epoch that all tasks have ended is stored after up to this long.
        commit_ms: tasks are told that it is complete up to this much later.
        given_up: share of epochs given up when the next one is due and they are not complete.
        commits_lost: share of commits that are lost; they are said again after a while.
        commits_repeated: share of commits that are said twice.
        damaged: share of crashes after which the newest epoch cannot be read.
        told_again: share of epochs at whose end tasks hand over all of their state, as they do
            when what was stored before is damaged.
    """

    store_ms: int = 0
    commit_ms: int = 0
    given_up: float = 0.0
    commits_lost: float = 0.0
    commits_repeated: float = 0.0
    damaged: float = 0.0
    told_again: float = 0.0


class _Complete(NamedTuple):
    epoch: int
    resumes: Mapping[TaskId, TaskResume]


class SimulatedEpochs:
    """The epochs of a simulation: the one being ended, and the complete ones to go on from.

    Invariant: one epoch is being ended at a time; it is complete when every task has given its
    snapshot of exactly this epoch, and that is stored. One that was given up never is; what was
    handed over for it is part of the next.

    Args:
        tasks: all of the application.
        cut: where epochs end.
        faults: of epochs and commits.
    """

    def __init__(self, tasks: Iterable[TaskId], *, cut: EpochCut, faults: EpochFaults) -> None:
        self._tasks = tuple(tasks)
        self._faults = faults
        self._cut_times = CutTimes() if cut == "event-time" else None
        self._history: list[_Complete] = []
        self._waiting: dict[TaskId, list[TaskSnapshot]] = {}
        self._committed: dict[TaskId, int] = {}
        self._cut: Cut | None = None
        self._is_ended = False  # All tasks have ended it; it is being stored.
        self.asked_epoch = 0  #: The newest one that was asked for.
        self.given_up = 0  #: The number of epochs that were given up.
        self.missed_cuts = 0  #: So many complete ones had an event time that came too late.
        self.by_event_time = 0  #: So many complete ones ended at an event time.

    # -- questions -------------------------------------------------------------------------

    @property
    def ending(self) -> Cut | None:
        return self._cut

    @property
    def complete_epoch(self) -> int:
        """The newest complete epoch; 0 if there is none."""
        return self._history[-1].epoch if self._history else 0

    @property
    def resumes(self) -> Mapping[TaskId, TaskResume]:
        """The state from which each task goes on."""
        return self._history[-1].resumes if self._history else {}

    @property
    def committed_epoch(self) -> int:
        """The newest epoch that all tasks know to be complete, and have shown."""
        return min((self._committed.get(task, 0) for task in self._tasks), default=0)

    def uncommitted(self, epoch: int) -> list[TaskId]:
        """Return the tasks that do not know that an epoch is complete; none if a newer one is."""
        if epoch != self.complete_epoch:
            return []
        return [task for task in self._tasks if self._committed.get(task, 0) < epoch]

    # -- events ----------------------------------------------------------------------------

    def begin(self, clocks: Iterable[TaskClock]) -> Cut:
        """Ask for the end of the next epoch; one that is not complete is given up."""
        if self._cut is not None:
            cut = self._cut
            self.given_up += 1
            if self._cut_times is not None and cut.cut_time_ms is not None:
                self._cut_times.on_aborted()
        self.asked_epoch += 1
        times, cut_time_ms = list(clocks), None
        if self._cut_times is not None and any(each.clock_ms != MAX_MS for each in times):
            for each in times:
                self._cut_times.on_clock(each)
            cut_time_ms = self._cut_times.next_ms()
        self._cut = Cut(self.asked_epoch, cut_time_ms)
        self._is_ended = False
        return self._cut

    def on_snapshots(self, task: TaskId, snapshots: Sequence[TaskSnapshot]) -> int | None:
        """Take the snapshots of a task; return the epoch if it is to be stored now."""
        self._waiting.setdefault(task, []).extend(snapshots)
        if self._cut is None or self._is_ended or not snapshots:
            return None
        epoch = self._cut.epoch
        self._is_ended = all(
            any(each.epoch == epoch for each in self._waiting.get(task, ())) for task in self._tasks
        )
        return epoch if self._is_ended else None

    def on_stored(self, epoch: int) -> bool:
        """Encode the snapshots of an epoch, not before; False if it was given up meanwhile."""
        if self._cut is None or self._cut.epoch != epoch:
            return False
        if self._cut_times is not None and self._cut.cut_time_ms is not None:
            has_missed = any(
                each.has_missed_cut
                for snapshots in self._waiting.values()
                for each in snapshots
                if each.epoch == epoch
            )
            self._cut_times.on_complete(has_missed=has_missed)
            self.by_event_time += not has_missed
            self.missed_cuts += has_missed
        resumes = {task: self._resume(task, epoch) for task in self._tasks}
        self._history = [*self._history, _Complete(epoch, resumes)][-_RETAINED:]
        self._cut = None
        return True

    def on_committed(self, task: TaskId, epoch: int) -> None:
        """Note that a task has shown the records of an epoch, and of the epochs before it."""
        self._committed[task] = max(epoch, self._committed.get(task, 0))

    def on_crash(self, rng: Random) -> bool:
        """Go on from the newest epoch, or the one before; tell whether the newest was damaged.

        A relaunched app master does not know which numbers were asked for and never stored.
        """
        is_damaged = len(self._history) > 1 and rng.random() < self._faults.damaged
        if is_damaged:
            self._history.pop()
        if rng.random() < 0.5:  # noqa: PLR2004 - either is as good
            self.asked_epoch = self.complete_epoch
        self._waiting, self._committed = {}, {}
        self._cut = None
        if self._cut_times is not None:
            self._cut_times.on_restart()
        return is_damaged

    # --------------------------------------------------------------------------------------

    def _resume(self, task: TaskId, epoch: int) -> TaskResume:
        due = [each for each in self._waiting[task] if each.epoch <= epoch]
        self._waiting[task] = [each for each in self._waiting[task] if each.epoch > epoch]
        resume = self.resumes.get(task)
        for each in due:
            resume = each.resume(resume)
            if each.delta is not None:
                each.delta.release()
        assert resume is not None, "it has given its snapshot of this epoch"
        return resume
