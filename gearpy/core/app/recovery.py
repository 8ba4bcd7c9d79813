"""Recovery: the regions of an application start, fail, start again, and end.

Gearpump: `TaskManager` with `ExecutorManager`; there every failure restarts the whole
application, and the restarts of its whole life are counted.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from gearpy.core.app import causes, deployment
from gearpy.core.app.causes import Drain
from gearpy.core.app.change import Succession
from gearpy.core.app.clock import ClockService
from gearpy.core.app.deadly.deaths import Deaths, died_by_itself
from gearpy.core.app.deadly.probing import Verdict
from gearpy.core.app.decisions import Command, Ended, PutInPlace, RecoveryLimits, Survived
from gearpy.core.app.executors import ExecutorManager, first_launch
from gearpy.core.app.hosts import bound_slots
from gearpy.core.app.incidents import Incidents, Suspicions
from gearpy.core.app.regions.at_time import TimedHalt
from gearpy.core.app.regions.region import Region
from gearpy.core.app.regions.region_set import RegionSet
from gearpy.core.base.restart import GiveUp
from gearpy.core.dag.graph import Dag, without_regions
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MAX_MS, MIN_MS, ActorPath, ExecutorId, ProcessorId, SessionId, TaskId
from gearpy.messages.app import LongTurn, SettleTasks, TaskClock, TaskOffsets
from gearpy.messages.summaries import ApplicationStatus, ErrorCard

if TYPE_CHECKING:
    from random import Random

#: Sessions and attempts of one launch of an app master; those of the next one begin behind them.
_LAUNCH_SHIFT: Final = 32
#: A store is back when a region that has waited for it has been at work for so long.
BACK_MS: Final = 6_000


class AwayRegion(NamedTuple):
    """A store that a region waits for: why, for which time, and since when this time."""

    cause: str
    tries: int
    at_ms: int


class Recovery:
    """Carries out starts, failures and ends of regions; `ApplicationCore` says when.

    Invariant: of a region one attempt runs at a time. A failure costs one restart, however it
    shows; that an epoch is damaged costs none.
    """

    store = ""  #: Why no epoch can be stored at present, as the shell knows.
    may_be_followed = True  #: Another version may follow, unless it has failed for good.

    def __init__(
        self,
        dag: Dag,
        *,
        executors: int,
        limits: RecoveryLimits,
        launch: int,
        rng: "Random",
        now_ms: int,
        has_run: bool = False,
        manifests: Iterable[Manifest] = (),
        overrides: Iterable[TaskOffsets] = (),
        owns: Callable[[str], bool] = lambda _: True,
        after: "Recovery | None" = None,
        is_trial: bool = False,
        untried: Iterable[int] = (),
        place_text: Callable[[str, bytes], str] = lambda name, _: name,
    ) -> None:
        self.dag = dag
        self._limits = limits
        self.incidents = Incidents(limits.restarts, poison_attempts=limits.poison_attempts, rng=rng)
        self.suspicions = Suspicions()
        self.deaths = Deaths(dag, steps_over=limits.steps_over, place_text=place_text)
        #: They have lost executors: when they are lost, too, what was launched there is no failure.
        self.failing_workers: set[ActorPath] = set()
        #: When each was lost. The master may still have granted slots there a moment before.
        self.lost_workers: dict[ActorPath, int] = {}
        self.next_attempt = launch << _LAUNCH_SHIFT
        self.next_session = (launch << _LAUNCH_SHIFT) + 1
        bound = bound_slots(dag)
        free = dag.task_count - sum(each.slots for each in bound)
        self.executors = ExecutorManager(
            slots=free,
            executors=min(executors, free),
            first_launch=first_launch(launch),
            bound=bound,
        )
        executor_ids, first_epoch = frozenset(self.executors.slots), 1
        carried: dict[int, Region] = {}
        begins = dag  # This part begins, the rest goes on.
        if after is not None:
            self.next_attempt, self.next_session = after.next_attempt, after.next_session
            self.executors, first_epoch = after.executors, after.regions.unused_epoch
            carried = {each: after.regions[each] for each in after.succession.kept_next}
            begins = without_regions(dag, carried)
            executor_ids = after.succession.executors_for(begins)
        self.succession: Succession = Succession(
            self.executors,
            executor_ids,
            kept=frozenset(carried),
            untried=untried,
            lasting=[e for r in carried.values() if r.state != "done" for e in r.executors],
            limits=limits,
            now_ms=now_ms,
            is_trial=is_trial,
        )
        self.regions: RegionSet = RegionSet(
            dag,
            self.succession.placement(begins),
            limits,
            manifests=manifests,
            overrides=overrides,
            owns=owns,
            first_epoch=first_epoch,
            carried=carried,
        )
        self._hold_epochs(are_first=is_trial)
        self.clock = self._new_clock(now_ms)
        self.reports: dict[TaskId, TaskClock] = {}
        self.records_before: dict[TaskId, int] = {}  #: What each had taken when it first began.
        self.long_turns: dict[ExecutorId, tuple[LongTurn, ...]] = {}
        if after is not None:
            self._take_over(after, now_ms)
        self._away: dict[int, AwayRegion] = {}
        self._is_active, self._has_run = False, has_run
        self._is_master_away: bool = after is not None and after._is_master_away  # noqa: SLF001
        self._ending: Ended | None = None
        self._drain: Drain | None = None
        self._has_gone_back = False
        self.is_ended = False

    def _new_clock(self, now_ms: int) -> ClockService:
        sessions = dict.fromkeys(self.dag.tasks(), SessionId(0))
        for region in self.regions:
            sessions |= region.sessions
        return ClockService(
            self.dag,
            sessions,
            stall_after_ms=self._limits.stall_after_ms,
            now_ms=now_ms,
            start_ms=self.regions.clock_ms,
        )

    def _take_over(self, before: "Recovery", now_ms: int) -> None:
        self.succession.follow(before.succession, now_ms)
        if self.succession.kept:
            self.incidents, self.suspicions = before.incidents, before.suspicions
            self.failing_workers, self.lost_workers = before.failing_workers, before.lost_workers
            for clock in before.reports.values():
                self._note_clock(clock, now_ms)

    def _note_clock(self, clock: TaskClock, now_ms: int) -> Region | None:
        region = self.regions.of_task(clock.task_id)
        if region is None or region.sessions.get(clock.task_id) != clock.session:
            return None
        self.reports[clock.task_id] = clock
        self.records_before.setdefault(clock.task_id, clock.records_before)
        self.succession.on_sign(region.placement[clock.task_id], now_ms)
        self.succession.halt_orders.on_report(clock)
        self.clock.on_report(
            clock.task_id,
            clock.session,
            clock_ms=clock.clock_ms,
            watermark_ms=clock.watermark_ms,
            hold_ms=clock.hold_ms,
            idle=clock.idle,
            now_ms=now_ms,
        )
        return region

    # -- starts ----------------------------------------------------------------------------

    def _stop_closed(self, now_ms: int) -> list[Command]:
        commands: list[Command] = []
        for region in self.regions:
            if region.state == "deployed" and region.epochs.is_closed:
                stopping = region.stop(completed=True, now_ms=now_ms)
                commands += self._after(region, stopping, now_ms)
        return commands

    def _deploy_all(self, now_ms: int) -> list[Command]:
        commands: list[Command] = []
        running = self.executors.running
        for region in self.regions:
            if not region.is_due(running.keys(), now_ms):
                continue
            region.epochs.halt_ms = self._halt_ms_of(region)
            steps = region.deploy(
                attempt=self.next_attempt,
                first_session=self.next_session,
                executors=running,
                now_ms=now_ms,
                probes=self.deaths.orders(region),
            )
            self.next_attempt += 1
            self.next_session += len(region.placement)
            self.clock.on_restart(region.sessions, start_ms=region.history.clock_ms, now_ms=now_ms)
            commands += self._after(region, steps, now_ms)
        return commands

    def _after(
        self, region: Region, steps: Iterable[deployment.Command], now_ms: int
    ) -> list[Command]:
        commands: list[Command] = []
        for step in steps:
            match step:
                case deployment.Send():
                    commands.append(step)
                case deployment.Ready():
                    region.epochs.on_ready(now_ms)
                case deployment.AttemptFailed():
                    commands += self._on_start_failed(region, step, now_ms)
                case deployment.AttemptStopped():
                    commands += self._on_stopped(region, step, now_ms)
        return commands

    def _on_start_failed(
        self, region: Region, failed: deployment.AttemptFailed, now_ms: int
    ) -> list[Command]:
        damaged = failed.damaged
        if damaged is not None and region.epochs.is_damage(damaged):
            fell_back = region.epochs.fall_back(damaged)
            if fell_back is None:
                manifests = region.history.manifests
                return self._fail(causes.nothing_left(region.number, damaged, manifests), now_ms)
            return [fell_back, *self._begin_again(region, now_ms)]
        if damaged is not None and damaged.is_away and self._has_run:
            return self._wait_for_store(region, damaged.reason, now_ms)
        error = ErrorCard(cause=failed.cause)
        commands = self._on_trouble([region], f"region {region.number}", error, now_ms)
        if damaged is not None:  # It cannot read, though nothing is damaged.
            commands += self._replace_if_stuck(damaged.executor_id, region, now_ms)
        for executor_id in failed.silent:
            commands += self._kill(executor_id, "it does not answer", now_ms)
        return commands

    def _begin_again(self, region: Region, now_ms: int) -> list[Command]:
        region.resume_at_ms = now_ms
        return self._after(region, region.stop(completed=False, now_ms=now_ms), now_ms)

    def _wait_for_store(self, region: Region, cause: str, now_ms: int) -> list[Command]:
        tries = self._away[region.number].tries + 1 if region.number in self._away else 1
        self._away[region.number] = AwayRegion(cause, tries, now_ms)
        pause_ms = self.incidents.pause_ms(tries)
        commands: list[Command] = []
        if tries == 1:
            what, error = f"region {region.number}", ErrorCard(cause=cause, is_away=True)
            commands.append(Survived(what=what, error=error, delay_ms=pause_ms))
        return commands + self._after(region, region.restart(now_ms + pause_ms, now_ms), now_ms)

    def _on_stopped(
        self, region: Region, stopped: deployment.AttemptStopped, now_ms: int
    ) -> list[Command]:
        commands: list[Command] = []
        was_completed, region.state = region.is_completed, "waiting"
        if self._ending is not None or (was_completed and not stopped.errors):
            region.state = "done"
        elif was_completed:
            error = stopped.errors[0]
            if error.is_away:
                commands += self._wait_for_store(region, error.cause, now_ms)
            else:
                commands += self._on_trouble([region], "the end", error, now_ms)
        for executor_id in stopped.silent:
            commands += self._kill(executor_id, "it has not stopped its tasks", now_ms)
        return commands

    # -- failures --------------------------------------------------------------------------

    def _lose(
        self,
        executor_id: ExecutorId,
        launch: int,
        cause: str,
        now_ms: int,
        *,
        error: ErrorCard | None = None,
        is_known: bool = False,
    ) -> list[Command]:
        """Go on without a process; stop the regions it hurts, to start them again.

        ``error`` has more details than the cause; ``is_known``: the failure was counted already.
        """
        was_up = executor_id in self.executors.running
        worker = self.executors.worker_of(executor_id)
        self.long_turns.pop(executor_id, None)
        if self.is_ended:
            return []
        if not self.executors.on_gone(executor_id, launch):
            return self._on_late_cause(executor_id, launch, cause, now_ms)
        if worker is not None:
            self.failing_workers.add(worker)
        needing = [region for region in self.regions if region.needs(executor_id)]
        hurt = [region for region in needing if region.may_fail]
        is_known |= any(
            region.is_hurt and region.launches.get(executor_id) == launch for region in self.regions
        )
        for region in hurt:
            region.is_completed = False
        commands: list[Command] = []
        for region in self.regions:
            steps = region.on_executor_lost(executor_id, now_ms)
            told = [step for step in steps if not isinstance(step, deployment.AttemptFailed)]
            commands += self._after(region, told, now_ms)
        tasks = tuple(
            task
            for region in self.regions
            for task, place in sorted(region.placement.items())
            if place == executor_id and self.dag.processors[ProcessorId(task.processor)].leaves_open
        )
        left = next(iter(self.executors.running), None)
        if left is not None and tasks:
            commands += [deployment.Send(executor_id=left, message=SettleTasks(tasks=tasks))]
        if self._ending is not None or not needing:
            return commands + self._lose_next(executor_id, cause, now_ms)
        if error is None:
            error = ErrorCard(cause=f"executor {executor_id} lost: {cause or 'it was stopped'}")
        verdict: Verdict = "restart"
        if not (self.succession.change or self.succession.trial or self._drain):
            verdict = self.deaths.judge(needing, executor_id, launch, cause, now_ms)
        if verdict != "restart":
            error = self.deaths.told(error, verdict, self.reports)
            return commands + self._on_deadly_input(hurt, executor_id, error, verdict, now_ms)
        commands += self._on_trouble(
            hurt, f"executor {executor_id}", error, now_ms, is_known=is_known
        )
        if not was_up:  # Another one would hardly fare better at once.
            self.executors.pause(executor_id, self.incidents.resume_at_ms)
        return commands

    def _on_late_cause(
        self, executor_id: ExecutorId, launch: int, cause: str, now_ms: int
    ) -> list[Command]:
        changes = self.succession.change or self.succession.trial or self._drain or self._ending
        if changes or not died_by_itself(cause):
            return []
        verdict = self.deaths.judge(self.regions, executor_id, launch, cause, now_ms)
        if verdict != "stop":  # The next attempt has begun.
            return []
        error = ErrorCard(cause=f"executor {executor_id} lost: {cause}")
        error = self.deaths.told(error, verdict, self.reports)
        return self._fail(error, now_ms, of=self.deaths.regions)

    def _on_deadly_input(
        self,
        hurt: Collection[Region],
        executor_id: ExecutorId,
        error: ErrorCard,
        verdict: Verdict,
        now_ms: int,
    ) -> list[Command]:
        """Fail, or begin again to search, which has an end of its own, and needs no budget."""
        if verdict == "stop":
            return self._fail(error, now_ms, of=hurt)
        self.incidents.on_planned(now_ms)
        what = f"executor {executor_id}"
        commands = self._on_trouble(hurt, what, error, now_ms, is_known=True)
        for region in self.deaths.regions:
            if region not in hurt:
                commands += self._begin_again(region, now_ms)
        return commands

    def _kill(
        self,
        executor_id: ExecutorId,
        cause: str,
        now_ms: int,
        *,
        error: ErrorCard | None = None,
        is_known: bool = False,
    ) -> list[Command]:
        commands: list[Command] = []
        for stop in self.executors.stop(executor_id, kill=True, reason=cause):
            lost = self._lose(
                executor_id, stop.launch, cause, now_ms, error=error, is_known=is_known
            )
            commands += [stop, *lost]
        return commands

    def _replace_if_stuck(
        self, executor_id: ExecutorId, region: Region, now_ms: int
    ) -> list[Command]:
        process, newest = self.executors.running.get(executor_id), region.history.newest
        if process is None or self._ending is not None:
            return []
        if not self.incidents.is_in_process(
            executor_id, process.launch, region=region.number, epoch=newest.epoch if newest else 0
        ):
            return []
        return self._kill(executor_id, "a restart in place did not help", now_ms, is_known=True)

    def _on_trouble(
        self,
        regions: Collection[Region],
        what: str,
        error: ErrorCard,
        now_ms: int,
        *,
        is_known: bool = False,
    ) -> list[Command]:
        hit = [f"region {region.number}" for region in regions]
        if not hit and not is_known:
            hit = [what]  # It failed on its own.
        decision = self.incidents.on_failure(hit, now_ms, is_known=is_known)
        if isinstance(decision, GiveUp):
            return self._fail(error, now_ms, of=regions)
        commands: list[Command] = [Survived(what=what, error=error, delay_ms=decision.delay_ms)]
        if (trial := self.succession.trial) is not None and any(map(self._is_on_trial, regions)):
            trial.begin_again()
            self._hold_epochs()
        for region in regions:
            steps = region.restart(now_ms + decision.delay_ms, now_ms)
            commands += self._after(region, steps, now_ms)
        return commands

    # -- the end ---------------------------------------------------------------------------

    def _fail(self, error: ErrorCard, now_ms: int, *, of: Collection[Region] = ()) -> list[Command]:
        """End everything with this cause; the first one stays. Or go back, in a trial.

        The failure ``of`` regions that the trial is not about says nothing of the new version.
        """
        if self._ending is not None:
            return []
        has_passed = of and not any(map(self._is_on_trial, of))
        if self.succession.trial is not None and not has_passed:
            self._has_gone_back = True
            if self.succession.kept:
                for region in self.regions.but(self.succession.kept):
                    region.abandon()
            else:
                self._ending, self.is_ended = Ended(status="failed", cause=error), True
            return self.succession.go_back(error)
        self._ending, self.may_be_followed = Ended(status="failed", cause=error), False
        commands: list[Command] = []
        for region in self.regions:
            if region.state == "waiting":
                region.state = "done"
            stopping = region.stop(completed=False, now_ms=now_ms)
            commands += self._after(region, stopping, now_ms)
        return commands

    def _counts(self, region: Region) -> bool:
        return not self._has_gone_back or region.number in self.succession.kept

    def _is_on_trial(self, region: Region) -> bool:
        return self.succession.trial is not None and region in self._tried

    @property
    def _tried(self) -> list[Region]:
        return self.regions.but(self.succession.untried)

    def _end_if_done(self, now_ms: int) -> list[Command]:
        change, is_ending = self.succession.change, self._ending is not None
        if self.is_ended or (self._has_gone_back and not is_ending):
            return []
        if change is not None and change.is_draining and not is_ending:
            touched = self.regions.but(change.kept)
            is_over = all(each.state == "done" for each in touched)
            if is_over and (not touched or any(each.is_drained for each in touched)):
                if change.is_told:
                    return []
                change.is_told, change.ended_ms = True, now_ms
                return [PutInPlace()]
        if not self.regions.are_done:
            return []
        is_drained = any(each.is_drained and not each.is_caught_up for each in self.regions)
        self.is_ended = True
        good_end: ApplicationStatus = "terminated" if is_drained else "succeeded"
        ended = self._ending or Ended(status=good_end, cause=None)
        self._ending = ended
        given_up = self.succession.give_up("the application has ended")
        return [*given_up, *self.executors.stop_all(ended.status), ended]

    # -- changes ---------------------------------------------------------------------------

    def _keep(self, reason: str, now_ms: int) -> list[Command]:
        if self._ending is not None:
            return []
        change = self.succession.change
        commands = self.succession.give_up(reason)
        for region in self.regions.but(change.kept) if change is not None else ():
            region.epochs.keeps_files = False
        if change is not None and change.is_draining:
            for region in self.regions.but(change.kept):
                commands += self._after(region, region.go_on(now_ms), now_ms)
        return commands

    def _halt_ms_of(self, region: Region) -> int:
        """Return the event time at which the sources of a region halt; `MAX_MS`: nowhere.

        In a drain they read nothing more.
        """
        if self._drain is not None:
            return MIN_MS
        change = self.succession.waiting or self.succession.change
        if change is None or change.halt is None or region.number in change.kept:
            return MAX_MS
        return change.halt.time_ms

    def _source_reports(self) -> dict[TaskId, TaskClock]:
        return {
            task: self.reports[task]
            for task, region in self.regions.sources.items()
            if region.is_running
            and task in self.reports
            and self.reports[task].session == region.sessions[task]
        }

    def _tell_halts(self, now_ms: int) -> list[Command]:
        halt, orders = self.succession.halt, self.succession.halt_orders
        if self._drain is not None:  # It holds also while no epoch can be stored.
            halt = TimedHalt(MIN_MS, dict.fromkeys(self.regions.sources, ""), timeout_ms=0)
        for region in self.regions:
            region.epochs.halt_ms = self._halt_ms_of(region)
        if halt is None and not orders.has_halted:
            return []
        reports, sources = self._source_reports(), self.regions.sources
        orders.note(reports)
        commands: list[Command] = []
        for region in self.regions:
            if region.is_running and region.attempt is not None:
                placement = {t: region.placement[t] for t in reports if sources[t] is region}
                commands += orders.orders(region.attempt, placement, reports, halt, now_ms)
        return commands

    def _lose_next(self, executor_id: ExecutorId, cause: str, now_ms: int) -> list[Command]:
        change = self.succession.change
        if change is None or executor_id not in change.executor_ids or change.is_draining:
            return []
        again = self.succession.wait_again()
        if again is not None:
            return again
        return self._keep(f"an executor of it has ended: {cause or 'it was stopped'}", now_ms)

    def _hold_epochs(self, *, are_first: bool = False) -> None:
        for region in self._tried:
            region.epochs.first_end_ms = self.succession.first_end_ms
            region.epochs.is_held = region.epochs.is_held or are_first
