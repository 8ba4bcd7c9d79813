"""The slots of each worker: their users, and the applications that they are kept for.

Executors that run there have them, and grants that none has used yet; they are kept for
applications that have lost an executor and will ask for its slots in a moment.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import RunningExecutor

_Key: TypeAlias = tuple[AppId, ExecutorId, int]


def equal_parts(slots: int, executors: int) -> list[int]:
    """Divide slots among executors as equally as can be, biggest first; each has one at least."""
    count = min(executors, slots)
    small, bigger = divmod(slots, count)
    return [small + 1] * bigger + [small] * (count - bigger)


def fitting_parts(slots: int, places: Sequence[int]) -> list[int]:
    """Divide slots among few executors, none of which is larger than the largest place.

    They are as equal as can be, if each finds room in a place, or all places are equal; else they
    are such as the places, as the slots of no two workers go together. What is more than these is
    divided so that none of its executors is larger than the smallest place.
    """
    places = sorted(places, reverse=True)
    parts = equal_parts(slots, -(-slots // places[0]))
    if places[0] == places[-1] or (
        len(parts) <= len(places)
        and all(part <= place for part, place in zip(parts, places, strict=False))
    ):
        return parts
    if (more := slots - sum(places)) > 0:
        return [*places, *equal_parts(more, -(-more // places[-1]))]
    before = accumulate([0, *places[:-1]])
    taken = [min(each, slots - had) for each, had in zip(places, before, strict=True)]
    return [each for each in taken if each > 0]


def misfit(parts: Sequence[int], places: Sequence[int]) -> int:
    """Return the size of which there are too many executors, however they are placed; 0 if none.

    Where it is 0 they may still find no room: it depends on who gets which place.
    """
    for size in sorted(set(parts), reverse=True):
        if sum(part >= size for part in parts) > sum(place // size for place in places):
            return size
    return 0


class Grant(NamedTuple):
    """Slots on one worker for one executor of one launch of an app master, or for itself.

    ``named`` are the hosts that its holder has asked for.
    """

    app_id: AppId
    launch: int
    worker_id: WorkerId
    slots: int
    is_for_app_master: bool = False
    named: tuple[str, ...] = ()


class RunningChange(NamedTuple):
    """The changes that a worker's report of its executors has led to."""

    begun: Sequence[RunningExecutor] = ()
    unasked: Sequence[Grant] = ()
    ended: Sequence[Grant] = ()


class WorkerPlace(NamedTuple):
    """The machine of a worker: its names, and the rack that it is in.

    ``worker3`` is a name of worker 3, too, so that a request can ask for that worker alone; and a
    rack is a name of all machines in it.
    """

    names: tuple[str, ...] = ()
    rack: str = ""

    @property
    def host(self) -> str:
        return self.names[0] if self.names else ""

    def is_one_of(self, names: Iterable[str]) -> bool:
        own = {each.lower() for each in (*self.names, self.rack) if each}
        return any(each.lower() in own for each in names)


#: A worker that has not said where it is.
NOWHERE: Final = WorkerPlace()


class WorkerSlots(Struct, frozen=True):
    """The slots of one worker. Used may exceed total, see `SlotLedger`."""

    total: int
    used: int = 0
    executors: int = 0  # Those that run, and those that are granted.
    place: WorkerPlace = NOWHERE
    is_aside: bool = False  # Nothing is granted, as it comes and goes.
    is_leaving: bool = False

    @property
    def free(self) -> int:
        return 0 if self.is_aside else max(0, self.total - self.used)


class _Outstanding(Struct):
    """A grant that no executor has used yet, and until when it counts."""

    grant: Grant
    until_ms: int


class _Account(Struct):
    total: int
    place: WorkerPlace = NOWHERE
    is_aside: bool = False
    is_leaving: bool = False
    running: dict[_Key, RunningExecutor] = field(default_factory=dict)
    grants: list[_Outstanding] = field(default_factory=list)

    def holders(self) -> Iterator[tuple[AppId, int]]:
        for grant in (each.grant for each in self.grants):
            if not grant.is_for_app_master:
                yield grant.app_id, grant.slots
        for each in self.running.values():
            if each.executor_id != MASTER_EXECUTOR:
                yield each.app_id, each.slots


class SlotLedger:
    """Keeps account of the slots of workers by their holders.

    A grant is taken at once; it ends when its executor runs or was refused, its app master is gone,
    or nothing was heard for too long. Only the worker tells what runs, always as a whole, so no
    slot is given back twice. An executor may begin with a grant that has ended: then more may be
    used than there is, and the worker refuses what does not fit.

    Invariant: the used slots of a worker are those of its executors and of its grants.
    """

    def __init__(self, *, grant_timeout_ms: int) -> None:
        self._grant_timeout_ms = grant_timeout_ms
        self._accounts: dict[WorkerId, _Account] = {}
        self._summaries: dict[WorkerId, WorkerSlots] = {}
        self.changes = 0  #: Counts changes: while it is the same, so are the slots of all workers.
        self._taken: Counter[AppId] = Counter()
        self._taken_at = -1

    @property
    def workers(self) -> Mapping[WorkerId, WorkerSlots]:
        return MappingProxyType(self._summaries)

    @property
    def grants(self) -> list[Grant]:
        return [each.grant for account in self._accounts.values() for each in account.grants]

    def taken(self) -> Counter[AppId]:
        if self._taken_at != self.changes:
            self._taken_at, self._taken = self.changes, Counter()
            for account in self._accounts.values():
                for app_id, slots in account.holders():
                    self._taken[app_id] += slots
        return self._taken

    def workers_of(self, app_id: AppId) -> list[WorkerId]:
        return [
            worker_id
            for worker_id, account in self._accounts.items()
            if any(holder == app_id for holder, _ in account.holders())
        ]

    @property
    def next_due_ms(self) -> int | None:
        outstanding = (each for account in self._accounts.values() for each in account.grants)
        return min((each.until_ms for each in outstanding), default=None)

    def on_worker(
        self,
        worker_id: WorkerId,
        *,
        total: int,
        running: Iterable[RunningExecutor],
        place: WorkerPlace = NOWHERE,
    ) -> RunningChange:
        """Take a worker, perhaps once more, with its number of slots and its running executors.

        A known worker keeps its grants: their holders know where it is.
        """
        account = self._accounts.setdefault(worker_id, _Account(total))
        account.total, account.place, account.is_leaving = total, place, False
        return self.on_running(worker_id, running)

    def on_running(self, worker_id: WorkerId, running: Iterable[RunningExecutor]) -> RunningChange:
        """Take all that runs on a worker. Of an unknown worker: nothing."""
        account = self._accounts.get(worker_id)
        if account is None:
            return RunningChange()
        before, account.running = (
            account.running,
            {(each.app_id, each.executor_id, each.launch): each for each in running},
        )
        begun = [each for key, each in account.running.items() if key not in before]
        ended = [each for key, each in before.items() if key not in account.running]
        grants = [_grant_of(worker_id, each) for each in begun]
        unasked = [grant for grant in grants if not self._end_one(grant)]
        self._count(worker_id)
        return RunningChange(begun, unasked, [_grant_of(worker_id, each) for each in ended])

    def put_aside(self, worker_id: WorkerId, *, is_aside: bool) -> None:
        if worker_id in self._accounts:
            self._accounts[worker_id].is_aside = is_aside
            self._count(worker_id)

    def on_leaving(self, worker_id: WorkerId) -> None:
        if worker_id in self._accounts:
            self._accounts[worker_id].total = 0
            self._accounts[worker_id].is_leaving = True
            self._count(worker_id)

    def on_refused(self, worker_id: WorkerId, executor: RunningExecutor) -> list[Grant]:
        grant = _grant_of(worker_id, executor)
        return [grant] if self.give_back(grant) else []

    def on_worker_lost(self, worker_id: WorkerId) -> list[Grant]:
        account = self._accounts.pop(worker_id, None)
        self._summaries.pop(worker_id, None)
        self.changes += 1
        if account is None:
            return []
        running = [_grant_of(worker_id, each) for each in account.running.values()]
        return running + [each.grant for each in account.grants]

    def on_granted(self, grant: Grant, now_ms: int) -> None:
        assert grant.slots <= self._summaries[grant.worker_id].free, grant
        until_ms = now_ms + self._grant_timeout_ms
        self._accounts[grant.worker_id].grants.append(_Outstanding(grant, until_ms))
        self._count(grant.worker_id)

    def give_back(self, grant: Grant) -> bool:
        """End a grant that nobody uses; return False for one that has ended already."""
        has_ended = self._end_one(grant)
        if has_ended:
            self._count(grant.worker_id)
        return has_ended

    def on_app_master_over(self, app_id: AppId) -> list[Grant]:
        """End the grants of an app master that is gone, or knows none of them; return them.

        Not the one for itself: that its launch was under way, its worker knows.
        """
        return self._end_all(
            lambda each: each.grant.app_id == app_id and not each.grant.is_for_app_master
        )

    def on_tick(self, now_ms: int) -> list[Grant]:
        return self._end_all(lambda each: each.until_ms <= now_ms)

    def _end_one(self, grant: Grant) -> bool:
        account = self._accounts.get(grant.worker_id)
        grants = account.grants if account is not None else []
        like = grant._replace(named=())
        found = next((each for each in grants if each.grant._replace(named=()) == like), None)
        if found is None:
            return False
        grants.remove(found)
        return True

    def _end_all(self, is_over: Callable[[_Outstanding], bool]) -> list[Grant]:
        ended: list[Grant] = []
        for worker_id, account in self._accounts.items():
            over = [each for each in account.grants if is_over(each)]
            if over:
                account.grants = [each for each in account.grants if not is_over(each)]
                ended += [each.grant for each in over]
                self._count(worker_id)
        return ended

    def _count(self, worker_id: WorkerId) -> None:
        self.changes += 1
        account = self._accounts[worker_id]
        granted = sum(each.grant.slots for each in account.grants)
        running = sum(each.slots for each in account.running.values())
        self._summaries[worker_id] = WorkerSlots(
            total=account.total,
            used=granted + running,
            executors=len(account.grants) + len(account.running),
            place=account.place,
            is_aside=account.is_aside,
            is_leaving=account.is_leaving,
        )


class _Reservation(Struct):
    """Slots for one executor, on one worker while that can have them."""

    app_id: AppId
    slots: int
    worker_id: WorkerId
    until_ms: int
    is_for_app_master: bool


class Reservations:
    """Slots that applications have lost with an executor, and will ask for again in a moment.

    They are kept on the worker where the executor was, or on another that is big enough.

    Invariant: an application has no more slots reserved than it has lost.
    """

    def __init__(self, *, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._reservations: list[_Reservation] = []

    @property
    def next_due_ms(self) -> int | None:
        return min((each.until_ms for each in self._reservations), default=None)

    def slots_of(self, app_id: AppId) -> int:
        return sum(each.slots for each in self._reservations if each.app_id == app_id)

    def of_executors(self, app_id: AppId) -> int:
        own = (each for each in self._reservations if each.app_id == app_id)
        return sum(each.slots for each in own if not each.is_for_app_master)

    def taken(self, *, apart: AppId) -> Counter[AppId]:
        taken: Counter[AppId] = Counter()
        for each in self._reservations:
            if each.app_id != apart:
                taken[each.app_id] += each.slots
        return taken

    def held(self, workers: Mapping[WorkerId, WorkerSlots]) -> "HeldSlots":
        held = HeldSlots(workers)
        homeless = []
        for each in self._reservations:
            home = workers.get(each.worker_id)
            if home is None or home.total < each.slots:
                homeless.append(each)
            else:
                held.hold(each.worker_id, each.app_id, each.slots)
        for each in sorted(homeless, key=lambda each: -each.slots):
            held.hold_somewhere(each.app_id, each.slots)
        return held

    def on_lost(self, had: Grant, now_ms: int) -> None:
        until_ms = now_ms + self._timeout_ms
        kept = _Reservation(had.app_id, had.slots, had.worker_id, until_ms, had.is_for_app_master)
        self._reservations.append(kept)

    def on_granted(self, grant: Grant) -> None:
        slots = grant.slots
        own = [each for each in self._reservations if each.app_id == grant.app_id]
        own.sort(key=lambda each: (each.worker_id != grant.worker_id, each.slots != slots))
        for each in own:
            taken = min(each.slots, slots)
            each.slots -= taken
            slots -= taken
        self._reservations = [each for each in self._reservations if each.slots]

    def on_application_over(self, app_id: AppId) -> None:
        self._reservations = [each for each in self._reservations if each.app_id != app_id]

    def on_tick(self, now_ms: int) -> None:
        self._reservations = [each for each in self._reservations if each.until_ms > now_ms]


class HeldSlots:
    """Slots of workers that some may not have, as others come first."""

    def __init__(self, workers: Mapping[WorkerId, WorkerSlots]) -> None:
        self._workers = workers
        self._held: dict[WorkerId, list[tuple[AppId, int]]] = {}

    def hold(self, worker_id: WorkerId, app_id: AppId, slots: int) -> None:
        self._held.setdefault(worker_id, []).append((app_id, slots))

    def hold_somewhere(
        self, app_id: AppId, slots: int, among: Mapping[WorkerId, WorkerSlots] | None = None
    ) -> None:
        workers = self._workers if among is None else among
        fitting = [each for each, its in workers.items() if its.total >= slots]
        if fitting:
            self.hold(min(fitting, key=self._emptiness), app_id, slots)

    def hold_anywhere(
        self, app_id: AppId, slots: int, among: Mapping[WorkerId, WorkerSlots] | None = None
    ) -> None:
        workers = self._workers if among is None else among
        for worker_id in sorted(workers, key=self._emptiness):
            part = min(slots, self._workers[worker_id].total)
            if part:
                self.hold(worker_id, app_id, part)
                slots -= part

    def room(self, worker_id: WorkerId, app_id: AppId) -> int:
        if worker_id not in self._held:
            return self._workers[worker_id].free
        by_others = (slots for holder, slots in self._on(worker_id) if holder != app_id)
        return max(0, self._workers[worker_id].free - sum(by_others))

    def spare(self, worker_id: WorkerId, app_id: AppId, slots: int) -> int:
        """Return the number of slots for an executor of this size that no other one waits for.

        What is held for another executor, also of its own application, would be missing there.
        """
        held = sum(slots for _, slots in self._on(worker_id))
        own = slots if (app_id, slots) in self._on(worker_id) else 0
        return self._workers[worker_id].free - held + own

    def _on(self, worker_id: WorkerId) -> Sequence[tuple[AppId, int]]:
        return self._held.get(worker_id, ())

    def _emptiness(self, worker_id: WorkerId) -> tuple[int, WorkerId]:
        held = sum(slots for _, slots in self._on(worker_id))
        return held - self._workers[worker_id].free, worker_id


def _grant_of(worker_id: WorkerId, executor: RunningExecutor) -> Grant:
    is_app_master = executor.executor_id == MASTER_EXECUTOR
    return Grant(executor.app_id, executor.app_master, worker_id, executor.slots, is_app_master)
