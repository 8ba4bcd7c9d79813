"""Who has the slots of each worker."""

from collections import Counter, deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.requests import ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import (
    Grant,
    RunningChange,
    SlotLedger,
    WorkerSlots,
    fitting_parts,
    misfit,
)
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import RunningExecutor

APP, OTHER = AppId(1), AppId(2)
ONE, TWO = WorkerId(1), WorkerId(2)
TIMEOUT_MS = 1000


def a_ledger(total: int = 9) -> SlotLedger:
    ledger = SlotLedger(grant_timeout_ms=TIMEOUT_MS)
    ledger.on_worker(ONE, total=total, running=())
    return ledger


def a_grant(
    slots: int, *, app_id: AppId = APP, launch: int = 1, is_for_app_master: bool = False
) -> Grant:
    return Grant(app_id, launch, ONE, slots, is_for_app_master)


def an_executor(
    slots: int, *, executor: int = 0, launch: int = 1, app_id: AppId = APP, app_master: int = 1
) -> RunningExecutor:
    return RunningExecutor(
        app_id=app_id,
        executor_id=ExecutorId(executor),
        launch=launch,
        app_master=app_master,
        slots=slots,
    )


def free(ledger: SlotLedger) -> int:
    return ledger.workers[ONE].free


# -- grants ------------------------------------------------------------------------------------


def test_a_grant_is_used_by_its_executor_only() -> None:
    for other in (
        an_executor(4, app_id=OTHER),
        an_executor(4, app_master=2),
        an_executor(3),
        an_executor(4, executor=MASTER_EXECUTOR),
    ):
        ledger = a_ledger()
        ledger.on_granted(a_grant(4), 0)

        assert ledger.on_running(ONE, [other]).begun == [other]
        assert ledger.grants == [a_grant(4)]
        ledger.on_running(ONE, [other, an_executor(4, executor=7)])
        assert ledger.grants == []


def test_an_app_master_that_is_gone_has_no_grants() -> None:
    ledger = a_ledger()
    own = a_grant(1, is_for_app_master=True)
    for grant in (own, a_grant(2), a_grant(3), a_grant(1, app_id=OTHER)):
        ledger.on_granted(grant, 0)

    ledger.on_app_master_over(APP)

    assert ledger.grants == [own, a_grant(1, app_id=OTHER)]
    ledger.on_refused(ONE, an_executor(1, executor=MASTER_EXECUTOR))
    assert ledger.grants == [a_grant(1, app_id=OTHER)]


def test_a_grant_of_which_nothing_is_heard_ends_in_time() -> None:
    ledger = a_ledger()
    due_ms = [ledger.next_due_ms]
    ledger.on_granted(a_grant(2), 100)
    ledger.on_granted(a_grant(3), 300)

    due_ms.append(ledger.next_due_ms)
    assert due_ms == [None, 100 + TIMEOUT_MS]
    assert ledger.on_tick(99 + TIMEOUT_MS) == []
    assert ledger.on_tick(100 + TIMEOUT_MS) == [a_grant(2)]
    assert (free(ledger), ledger.next_due_ms) == (6, 300 + TIMEOUT_MS)


# -- workers -----------------------------------------------------------------------------------


def test_a_worker_that_comes_again_keeps_its_grants() -> None:
    """It may have another size now; what runs there has used its grants."""
    ledger = a_ledger()
    ledger.on_granted(a_grant(2), 0)
    ledger.on_granted(a_grant(3), 0)

    ledger.on_worker(ONE, total=6, running=[an_executor(3)])

    assert ledger.grants == [a_grant(2)]
    assert ledger.workers[ONE] == WorkerSlots(total=6, used=5, executors=2)


def test_what_is_said_of_an_unknown_worker_changes_nothing() -> None:
    ledger = a_ledger()

    assert ledger.on_running(TWO, [an_executor(2)]) == RunningChange()
    ledger.on_refused(TWO, an_executor(2))
    ledger.give_back(Grant(APP, 1, TWO, 2))

    assert list(ledger.workers) == [ONE]


# -- all together ------------------------------------------------------------------------------


class Crowd:
    """A master's ledger, two workers, and app masters that come and go; words travel slowly.

    A worker's words keep their order. Launches come in any order, or not at all.
    """

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.ledger = SlotLedger(grant_timeout_ms=TIMEOUT_MS)
        self.scheduler = SlotScheduler(self.ledger)
        self.now_ms = 0
        self.app_masters = {APP: 1, OTHER: 1}
        self.next_launch = 0
        self.totals = {ONE: 7, TWO: 5}
        self.running: dict[WorkerId, list[RunningExecutor]] = {ONE: [], TWO: []}
        self.words: dict[WorkerId, deque[tuple[list[RunningExecutor], list[RunningExecutor]]]]
        self.words = {ONE: deque(), TWO: deque()}
        self.launches: list[tuple[WorkerId, RunningExecutor]] = []
        self.granted = Counter[Grant]()  # To app masters that live; counted beside the ledger.
        self.told: dict[WorkerId, list[RunningExecutor]] = {}
        for worker in self.totals:
            self.register(worker)

    # What app masters do.

    def request(self) -> None:
        """Ask for slots; launch, return or forget what is granted."""
        app_id = self.rng.choice([APP, OTHER])
        self.scheduler.cancel(app_id)
        slots = self.rng.randrange(1, 5)
        executors = self.rng.randrange(1, slots + 1)
        launch = self.app_masters[app_id]
        self.scheduler.request(
            ResourceRequest(app_id=app_id, launch=launch, slots=slots, executors=executors)
        )

    def allocate(self) -> None:
        for grant in self.scheduler.allocate(self.now_ms):
            self.granted[grant] += 1
            chance = self.rng.random()
            if chance < 0.7:
                self.launch(grant)
            elif chance < 0.85:
                self.end(grant)
                self.ledger.give_back(grant)

    def launch(self, grant: Grant) -> None:
        self.next_launch += 1
        executor = an_executor(
            grant.slots,
            executor=self.rng.randrange(20),
            launch=self.next_launch,
            app_id=grant.app_id,
            app_master=grant.launch,
        )
        self.launches.append((grant.worker_id, executor))

    def die(self) -> None:
        """End an app master; the next one takes over."""
        app_id = self.rng.choice([APP, OTHER])
        self.app_masters[app_id] += 1
        self.scheduler.cancel(app_id)
        self.ledger.on_app_master_over(app_id)
        self.granted = Counter(
            {grant: number for grant, number in self.granted.items() if grant.app_id != app_id}
        )

    # What workers do.

    def arrive(self) -> None:
        if not self.launches:
            return
        worker, executor = self.launches.pop(self.rng.randrange(len(self.launches)))
        used = sum(each.slots for each in self.running[worker])
        if used + executor.slots <= self.totals[worker]:
            self.running[worker].append(executor)
            self.say(worker)
        else:
            self.say(worker, executor)

    def lose_launch(self) -> None:
        if self.launches:
            self.launches.pop(self.rng.randrange(len(self.launches)))

    def finish(self) -> None:
        worker = self.rng.choice([ONE, TWO])
        if self.running[worker]:
            self.running[worker].pop(self.rng.randrange(len(self.running[worker])))
            self.say(worker)

    def say(self, worker: WorkerId, *refused: RunningExecutor) -> None:
        self.words[worker].append((list(self.running[worker]), list(refused)))

    def register(self, worker: WorkerId) -> None:
        """Register anew; what was on its way before is lost."""
        self.words[worker].clear()
        self.hear_all(worker, self.running[worker])
        self.ledger.on_worker(worker, total=self.totals[worker], running=list(self.running[worker]))

    # What the master does.

    def hear(self) -> None:
        worker = self.rng.choice([ONE, TWO])
        if self.words[worker] and worker in self.told:
            running, refused = self.words[worker].popleft()
            for each in refused:
                self.ledger.on_refused(worker, each)
                self.end(self.grant_of(worker, each))
            self.hear_all(worker, running)
            self.ledger.on_running(worker, running)

    def hear_all(self, worker: WorkerId, running: list[RunningExecutor]) -> None:
        before = self.told.get(worker, [])
        for each in running:
            if each not in before:
                self.end(self.grant_of(worker, each))
        self.told[worker] = list(running)

    def lose_worker(self) -> None:
        """Find a worker out of reach; it will register."""
        worker = self.rng.choice([ONE, TWO])
        self.told.pop(worker, None)
        self.ledger.on_worker_lost(worker)
        self.granted = Counter(
            {grant: number for grant, number in self.granted.items() if grant.worker_id != worker}
        )

    def come_back(self) -> None:
        self.register(self.rng.choice([ONE, TWO]))

    def tick(self) -> None:
        self.now_ms += self.rng.randrange(TIMEOUT_MS // 2)
        self.granted.subtract(self.ledger.on_tick(self.now_ms))
        self.granted = +self.granted

    def end(self, grant: Grant) -> None:
        """Count a grant as ended, if it was none of an app master that is gone."""
        if self.granted[grant] > 0:
            self.granted[grant] -= 1
        self.granted = +self.granted

    def grant_of(self, worker: WorkerId, executor: RunningExecutor) -> Grant:
        return Grant(executor.app_id, executor.app_master, worker, executor.slots)

    def check(self) -> None:
        """See that slots are those of executors and of grants to those who live."""
        for worker, slots in self.ledger.workers.items():
            granted = sum(
                grant.slots * number
                for grant, number in self.granted.items()
                if grant.worker_id == worker
            )
            assert slots.used == granted + sum(each.slots for each in self.told[worker])
        used = sum(slots.used for slots in self.ledger.workers.values())
        assert sum(self.ledger.taken().values()) == used
        assert Counter(self.ledger.grants) == self.granted
        assert all(grant.launch == self.app_masters[grant.app_id] for grant in self.granted)


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 150))
def test_slots_are_of_executors_and_of_grants_to_the_living(seed: int, steps: int) -> None:
    crowd = Crowd(seed)
    acts = [crowd.request, crowd.allocate, crowd.arrive, crowd.hear, crowd.finish] * 3
    acts += [crowd.die, crowd.lose_launch, crowd.lose_worker, crowd.come_back, crowd.tick]
    for _ in range(steps):
        crowd.rng.choice(acts)()
        crowd.check()

    for worker in (ONE, TWO):
        if worker not in crowd.told:
            crowd.register(worker)
    while crowd.launches:
        crowd.arrive()
    while any(crowd.running.values()):
        crowd.finish()
    while any(crowd.words.values()):
        crowd.hear()
    if crowd.rng.random() < 0.5:
        crowd.die()
    crowd.check()
    crowd.ledger.on_tick(crowd.now_ms + TIMEOUT_MS)

    assert {worker: each.free for worker, each in crowd.ledger.workers.items()} == crowd.totals


# -- parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "places", "parts"),
    [
        (6, [5, 1], [5, 1]),  # Two of three find no room where one of five goes.
        (6, [1, 5], [5, 1]),
        (6, [4, 4], [3, 3]),
        (5, [5, 1], [5]),
        (7, [5, 1, 1], [5, 1, 1]),
        (8, [5, 1], [5, 1, 1, 1]),  # What is more needs slots that may be anywhere.
        (8, [5, 2], [5, 2, 1]),
        (8, [3, 3], [3, 3, 2]),
    ],
)
def test_executors_find_room_where_others_leave(
    slots: int, places: list[int], parts: list[int]
) -> None:
    assert fitting_parts(slots, places) == parts


@given(st.integers(1, 40), st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_parts_fit_into_places_if_there_are_enough(slots: int, places: list[int]) -> None:
    parts, widest = fitting_parts(slots, places), sorted(places, reverse=True)

    assert sum(parts) == slots
    assert 0 < min(parts) <= max(parts) <= widest[0]
    if slots <= sum(places):
        assert all(part <= place for part, place in zip(parts, widest, strict=False))
        assert len(parts) <= len(places)
    more = max(0, slots - sum(places))
    assert misfit(parts, [*places, *[widest[-1]] * -(-more // widest[-1])]) == 0


@pytest.mark.parametrize(
    ("parts", "places", "size"),
    [
        ([3, 2], [2, 3], 0),
        ([3, 3], [5, 1], 3),
        ([3, 2], [4, 1], 0),  # It is not looked into how they would share the place of 4.
        ([3, 2, 2, 2], [4, 5], 0),  # Those of 2 need not begin where that of 3 would.
        ([1, 1, 1], [2, 1], 0),
        ([1, 1, 1, 1], [2, 1], 1),
        ([4], [], 4),
        ([], [1], 0),
    ],
)
def test_a_size_is_told_of_which_there_are_too_many(
    parts: list[int], places: list[int], size: int
) -> None:
    assert misfit(parts, places) == size
