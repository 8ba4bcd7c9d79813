"""A small world around an `ApplicationCore`, in virtual time: master, workers, executors, faults.

Executors do what `cluster.executor.actor` does, the app master what `cluster.app.actor` does; both
are played here, messages keep their order between two and take a random time. What must always hold
is asserted as it happens.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from gearpy.core.app.application import (
    Command,
)
from gearpy.ids import MAX_MS, MIN_MS, TaskId
from gearpy.messages.app import (
    AbortEpoch,
    BeginEpoch,
    CommitEpoch,
    EpochCommitted,
    EpochStored,
    LaunchTasks,
    LinkBroken,
    SnapshotFile,
    SnapshotsDamaged,
    StopAllTasks,
    TaskClock,
    TaskFailed,
    TaskLocationsReady,
    TaskLocationsReceived,
    TasksLaunched,
    TasksStarted,
    TasksStopped,
)
from gearpy.messages.summaries import ErrorCard
from tests.core.world_cluster import HEARTBEAT_MS
from tests.core.world_epochs import EpochWorld
from tests.core.world_parts import (
    AppMaster,
    Attempt,
    Cells,
    Group,
    Process,
    StoredFile,
    Worker,
    cells_at,
    works,
)

__all__ = ["AppWorld"]

CALM_MS = 60_000  #: Without faults an application has ended after this.


class AppWorld(EpochWorld):
    """Runs one application through faults; asserts at every step what must hold."""

    # -- a whole run -----------------------------------------------------------------------

    @property
    def status(self) -> str:
        """How the application has ended."""
        assert self.app_master.ended is not None
        return self.app_master.ended.status

    def live(self, *, faults: bool = True) -> None:
        """Let the application run to its end, through faults if wanted."""
        until_ms = self.now_ms
        end_ms = until_ms + self.rng.randint(2000, 12_000) if faults else until_ms
        while until_ms < end_ms and self.app_master.ended is None:
            until_ms += self.rng.randint(50, 1500)
            self._run(until_ms)
            for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
                self._fault()
        self._calm()
        self._run(until_ms + CALM_MS, to_the_end=True)
        assert self.app_master.ended is not None, "never ended"
        self._run(self.now_ms + 8 * HEARTBEAT_MS)
        self._check_end()

    # -- executors -------------------------------------------------------------------------

    def _answer(
        self, process: Process, decide: Callable[[AppMaster, int], Iterable[Command]]
    ) -> None:
        """Send something to the app master; it may get lost with the process."""
        app_master = process.app_master

        def deliver() -> None:
            if not process.is_fenced and not (process.loses_output and not process.is_alive):
                self._do(app_master, lambda now: decide(app_master, now))

        self._send(process, app_master, deliver)

    def _lose_touch(self, process: Process, delay_ms: int) -> None:
        """Let the app master notice that a process does not answer."""

        def notice() -> None:
            app_master = process.app_master
            is_here = process.is_alive and not process.is_frozen
            if process.is_fenced or is_here or app_master is not self.app_master:
                return
            process.is_fenced = True
            app_master.manager.on_executor_silent(process.executor_id, process.launch, self.now_ms)

        self._after(delay_ms, notice)

    def _deliver(self, process: Process, message: Any) -> None:
        if process.is_frozen:
            process.inbox.append(lambda: self._deliver(process, message))
        elif process.is_alive:
            match message:
                case LaunchTasks():
                    self._launch_tasks(process, message)
                case BeginEpoch():
                    self._begin_epoch(process, message)
                case AbortEpoch():
                    self._abort_epoch(process, message)
                case CommitEpoch():
                    self._commit(process, message)
                case StopAllTasks():
                    self._stop_all(process, message)
                case _:
                    self._go_on(process, message)

    def _launch_tasks(self, process: Process, message: LaunchTasks) -> None:
        group = process.groups.get(message.region)
        if group is None or (group.launch.attempt < message.attempt and group.is_stopped):
            self._make_group(process, message)
        elif group.launch.attempt < message.attempt:
            group.successor = message
            self._stop_group(process, group, completed=False)
        else:
            self._say(process, TasksLaunched, message.attempt)

    def _make_group(self, process: Process, message: LaunchTasks) -> None:
        """Go on from the files, if they can be read; every task is as it was then."""
        missing = [each.location for each in message.snapshots if each.location not in self.files]
        region = process.app_master.manager.regions[message.region]
        is_over = region.attempt != message.attempt or region.state != "deployed"
        assert is_over or not missing or not process.app_master.is_alive, f"{missing} are missing"
        damaged = missing + [
            each.location for each in message.snapshots if each.location in self.damaged
        ]
        if self._unreadable and message.snapshots:
            self._unreadable -= 1
            process.app_master.faults += 1
            damaged = [""]
        if damaged:
            self._say(process, SnapshotsDamaged, message.attempt, location=damaged[0], reason="bad")
            return
        group = Group(message, is_keyed=self.rng.random() < 0.8)
        group.chain = message.snapshots
        group.stored = {each.task_id: self._read(message, each.task_id) for each in message.tasks}
        progress = self._attempts[message.attempt].progress
        assert all(each == cells_at(progress) for each in group.stored.values()), "other state"
        process.groups[message.region] = group
        self._say(process, TasksLaunched, message.attempt)

    def _read(self, message: LaunchTasks, task: TaskId) -> Cells:
        """Return what a task kept: of what two files say, the later one counts."""
        cells: Cells = {}
        for file in message.snapshots:
            if task in file.tasks:
                cells |= self.files[file.location].cells[task]
        return {key: value for key, value in cells.items() if value is not None}

    def _go_on(self, process: Process, message: Any) -> None:
        group = process.group_of(message.attempt)
        if group is None:
            return
        if isinstance(message, TaskLocationsReady):
            assert process.address in [each.data_address for each in message.locations]
            self._say(process, TaskLocationsReceived, message.attempt)
        else:
            group.is_started = True
            self._say(process, TasksStarted, message.attempt)

    def _stop_all(self, process: Process, message: StopAllTasks) -> None:
        group = process.group_of(message.attempt)
        if group is None:
            self._say(process, TasksStopped, message.attempt)
            return
        group.is_asked = True
        self._stop_group(process, group, completed=message.completed)

    def _stop_group(self, process: Process, group: Group, *, completed: bool) -> None:
        if completed and self._bad_ends:
            self._bad_ends -= 1
            process.app_master.faults += 1
            group.errors = (ErrorCard(cause="cannot close"),)
            self._attempts[group.launch.attempt].is_spoiled = True

        def stopped() -> None:
            if not process.is_alive:
                return
            group.is_stopped = True
            if group.is_asked:
                self._say(process, TasksStopped, group.launch.attempt, group.errors)
            if group.successor is not None and process.groups[group.launch.region] is group:
                self._make_group(process, group.successor)

        self._after(self.rng.randint(1, 60), stopped)

    def _say(
        self,
        process: Process,
        kind: Any,
        attempt: int,
        errors: tuple[ErrorCard, ...] = (),
        **more: str,
    ) -> None:
        if self._mute:
            self._mute -= 1
            process.app_master.faults += 1  # Of several in one step it dies.
            return
        stopped = {"errors": errors} if kind is TasksStopped else {}
        message = kind(
            executor_id=process.executor_id, version=0, attempt=attempt, **stopped, **more
        )
        self._answer(process, lambda am, now: am.manager.on_answer(message, now))

    # -- epochs ----------------------------------------------------------------------------

    def _begin_epoch(self, process: Process, message: BeginEpoch) -> None:
        attempt, group = self._attempts[message.attempt], process.group_of(message.attempt)
        if group is None:
            return
        group.begun = {each for each in group.begun if each > group.aborted} | {message.epoch}
        is_first = message.epoch not in attempt.cuts and attempt.is_moving
        cut_time_ms = message.cut_time_ms
        if message.is_last:
            assert cut_time_ms is None
            attempt.last = message.epoch
        if is_first and cut_time_ms is not None and attempt.event_time_ms >= cut_time_ms:
            attempt.missed.add(message.epoch)
        self._end_epochs(process, group)

    def _abort_epoch(self, process: Process, message: AbortEpoch) -> None:
        group = process.group_of(message.attempt)
        if group is not None:
            group.aborted = message.epoch

    def _end_epochs(self, process: Process, group: Group) -> None:
        """Store the epochs that have ended, unless the disk is full; then when asked again."""
        attempt = self._attempts[group.launch.attempt]
        if not attempt.is_moving:
            return
        for epoch in sorted(group.begun - group.saved):
            attempt.try_to_end(epoch, is_at_end=attempt.progress >= self.work)
            if epoch not in attempt.cuts:
                continue
            if self.rng.random() < 0.02:
                group.begun.discard(epoch)
                continue
            group.saved.add(epoch)
            slow = self.rng.random() < 0.05
            delay_ms = self.rng.randint(5, 1500 if slow else 80)
            self._after(delay_ms, partial(self._save, process, group, attempt, epoch))

    def _save(self, process: Process, group: Group, attempt: Attempt, epoch: int) -> None:
        is_late = epoch <= group.aborted and self.rng.random() < 0.5
        is_gone = process.group_of(attempt.number) is not group
        if is_gone or is_late:
            return
        if not attempt.is_moving:
            group.saved.discard(epoch)  # When it goes on.
            return
        if epoch <= group.newest:
            return  # A later one was quicker.
        group.newest = epoch
        new = cells_at(attempt.cuts[epoch])
        is_whole = not group.is_keyed or len(group.chain) > 4 or self.rng.random() < 0.1
        tasks = tuple(each.task_id for each in group.launch.tasks)
        gone: dict[TaskId, Cells] = {
            task: {} if is_whole else dict.fromkeys(group.stored[task].keys() - new.keys())
            for task in tasks
        }
        location = f"{attempt.region}/{epoch}-{attempt.number}-{process.executor_id}"
        assert location not in self.files, "stored twice"
        self.files[location] = StoredFile(
            attempt.region, epoch, attempt.number, {task: gone[task] | new for task in tasks}
        )
        group.stored = dict.fromkeys(tasks, new)
        file = SnapshotFile(location=location, sha256="", tasks=tasks, size_bytes=1)
        group.chain = (file,) if is_whole else (*group.chain, file)
        self._tell_stored(process, attempt, epoch, group.chain)

    def _tell_stored(
        self, process: Process, attempt: Attempt, epoch: int, chain: tuple[SnapshotFile, ...]
    ) -> None:
        message = EpochStored(
            executor_id=process.executor_id,
            attempt=attempt.number,
            epoch=epoch,
            snapshots=chain,
            has_missed_cut=epoch in attempt.missed,
        )

        def decide(app_master: AppMaster, now_ms: int) -> list[Command]:
            self._told |= {file.location for file in chain}
            return app_master.manager.on_epoch_stored(message, now_ms)

        self._answer(process, decide)

    def _commit(self, process: Process, message: CommitEpoch) -> None:
        group = process.group_of(message.attempt)
        if group is None or not works(group) or self.rng.random() < 0.1:  # It is asked again.
            return
        group.committed = max(group.committed, message.epoch)
        if self.rng.random() < 0.9:
            answer = EpochCommitted(
                executor_id=process.executor_id, attempt=message.attempt, epoch=message.epoch
            )
            self._answer(process, lambda am, now: am.manager.on_epoch_committed(answer, now))

    # -- work ------------------------------------------------------------------------------

    def _work(self) -> None:
        for worker in self._workers:
            for process in worker.processes:
                if process.is_alive and not process.is_frozen:
                    self._report_clocks(process)
                    for group in process.groups.values():
                        self._end_epochs(process, group)
        for attempt in self._attempts.values():
            is_reading = attempt.progress < self.work and not attempt.has_read_all
            if is_reading and attempt.is_moving:
                attempt.progress += 1

    def _report_clocks(self, process: Process) -> None:
        clocks: list[TaskClock] = []
        for group in process.groups.values():
            if works(group):
                clocks += self._clocks_of(group)
        if not clocks:
            return

        attempts = {
            each.session: group.launch.attempt
            for group in process.groups.values()
            for each in group.launch.tasks
        }

        def decide(app_master: AppMaster, now_ms: int) -> list[Command]:
            for clock in clocks:
                attempt = attempts[clock.session]
                before = app_master.reported.get(attempt, MIN_MS)
                app_master.reported[attempt] = max(before, clock.newest_ms)
            return app_master.manager.on_clocks(clocks, now_ms)

        self._answer(process, decide)

    def _clocks_of(self, group: Group) -> list[TaskClock]:
        attempt = self._attempts[group.launch.attempt]
        clock_ms = MAX_MS if attempt.progress >= self.work else attempt.progress
        newest_ms = attempt.event_time_ms if attempt.progress else MIN_MS
        if self.lies:  # One record is of the far future.
            newest_ms = max(newest_ms, 10**9)
        return [
            TaskClock(
                task_id=each.task_id,
                session=each.session,
                clock_ms=clock_ms,
                watermark_ms=clock_ms,
                newest_ms=newest_ms if each.task_id.processor % 2 == 0 else MIN_MS,
                span_ms=self.span_ms,
            )
            for each in group.launch.tasks
        ]

    # -- faults ----------------------------------------------------------------------------

    def _fault(self) -> None:
        """Let something go wrong."""
        faults = [
            *[self._kill_executor] * 4,
            *[self._freeze] * 3,
            *[self._fail_task] * 3,
            *[self._break_link] * 3,
            self._kill_worker,
            self._kill_app_master,
            self._lose_master,
            self._replay,
            self._spoil,
            *[self._damage] * (3 if self.damages else 0),
            *[self._drain] * (4 if self.drains else 0),
        ]
        self.rng.choice(faults)()

    def _some_process(self) -> Process | None:
        processes = [
            each
            for worker in self._workers
            for each in worker.processes
            if each.is_alive and each.app_master is self.app_master
        ]
        return self.rng.choice(processes) if processes else None

    def _kill_executor(self) -> None:
        process = self._some_process()
        if process is not None:
            self.app_master.faults += 1
            is_up = self.app_master.processes.get(process.executor_id) is process
            self._exit(process, "signal 9", is_told=not is_up or self.rng.random() < 0.7)

    def _kill_worker(self) -> None:
        worker = self.rng.choice(self._workers)
        if not worker.is_alive:
            return
        self._note(f"worker {worker.number} dies")
        worker.is_alive = False
        worker.lost_at_ms = self.now_ms + HEARTBEAT_MS
        for process in worker.processes:
            self._die(process)
        worker.processes.clear()
        self._lose_worker(self.app_master, worker)

        def replace() -> None:
            self._used.pop(worker.number, None)
            self._add_worker(worker.slots)

        self._after(HEARTBEAT_MS, replace)

    def _lose_worker(self, app_master: AppMaster, worker: Worker) -> None:
        """Let an app master hear of a worker's end, which is one fault."""
        if worker not in app_master.lost_workers:
            app_master.lost_workers.append(worker)
            app_master.faults += 1
        manager = app_master.manager
        self._after(
            max(0, worker.lost_at_ms - self.now_ms) + self.rng.randint(0, 50),
            lambda: self._do(app_master, lambda now: manager.on_worker_lost(worker.path, now)),
        )

    def _freeze(self) -> None:
        process = self._some_process()
        if process is None or process.is_frozen:
            return
        self._note(f"{process.address} freezes")
        process.is_frozen = True
        self.app_master.faults += 1
        is_up = self.app_master.processes.get(process.executor_id) is process
        if is_up and self.rng.random() < 0.6:  # Else the process lives, and only hangs.
            self._lose_touch(process, HEARTBEAT_MS)
            if self.rng.random() < 0.5:
                self._after(HEARTBEAT_MS, lambda: self._tell_neighbours(process))
        self._after(self.rng.randint(100, 6000), lambda: self._thaw(process))

    def _thaw(self, process: Process) -> None:
        process.is_frozen = False
        inbox, process.inbox = process.inbox, []
        for event in inbox:
            event()

    def _attempt_at(self, process: Process) -> list[Attempt]:
        return [
            self._attempts[group.launch.attempt]
            for group in process.groups.values()
            if group.is_started and not group.is_stopped
        ]

    def _tell_neighbours(self, process: Process) -> None:
        """Let others notice that a process has gone, unless it is back."""
        if process.is_alive and not process.is_frozen:
            return
        for attempt in self._attempt_at(process):
            for other in attempt.processes:
                if other is process or not other.is_alive:
                    continue
                attempt.is_broken = True
                self._after(self.rng.randint(1, 300), self._complaint(other, attempt, process))

    def _complaint(self, other: Process, attempt: Attempt, gone: Process) -> Callable[[], None]:
        def complain() -> None:
            if other.is_frozen:
                other.inbox.append(complain)
                return
            if not other.is_alive:
                return
            broken = LinkBroken(executor_id=other.executor_id, address=gone.address, reason="eof")
            self._answer(other, lambda am, now: am.manager.on_link_broken(broken, now))
            if self.rng.random() < 0.4:
                self._say_failed(other, attempt, "lost messages")

        return complain

    def _say_failed(self, process: Process, attempt: Attempt, cause: str) -> None:
        group = process.group_of(attempt.number)
        if group is None or group.is_stopped or group.is_failed:
            return
        group.is_failed = True
        task = self.rng.choice(group.launch.tasks)
        message = TaskFailed(
            executor_id=process.executor_id,
            task_id=task.task_id,
            session=task.session,
            error=ErrorCard(cause=cause),
            kind="lost" if cause == "lost messages" else "raised",
        )
        self._answer(process, lambda am, now: am.manager.on_task_failed(message, now))

    def _fail_task(self) -> None:
        process = self._some_process()
        attempts = self._attempt_at(process) if process else []
        if process is not None and attempts:
            self._note(f"task fails in {process.address}")
            self.app_master.faults += 1
            self._say_failed(process, self.rng.choice(attempts), "raised")

    def _break_link(self) -> None:
        process = self._some_process()
        attempts = self._attempt_at(process) if process else []
        pairs = [
            (each, other) for each in attempts for other in each.processes if other is not process
        ]
        if process is None or not pairs:
            return
        attempt, other = self.rng.choice(pairs)
        self._note(f"link {process.address} {other.address} breaks")
        self.app_master.faults += 1
        attempt.is_broken = True
        for one, two in ((process, other), (other, process)):
            self._after(self.rng.randint(1, 100), self._complaint(one, attempt, two))

    def _kill_app_master(self) -> None:
        """Let the app master crash; its executors end, and another one goes on."""
        old = self.app_master
        if not old.is_alive or old.ended is not None:
            return
        self._note("app master dies")
        old.is_alive = False
        self._queue, self._undivided = [], 0
        for worker in self._workers:
            for process in list(worker.processes):
                self._after(self.rng.randint(1, 1500), partial(self._exit, process, ""))
        self._after(self.rng.randint(100, 1500), self._relaunch)

    def _relaunch(self) -> None:
        if not self._is_master_there:
            self._after(500, self._relaunch)
            return
        self.app_master = self._new_app_master(self.app_master.launch + 1)
        self._do(self.app_master, self.app_master.manager.on_start)

    def _replay(self) -> None:
        self._note("replay")
        self._do(self.app_master, self.app_master.manager.replay)

    def _drain(self) -> None:
        self._note("drain")
        self._do(
            self.app_master,
            lambda now_ms: self.app_master.manager.drain(now_ms, timeout_ms=10 * CALM_MS),
        )

    def _spoil(self) -> None:
        """Let the next start, the next end or the next answers go wrong."""
        self._bad_starts += self.rng.randint(0, 2)
        self._bad_ends += self.rng.randint(0, 1)
        self._mute += self.rng.randint(0, 1)
        self._unreadable += self.rng.randint(0, 1)

    def _damage(self) -> None:
        """Let a file that a restart may need be damaged; and often let one need it."""
        manifests = self._manifests()
        if not manifests:
            return
        number = self.rng.choice(manifests).region
        of_region = self._manifests(number)
        file = of_region[-1].snapshots[-1]
        if self.rng.random() < 0.15:
            file = self.rng.choice([each for m in of_region for each in m.snapshots])
        self._note(f"{file.location} is damaged")
        self.damaged.add(file.location)
        attempt = self._attempts.get(self.app_master.manager.regions[number].attempt or 0)
        if attempt is not None and self.rng.random() < 0.8:
            self.app_master.faults += 1
            self._say_failed(self.rng.choice(attempt.processes), attempt, "raised")

    def _calm(self) -> None:
        """Let nothing more go wrong."""
        self._bad_starts = self._bad_ends = self._mute = self._unreadable = 0

    # -- the end ---------------------------------------------------------------------------

    def _check_end(self) -> None:
        """Assert that nothing is left behind when all is over."""
        for worker in self._workers:
            assert not worker.processes, f"left running: {worker.processes}"
        left = {worker: used for worker, used in self._used.items() if used}
        assert not left, f"slots not given back: {left}"
        regions = self.app_master.manager.regions
        for location, stored in self.files.items():
            is_told = stored.attempt >> 32 == self.app_master.launch and location in self._told
            if is_told or location in self._were_stored:
                file = SnapshotFile(location=location, sha256="", tasks=())
                assert regions[stored.region].history.needs(file), f"{location} is left"
