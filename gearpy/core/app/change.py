"""A change of a running application to another version of its graph, and the trial of that one."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.app.ahead import ReadingAhead
from gearpy.core.app.decisions import ChangeGivenUp, Command, GoBack, RecoveryLimits
from gearpy.core.app.executors import ExecutorManager
from gearpy.core.app.hosts import bound_slots
from gearpy.core.app.regions.at_time import HaltOrders, TimedHalt
from gearpy.core.dag.graph import Dag, place, without_regions
from gearpy.core.dag.state_moves import Layout
from gearpy.core.master.slots import equal_parts, fitting_parts, misfit
from gearpy.ids import MAX_MS, MIN_MS, ExecutorId, TaskId, WorkerId
from gearpy.messages.summaries import ErrorCard

#: So long the old version goes on while slots for the new one are waited for. What has none then
#: may need those of the old one.
PREPARE_MS: Final = 10_000
#: A process of a version on trial that gives no sign for so long may be frozen.
_SILENT_MS: Final = 1_000


class VersionChange:
    """A change under way: processes start, then an epoch ends in the regions that it touches.

    Until that epoch is stored the old version runs, so that giving up costs a restart at most.
    """

    def __init__(
        self,
        dag: Dag,
        executor_ids: Iterable[ExecutorId],
        *,
        kept: frozenset[int],
        ahead: ReadingAhead,
        halt: TimedHalt | None = None,
        now_ms: int,
        timeout_ms: int,
    ) -> None:
        self.dag = dag
        self.ahead = ahead
        self.halt = halt
        self.kept = kept
        self.executor_ids = frozenset(executor_ids)
        self.timeout_ms = timeout_ms
        #: Slots of each worker that nobody has; None: nobody has told yet, or workers are added.
        self.free_slots: Mapping[WorkerId, int] | None = None
        self.is_draining = False  #: The sources were told to end the last epoch of the old version.
        self.is_told = False  #: The app master was told to put the new version in its place.
        self.drained_ms = self.ended_ms = 0  #: When that was, and when all of it was stored.
        self.drain_at_ms = now_ms + PREPARE_MS  #: Until then it waits for slots of its own.
        self._until_ms = MAX_MS

    def is_there(self, running: Container[ExecutorId]) -> bool:
        return all(each in running for each in self.executor_ids)

    def waits_for_slots(self, now_ms: int) -> bool:
        return not self.is_draining and now_ms >= self.drain_at_ms

    def lacks(self, missing: Sequence[int], before: Counter[WorkerId | None], now_ms: int) -> str:
        """Return the text that says which slots are missing also without the old version.

        Empty if they may be enough, or it is too early to tell.
        """
        free = self.free_slots
        if not self.waits_for_slots(now_ms) or free is None:
            return ""
        places = Counter[WorkerId | None](free) + before
        if sum(missing) > places.total():
            text = (
                f"it needs {sum(missing)} more slots, and {sum(free.values())} are free, "
                f"{before.total()} with the version before"
            )
        elif None not in before and (size := misfit(missing, [*places.values()])):
            wanted = sum(each >= size for each in missing)
            there = sum(each // size for each in places.values())
            text = (
                f"it needs {size} slots on one worker for each of {wanted} executors, and there "
                f"are {there} such places, with those of the version before"
            )
        else:
            return ""
        return (
            f"{text}: add workers, raise worker.slots, ask for fewer tasks, or stop other "
            "applications"
        )

    def drain(self, now_ms: int) -> None:
        self.is_draining, self._until_ms = True, now_ms + self.timeout_ms
        self.drained_ms = now_ms

    def is_late(self, now_ms: int) -> bool:
        return now_ms >= self._until_ms


class WaitingChange(Struct, frozen=True, kw_only=True):
    """A change that begins when event time comes near the time at which it is to be made."""

    dag: Dag
    executors: int
    kept: frozenset[int]
    old: Layout | None
    halt: TimedHalt
    tries: int = 3  # One lost process is no reason to give it up.


class PauseTimes(Struct):
    """The times of one change at which each part of its pause was over, in ms.

    Attributes:
        drained: the last epoch of the old version began to end.
        ended: it was stored, all sinks knew, and the tasks had stopped.
    """

    drained: int
    ended: int
    begun: int
    made: int = 0

    def text(self, now_ms: int) -> str:
        times = (self.drained, self.ended, self.begun, self.made, now_ms)
        parts = zip(
            ("last epoch", "put in place", "tasks made", "started"), pairwise(times), strict=True
        )
        told = ", ".join(f"{name} {(end - begin) / 1000:.3f} s" for name, (begin, end) in parts)
        return f"paused {(now_ms - self.drained) / 1000:.3f} s: {told}"


class Trial:
    """The trial of a version that has just begun; it passes when its first epochs are stored.

    Until then sinks commit nothing of it, so the version before can take its place again. Time in
    which a process is silent does not count: it may be frozen, and try nothing. The first epoch
    ends no sooner than ``lasts_ms`` after all tasks are at work.
    """

    def __init__(self, *, lasts_ms: int, timeout_ms: int, now_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._lasts_ms = lasts_ms
        self._until_ms = now_ms + lasts_ms + timeout_ms
        self._silent_ms = min(_SILENT_MS, lasts_ms // 4)
        self._heard: dict[ExecutorId, int] = {}
        self._asked: dict[ExecutorId, int] = {}
        self._checked_ms = now_ms
        self.first_end_ms = MAX_MS  #: No epoch ends earlier.

    @property
    def is_begun(self) -> bool:
        return self.first_end_ms < MAX_MS

    def begin(self, now_ms: int) -> None:
        self.first_end_ms = now_ms + self._lasts_ms
        self._until_ms = self.first_end_ms + self.timeout_ms
        self._checked_ms = now_ms
        self._heard.clear()

    def on_sign(self, executor_id: ExecutorId, now_ms: int) -> None:
        self._heard[executor_id] = now_ms

    def on_tick(self, executors: Iterable[ExecutorId], now_ms: int) -> list[ExecutorId]:
        """Let the end wait while one of these is silent; return those to be asked for a sign."""
        passed_ms, self._checked_ms = now_ms - self._checked_ms, now_ms
        if not self.is_begun or now_ms - passed_ms >= self.first_end_ms:
            return []
        silence = {each: now_ms - self._heard.setdefault(each, now_ms) for each in executors}
        if max(silence.values(), default=0) > self._silent_ms:
            self.first_end_ms += passed_ms
            self._until_ms += passed_ms
        soon_ms = self._silent_ms // 2
        due = [
            each
            for each, silent_ms in silence.items()
            if min(silent_ms, now_ms - self._asked.get(each, MIN_MS)) >= soon_ms
        ]
        self._asked.update(dict.fromkeys(due, now_ms))
        return due

    def begin_again(self) -> None:
        self.first_end_ms = MAX_MS

    def is_late(self, now_ms: int) -> bool:
        return now_ms >= self._until_ms


class Succession:
    """The executors of a version, of the one before it and of the next one; a change, a trial.

    Invariant: an executor belongs to one version; those of the version before are being stopped,
    but for the ``lasting`` ones, in which regions are that the change did not touch.
    """

    def __init__(
        self,
        manager: ExecutorManager,
        executor_ids: Iterable[ExecutorId],
        *,
        kept: frozenset[int] = frozenset(),
        untried: Iterable[int] = (),
        lasting: Iterable[ExecutorId] = (),
        limits: RecoveryLimits,
        now_ms: int,
        is_trial: bool,
    ) -> None:
        self._manager = manager
        self._limits = limits
        self.executor_ids = frozenset(executor_ids)
        self.kept = kept
        self.untried = kept.union(untried)  #: The regions that a trial is not about.
        self.lasting = frozenset(lasting)  #: The processes of versions before that still run.
        self.before = frozenset(manager.slots) - self.executor_ids - self.lasting
        #: By executor, the graph that its newest launch is to build. What goes on from the version
        #: before may have been launched again just then, with the program of that version.
        self.graphs: dict[ExecutorId, Dag] = {}
        self.halt_orders = HaltOrders()
        self.saving: dict[int, int] = {}  #: A savepoint waits for these epochs, by region.
        self.waiting: WaitingChange | None = None
        self._waited: WaitingChange | None = None  # The change that is under way, as it waited.
        self.change: VersionChange | None = None
        self.pause: PauseTimes | None = None  #: The change to this version has it until it is over.
        self.trial: Trial | None = None
        if is_trial:
            timeout_ms = limits.change_timeout_ms
            self.trial = Trial(lasts_ms=limits.trial_ms, timeout_ms=timeout_ms, now_ms=now_ms)

    @property
    def slots(self) -> dict[ExecutorId, int]:
        slots = self._manager.slots
        return {each: slots[each] for each in slots if each in self.executor_ids}

    @property
    def wanted(self) -> frozenset[ExecutorId]:
        return frozenset() if self.change is None else self.change.executor_ids

    @property
    def kept_next(self) -> frozenset[int]:
        return self.kept if self.change is None else self.change.kept

    @property
    def halt(self) -> TimedHalt | None:
        change = self.waiting or self.change
        return None if change is None else change.halt

    @property
    def first_end_ms(self) -> int:
        return MIN_MS if self.trial is None else self.trial.first_end_ms

    @property
    def busy_with(self) -> str:
        if self.waiting is not None:
            return "a change waits for its event time: call it off, or ask again later"
        if self.change is not None:
            return "another change is under way: ask again when it is over"
        if self.trial is not None:
            return "its newest version is on trial: ask again when the trial is over"
        return ""

    @property
    def doing(self) -> str:
        if self.waiting is not None:
            return "it waits for its event time"
        change = self.change
        if change is None:
            return "it is on trial" if self.trial is not None else ""
        if change.is_told:
            return "it is put in place"
        if change.is_draining:
            return "the last epoch of the version before ends"
        if not change.is_there(self._manager.running):
            return "its processes are being started"
        return "it reads state" if not change.ahead.is_done else "it waits for its event time"

    @property
    def may_be_called_off(self) -> bool:
        return self.waiting is not None or (self.change is not None and not self.change.is_told)

    def placement(self, dag: Dag) -> dict[TaskId, ExecutorId]:
        return self._placement_in(self.executor_ids, dag)

    def _placement_in(
        self, executor_ids: frozenset[ExecutorId], dag: Dag
    ) -> dict[TaskId, ExecutorId]:
        mine = {each: slots for each, slots in self._manager.slots.items() if each in executor_ids}
        return place(dag, mine, self._manager.hosts)

    def on_divided(self) -> None:
        self.executor_ids, self.before = frozenset(self._manager.slots), frozenset()

    def follow(self, before: "Succession", now_ms: int) -> None:
        known = self._manager.slots
        self.graphs = {each: dag for each, dag in before.graphs.items() if each in known}
        if (change := before.change) is not None:
            self.pause = PauseTimes(change.drained_ms, change.ended_ms, now_ms)

    def on_launched(self, launched: Iterable[ExecutorId], dag: Dag) -> None:
        change = self.change
        for executor_id in launched:
            is_next = change is not None and executor_id in change.executor_ids
            self.graphs[executor_id] = change.dag if change is not None and is_next else dag

    def begin_waiting(self, now_ms: int, *, shares: Sequence[int]) -> None:
        self._waited, self.waiting = self.waiting, None
        waiting = self._waited
        assert waiting is not None
        self.begin(
            waiting.dag,
            now_ms,
            executors=waiting.executors,
            shares=shares,
            kept=waiting.kept,
            old=waiting.old,
            halt=waiting.halt,
        )

    def wait_again(self) -> list[Command] | None:
        """Have a change wait once more of which a process has ended; None if it cannot."""
        waited, change = self._waited, self.change
        if change is None or waited is None or change.halt is not waited.halt or waited.tries == 1:
            return None
        self.waiting, self.change = replace(waited, tries=waited.tries - 1), None
        return self._withdraw(change.executor_ids)

    def _withdraw(self, executor_ids: frozenset[ExecutorId]) -> list[Command]:
        self.before |= executor_ids
        return [
            command
            for executor_id in sorted(executor_ids)
            for command in self._manager.withdraw(executor_id, reason="the change was given up")
        ]

    def begin(
        self,
        dag: Dag,
        now_ms: int,
        *,
        executors: int,
        shares: Sequence[int],
        kept: frozenset[int],
        old: Layout | None,
        halt: TimedHalt | None = None,
    ) -> None:
        begins = without_regions(dag, kept)
        executor_ids = self._add_executors(begins, executors, shares)
        self.change = VersionChange(
            dag,
            executor_ids,
            kept=kept,
            ahead=ReadingAhead(dag, self._placement_in(executor_ids, begins), old=old),
            halt=halt,
            now_ms=now_ms,
            timeout_ms=self._limits.change_timeout_ms,
        )

    def replace_lasting(self, dag: Dag) -> dict[TaskId, ExecutorId]:
        """Give ``dag``, whose tasks went on from versions before, executors of this one."""
        executor_ids = self._add_executors(dag, 0)
        self.executor_ids |= executor_ids
        self.before, self.lasting = self.before | self.lasting, frozenset()
        return self._placement_in(executor_ids, dag)

    def executors_for(self, dag: Dag) -> frozenset[ExecutorId]:
        return self._add_executors(dag, 0) if self.change is None else self.change.executor_ids

    def give_up(self, reason: str) -> list[Command]:
        if self.waiting is not None:
            self.waiting = None
            return [ChangeGivenUp(reason=reason)]
        change, self.change = self.change, None
        if change is None:
            return []
        return [ChangeGivenUp(reason=reason), *self._withdraw(change.executor_ids)]

    def on_sign(self, executor_id: ExecutorId, now_ms: int) -> None:
        if self.trial is not None:
            self.trial.on_sign(executor_id, now_ms)

    def go_back(self, cause: ErrorCard) -> list[Command]:
        self.trial = None
        commands: list[Command] = []
        for executor_id in sorted(self.executor_ids):
            commands += self._manager.withdraw(executor_id, reason="its version has failed")
        return [*commands, GoBack(cause=cause)]

    def _add_executors(
        self, dag: Dag, executors: int, shares: Sequence[int] = ()
    ) -> frozenset[ExecutorId]:
        """Add executors for a graph: so many, or as many as it takes with none of more tasks.

        Without ``shares`` that is: none is to be larger than the largest.
        """
        bound, is_known = bound_slots(dag), self._manager.is_divided
        added = {self._manager.add(each.slots, hosts=each.hosts) for each in bound}
        if free := dag.task_count - sum(each.slots for each in bound):
            if not shares:
                shares = [*self.slots.values()] if is_known else [1]  # One slot fits everywhere.
            sizes = equal_parts(free, executors) if executors else fitting_parts(free, shares)
            added |= {self._manager.add(size) for size in sizes}
        return frozenset(added)
