"""Requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from gearpy.core.slots import Grant, SlotLedger, WorkerSlots
from gearpy.errors import ConfigError
from gearpy.ids import AppId, WorkerId

__all__ = ["Priority", "Relaxation", "ResourceRequest", "SlotScheduler"]


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

    ``launch`` is that of the app master that asks, or that is to be started there. Only a
    request with ``ANY`` is divided: into one part for each executor, as equal as can be, which
    may be granted one by one. A part is never divided. On the worker to ``avoid`` it is served
    only where no other has room.
    """

    app_id: AppId
    launch: int
    slots: int
    executors: int = 1
    is_for_app_master: bool = False
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


@dataclass(slots=True)
class _Waiting:
    """A request and the parts of it that were not granted yet."""

    request: ResourceRequest
    parts: list[int]
    granted: Counter[WorkerId] = field(default_factory=Counter)


class SlotScheduler:
    """Gives slots of workers to requests: by priority, and older first among equals.

    What does not fit waits without holding up what does. A granted slot is taken in the ledger
    at once, which knows when it is free again.

    Invariant: no more slots are granted than a worker has free; a request waits only while each of
    its parts left fits on no worker that it may use.
    """

    def __init__(self, ledger: SlotLedger) -> None:
        self._ledger = ledger
        self._queue: list[_Waiting] = []

    def workers(self) -> dict[WorkerId, WorkerSlots]:
        """Return what is known of the workers, by id."""
        return dict(sorted(self._ledger.workers.items()))

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

    def allocate(self, now_ms: int) -> list[Grant]:
        """Grant what can be granted now."""
        grants = [grant for waiting in self._queue for grant in self._serve(waiting, now_ms)]
        self._queue = [waiting for waiting in self._queue if waiting.parts]
        return grants

    def _serve(self, waiting: _Waiting, now_ms: int) -> list[Grant]:
        grants, left, request = [], [], waiting.request
        for part in waiting.parts:
            worker_id = self._best_worker(waiting, part)
            if worker_id is None:
                left.append(part)
                continue
            grant = Grant(
                request.app_id, request.launch, worker_id, part, request.is_for_app_master
            )
            self._ledger.on_granted(grant, now_ms)
            waiting.granted[worker_id] += 1
            grants.append(grant)
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

    def _candidates(self, request: ResourceRequest) -> Mapping[WorkerId, WorkerSlots]:
        if request.worker_id is None:
            return self._ledger.workers
        named = self._ledger.workers.get(request.worker_id)
        return {} if named is None else {request.worker_id: named}
