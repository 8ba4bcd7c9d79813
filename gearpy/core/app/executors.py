"""The executors of one application: wanted, running, and waited for.

Gearpump: `ExecutorManager`, which counts every lost executor against a budget of its own.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.app.hosts import BoundSlots
from gearpy.core.master.slots import equal_parts
from gearpy.ids import ActorPath, ExecutorId, WorkerId
from gearpy.messages.app import RegisterExecutor
from gearpy.messages.cluster import Allocation
from gearpy.messages.summaries import ExecutorSummary


class RequestSlots(Struct, frozen=True, kw_only=True):
    """Ask the master for slots; replaces the request before, and with 0 slots withdraws it.

    With 0 executors the slots are divided as there is room; `ExecutorManager.divide` takes the
    result. A request that ``adds`` leaves those before in place.
    """

    slots: int
    executors: int
    sizes: tuple[int, ...] = ()
    worker_id: WorkerId | None = None
    hosts: tuple[str, ...] = ()
    adds: bool = False


class Release(Struct, frozen=True, kw_only=True):
    """Give slots back that no executor is in."""

    worker_id: WorkerId
    slots: int


class Launch(Struct, frozen=True, kw_only=True):
    """Have a worker start an executor."""

    executor_id: ExecutorId
    launch: int
    allocation: Allocation
    hosts: tuple[str, ...] = ()


class Stop(Struct, frozen=True, kw_only=True):
    """Have a worker stop an executor."""

    executor_id: ExecutorId
    launch: int
    worker: ActorPath
    kill: bool
    reason: str


#: Launches of executors by one launch of an app master; those of the next one begin behind them.
_EXECUTOR_LAUNCHES: Final = 10_000


def first_launch(app_master: int) -> int:
    return (app_master - 1) * _EXECUTOR_LAUNCHES + 1


ExecutorCommand: TypeAlias = RequestSlots | Release | Launch | Stop
_Status: TypeAlias = Literal["waiting", "launching", "running"]


class _Executor(Struct):
    """One executor of the application; its process may change."""

    slots: int
    worker_id: WorkerId | None = None  #: The only one that will do.
    hosts: tuple[str, ...] = ()  #: The only machines that will do; empty for all.
    status: _Status = "waiting"
    is_asked: bool = False  #: Slots for it were requested.
    since_ms: int = 0  #: The time of the request, or of the launch.
    pause_until_ms: int = 0
    launch: int = 0
    allocation: Allocation | None = None
    registered: RegisterExecutor | None = None


class ExecutorManager:
    """Keeps a process for each executor of an application; launches another when one is lost.

    Invariant: at most one launch of an executor counts; slots that were granted are either in use
    by a launch or given back. Nothing is launched that was not asked for.
    """

    def __init__(
        self, *, slots: int, executors: int, first_launch: int = 1, bound: Sequence[BoundSlots] = ()
    ) -> None:
        assert slots >= executors >= 0, (slots, executors)
        sizes = equal_parts(slots, executors or 1) if slots else []
        self._bound = len(bound)
        first = [_Executor(size, hosts=hosts) for size, hosts in bound]
        together = enumerate([*first, *map(_Executor, sizes)])
        self._executors = {ExecutorId(at): each for at, each in together}
        #: Whether it is known how many share the slots.
        self.is_divided = executors > 0 or not slots
        self._next_id = len(self._executors)
        self._next_launch = first_launch
        self._has_withdrawn = False  # The master does not know that a request is void.

    @property
    def slots(self) -> Mapping[ExecutorId, int]:
        return {executor_id: each.slots for executor_id, each in self._executors.items()}

    @property
    def hosts(self) -> Mapping[ExecutorId, tuple[str, ...]]:
        return {executor_id: each.hosts for executor_id, each in self._executors.items()}

    @property
    def running(self) -> Mapping[ExecutorId, RegisterExecutor]:
        return {
            executor_id: each.registered
            for executor_id, each in self._executors.items()
            if each.registered is not None
        }

    @property
    def waiting_slots(self) -> int:
        return sum(executor.slots for executor in self._asked())

    def missing_slots(self, wanted: Container[ExecutorId]) -> list[int]:
        return [
            each.slots
            for executor_id, each in self._executors.items()
            if each.is_asked and executor_id in wanted
        ]

    def slots_by_worker(self, *, but: Container[ExecutorId]) -> Counter[WorkerId | None]:
        slots: Counter[WorkerId | None] = Counter()
        for executor_id, each in self._executors.items():
            if executor_id not in but:
                worker_id = None if each.allocation is None else each.allocation.worker_id
                slots[worker_id] += each.slots
        return slots

    @property
    def undivided_slots(self) -> int:
        return sum(executor.slots for executor in self._asked() if not executor.hosts)

    def is_current(self, executor_id: ExecutorId, launch: int) -> bool:
        executor = self._executors.get(executor_id)
        return executor is not None and executor.status != "waiting" and executor.launch == launch

    def waiting_since_ms(self, wanted: Container[ExecutorId]) -> int | None:
        return min(
            (
                each.since_ms
                for executor_id, each in self._executors.items()
                if each.is_asked and executor_id in wanted
            ),
            default=None,
        )

    def late(self, now_ms: int, timeout_ms: int) -> list[ExecutorId]:
        return [
            executor_id
            for executor_id, each in self._executors.items()
            if each.status == "launching" and now_ms - each.since_ms >= timeout_ms
        ]

    def worker_of(self, executor_id: ExecutorId) -> ActorPath | None:
        allocation = self._executors[executor_id].allocation
        return None if allocation is None else allocation.worker

    def on_worker(self, worker: ActorPath) -> list[tuple[ExecutorId, int]]:
        return [
            (executor_id, each.launch)
            for executor_id, each in self._executors.items()
            if each.allocation is not None and each.allocation.worker == worker
        ]

    def summaries(self, tasks: Mapping[ExecutorId, Iterable[object]]) -> list[ExecutorSummary]:
        return [
            ExecutorSummary(
                executor_id=executor_id,
                launch=each.launch,
                worker_id=each.allocation.worker_id,
                slots=each.slots,
                status="running" if each.registered else "launching",
                pid=each.registered.pid if each.registered else 0,
                data_address=each.registered.data_address if each.registered else "",
                tasks=tuple(map(str, tasks.get(executor_id, ()))),
                metrics_address=each.registered.metrics_address if each.registered else "",
            )
            for executor_id, each in self._executors.items()
            if each.allocation is not None
        ]

    def add(
        self, slots: int, worker_id: WorkerId | None = None, hosts: tuple[str, ...] = ()
    ) -> ExecutorId:
        """Have one executor more, which `request` asks for; on the named worker, or machines.

        What was not divided yet is not waited for any more.
        """
        self.is_divided = True
        executor_id = ExecutorId(self._next_id)
        self._next_id += 1
        self._executors[executor_id] = _Executor(slots, worker_id, hosts)
        return executor_id

    def remove(self, executor_id: ExecutorId) -> None:
        self._has_withdrawn |= self._executors.pop(executor_id).is_asked

    def request(self, wanted: Container[ExecutorId], now_ms: int) -> list[ExecutorCommand]:
        new = [
            each
            for executor_id, each in self._executors.items()
            if each.status == "waiting" and not each.is_asked and executor_id in wanted
            if now_ms >= each.pause_until_ms
        ]
        for executor in new:
            executor.is_asked, executor.since_ms = True, now_ms
        return self._requests() if new or self._has_withdrawn else []

    def request_again(self, now_ms: int) -> list[ExecutorCommand]:
        for executor in self._asked():
            executor.since_ms = now_ms
        return self._requests()

    def divide(self, sizes: Iterable[int], now_ms: int) -> None:
        """Have the executors of these sizes, which have been asked for, share the slots."""
        assert not self.is_divided, "that is decided once"
        self.is_divided = True
        del self._executors[ExecutorId(self._bound)]
        self._next_id = self._bound
        for size in sizes:
            self._executors[ExecutorId(self._next_id)] = _Executor(
                size, is_asked=True, since_ms=now_ms
            )
            self._next_id += 1

    def pause(self, executor_id: ExecutorId, until_ms: int) -> None:
        self._executors[executor_id].pause_until_ms = until_ms

    def on_allocated(self, allocations: Iterable[Allocation], now_ms: int) -> list[ExecutorCommand]:
        commands: list[ExecutorCommand] = []
        for allocation in allocations:
            executor_id = self._waiting_for(allocation)
            if executor_id is None:
                commands.append(Release(worker_id=allocation.worker_id, slots=allocation.slots))
            else:
                executor = self._executors[executor_id]
                executor.status, executor.allocation = "launching", allocation
                executor.since_ms = now_ms
                executor.is_asked = False
                executor.launch, self._next_launch = self._next_launch, self._next_launch + 1
                commands.append(
                    Launch(
                        executor_id=executor_id,
                        launch=executor.launch,
                        allocation=allocation,
                        hosts=executor.hosts,
                    )
                )
        return commands

    def on_useless(self, allocations: Iterable[Allocation], until_ms: int) -> list[ExecutorCommand]:
        """Give back slots that cannot be used; ask for others no earlier than this."""
        commands: list[ExecutorCommand] = []
        for allocation in allocations:
            executor_id = self._waiting_for(allocation)
            if executor_id is not None:
                executor = self._executors[executor_id]
                executor.is_asked, executor.pause_until_ms = False, until_ms
            commands.append(Release(worker_id=allocation.worker_id, slots=allocation.slots))
        return commands

    def release(self, executor_id: ExecutorId) -> list[ExecutorCommand]:
        """Give back the slots of an executor that was launched on a worker that is lost.

        To a worker that runs it all the same this means nothing.
        """
        allocation = self._executors[executor_id].allocation
        if allocation is None:
            return []
        return [Release(worker_id=allocation.worker_id, slots=allocation.slots)]

    def on_registered(self, message: RegisterExecutor) -> bool:
        if not self.is_current(message.executor_id, message.launch):
            return False
        executor = self._executors[message.executor_id]
        executor.status, executor.registered = "running", message
        return True

    def on_gone(self, executor_id: ExecutorId, launch: int) -> bool:
        if not self.is_current(executor_id, launch):
            return False
        executor = self._executors[executor_id]
        self._executors[executor_id] = _Executor(
            executor.slots, executor.worker_id, executor.hosts, launch=launch
        )
        return True

    def stop(self, executor_id: ExecutorId, *, kill: bool, reason: str) -> list[Stop]:
        executor = self._executors[executor_id]
        if executor.allocation is None:
            return []
        return [
            Stop(
                executor_id=executor_id,
                launch=executor.launch,
                worker=executor.allocation.worker,
                kill=kill,
                reason=reason,
            )
        ]

    def withdraw(self, executor_id: ExecutorId, *, reason: str) -> list[Stop]:
        executor = self._executors[executor_id]
        self._has_withdrawn |= executor.is_asked
        executor.is_asked = False
        return self.stop(executor_id, kill=True, reason=reason)

    def stop_all(self, reason: str) -> list[Stop]:
        return [
            command
            for executor_id in self._executors
            for command in self.stop(executor_id, kill=False, reason=reason)
        ]

    def _asked(self) -> list[_Executor]:
        return [executor for executor in self._executors.values() if executor.is_asked]

    def _requests(self) -> list[ExecutorCommand]:
        self._has_withdrawn = False
        asked = self._asked()
        if not asked:
            return [RequestSlots(slots=0, executors=0)]
        requests: list[RequestSlots] = []
        for hosts in sorted({each.hosts for each in asked if each.worker_id is None}):
            sizes = [each.slots for each in asked if each.worker_id is None and each.hosts == hosts]
            requests.append(self._request_for(sorted(sizes, reverse=True), hosts))
        for executor in asked:
            if executor.worker_id is not None:
                only = self._request_for([executor.slots], executor.hosts)
                requests.append(replace(only, worker_id=executor.worker_id))
        return [replace(each, adds=at > 0) for at, each in enumerate(requests)]

    def _request_for(self, sizes: list[int], hosts: tuple[str, ...]) -> RequestSlots:
        slots, executors = sum(sizes), len(sizes) if self.is_divided or hosts else 0
        is_equal = sizes == equal_parts(slots, len(sizes))
        return RequestSlots(
            slots=slots, executors=executors, sizes=() if is_equal else tuple(sizes), hosts=hosts
        )

    def _waiting_for(self, allocation: Allocation) -> ExecutorId | None:
        """Return the executor for an allocation: one of exactly that size if there is one."""
        asked = [
            executor_id
            for executor_id, each in self._executors.items()
            if each.is_asked and each.worker_id in {None, allocation.worker_id}
            if each.hosts == allocation.hosts
        ]
        asked.sort(
            key=lambda each: self._executors[each].worker_id is None
        )  # Some can be nowhere else.
        exact = (each for each in asked if self._executors[each].slots == allocation.slots)
        return next(exact, next(iter(asked), None))
