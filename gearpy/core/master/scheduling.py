"""Requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from gearpy.core.master.slots import (
    Grant,
    HeldSlots,
    Reservations,
    SlotLedger,
    WorkerSlots,
    equal_parts,
)
from gearpy.errors import ConfigError
from gearpy.ids import AppId, WorkerId


class Priority(IntEnum):
    """The order in which requests are served. Gearpump: `Priority`."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


class Relaxation(Enum):
    """The places that slots may be at. Gearpump: `Relaxation`."""

    ANY = "any"  #: On any workers, spread fairly.
    ONE_WORKER = "one-worker"  #: All on one worker, whichever.
    SPECIFIC_WORKER = "specific-worker"  #: All on the worker that the request names.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """``slots`` for ``executors`` executors of an application. Gearpump: `ResourceRequest`.

    ``launch`` is that of the app master that asks, or that is to be started there. Only a
    request with ``ANY`` is divided: into one part for each executor, of the ``sizes`` that it
    names or else as equal as can be, which may be granted one by one. A part is never divided.
    With 0 executors it is divided as there is room, among as few workers as can be, and granted
    as a whole. ``is_restart``: it is of an application that has run before. On the worker to
    ``avoid`` it is served only where no other has room.
    """

    app_id: AppId
    launch: int
    slots: int
    executors: int = 1
    sizes: tuple[int, ...] = ()
    is_restart: bool = False
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
        if self.executors < 0:
            yield f"a request for {self.executors} executors: ask for 0, as there is room, or more"
        if self.sizes and (sum(self.sizes), len(self.sizes)) != (self.slots, self.executors):
            yield (
                f"a request for {self.slots} slots and {self.executors} executors of sizes "
                f"{list(self.sizes)}: name a size for each executor, all slots together"
            )
        if (self.relaxation is Relaxation.SPECIFIC_WORKER) != (self.worker_id is not None):
            yield (
                f"a request with relaxation {self.relaxation.value} and worker {self.worker_id}: "
                "name a worker for specific-worker, and only then"
            )

    @property
    def is_divisible(self) -> bool:
        """Whether it is divided as there is room."""
        return self.executors == 0 and self.relaxation is Relaxation.ANY

    def parts(self) -> list[int]:
        """Return the slots of each executor, biggest first; one part if that is not decided."""
        if self.relaxation is not Relaxation.ANY or self.is_divisible:
            return [self.slots]
        return sorted(self.sizes, reverse=True) or equal_parts(self.slots, self.executors)


@dataclass(slots=True)
class _Waiting:
    """A request and the parts of it that were not granted yet."""

    request: ResourceRequest
    parts: list[int]
    granted: Counter[WorkerId] = field(default_factory=Counter)


class SlotScheduler:
    """Gives slots of workers to requests: restarts first, then by priority, then older first.

    What does not fit waits without holding up what does; but what a restart waits for, or will
    ask for in a moment, is kept from first starts. A granted slot is taken in the ledger at once,
    which knows when it is free again.

    Invariant: no more slots are granted than a worker has free; a request waits only while each of
    its parts left fits on no worker that it may use, beside what is kept there for others. As
    long as executors end, a restart for which some worker is big enough is served, however many
    first starts come meanwhile.

    Args:
        reserve_ms: the slots of an executor that ends are kept for its application for so long.
    """

    def __init__(self, ledger: SlotLedger, *, reserve_ms: int = 120_000) -> None:
        self._ledger = ledger
        self._reservations = Reservations(timeout_ms=reserve_ms)
        self._expected: set[AppId] = set()
        self._queue: list[_Waiting] = []

    def workers(self) -> dict[WorkerId, WorkerSlots]:
        """Return the slots of the workers, by id."""
        return dict(sorted(self._ledger.workers.items()))

    # -- requests --------------------------------------------------------------------------

    def request(self, request: ResourceRequest) -> None:
        """Queue a request; `allocate` serves it."""
        self._queue.append(_Waiting(request, request.parts()))
        # A stable sort keeps the older first among equals.
        self._queue.sort(key=lambda each: (not each.request.is_restart, -each.request.priority))

    def cancel(self, app_id: AppId) -> None:
        """Drop the requests of an application that has ended, or asks anew."""
        self._queue = [each for each in self._queue if each.request.app_id != app_id]

    def waiting_slots(self, app_id: AppId) -> int:
        """Return the number of slots that an application still waits for."""
        return sum(sum(each.parts) for each in self._queue if each.request.app_id == app_id)

    def why_waiting(self, app_id: AppId) -> str | None:
        """Return the reason why an application's oldest request waits; None if it has all."""
        mine = (each for each in self._queue if each.request.app_id == app_id)
        if (waiting := next(mine, None)) is None:
            return None
        request, candidates = waiting.request, self._candidates(waiting.request)
        biggest = max((worker.total for worker in candidates.values()), default=0)
        part = waiting.parts[0]
        if part > biggest and not request.is_divisible:
            return (
                f"needs {part} slots on one worker, but the biggest it may use has {biggest}: "
                "ask for more executors, fewer slots, or start a bigger worker"
            )
        free = sum(worker.free for worker in candidates.values())
        text = f"needs {sum(waiting.parts)} more slots, {free} are free on the workers it may use"
        if kept := self._kept_from(request, candidates):
            text += f", {kept} of them kept for applications that have lost theirs"
        return text

    def _kept_from(self, request: ResourceRequest, candidates: Iterable[WorkerId]) -> int:
        if self._expected and not request.is_restart:
            return sum(self._ledger.workers[worker].free for worker in candidates)
        held, free = self._held(is_restart=request.is_restart), self._ledger.workers
        return sum(free[worker].free - held.room(worker, request.app_id) for worker in candidates)

    # -- applications that come back -------------------------------------------------------

    def on_lost(self, had: Grant, now_ms: int) -> None:
        """Keep the slots of an executor that has ended, or was not begun, for its application."""
        self._reservations.on_lost(had, now_ms)

    def kept_slots(self, app_id: AppId) -> int:
        """Return the number of slots kept for an application that has lost them."""
        return self._reservations.slots_of(app_id)

    def on_regained(self, grant: Grant) -> None:
        """Note that an application has slots that the master did not know of any more."""
        self._reservations.on_granted(grant)

    def on_application_over(self, app_id: AppId) -> None:
        """Drop the requests and reservations of an application that has ended."""
        self.cancel(app_id)
        self._reservations.on_application_over(app_id)
        self._expected.discard(app_id)

    def expect(self, app_id: AppId) -> None:
        """Let first starts wait until the needs of a restarted application are known."""
        self._expected.add(app_id)

    def on_heard(self, app_id: AppId) -> None:
        """Note that an application has asked for its slots."""
        self._expected.discard(app_id)

    @property
    def next_due_ms(self) -> int | None:
        """The next time at which `on_tick` acts."""
        return self._reservations.next_due_ms

    def on_tick(self, now_ms: int) -> None:
        """Give up reservations that were kept for too long."""
        self._reservations.on_tick(now_ms)

    # -- grants ----------------------------------------------------------------------------

    def allocate(self, now_ms: int) -> list[Grant]:
        """Grant the requests that fit now; divide a divisible one as there is room, in one go."""
        grants: list[Grant] = []
        held, is_for_restarts = None, True
        for waiting in self._queue:
            is_restart = waiting.request.is_restart
            if self._expected and not is_restart:
                break  # These come last.
            if held is None or is_restart != is_for_restarts:
                held, is_for_restarts = self._held(is_restart=is_restart), is_restart
            if granted := self._serve(waiting, held, now_ms):
                grants += granted
                held = None  # Granted slots may have been held ones.
        self._queue = [waiting for waiting in self._queue if waiting.parts]
        return grants

    def _serve(self, waiting: _Waiting, held: HeldSlots, now_ms: int) -> list[Grant]:
        request = waiting.request
        if request.is_divisible:
            return self._serve_divided(waiting, held, now_ms)
        grants, left = [], []
        for part in waiting.parts:
            worker_id = self._best_worker(waiting, part, held)
            if worker_id is None:
                left.append(part)
                continue
            grants.append(self._grant(request, worker_id, part, now_ms))
            waiting.granted[worker_id] += 1
        waiting.parts = left
        return grants

    def _serve_divided(self, waiting: _Waiting, held: HeldSlots, now_ms: int) -> list[Grant]:
        """Grant all of it, on one worker if it has room, else on as few as can be."""
        request, (left,) = waiting.request, waiting.parts
        room = self._room(request, held, at_least=1)
        if sum(room.values()) < left:
            return []
        waiting.parts = []
        grants: list[Grant] = []
        for worker_id in sorted(room, key=lambda each: (-room[each], each)):
            if part := min(left, room[worker_id]):
                grants.append(self._grant(request, worker_id, part, now_ms))
                left -= part
        return grants

    def _room(
        self, request: ResourceRequest, held: HeldSlots, *, at_least: int
    ) -> dict[WorkerId, int]:
        """Return the free slots for a request on each worker that has enough."""
        room = {
            worker_id: held.room(worker_id, request.app_id)
            for worker_id, each in self._candidates(request).items()
            if each.free >= at_least
        }
        return {worker_id: slots for worker_id, slots in room.items() if slots >= at_least}

    def _grant(
        self, request: ResourceRequest, worker_id: WorkerId, slots: int, now_ms: int
    ) -> Grant:
        grant = Grant(request.app_id, request.launch, worker_id, slots, request.is_for_app_master)
        self._ledger.on_granted(grant, now_ms)
        self._reservations.on_granted(grant)
        return grant

    def _best_worker(self, waiting: _Waiting, slots: int, held: HeldSlots) -> WorkerId | None:
        """Return the worker with room enough that has least of this request.

        Among equals the one with most room, then the one with the lowest id. What is kept for
        another executor of the same application it gets last, and an app master not at all:
        executors that then find no room of their size would be waited for without end.
        """
        request = waiting.request
        room = self._room(request, held, at_least=slots)
        spare = {each: held.spare(each, request.app_id, slots) for each in room}
        return min(
            (each for each in room if spare[each] >= slots or not request.is_for_app_master),
            key=lambda worker: (
                spare[worker] < slots,
                worker == request.avoid,
                waiting.granted[worker],
                -room[worker],
                worker,
            ),
            default=None,
        )

    def _held(self, *, is_restart: bool) -> HeldSlots:
        """Return the held slots: reserved ones, and for first starts also slots for restarts."""
        held = self._reservations.held(self._ledger.workers)
        if not is_restart:
            for waiting in self._queue:
                if waiting.request.is_restart:
                    self._hold(held, waiting)
        return held

    def _hold(self, held: HeldSlots, waiting: _Waiting) -> None:
        """Hold the slots that a restart waits for, beside those reserved for its application."""
        request = waiting.request
        reserved = self._reservations.slots_of(request.app_id)
        if request.is_divisible:
            held.hold_anywhere(request.app_id, max(0, sum(waiting.parts) - reserved))
            return
        for part in waiting.parts:
            if reserved >= part:  # It waits for its own to become free, or to have a worker again.
                reserved -= part
            elif request.worker_id is not None:
                held.hold(request.worker_id, request.app_id, part)
            else:
                held.hold_somewhere(request.app_id, part)

    def _candidates(self, request: ResourceRequest) -> Mapping[WorkerId, WorkerSlots]:
        if request.worker_id is None:
            return self._ledger.workers
        named = self._ledger.workers.get(request.worker_id)
        return {} if named is None else {request.worker_id: named}
