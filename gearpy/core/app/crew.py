"""The executors of an application of actors: wanted by its app master, replaced when lost."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from gearpy.core.app.executors import ExecutorCommand, ExecutorManager
from gearpy.core.base.restart import GiveUp, RestartBudget, RestartPolicy
from gearpy.ids import ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.cluster import Allocation

if TYPE_CHECKING:
    from random import Random

_LATE: Final = "it did not start in time (executor.start-timeout-seconds)"


class Lost(Struct, frozen=True):
    """The process of an executor is gone. Another one follows, unless its budget is spent."""

    executor_id: ExecutorId
    cause: str
    is_final: bool


CrewCommand: TypeAlias = ExecutorCommand | Lost


class Crew:
    """Decides which executors an application of actors asks for, starts and stops.

    Invariant: an executor that was added has a process, waits for one, or was reported as finally
    lost; one that was dropped takes no slots once its process is gone.
    """

    def __init__(
        self, *, restarts: RestartPolicy, start_timeout_ms: int, rng: "Random", first_launch: int
    ) -> None:
        self.executors = ExecutorManager(slots=0, executors=0, first_launch=first_launch)
        self._restarts = restarts
        self._start_timeout_ms = start_timeout_ms
        self._rng = rng
        self._budgets: dict[ExecutorId, RestartBudget] = {}  # Only wanted executors have one.
        self._on_each: int | None = None
        self._pinned: dict[WorkerId, ExecutorId] = {}

    def add(
        self, count: int, *, slots: int, now_ms: int
    ) -> tuple[list[ExecutorId], list[CrewCommand]]:
        added = [self._add(slots, None) for _ in range(count)]
        return added, self._request(now_ms)

    def add_on_each_worker(self, slots: int) -> None:
        self._on_each = slots

    def on_workers(self, workers: Iterable[WorkerId], now_ms: int) -> list[CrewCommand]:
        if self._on_each is None:
            return []
        there = set(workers)
        commands: list[CrewCommand] = []
        for worker_id in sorted(there - self._pinned.keys()):
            self._pinned[worker_id] = self._add(self._on_each, worker_id)
        for worker_id in sorted(self._pinned.keys() - there):
            commands += self.drop(self._pinned.pop(worker_id), "its worker has left")
        return [*commands, *self._request(now_ms)]

    def drop(self, executor_id: ExecutorId, reason: str) -> list[CrewCommand]:
        if self._budgets.pop(executor_id, None) is None:
            return []
        if self.executors.worker_of(executor_id) is None:
            self.executors.remove(executor_id)
            return []
        return [*self.executors.stop(executor_id, kill=False, reason=reason)]

    def stop_all(self, reason: str) -> list[CrewCommand]:
        self._budgets.clear()
        return [*self.executors.stop_all(reason)]

    def on_allocated(self, allocations: Iterable[Allocation], now_ms: int) -> list[CrewCommand]:
        return [*self.executors.on_allocated(allocations, now_ms)]

    def on_registered(self, message: RegisterExecutor) -> bool:
        return self.executors.on_registered(message)

    def on_gone(
        self, executor_id: ExecutorId, launch: int, cause: str, now_ms: int
    ) -> list[CrewCommand]:
        if not self.executors.on_gone(executor_id, launch):
            return []
        budget = self._budgets.get(executor_id)
        if budget is None:  # It was dropped.
            self.executors.remove(executor_id)
            return []
        decision = budget.on_failure(now_ms, self._rng)
        lost = Lost(executor_id, cause or "it ended unasked", isinstance(decision, GiveUp))
        if isinstance(decision, GiveUp):
            del self._budgets[executor_id]
            self.executors.remove(executor_id)
        else:
            self.executors.pause(executor_id, now_ms + decision.delay_ms)
        return [lost]

    def on_worker_lost(self, worker: ActorPath, now_ms: int) -> list[CrewCommand]:
        commands: list[CrewCommand] = []
        for executor_id, launch in self.executors.on_worker(worker):
            commands += self.executors.release(executor_id)
            commands += self.on_gone(executor_id, launch, "its worker is lost", now_ms)
        return commands

    def on_master_back(self, now_ms: int) -> list[CrewCommand]:
        """Ask once more: the master may not have stored the request."""
        return [*self.executors.request_again(now_ms)]

    def on_tick(self, now_ms: int) -> list[CrewCommand]:
        commands: list[CrewCommand] = []
        for executor_id in self.executors.late(now_ms, self._start_timeout_ms):
            commands += self.executors.stop(executor_id, kill=True, reason=_LATE)
        return [*commands, *self._request(now_ms)]

    def _add(self, slots: int, worker_id: WorkerId | None) -> ExecutorId:
        executor_id = self.executors.add(slots, worker_id)
        self._budgets[executor_id] = RestartBudget(self._restarts)
        return executor_id

    def _request(self, now_ms: int) -> list[CrewCommand]:
        return [*self.executors.request(self._budgets, now_ms)]
