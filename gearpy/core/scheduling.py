"""Requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import NamedTuple

from gearpy.errors import ConfigError
from gearpy.ids import AppId, WorkerId

__all__ = ["Grant", "Priority", "Relaxation", "ResourceRequest", "SlotScheduler", "WorkerSlots"]


class Priority(IntEnum):
    """Who is served first. Gearpump: `Priority`."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


class Relaxation(Enum):
    """Where the slots may be. Gearpump: `Relaxation`."""

    ANY = "any"  #: On any workers, spread fairly.
    ONE_WORKER = "one-worker"  #: All on one worker, whichever.
    SPECIFIC_WORKER = "specific-worker"  #: All on the worker that the request names.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """``slots`` for ``executors`` executors of an application. Gearpump: `ResourceRequest`.

    Only a request with ``ANY`` is divided: into one part for each executor, as equal as
    can be, which may be granted one by one. A part is never divided. On the worker to
    ``avoid`` it is served only where no other has room.
    """

    app_id: AppId
    slots: int
    executors: int = 1
    priority: Priority = Priority.NORMAL
    relaxation: Relaxation = Relaxation.ANY
    worker_id: WorkerId | None = None
    avoid: WorkerId | None = None

    def __post_init__(self) -> None:
        if mistakes := list(self._mistakes()):
            raise ConfigError(*mistakes)

    def _mistakes(self) -> Iterable[str]:
        if self.slots < 1:
            yield f"a request for {self.slots} slots: ask for 1 or more"
        if self.executors < 1:
            yield f"a request for {self.executors} executors: ask for 1 or more"
        if (self.relaxation is Relaxation.SPECIFIC_WORKER) != (self.worker_id is not None):
            yield (
                f"a request with relaxation {self.relaxation.value} and worker {self.worker_id}: "
                "name a worker for specific-worker, and only then"
            )

    def parts(self) -> list[int]:
        """Return the slots of each executor, biggest first."""
        if self.relaxation is not Relaxation.ANY:
            return [self.slots]
        count = min(self.executors, self.slots)
        small, bigger = divmod(self.slots, count)
        return [small + 1] * bigger + [small] * (count - bigger)


class Grant(NamedTuple):
    """Slots on one worker for one executor of an application."""

    app_id: AppId
    worker_id: WorkerId
    slots: int


@dataclass(slots=True)
class WorkerSlots:
    """What the scheduler knows of a worker. Used may exceed total where a worker shrank."""

    total: int
    used: int = 0
    executors: int = 0  # Granted parts that were not released.

    @property
    def free(self) -> int:
        """Slots that can be granted."""
        return max(0, self.total - self.used)


@dataclass(slots=True)
class _Waiting:
    """A request and the parts of it that were not granted yet."""

    request: ResourceRequest
    parts: list[int]
    granted: Counter[WorkerId] = field(default_factory=Counter)


class SlotScheduler:
    """Gives slots of workers to requests: by priority, and older first among equals.

    What does not fit waits without holding up what does. A granted slot is taken at once
    and comes back by `release`; a worker's later reports of free slots do not count,
    because they may be older than the grant.

    Invariant: no more slots are granted than a worker has free; a request waits only while each of
    its parts left fits on no worker that it may use.
    """

    def __init__(self) -> None:
        self._workers: dict[WorkerId, WorkerSlots] = {}
        self._queue: list[_Waiting] = []

    # -- workers ---------------------------------------------------------------------------

    def on_worker(self, worker_id: WorkerId, *, total: int, free: int) -> None:
        """Add a worker, or change the size of one that is known."""
        assert 0 <= free <= total, (free, total)
        known = self._workers.get(worker_id)
        if known is None:
            self._workers[worker_id] = WorkerSlots(total=total, used=total - free)
        else:
            known.total = total

    def on_worker_again(self, worker_id: WorkerId, *, total: int, running: Sequence[int]) -> None:
        """Take a worker that says itself which slots are taken, whatever was known of it.

        ``running`` has the slots of each of its executors.
        """
        self._workers[worker_id] = WorkerSlots(
            total=total, used=sum(running), executors=len(running)
        )

    def on_worker_lost(self, worker_id: WorkerId) -> None:
        """Forget a worker and its slots."""
        self._workers.pop(worker_id, None)

    def release(self, worker_id: WorkerId, slots: int) -> None:
        """Give slots back that an executor has left; of an unknown worker: nothing."""
        if worker := self._workers.get(worker_id):
            worker.used = max(0, worker.used - slots)
            worker.executors = max(0, worker.executors - 1)

    def workers(self) -> dict[WorkerId, WorkerSlots]:
        """Return a copy of what is known of the workers, by id."""
        return {worker: replace(self._workers[worker]) for worker in sorted(self._workers)}

    # -- requests --------------------------------------------------------------------------

    def request(self, request: ResourceRequest) -> None:
        """Queue a request; `allocate` serves it."""
        self._queue.append(_Waiting(request, request.parts()))
        # A stable sort keeps the older first among equals.
        self._queue.sort(key=lambda waiting: -waiting.request.priority)

    def cancel(self, app_id: AppId) -> None:
        """Drop the requests of an application that has ended, or asks anew."""
        self._queue = [each for each in self._queue if each.request.app_id != app_id]

    def waiting_slots(self, app_id: AppId) -> int:
        """Return how many slots an application still waits for."""
        return sum(sum(each.parts) for each in self._queue if each.request.app_id == app_id)

    def why_waiting(self, app_id: AppId) -> str | None:
        """Return what an application's oldest request waits for, or None if it has all."""
        mine = (each for each in self._queue if each.request.app_id == app_id)
        if (waiting := next(mine, None)) is None:
            return None
        candidates = self._candidates(waiting.request)
        biggest = max((worker.total for worker in candidates.values()), default=0)
        part = waiting.parts[0]
        if part > biggest:
            return (
                f"needs {part} slots on one worker, but the biggest it may use has {biggest}: "
                "ask for more executors, fewer slots, or start a bigger worker"
            )
        free = sum(worker.free for worker in candidates.values())
        return f"needs {sum(waiting.parts)} more slots, {free} are free on the workers it may use"

    def allocate(self) -> list[Grant]:
        """Grant what can be granted now."""
        grants = [grant for waiting in self._queue for grant in self._serve(waiting)]
        self._queue = [waiting for waiting in self._queue if waiting.parts]
        return grants

    def _serve(self, waiting: _Waiting) -> list[Grant]:
        grants, left = [], []
        for part in waiting.parts:
            worker_id = self._best_worker(waiting, part)
            if worker_id is None:
                left.append(part)
                continue
            self._workers[worker_id].used += part
            self._workers[worker_id].executors += 1
            waiting.granted[worker_id] += 1
            grants.append(Grant(waiting.request.app_id, worker_id, part))
        waiting.parts = left
        return grants

    def _best_worker(self, waiting: _Waiting, slots: int) -> WorkerId | None:
        """Return the worker with enough free slots that has least of this request.

        Among equals the one with most free slots, then the one with the lowest id.
        """
        candidates, request = self._candidates(waiting.request), waiting.request
        fitting = [worker for worker, each in candidates.items() if each.free >= slots]
        return min(
            fitting,
            key=lambda worker: (
                worker == request.avoid,
                waiting.granted[worker],
                -candidates[worker].free,
                worker,
            ),
            default=None,
        )

    def _candidates(self, request: ResourceRequest) -> dict[WorkerId, WorkerSlots]:
        if request.worker_id is None:
            return self._workers
        named = self._workers.get(request.worker_id)
        return {} if named is None else {request.worker_id: named}
