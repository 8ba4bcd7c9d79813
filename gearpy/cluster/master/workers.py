"""The workers of a master: their paths, their executors, and how to end those."""

import logging
from collections.abc import Callable, Iterable

from gearpy.cluster.master.outbox import MasterOutbox
from gearpy.cluster.master.store import MasterStore
from gearpy.core.master.app_masters import AppMasters, KeeperAction, LaunchTimes
from gearpy.core.master.commands import AddWorker
from gearpy.core.master.flapping import WorkerFlaps
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import Grant, RunningChange, SlotLedger, WorkerPlace
from gearpy.ids import ActorPath, WorkerId
from gearpy.messages.cluster import (
    OtherCluster,
    RegisterWorker,
    ResourceUpdate,
    RunningExecutor,
    ShutdownExecutor,
    WorkerRegistered,
)

_log = logging.getLogger(__name__)


class MasterWorkers:
    """Knows the workers that have registered, until they are lost.

    The master carries out the returned actions in order.

    Runs on: the master's turns.
    """

    def __init__(
        self,
        *,
        store: MasterStore,
        app_masters: AppMasters,
        slots: SlotLedger,
        outbox: MasterOutbox,
        scheduler: SlotScheduler,
        do: Callable[[Iterable[KeeperAction]], None],
    ) -> None:
        self._store = store
        self._do = do
        self._app_masters = app_masters
        self._slots = slots
        self._outbox = outbox
        self._scheduler = scheduler
        self.paths: dict[WorkerId, ActorPath] = {}
        self.versions: dict[WorkerId, str] = {}
        self._flaps = WorkerFlaps()
        self.aside_until_ms: dict[WorkerId, int] = {}

    def at(self, path: ActorPath) -> list[WorkerId]:
        return [worker_id for worker_id, where in self.paths.items() if where == path]

    def register(
        self, message: RegisterWorker, *, master: ActorPath, now: LaunchTimes
    ) -> list[KeeperAction]:
        """Take a worker, perhaps once more, and answer it before all else.

        One of another cluster is not taken: what it runs has the numbers of this one's.
        """
        cluster_id = self._store.state.cluster_id
        if message.cluster_id not in {"", cluster_id}:
            self._outbox.tell(message.worker, OtherCluster(cluster_id=cluster_id))
            return []
        known = self.at(message.worker)
        has_no_answer = bool(known) and message.worker_id is None  # But has registered before.
        worker_id = known[0] if has_no_answer else self._take(message)
        running = message.running
        place = WorkerPlace((*message.hosts, f"worker{worker_id}"), message.rack)
        change = self._slots.on_worker(worker_id, total=message.slots, running=running, place=place)
        self._account(change, now)
        home = message.home
        is_aside = self._flaps.on_worker(worker_id, home, now.now_ms)
        if is_aside and not self._slots.workers[worker_id].is_aside:
            text = "worker %s at %s was lost again and again: nothing starts there until it stays"
            _log.warning(text, worker_id, home)
        self._slots.put_aside(worker_id, is_aside=is_aside)
        if (until_ms := self._flaps.until_ms(worker_id)) is not None:
            self.aside_until_ms[worker_id] = now.wall_ms + until_ms - now.now_ms
        self._outbox.watch(message.worker)
        answer = WorkerRegistered(worker_id=worker_id, master=master, cluster_id=cluster_id)

        def or_else() -> None:
            if self.paths.get(worker_id) == message.worker:
                self._do(self.on_lost(worker_id, now))

        self._outbox.tell(message.worker, answer, or_else)
        self._outbox.tell_masters(message.worker)
        if message.worker_id is None:
            return []
        is_stranger = message.worker_id != worker_id
        for each in message.running:
            self._end_unwanted(worker_id, each, is_stranger=is_stranger)
        if is_stranger:
            return []
        return self._app_masters.on_worker_again(worker_id, message.running, now)

    def on_lost(self, worker_id: WorkerId, now: LaunchTimes) -> list[KeeperAction]:
        self.paths.pop(worker_id, None)
        self.versions.pop(worker_id, None)
        self._flaps.on_lost(worker_id, now.now_ms)
        self.aside_until_ms.pop(worker_id, None)
        self.reserve(self._slots.on_worker_lost(worker_id), now)
        return self._app_masters.on_worker_lost(worker_id, now)

    def on_update(self, message: ResourceUpdate, now: LaunchTimes) -> None:
        if message.is_leaving:
            self._slots.on_leaving(message.worker_id)
            self._flaps.on_leaving(message.worker_id)
            self._app_masters.on_worker_leaving(message.worker_id)
        for each in message.refused:
            self.reserve(self._slots.on_refused(message.worker_id, each), now)
        change = self._slots.on_running(message.worker_id, message.running)
        self._account(change, now)
        for begun in change.begun:
            self._end_unwanted(message.worker_id, begun)

    @property
    def next_due_ms(self) -> int | None:
        return self._flaps.next_due_ms

    def on_tick(self, now: LaunchTimes) -> None:
        for worker_id in self._flaps.on_tick(now.now_ms):
            self._slots.put_aside(worker_id, is_aside=False)
            self.aside_until_ms.pop(worker_id, None)
            _log.info("worker %s has stayed, and gets executors again", worker_id)

    def _account(self, change: RunningChange, now: LaunchTimes) -> None:
        for each in change.unasked:
            self._scheduler.on_regained(each)
        self.reserve(change.ended, now)

    def reserve(self, had: Iterable[Grant], now: LaunchTimes) -> None:
        """Keep slots for the applications that had them, unless an application is over."""
        for each in had:
            if self._store.state.is_living(each.app_id):
                self._scheduler.on_lost(each, now.now_ms)

    def stop_executor(
        self, worker_id: WorkerId, executor: RunningExecutor, *, reason: str, kill: bool
    ) -> None:
        if worker_id in self.paths:
            message = ShutdownExecutor(
                app_id=executor.app_id,
                executor_id=executor.executor_id,
                launch=executor.launch,
                reason=reason,
                kill=kill,
            )
            self._outbox.tell(self.paths[worker_id], message)

    def _take(self, message: RegisterWorker) -> WorkerId:
        worker_id = message.worker_id
        if worker_id is None or not self._store.state.is_given(worker_id):
            # An id that was never given is of another master's log, and so are its executors.
            (worker_id,) = self._store.change(AddWorker())
        old = self.paths.get(worker_id)
        if old is not None and old != message.worker:
            self._outbox.unwatch(old)
        self.paths[worker_id] = message.worker
        self.versions[worker_id] = message.version
        return worker_id

    def _end_unwanted(
        self, worker_id: WorkerId, running: RunningExecutor, *, is_stranger: bool = False
    ) -> None:
        if is_stranger or self._app_masters.is_over(running.app_id, running.app_master):
            reason = f"application {running.app_id} has ended, or runs elsewhere"
            self.stop_executor(worker_id, running, reason=reason, kill=True)
