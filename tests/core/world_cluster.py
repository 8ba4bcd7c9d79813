"""Master, workers and app master around an `ApplicationCore`, in virtual time; see `app_world`."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from gearpy.core.app.application import (
    Activated,
    ApplicationCore,
    Command,
    DropSnapshots,
    Ended,
    EpochsRetired,
    HeldUp,
    Launch,
    Release,
    RequestSlots,
    Send,
    Stop,
    Survived,
)
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.master.slots import equal_parts
from gearpy.ids import MIN_MS, ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import (
    RegisterExecutor,
)
from gearpy.messages.cluster import Allocation
from tests.core.world_parts import (
    AppMaster,
    Attempt,
    Process,
    StoredFile,
    Worker,
    a_dag,
    attempt_of,
    some_limits,
)

__all__ = ["HEARTBEAT_MS", "TICK_MS", "ClusterWorld"]

TICK_MS = 100
HEARTBEAT_MS = 1000


class ClusterWorld:
    """An app master, a master and workers; asserts at every step what must hold."""

    def __init__(
        self,
        seed: int,
        *,
        restarts: int = 1000,
        work: int = 60,
        damages: bool = False,
        drains: bool = False,
    ) -> None:
        self.rng = rng = Random(seed)
        self.now_ms = 1000
        shapes = [(rng.randint(1, 2), rng.randint(1, 2)) for _ in range(rng.randint(1, 3))]
        self.dag = a_dag(*shapes)
        self.limits = some_limits(
            restarts=restarts,
            backoff_ms=rng.choice([0, 50, 300]),
            cut=rng.choice(["position", "event-time"]),
            pace=rng.choice(["fixed", "max-overhead", "max-replay"]),
            epoch_timeout_ms=rng.choice([400, 1500, 60_000]),
            retained=rng.randint(1, 3),
        )
        self.wanted = rng.randint(1, 4)
        self.work = work
        self.log: list[str] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._busy_until: dict[tuple[object, object], int] = {}
        self._workers: list[Worker] = []
        self._used: dict[int, int] = {}
        self._queue: list[int] = []
        self._undivided = 0  # Slots that are granted together, as there is room.
        self._master = 0  # Which incarnation.
        self._is_master_there = True
        self._flying: list[Launch] = []
        self._epoch_log: dict[tuple[int, int], bytes] = {}  # By region and epoch.
        self._progress_at: dict[tuple[int, int], int] = {}  # By attempt and epoch, if complete.
        self._were_stored: dict[str, int] = {}  # Files of all manifests that were in the log.
        self.files: dict[str, StoredFile] = {}
        self._told: set[str] = set()  # Files that an app master has heard of.
        self.damaged: set[str] = set()
        self.aborts = self.fallbacks = self.missed_cuts = self.cut_by_time = 0
        self.is_beyond_repair = False
        self._attempts: dict[int, Attempt] = {}
        self._last_attempt = self._last_session = self._last_launch = -1
        self._bad_starts = self._bad_ends = self._mute = self._unreadable = 0
        self.damages = damages  #: Whether files may be damaged.
        self.drains = drains  #: Whether the application may be drained.
        self.lies = rng.random() < 0.05
        self.span_ms = rng.choice([0, 0, 15, 100])
        self.is_auto = rng.random() < 0.25  #: The application is cut as there is room.
        self._share = share = -(-self.dag.task_count // min(self.wanted, self.dag.task_count))
        while sum(each.slots // share for each in self._workers) <= self.wanted:
            self._add_worker(share * rng.randint(1, 2) + rng.randint(0, 1))
        self.app_master = self._new_app_master(1)
        self._do(self.app_master, self.app_master.manager.on_start)
        self._every(TICK_MS, self._tick)
        self._every(TICK_MS // 2, self._work)

    # -- time and messages -----------------------------------------------------------------

    def _run(self, until_ms: int, *, to_the_end: bool = False) -> None:
        """Let things happen until a time, or until the application is over."""
        while self._events and self._events[0][0] <= until_ms:
            if to_the_end and self.app_master.ended is not None:
                return
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
        self.now_ms = max(self.now_ms, until_ms)

    def _after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._serial, event))

    def _every(self, interval_ms: int, event: Callable[[], None]) -> None:
        def again() -> None:
            event()
            self._after(interval_ms, again)

        self._after(interval_ms, again)

    def _send(self, sender: object, target: object, event: Callable[[], None]) -> None:
        """Deliver in order; usually soon."""
        slow = self.rng.random() < 0.05
        delay_ms = self.rng.randint(1, 400 if slow else 15)
        at_ms = max(self.now_ms + delay_ms, self._busy_until.get((sender, target), 0))
        self._busy_until[sender, target] = at_ms
        self._after(at_ms - self.now_ms, event)

    def _note(self, text: str) -> None:
        self.log.append(f"{self.now_ms:6} {text}")

    # -- the app master --------------------------------------------------------------------

    def _new_app_master(self, launch: int) -> AppMaster:
        manifests = self._manifests()
        manager = ApplicationCore(
            self.dag,
            executors=self._executors(launch),
            limits=self.limits,
            launch=launch,
            rng=Random(self.rng.random()),
            now_ms=self.now_ms,
            manifests=manifests,
        )
        epochs = [(each.region, each.epoch) for each in manifests]
        self._note(f"app master {launch}, from {epochs}")
        cut_times: dict[int, int] = {}
        for each in manifests:
            cut_times[each.region] = max(
                cut_times.get(each.region, MIN_MS), each.cut_time_ms or MIN_MS
            )
        return AppMaster(launch, manager, {each.region: each for each in manifests}, cut_times)

    def _executors(self, launch: int) -> int:
        if self.is_auto:
            return 0
        return self.wanted if launch == 1 else self.rng.randint(self.wanted, 4)

    def _tick(self) -> None:
        self._do(self.app_master, self.app_master.manager.on_tick)

    def _do(self, app_master: AppMaster, decide: Callable[[int], Iterable[Command]]) -> None:
        """Give the manager an event, check what it decides, and do that."""
        if app_master is not self.app_master or not app_master.is_alive:
            return
        manager = app_master.manager
        there = set(manager.executors.running)
        commands = list(decide(self.now_ms))
        there |= set(manager.executors.running)
        killed: set[ExecutorId] = set()
        for command in commands:
            if isinstance(command, Send):
                assert command.executor_id in there - killed, f"sent to nobody: {command}"
            elif isinstance(command, Stop) and command.kill:
                killed.add(command.executor_id)
            elif isinstance(command, Survived):
                self._note(f"survived {command.what}: {command.error.cause}")
        assert manager.restarts <= app_master.faults, f"{manager.restarts} > {app_master.faults}"
        assert manager.restarts <= self.limits.restarts.max_restarts
        for command in commands:
            self._obey(app_master, command)

    def _obey(self, app_master: AppMaster, command: Command) -> None:
        if app_master.ended is not None:
            last = isinstance(command, DropSnapshots | EpochsRetired | Release)
            assert last, f"{command} after the end"
        match command:
            case Send():
                self._send_to_executor(app_master, command)
            case RequestSlots():
                assert command.slots == app_master.manager.executors.waiting_slots
                self._tell_master(app_master, lambda: self._request(command))
            case Release():
                number = command.worker_id
                self._tell_master(app_master, lambda: self._release(number, command.slots))
            case Launch():
                self._launch(app_master, command)
            case Stop():
                worker = self._worker_at(command.worker)
                self._send(app_master, worker, lambda: self._stop(worker, app_master, command))
            case _:
                self._note_down(app_master, command)

    def _note_down(self, app_master: AppMaster, command: Command) -> None:
        match command:
            case Ended():
                self._on_ended(app_master, command)
            case Activated() | HeldUp():
                is_active = isinstance(command, Activated)
                assert app_master.is_active != is_active, f"{type(command).__name__} twice"
                app_master.is_active = is_active
                self._note("active" if is_active else "held up")
            case _:
                self._on_epochs(app_master, command)

    def _send_to_executor(self, app_master: AppMaster, command: Send) -> None:
        process, message = app_master.processes[command.executor_id], command.message
        self._check_sent(app_master, process, message)
        self._note(f"to {process.address}: {type(message).__name__} {attempt_of(message)}")
        self._send(app_master, process, lambda: self._deliver(process, message))

    def _tell_master(self, app_master: AppMaster, event: Callable[[], None]) -> None:
        """Tell the master that is there, unless it has gone before it hears."""
        incarnation = self._master

        def deliver() -> None:
            if self._is_master_there and incarnation == self._master:
                event()

        if self._is_master_there:
            self._send(app_master, "master", deliver)

    def _on_ended(self, app_master: AppMaster, ended: Ended) -> None:
        app_master.ended = ended
        self._note(f"ended {ended.status} {ended.cause}")
        if ended.status == "failed":
            self._check_failed(app_master, ended)
            return
        assert app_master.is_active
        for region in app_master.manager.regions:
            if region.attempt is None:
                assert ended.status == "terminated", "never begun"
                continue
            attempt = self._attempts[region.attempt]
            is_drained = ended.status == "terminated" and attempt.has_read_all
            assert is_drained or attempt.progress >= self.work, "not done"
            assert not attempt.is_spoiled, "did not end well"

    # -- master ----------------------------------------------------------------------------

    def _add_worker(self, slots: int) -> None:
        number = len(self._workers)
        self._workers.append(Worker(number, slots))
        self._used[number] = 0
        self._grant()

    def _request(self, command: RequestSlots) -> None:
        self._undivided = 0 if command.executors else command.slots
        self._queue = list(command.sizes)
        if command.executors and not command.sizes:
            self._queue = equal_parts(command.slots, command.executors)
        self._grant()

    def _release(self, worker: int, slots: int) -> None:
        if worker in self._used:
            self._used[worker] -= slots
            assert self._used[worker] >= 0, "released twice"
            self._grant()

    def _grant(self) -> None:
        if not (self._queue or self._undivided):
            return
        app_master = self.app_master
        for part in list(self._queue):
            if allocation := self._take(part):
                self._queue.remove(part)
                self._send("master", app_master, self._granting(app_master, [allocation]))
        if self._undivided and (allocations := self._take_together(self._undivided)):
            self._undivided = 0
            self._send("master", app_master, self._granting(app_master, allocations))

    def _take(self, part: int) -> Allocation | None:
        free = {each: self._workers[each].slots - used for each, used in self._used.items()}
        fitting = [each for each, left in free.items() if left >= part]
        if not fitting:
            return None
        worker = self._workers[self.rng.choice(fitting)]
        self._used[worker.number] += part
        return Allocation(worker_id=WorkerId(worker.number), worker=worker.path, slots=part)

    def _take_together(self, slots: int) -> list[Allocation]:
        before, taken = dict(self._used), list[Allocation]()
        while slots:
            part = self.rng.randint(1, min(slots, self._share))
            if (allocation := self._take(part)) is None:
                self._used = before
                return []
            taken.append(allocation)
            slots -= part
        return taken

    def _granting(
        self, app_master: AppMaster, allocations: Sequence[Allocation]
    ) -> Callable[[], None]:
        incarnation = self._master

        def deliver() -> None:
            if incarnation != self._master:
                return  # Lost with the master; the next one counts anew.
            if app_master is not self.app_master or not app_master.is_alive:
                for each in allocations:
                    self._release(each.worker_id, each.slots)
                return
            self._do(app_master, decide)

        def decide(now_ms: int) -> list[Command]:
            commands = app_master.manager.on_allocated(allocations, now_ms)
            taken = [each for each in commands if isinstance(each, Launch | Release)]
            assert len(taken) == len(allocations), f"{allocations} became {commands}"
            return commands

        return deliver

    def _lose_master(self) -> None:
        """Let the master crash, and another one come later."""
        if not self._is_master_there:
            return
        self._note("master away")
        self._is_master_there = False
        self._master += 1
        app_master, manager = self.app_master, self.app_master.manager
        self._send(
            "master",
            app_master,
            lambda: self._do(app_master, lambda now: manager.on_master(is_there=False, now_ms=now)),
        )
        self._after(self.rng.randint(300, 4000), self._master_back)

    def _master_back(self) -> None:
        self._note("master back")
        self._master += 1
        self._is_master_there = True
        self._queue, self._undivided = [], 0
        for number in self._used:
            worker = self._workers[number]
            flying = [each for each in self._flying if each.allocation.worker_id == number]
            self._used[number] = sum(each.slots for each in worker.processes) + sum(
                each.allocation.slots for each in flying
            )
            self._used[number] += sum(
                each.successor.allocation.slots for each in worker.processes if each.successor
            )
        self._send("master", self.app_master, lambda: self._on_master_back(self.app_master))

    def _on_master_back(self, app_master: AppMaster) -> None:
        if app_master is not self.app_master or not app_master.is_alive:
            return
        manager = app_master.manager
        self._do(app_master, lambda now: manager.on_master(is_there=True, now_ms=now))

    # -- workers ---------------------------------------------------------------------------

    def _worker_at(self, path: ActorPath) -> Worker:
        return next(each for each in self._workers if each.path == path)

    def _launch(self, app_master: AppMaster, command: Launch) -> None:
        assert command.launch > self._last_launch, "a launch went back"
        self._last_launch = command.launch
        self._note(f"launch {command.launch} of {command.executor_id}")
        worker = self._worker_at(command.allocation.worker)
        self._flying.append(command)
        self._send(app_master, worker, lambda: self._on_launch(worker, app_master, command))

    def _on_launch(self, worker: Worker, app_master: AppMaster, command: Launch) -> None:
        self._flying.remove(command)
        if not worker.is_alive:
            self._lose_worker(app_master, worker)
            return
        running = worker.at(command.executor_id)
        if running is None:
            self._start(worker, app_master, command)
            return
        assert running.launch < command.launch
        assert running.successor is None
        running.successor = command
        self._after(self.rng.randint(1, 30), lambda: self._exit(running, "killed"))

    def _start(self, worker: Worker, app_master: AppMaster, command: Launch) -> None:
        slots = command.allocation.slots
        process = Process(app_master, command.executor_id, command.launch, slots, worker)
        worker.processes.append(process)
        assert sum(each.slots for each in worker.processes) <= worker.slots, "too many slots"
        starts_ms = self.rng.randint(20, 200)
        if self._bad_starts:
            self._bad_starts -= 1
            app_master.faults += 1
            if self.rng.random() < 0.5:
                self._after(starts_ms, lambda: self._exit(process, "no such module"))
        else:
            self._after(starts_ms, lambda: self._register(process))

    def _register(self, process: Process) -> None:
        if not process.is_alive:
            return
        if not process.app_master.is_alive:
            self._exit(process, "")
            return
        message = RegisterExecutor(
            executor_id=process.executor_id,
            launch=process.launch,
            executor=ActorPath(process.address, "executor"),
            data_address=process.address,
            slots=process.slots,
            graph_hash=self.dag.structural_hash(),
        )
        self._answer(process, lambda am, now: self._on_registered(am, process, message, now))

    def _on_registered(
        self, app_master: AppMaster, process: Process, message: RegisterExecutor, now_ms: int
    ) -> list[Command]:
        if app_master.manager.executors.is_current(process.executor_id, process.launch):
            app_master.processes[process.executor_id] = process
            if not process.is_alive:  # Its end is noticed as soon as it is watched.
                self._lose_touch(process, HEARTBEAT_MS)
        return app_master.manager.on_executor_registered(message, now_ms)

    def _stop(self, worker: Worker, app_master: AppMaster, command: Stop) -> None:
        process = worker.at(command.executor_id)
        if process is None:
            return
        if process.launch == command.launch:
            delay_ms = self.rng.randint(1, 50 if command.kill else 300)
            self._after(delay_ms, lambda: self._exit(process, "killed" if command.kill else ""))
        elif process.successor is not None and process.successor.launch == command.launch:
            slots, process.successor = process.successor.allocation.slots, None
            self._report(app_master, process, command.launch, "")
            self._give_back(worker, slots)

    def _exit(self, process: Process, cause: str, *, is_told: bool = True) -> None:
        """End a process; its worker gives the slots back, and tells why."""
        if not process.is_alive:
            return
        self._note(f"{process.address} exits: {cause}")
        self._die(process)
        worker = process.worker
        worker.processes.remove(process)
        if is_told:
            self._report(process.app_master, process, process.launch, cause)
        self._give_back(worker, process.slots)
        if process.successor is not None:
            self._start(worker, self.app_master, process.successor)

    def _die(self, process: Process) -> None:
        process.is_alive = False
        process.loses_output = self.rng.random() < 0.5
        if process.app_master.processes.get(process.executor_id) is process:
            self._lose_touch(process, self.rng.choice([1, HEARTBEAT_MS]))
            self._tell_neighbours(process)

    def _report(self, app_master: AppMaster, process: Process, launch: int, cause: str) -> None:
        executor_id, manager = process.executor_id, app_master.manager
        self._send(
            process.worker,
            app_master,
            lambda: self._do(
                app_master, lambda now: manager.on_executor_gone(executor_id, launch, cause, now)
            ),
        )

    def _give_back(self, worker: Worker, slots: int) -> None:
        incarnation = self._master

        def deliver() -> None:
            if self._is_master_there and incarnation == self._master:
                self._release(worker.number, slots)

        self._send(worker, "master", deliver)

    # -- epochs ----------------------------------------------------------------------------

    def _manifests(self, region: int | None = None) -> list[Manifest]:
        raise NotImplementedError

    def _check_sent(self, app_master: AppMaster, process: Process, message: Any) -> None:
        raise NotImplementedError

    def _on_epochs(self, app_master: AppMaster, command: Command) -> None:
        raise NotImplementedError

    def _check_failed(self, app_master: AppMaster, ended: Ended) -> None:
        raise NotImplementedError

    # -- what executors do -----------------------------------------------------------------

    def _deliver(self, process: Process, message: Any) -> None:
        raise NotImplementedError

    def _answer(
        self, process: Process, decide: Callable[[AppMaster, int], Iterable[Command]]
    ) -> None:
        raise NotImplementedError

    def _lose_touch(self, process: Process, delay_ms: int) -> None:
        raise NotImplementedError

    def _tell_neighbours(self, process: Process) -> None:
        raise NotImplementedError

    def _lose_worker(self, app_master: AppMaster, worker: Worker) -> None:
        raise NotImplementedError

    def _work(self) -> None:
        raise NotImplementedError
