"""ApplicationCore: starts tasks, restarts regions after a failure, and ends the application."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from gearpy.core.app import causes
from gearpy.core.app.ahead import ReadingAhead
from gearpy.core.app.causes import Drain
from gearpy.core.app.change import PREPARE_MS, VersionChange, WaitingChange
from gearpy.core.app.clock import outside_of
from gearpy.core.app.decisions import (
    Activated,
    Command,
    DropSnapshots,
    HeldUp,
    StoreManifest,
    TrialPassed,
)
from gearpy.core.app.deployment import StepAnswer
from gearpy.core.app.executors import Launch, Release
from gearpy.core.app.incidents import BrokenLink, SilentExecutor
from gearpy.core.app.recovery import BACK_MS, Recovery
from gearpy.core.app.regions.at_time import TimedHalt
from gearpy.core.app.regions.region import Region
from gearpy.core.dag.graph import Dag, without_regions
from gearpy.core.dag.state_moves import layout_of
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ActorPath, ExecutorId, ProcessorId, TaskId, WorkerId
from gearpy.messages.app import (
    EpochCommitted,
    EpochStored,
    EpochUnstored,
    ExecutorFailed,
    LinkBroken,
    LongTurn,
    RegisterExecutor,
    StateReadAhead,
    TaskClock,
    TaskFailed,
)
from gearpy.messages.cluster import Allocation
from gearpy.messages.summaries import ApplicationStatus, ErrorCard

#: So long the master may give out slots of a worker that is lost. What it gives out later is there:
#: it was only this application that could not reach the worker.
_LATE_SLOTS_MS: Final = 2_000
#: Other slots are asked for in their place after so long.
_ASK_AGAIN_MS: Final = 250
#: So long an executor waits for slots, before those in which all is done give up their own.
_FREE_DONE_MS: Final = 1_000
#: So long what a change has begun waits for slots, before what it did not touch gives up its own.
_MAKE_ROOM_MS: Final = 20_000
#: An application that has run waits so long for slots before it counts as pending again.
_HELD_UP_AFTER_MS: Final = 5_000
#: How many slots are free is asked for so long before it decides about a change.
_FREE_SLOTS_MS: Final = 3_000


class ApplicationCore(Recovery):
    """Starts the tasks of an application, restarts a region after a failure, ends the application.

    Invariant: of a region one attempt runs at a time. A failure costs one restart, however it
    shows; that an epoch is damaged costs none. `Ended` comes once, after it only `Release`,
    `EpochsRetired` and `DropSnapshots`; `GoBack` is the end of the core, too.

    It is of one version of the graph: a change makes another core, with the executors there are.
    With 0 ``executors`` there are as many as it takes; ``overrides`` are positions of sources that
    count more than the newest epochs; ``owns`` tells which files may be deleted; ``untried``
    regions were not touched by the change that is on trial.
    """

    # -- questions -------------------------------------------------------------------------

    @property
    def is_drained(self) -> bool:
        return self._ended_as("terminated")

    @property
    def has_caught_up(self) -> bool:
        return self._ended_as("succeeded") and any(each.is_caught_up for each in self.regions)

    @property
    def read_before(self) -> int:
        return sum(self.records_before.get(task, 0) for task in self.regions.sources)

    def _ended_as(self, status: ApplicationStatus) -> bool:
        return self.is_ended and self._ending is not None and self._ending.status == status

    def call_of_drain(self) -> str:
        if self._drain is None:
            return ""
        return causes.longest_call(turn for turns in self.long_turns.values() for turn in turns)

    @property
    def away(self) -> str:
        return next((each.cause for _, each in sorted(self._away.items())), "")

    def why_unchangeable(self) -> str:
        if self._drain is not None or self._ending is not None or self._has_gone_back:
            return "it is about to end"
        if busy_with := self.succession.busy_with:
            return busy_with
        return "" if self._is_active else "not all of its tasks run: ask again when they do"

    @property
    def epoch(self) -> int:
        return self.regions.epoch

    @property
    def restarts(self) -> int:
        return self.incidents.count

    def last_manifests(self) -> list[Manifest]:
        kept = self.succession.kept_next
        return [each for each in self.regions.newest_manifests if each.region not in kept]

    def placed_in(self, task: TaskId) -> ExecutorId | None:
        region = self.regions.of_task(task)
        return None if region is None else region.placement.get(task)

    def takes_records(self, task: TaskId) -> bool:
        region = self.regions.of_task(task)
        # At the end its last epoch may have ended: what came now would be lost.
        return region is not None and region.is_running and not region.epochs.is_caught_up

    # -- executors -------------------------------------------------------------------------

    def on_start(self, now_ms: int) -> list[Command]:
        commands: list[Command] = []
        for executor_id in sorted(self.succession.before):
            commands += self.executors.stop(executor_id, kill=False, reason="a new version runs")
        return self._settled(commands, now_ms)

    def on_master(self, *, is_there: bool, now_ms: int) -> list[Command]:
        """Note that the master is away or back; ask it again for the slots it has not granted."""
        self._is_master_away = not is_there
        if not is_there or self._ending is not None:
            return []
        if (change := self.succession.change) is not None:
            change.drain_at_ms, change.free_slots = now_ms + PREPARE_MS, None
        return [*self.executors.request_again(now_ms)]

    def on_allocated(self, allocations: Iterable[Allocation], now_ms: int) -> list[Command]:
        if self._ending is not None:
            return [Release(worker_id=each.worker_id, slots=each.slots) for each in allocations]
        usable: list[Allocation] = []
        useless: list[Allocation] = []
        for each in allocations:
            (useless if self._is_just_lost(each.worker, now_ms) else usable).append(each)
        if not self.executors.is_divided:
            shared = [each for each in usable if not each.hosts]
            sizes = [each.slots for each in shared]
            if sum(sizes) == self.executors.undivided_slots > 0:
                self.executors.divide(sizes, now_ms)
                self.succession.on_divided()
                placement = self.succession.placement(self.dag)
                for region in self.regions:
                    region.place(placement)
            else:
                usable = [each for each in usable if each.hosts]
                useless += shared
        commands = self.executors.on_allocated(usable, now_ms)
        launched = [each.executor_id for each in commands if isinstance(each, Launch)]
        self.succession.on_launched(launched, self.dag)
        return [*commands, *self.executors.on_useless(useless, now_ms + _ASK_AGAIN_MS)]

    def _is_just_lost(self, worker: ActorPath, now_ms: int) -> bool:
        lost_ms = self.lost_workers.get(worker)
        return lost_ms is not None and now_ms - lost_ms < _LATE_SLOTS_MS

    def on_executor_registered(self, message: RegisterExecutor, now_ms: int) -> list[Command]:
        if self._ending is not None or not self.executors.on_registered(message):
            return []
        if message.executor_id in self.succession.before:
            return []  # It is being stopped.
        commands: list[Command] = []
        is_for_next = message.executor_id in self.succession.wanted
        dag = self.succession.graphs[message.executor_id]
        if message.graph_hash != dag.structural_hash():
            error = causes.other_graph(dag, message)
            commands += (
                self._keep(error.cause, now_ms) if is_for_next else self._fail(error, now_ms)
            )
        return self._settled(commands, now_ms)

    def on_executor_gone(
        self, executor_id: ExecutorId, launch: int, cause: str, now_ms: int
    ) -> list[Command]:
        """Restart the regions that ran there; without a cause its worker was told to end."""
        is_current = self.executors.is_current(executor_id, launch)
        is_planned = not cause and is_current
        if is_planned:
            self.incidents.on_planned(now_ms)
        lost = self._lose(executor_id, launch, cause, now_ms, is_known=is_planned)
        return self._settled(lost, now_ms)

    def on_executor_silent(self, executor_id: ExecutorId, launch: int, now_ms: int) -> None:
        """Note that an executor does not answer: unless its worker says more, it is killed."""
        self.suspicions.add(SilentExecutor(executor_id, launch), now_ms)

    def on_worker_lost(self, worker: ActorPath, now_ms: int) -> list[Command]:
        commands: list[Command] = []
        is_known = worker in self.failing_workers or self._is_just_lost(worker, now_ms)
        for executor_id, launch in self.executors.on_worker(worker):
            is_up = executor_id in self.executors.running
            if not is_up:  # It may never have heard of the launch.
                commands += self.executors.release(executor_id)
            commands += self._lose(
                executor_id, launch, "its worker is lost", now_ms, is_known=is_known and not is_up
            )
        self.failing_workers.discard(worker)
        self.lost_workers = {
            each: at_ms
            for each, at_ms in self.lost_workers.items()
            if self._is_just_lost(each, now_ms)
        }
        self.lost_workers.setdefault(worker, now_ms)
        return self._settled(commands, now_ms)

    # -- tasks -----------------------------------------------------------------------------

    def on_answer(self, answer: StepAnswer, now_ms: int) -> list[Command]:
        region = self.regions.in_attempt(answer.attempt)
        if region is None or self.is_ended:
            return []
        self.succession.on_sign(answer.executor_id, now_ms)
        steps = region.on_answer(answer, now_ms)
        return self._settled(self._after(region, steps, now_ms), now_ms) if steps else []

    def on_clocks(self, clocks: Iterable[TaskClock], now_ms: int) -> list[Command]:
        for clock in clocks:
            if (region := self._note_clock(clock, now_ms)) is not None:
                region.epochs.on_clock(clock)
        is_due = any(
            region.epochs.is_caught_up or region.epochs.is_wanted for region in self.regions
        )
        is_due = is_due or self.succession.halt is not None or self._drain is not None
        return self._settled([], now_ms) if is_due else []

    def on_task_failed(self, message: TaskFailed, now_ms: int) -> list[Command]:
        region = self.regions.of_task(message.task_id)
        if region is None or region.sessions.get(message.task_id) != message.session:
            return []
        if not region.may_fail or self._ending is not None:
            return []
        error = message.error
        is_broken = self._is_on_trial(region) and message.kind != "lost"
        is_final = is_broken or error.is_away or message.kind == "final"
        is_final |= message.kind != "lost" and self._limits.is_final(error)
        if error.is_away and self._has_run and not is_broken:
            commands = self._wait_for_store(region, error.cause, now_ms)
        elif is_final or self.incidents.is_poison(error):
            commands = self._fail(error, now_ms, of=[region])
        else:
            commands = self._on_trouble([region], f"task {message.task_id}", message.error, now_ms)
            if message.kind != "lost":
                commands += self._replace_if_stuck(message.executor_id, region, now_ms)
        return self._settled(commands, now_ms)

    def on_executor_failed(self, message: ExecutorFailed, now_ms: int) -> list[Command]:
        executor_id = message.executor_id
        if self._ending is not None or not self.executors.is_current(executor_id, message.launch):
            return []
        is_final = not message.is_replaceable and executor_id not in self.succession.wanted
        is_final |= self._limits.is_final(message.error)
        commands = self._fail(message.error, now_ms) if is_final else []
        commands += self._kill(executor_id, message.error.cause, now_ms, error=message.error)
        return self._settled(commands, now_ms)

    def on_long_turns(self, executor_id: ExecutorId, turns: tuple[LongTurn, ...]) -> None:
        self.long_turns[executor_id] = turns

    def on_link_broken(self, message: LinkBroken, now_ms: int) -> list[Command]:
        """Remember a broken link, if both ends are there; one may be reported gone in a moment."""
        ends = tuple(
            (executor_id, each.launch)
            for executor_id, each in self.executors.running.items()
            if executor_id == message.executor_id or each.data_address == message.address
        )
        attempts = frozenset(
            each.attempt
            for each in self.regions
            if each.attempt is not None and each.is_linked
            if each.executors.issuperset(executor_id for executor_id, _ in ends)
        )
        if len(ends) > 1 and attempts:
            self.suspicions.on_link_broken(message, ends, attempts, now_ms)
        return []

    def fail(self, error: ErrorCard, now_ms: int) -> list[Command]:
        return self._settled(self._fail(error, now_ms), now_ms)

    def replay(self, now_ms: int) -> list[Command]:
        """Restart all regions from the newest epochs, without regard to the budget."""
        commands: list[Command] = []
        for region in self.regions:
            if region.state == "deployed":
                commands += self._begin_again(region, now_ms)
        return self._settled(commands, now_ms)

    def drain(self, now_ms: int, *, timeout_ms: int) -> list[Command]:
        """Stop the sources, show their records, then end; fail if that takes too long.

        Asked again, nothing changes. A change is given up.
        """
        commands: list[Command] = []
        if self._ending is None and self._drain is None:
            commands += self._keep("the application is being drained", now_ms)
            self._drain = Drain(now_ms=now_ms, timeout_ms=timeout_ms)
            for region in self.regions:
                region.drain()
        return self._settled(commands, now_ms)

    # -- changes ---------------------------------------------------------------------------

    def change(
        self,
        dag: Dag,
        now_ms: int,
        *,
        executors: int = 0,
        kept: frozenset[int] = frozenset(),
        moves: bool = False,
        at_ms: int | None = None,
    ) -> list[Command]:
        """Start processes for another version of the graph, then end this one at an epoch.

        `PutInPlace` follows, or `ChangeGivenUp`. With 0 ``executors`` none gets more tasks than one
        has now. Regions that are ``kept`` go on all the time. With ``moves`` state goes to other
        tasks. With ``at_ms`` the epoch ends at this event time, and nothing starts before that is
        near.
        """
        assert not self.succession.busy_with, self.succession.busy_with
        old = layout_of(self.dag) if moves else None
        if at_ms is None:
            shares = self._shares_of(kept)
            self.succession.begin(
                dag, now_ms, executors=executors, shares=shares, kept=kept, old=old
            )
        else:
            halt = self._halt_at(at_ms, kept)
            self.succession.waiting = WaitingChange(
                dag=dag, executors=executors, kept=kept, old=old, halt=halt
            )
        return self._settled([], now_ms)

    def _shares_of(self, kept: frozenset[int]) -> list[int]:
        """Return how many tasks each executor has of what a change touches, if it has any.

        Those of machines to which tasks are bound do not count.
        """
        bound = {each for each, machines in self.executors.hosts.items() if machines}
        tasks = Counter(
            place
            for region in self.regions.but(kept)
            for place in region.placement.values()
            if place not in bound
        )
        return [*tasks.values()]

    def why_not_at(self, at_ms: int, kept: frozenset[int]) -> str:
        halt = self._halt_at(at_ms, kept)
        if self.regions.but(kept) and not halt.names:
            return "nothing that it touches reads records"
        if passed := halt.has_passed(self._source_reports()):
            return f"{passed} has read records of that time: name a later one"
        return ""

    def _halt_at(self, at_ms: int, kept: frozenset[int]) -> TimedHalt:
        names = {
            task: self.dag.processors[ProcessorId(task.processor)].name
            for task, region in self.regions.sources.items()
            if region.number not in kept
        }
        return TimedHalt(at_ms, names, timeout_ms=self._limits.change_timeout_ms)

    def keep(self, reason: str, now_ms: int) -> list[Command]:
        return self._settled(self._keep(reason, now_ms), now_ms)

    def _advance_change(self, now_ms: int) -> list[Command]:
        change, waiting = self.succession.change, self.succession.waiting
        halt = self.succession.halt
        if halt is not None and not (change is not None and change.is_draining):
            halt.on_reports(self._source_reports(), now_ms)
            if halt.refusal:
                return self._keep(halt.refusal, now_ms)
            stored = {each.number: each.history.newest for each in self.regions}
            # An epoch that a savepoint waits for is stored first.
            is_saving = any(
                self.regions[number].state != "done"
                and ((newest := stored[number]) is None or newest.epoch < epoch)
                for number, epoch in self.succession.saving.items()
            )
            is_free = self._is_active and not is_saving
            if waiting is not None and halt.is_near and is_free:
                self.succession.begin_waiting(now_ms, shares=self._shares_of(waiting.kept))
                change = self.succession.change
        if change is None or change.is_told:
            return []
        commands: list[Command] = []
        if reason := self._why_hopeless(change, now_ms):
            return self._keep(reason, now_ms)
        if change.is_there(self.executors.running):
            commands = self._read_ahead(change, change.ahead, now_ms)
        missing = self.executors.missing_slots(change.executor_ids)
        lacks_slots = bool(missing) and not self._is_master_away  # It could give them to nobody.
        # The next version is there, or may need the slots of this one.
        if change.is_there(self.executors.running):
            may_drain = change.ahead.is_done
        else:
            may_drain = lacks_slots and now_ms >= change.drain_at_ms
        if change.is_draining or (change.halt is not None and not change.halt.is_reached):
            may_drain = False
        if may_drain:
            change.drain(now_ms)
            for region in self.regions.but(change.kept):
                region.drain(None if change.halt is None else change.halt.time_ms)
        return commands

    def _why_hopeless(self, change: VersionChange, now_ms: int) -> str:
        if change.is_late(now_ms):
            return f"its last epoch was not stored within {change.timeout_ms // 1000} s"
        touched = self.regions.but(change.kept)
        have_finished = all(each.state == "done" and not each.is_drained for each in touched)
        if change.is_draining and touched and have_finished and not self.regions.are_done:
            return "what it changes has come to its end"
        missing = [] if self._is_master_away else self.executors.missing_slots(change.executor_ids)
        # The version that runs may have long waited for slots that the change has.
        needed = self.regions.needed_executors - change.executor_ids
        since_ms = self.executors.waiting_since_ms(needed)
        is_long = since_ms is not None and now_ms - since_ms >= _HELD_UP_AFTER_MS
        has_some = not change.executor_ids.isdisjoint(self.executors.running)
        if is_long and has_some and not self._is_master_away:
            return (
                "it has the slots that a lost process of the version that runs needs to start "
                "again: add workers, or raise worker.slots"
            )
        if not missing:
            return ""
        return change.lacks(
            missing, self.executors.slots_by_worker(but=change.executor_ids), now_ms
        )

    def asks_for_slots(self, now_ms: int) -> bool:
        change = self.succession.change
        return (
            change is not None
            and change.waits_for_slots(now_ms + _FREE_SLOTS_MS)
            and bool(self.executors.missing_slots(change.executor_ids))
        )

    def on_free_slots(self, free: Mapping[WorkerId, int] | None) -> None:
        if self.succession.change is not None:
            self.succession.change.free_slots = free

    def _read_ahead(self, change: VersionChange, ahead: ReadingAhead, now_ms: int) -> list[Command]:
        touched = self.regions.but(change.kept)
        newest = {each.number: each.history.newest for each in touched}
        found = {number: each for number, each in newest.items() if each is not None}
        if change.is_draining:
            return [*ahead.read_last(found)]
        if ahead.is_done:
            return []
        for region in touched:
            region.epochs.keeps_files = True
        commands: list[Command] = [*ahead.advance(found, now_ms)]
        if ahead.wants_epochs:
            ahead.wants_epochs = False
            for region in touched:
                region.epochs.is_wanted = True
        return commands

    def on_read_ahead(self, message: StateReadAhead, now_ms: int) -> list[Command]:
        change = self.succession.change
        if change is None:
            return []
        if not change.is_told and change.ahead.is_awaited(message):
            told = [message.reason] if message.reason and not message.damaged else []
            if message.damaged:  # It may only have been deleted since it was named.
                for region in self.regions:
                    if region.history.listing(message.damaged):
                        told = told or [f"{message.damaged}: {message.reason}"]
                        region.history.on_damage(message.damaged)
                        told.append(causes.restart_after_damage(region.number, region.history))
            if told:
                reason = f"it cannot begin with what is stored: {'; '.join(told)}"
                return self.keep(reason, now_ms)
        change.ahead.on_read(message, now_ms)
        return self._settled([], now_ms)

    def _check_trial(self, now_ms: int) -> list[Command]:
        trial = self.succession.trial
        if trial is None:
            return []
        running = [each for each in self._tried if each.is_running]
        asked = trial.on_tick({each for region in running for each in region.executors}, now_ms)
        self._hold_epochs()
        if trial.is_late(now_ms):
            return self._fail(causes.trial_too_long(trial.timeout_ms, self.store), now_ms)
        commands: list[Command] = []
        for region in running:
            commands += region.ask_again(asked)
        return commands

    # -- epochs ----------------------------------------------------------------------------

    def end_epochs(self, until: Mapping[int, int] | None = None) -> list[Region]:
        """Let an epoch of each region that runs end soon, before its time; return these regions."""
        running = [
            each for each in self.regions if each.state == "deployed" and not each.epochs.is_closed
        ]
        for region in running:
            region.epochs.want((until or {}).get(region.number))
        return running

    def begin_epochs(self) -> tuple[dict[int, int], dict[int, int]]:
        """Let an epoch of each region end soon; return these epochs, and the newest of others."""
        self.end_epochs()
        going = [each for each in self.regions if each.state != "done"]
        done = [each for each in self.regions if each.state == "done"]
        newest = {each.number: each.history.newest for each in done}
        self.succession.saving = {each.number: each.epochs.next_to_end for each in going}
        return (
            {**self.succession.saving},
            {number: each.epoch for number, each in newest.items() if each is not None},
        )

    def on_epoch_stored(self, message: EpochStored, now_ms: int) -> list[Command]:
        region = self.regions.that_knew(message.attempt)
        if region is None:
            return []
        commands = region.epochs.on_stored(message, now_ms)
        return commands + self._store_trial(now_ms) + self._drops()

    def on_epoch_unstored(self, message: EpochUnstored, now_ms: int) -> list[Command]:
        region = self.regions.that_knew(message.attempt)
        return [] if region is None else region.epochs.on_unstored(message, now_ms)

    def on_manifest_stored(self, region: int, epoch: int, now_ms: int) -> list[Command]:
        """Tell the sinks; delete files that no restart will go back to."""
        if not self._counts(self.regions[region]):
            return []  # It leaves the log again.
        commands: list[Command] = []
        if self._is_on_trial(self.regions[region]):
            self.succession.trial = None
            self._hold_epochs()
            commands.append(TrialPassed())
        commands += self.regions[region].epochs.on_manifest_stored(epoch, now_ms)
        for each in self.deaths.on_epoch(self.regions[region], now_ms):
            commands += self._begin_again(each, now_ms)
        return self._settled(commands, now_ms)

    def _store_trial(self, now_ms: int) -> list[Command]:
        """Have the first epochs of all that is on trial stored in one go, when each has one.

        A version of which the log had some of them could neither go back nor has it been tried.
        """
        if self.succession.trial is None:
            return []
        tried = [each for each in self._tried if each.state != "done"]
        if not tried or not all(r.epochs.is_held and r.history.unstored for r in tried):
            return []
        first, *others = [each.epochs.release(now_ms) for each in tried]
        untried = causes.untried(
            self.dag, (task for each in tried for task in each.placement), self.reports
        )
        return [StoreManifest(manifest=first, also=tuple(others), ends_trial=True, untried=untried)]

    def on_epoch_committed(self, message: EpochCommitted, now_ms: int) -> list[Command]:
        region = self.regions.in_attempt(message.attempt)
        if region is None or self.is_ended:
            return []
        region.epochs.on_committed(message)
        return self._settled([], now_ms) if region.epochs.is_closed else []

    def _drops(self) -> list[Command]:
        files = self.regions.take_garbage()
        return [DropSnapshots(files=files)] if files else []

    # -- time ------------------------------------------------------------------------------

    def on_tick(self, now_ms: int) -> list[Command]:
        if self.is_ended:
            return []
        commands: list[Command] = []
        for suspicion in self.suspicions.due(now_ms):
            if not isinstance(suspicion, BrokenLink):
                if self.executors.is_current(suspicion.executor_id, suspicion.launch):
                    commands += self._kill(suspicion.executor_id, "it does not answer", now_ms)
                continue
            affected = [
                region
                for region in self.regions
                if region.state == "deployed" and region.attempt in suspicion.attempts
            ]
            is_between_living = all(self.executors.is_current(*end) for end in suspicion.ends)
            if affected and is_between_living and self._ending is None:
                error, is_known = ErrorCard(cause=suspicion.cause), suspicion.is_known
                commands += self._on_trouble(
                    affected, suspicion.name, error, now_ms, is_known=is_known
                )
        commands += self._check_executors(now_ms)
        drain = self._drain
        if drain is not None and drain.is_late(now_ms):
            cause = causes.drain_too_long(
                self.clock.why(),
                timeout_ms=drain.timeout_ms,
                outside=self.store or outside_of(self.dag, self.reports),
                call=self.call_of_drain(),
            )
            commands += self._fail(cause, now_ms)
            if drain.has_had_grace(now_ms):
                for executor_id in list(self.executors.running):
                    commands += self._kill(executor_id, "the drain took too long", now_ms)
        commands += self._check_trial(now_ms)
        for number, away in [*self._away.items()]:
            if self.regions[number].is_at_work and now_ms - away.at_ms >= BACK_MS:
                del self._away[number]
        for region in self.regions:
            commands += self._after(region, region.on_tick(now_ms), now_ms)
        return self._settled(commands, now_ms)

    def _check_executors(self, now_ms: int) -> list[Command]:
        if self._ending is not None:
            return []
        commands: list[Command] = []
        timeout_ms = self._limits.start_timeout_ms
        for executor_id in self.executors.late(now_ms, timeout_ms):
            commands += self._kill(
                executor_id, f"it has not registered within {timeout_ms // 1000} s", now_ms
            )
        commands += self._free_done(now_ms)
        since_ms = self.executors.waiting_since_ms(self.regions.needed_executors)
        timeout_ms = self._limits.allocation_timeout_ms
        if since_ms is None or self._is_master_away:
            return commands
        commands += self._make_room(now_ms)
        if self._has_run:  # Failures have their own budget; that others have its slots is none.
            if self._is_active and now_ms - since_ms >= _HELD_UP_AFTER_MS:
                self._is_active = False
                commands.append(HeldUp())
            return commands
        if now_ms - since_ms < timeout_ms:
            return commands
        cause = causes.too_few_slots(
            wanted=self.dag.task_count, missing=self.executors.waiting_slots, timeout_ms=timeout_ms
        )
        return commands + self._fail(cause, now_ms)

    def _free_done(self, now_ms: int) -> list[Command]:
        """End processes of which nothing is needed any more, if others have waited for slots."""
        needed = self.regions.needed_executors | self.succession.wanted
        since_ms = self.executors.waiting_since_ms(needed)
        if since_ms is None or now_ms - since_ms < _FREE_DONE_MS:
            return []
        commands: list[Command] = []
        for executor_id in sorted(self.executors.running.keys() - needed - self.succession.before):
            commands += self._kill(executor_id, "its slots are needed", now_ms, is_known=True)
        return commands

    def _make_room(self, now_ms: int) -> list[Command]:
        """Let what a change did not touch begin again, if its processes have slots that are needed.

        They were shared with what the change has ended, and so have more than they use.
        """
        lasting, begun = self.succession.lasting, self.succession.executor_ids
        since_ms = self.executors.waiting_since_ms(self.regions.needed_executors & begun)
        if not lasting or since_ms is None or now_ms - since_ms < _MAKE_ROOM_MS:
            return []
        self.incidents.on_planned(now_ms)
        moving = [each for each in self.regions if each.executors & lasting]
        ended = [each.number for each in self.regions if each not in moving]
        commands: list[Command] = []
        for executor_id in sorted(lasting):
            commands += self._kill(executor_id, "its slots are needed", now_ms, is_known=True)
        placement = self.succession.replace_lasting(without_regions(self.dag, ended))
        for region in moving:
            if region.state != "done":
                region.place(placement)
        return commands

    # -- starts, restarts, the end ---------------------------------------------------------

    def _settled(self, commands: list[Command], now_ms: int) -> list[Command]:
        if self._ending is None:
            commands += self._stop_closed(now_ms)
            commands += self._deploy_all(now_ms)
            commands += self._activated(now_ms)
            commands += self._advance_change(now_ms)
            wanted = self.regions.needed_executors | self.succession.wanted
            commands += self.executors.request(wanted, now_ms)
            commands += self._tell_halts(now_ms)
        if not self.is_ended:
            for region in filter(self._counts, self.regions):
                commands += region.epochs.advance(now_ms)
            commands += self._store_trial(now_ms)
        return commands + self._drops() + self._end_if_done(now_ms)

    def _activated(self, now_ms: int) -> list[Command]:
        if self._has_gone_back:
            return []
        trial, tried = self.succession.trial, self._tried
        are_at_work = all(each.is_at_work or each.state == "done" for each in tried)
        # Tasks that froze as they were started have tried nothing so far.
        if trial is not None and not trial.is_begun and are_at_work:
            trial.begin(now_ms)
            self._hold_epochs()
            for region in tried:
                region.epochs.is_wanted = True  # However long the interval is.
        if self._is_active or not self.regions.are_active:
            return []
        self._is_active = self._has_run = True
        pause, self.succession.pause = self.succession.pause, None
        if pause is None:
            return [Activated()]
        pause.made = max(each.made_at_ms for each in self.regions.but(self.succession.kept))
        return [Activated(pause=pause.text(now_ms))]
