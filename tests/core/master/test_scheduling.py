"""Requests for slots, and the workers that have them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gearpy.core.master.requests import Priority, Relaxation, ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import Grant, SlotLedger
from gearpy.errors import ConfigError
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, WorkerId
from gearpy.messages.cluster import RunningExecutor

APP = AppId(1)
OTHER = AppId(2)
RESERVE_MS = 5000


def a_request(
    slots: int,
    *,
    app_id: AppId = APP,
    executors: int = 1,
    priority: Priority = Priority.NORMAL,
    one_worker: bool = False,
    worker: int | None = None,
    is_restart: bool = False,
) -> ResourceRequest:
    relaxation = Relaxation.ONE_WORKER if one_worker else Relaxation.ANY
    return ResourceRequest(
        app_id=app_id,
        launch=3,
        slots=slots,
        executors=executors,
        priority=priority,
        is_restart=is_restart,
        relaxation=relaxation if worker is None else Relaxation.SPECIFIC_WORKER,
        worker_id=None if worker is None else WorkerId(worker),
    )


class Bench(SlotScheduler):
    def __init__(self) -> None:
        self.ledger = SlotLedger(grant_timeout_ms=1000)
        self.running: dict[WorkerId, list[RunningExecutor]] = {}
        self.serial = 0
        super().__init__(self.ledger, reserve_ms=RESERVE_MS)

    def add(self, worker: int, slots: int) -> None:
        self.ledger.on_worker(WorkerId(worker), total=slots, running=())

    def run(self, grants: list[Grant]) -> None:
        for grant in grants:
            self.running.setdefault(grant.worker_id, []).append(executor_of(grant, self.serial))
            self.serial += 1
            self.ledger.on_running(grant.worker_id, self.running[grant.worker_id])

    def end(self, worker: int, at: int = 0, *, is_kept: bool = True) -> None:
        """End an executor; its slots are kept for its application, if that goes on."""
        del self.running[WorkerId(worker)][at]
        change = self.ledger.on_running(WorkerId(worker), self.running[WorkerId(worker)])
        if is_kept:
            for had in change.ended:
                self.on_lost(had, 0)

    def lose(self, had: Iterable[Grant]) -> None:
        for each in had:
            self.on_lost(each, 0)

    def now(self) -> list[Grant]:
        return self.allocate(0)


def a_scheduler(*slots: int) -> Bench:
    bench = Bench()
    for worker, total in enumerate(slots):
        bench.add(worker, total)
    return bench


def executor_of(grant: Grant, serial: int) -> RunningExecutor:
    return RunningExecutor(
        app_id=grant.app_id,
        executor_id=ExecutorId(serial),
        launch=serial,
        app_master=grant.launch,
        slots=grant.slots,
    )


def running(executor_id: int, *, slots: int) -> RunningExecutor:
    return RunningExecutor(
        app_id=APP, executor_id=ExecutorId(executor_id), launch=5, app_master=3, slots=slots
    )


def granted(grants: list[Grant]) -> list[tuple[int, int]]:
    return [(grant.worker_id, grant.slots) for grant in grants]


@pytest.mark.parametrize("kind", ["any", "one-worker", "specific-worker"])
def test_exact_fit_is_a_fit(kind: str) -> None:
    scheduler = a_scheduler(3)

    scheduler.request(
        a_request(
            3, one_worker=kind == "one-worker", worker=0 if kind == "specific-worker" else None
        )
    )

    assert granted(scheduler.now()) == [(0, 3)]


def test_what_more_workers_would_bring() -> None:
    scheduler = a_scheduler(2)
    assert scheduler.missing(4) == 0

    scheduler.request(a_request(7, executors=2))
    scheduler.request(a_request(5, app_id=OTHER, executors=0))
    scheduler.request(a_request(3, app_id=AppId(3), one_worker=True))
    scheduler.request(a_request(3, app_id=AppId(4), worker=0))
    scheduler.now()

    assert scheduler.missing(4) == 4 + 3 + 5 + 3
    assert scheduler.missing(3) == 3 + 5 + 3
    assert scheduler.missing(2) == 5


def test_granted_slots_are_taken_at_once() -> None:
    scheduler = a_scheduler(3)
    scheduler.request(a_request(3))
    scheduler.now()

    scheduler.request(a_request(1, app_id=OTHER))

    assert scheduler.now() == []


def test_what_does_not_fit_holds_up_nobody() -> None:
    scheduler = a_scheduler(2)
    scheduler.request(a_request(3, priority=Priority.HIGH))
    scheduler.request(a_request(2, app_id=OTHER))

    assert scheduler.now() == [Grant(OTHER, 3, WorkerId(0), 2)]
    assert scheduler.waiting_slots(APP) == 3


def test_a_request_that_can_never_be_served_says_why() -> None:
    scheduler = a_scheduler(2, 2)

    scheduler.request(a_request(4))
    scheduler.now()

    assert "needs 4 slots on one worker, but the biggest it may use has 2" in str(
        scheduler.why_waiting(APP)
    )


def test_a_request_that_waits_its_turn_says_so() -> None:
    scheduler = a_scheduler(2)
    scheduler.request(a_request(2, app_id=OTHER))
    scheduler.request(a_request(2, worker=0))

    scheduler.now()

    assert scheduler.why_waiting(APP) == (
        "needs 2 more slots, 0 are free on the workers it may use"
    )
    assert scheduler.why_waiting(OTHER) is None


def test_a_request_that_waits_for_room_on_one_worker_says_so() -> None:
    scheduler = a_scheduler(3, 3)
    for worker in (0, 1):
        scheduler.request(a_request(1, app_id=OTHER, worker=worker))
    scheduler.request(a_request(3))

    scheduler.now()

    assert scheduler.why_waiting(APP) == (
        "needs 3 more slots, 4 are free on the workers it may use; 3 of them it needs on one "
        "worker, where 2 at most are free"
    )


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(ConfigError) as refusal:
        ResourceRequest(
            app_id=APP,
            launch=1,
            slots=0,
            executors=-1,
            relaxation=Relaxation.ANY,
            worker_id=WorkerId(1),
        )

    assert len(refusal.value.mistakes) == 3


def test_executors_of_one_request_are_on_different_workers_where_they_can() -> None:
    """One machine that fails shall not take them all, however big it is."""
    scheduler = a_scheduler(100, 2, 2)

    scheduler.request(a_request(8, executors=4))

    assert granted(scheduler.now()) == [(0, 2), (1, 2), (2, 2), (0, 2)]


# -- what applications have lost ---------------------------------------------------------------


def a_full_cluster(*slots: int) -> Bench:
    """Return a scheduler whose workers are full, each with one executor of an application."""
    scheduler = a_scheduler(*slots)
    for worker, total in enumerate(slots):
        scheduler.request(a_request(total, worker=worker))
    scheduler.run(scheduler.now())
    return scheduler


def test_slots_of_an_executor_that_ended_are_kept_for_its_application() -> None:
    """Though somebody has waited for long, and it has not asked yet; but not for ever."""
    scheduler = a_full_cluster(4)
    scheduler.request(a_request(2, app_id=OTHER))

    scheduler.end(0)
    assert scheduler.now() == []
    assert scheduler.why_waiting(OTHER) == (
        "needs 2 more slots, 4 are free on the workers it may use, 4 of them kept for "
        "applications that have lost theirs"
    )
    scheduler.request(a_request(4, is_restart=True))

    assert granted(scheduler.now()) == [(0, 4)]


@pytest.mark.parametrize("how", ["time", "application over"])
def test_what_is_kept_is_not_kept_for_ever(how: str) -> None:
    scheduler = a_full_cluster(4)
    scheduler.request(a_request(2, app_id=OTHER))
    scheduler.end(0)

    if how == "time":
        assert scheduler.next_due_ms == RESERVE_MS
        scheduler.on_tick(RESERVE_MS - 1)
        assert scheduler.now() == []
        scheduler.on_tick(RESERVE_MS)
    else:
        scheduler.on_application_over(APP)

    assert granted(scheduler.now()) == [(0, 2)]
    assert scheduler.next_due_ms is None


def test_an_executor_that_runs_after_all_keeps_no_slots() -> None:
    scheduler = a_full_cluster(4)
    for had in scheduler.ledger.on_worker_lost(WorkerId(0)):
        scheduler.on_lost(had, 0)
    change = scheduler.ledger.on_worker(
        WorkerId(0), total=8, running=scheduler.running[WorkerId(0)]
    )
    for grant in change.unasked:
        scheduler.on_regained(grant)

    scheduler.request(a_request(4, app_id=OTHER))

    assert granted(scheduler.now()) == [(0, 4)]


def test_when_a_worker_is_lost_its_slots_are_kept_where_there_is_room() -> None:
    scheduler = a_full_cluster(4)
    scheduler.request(a_request(1, app_id=OTHER, executors=1))
    scheduler.request(a_request(4, app_id=OTHER))
    for had in scheduler.ledger.on_worker_lost(WorkerId(0)):
        scheduler.on_lost(had, 0)

    scheduler.add(1, 3)
    scheduler.add(2, 5)
    first = scheduler.now()
    scheduler.request(a_request(4, is_restart=True))

    assert granted(first) == [(1, 1)]
    assert granted(scheduler.now()) == [(2, 4)]


def test_restarts_come_before_first_starts_and_app_masters_first_among_equals() -> None:
    scheduler = a_scheduler(1)
    scheduler.request(a_request(1, app_id=OTHER, priority=Priority.HIGH))
    scheduler.request(a_request(1, is_restart=True))

    assert [grant.app_id for grant in scheduler.now()] == [APP]


def test_a_first_start_takes_nothing_that_a_restart_waits_for() -> None:
    """It fits in what is free, and would never let it come together; elsewhere it may."""
    scheduler = a_scheduler(4, 3)
    scheduler.request(a_request(1, worker=0, app_id=AppId(3)))
    scheduler.run(scheduler.now())
    scheduler.request(a_request(4, is_restart=True))
    for _ in range(3):
        scheduler.request(a_request(2, app_id=OTHER))

    assert granted(scheduler.now()) == [(1, 2)]
    scheduler.end(0, is_kept=False)
    assert granted(scheduler.now()) == [(0, 4)]


def test_an_app_master_does_not_start_in_what_its_executors_will_need() -> None:
    """Two of three slots on each worker would be left, for two executors that need three."""
    scheduler = a_full_cluster(3, 4)
    scheduler.end(0)
    for had in scheduler.ledger.on_worker_lost(WorkerId(1)):
        scheduler.on_lost(had._replace(slots=3), 0)
        scheduler.on_lost(had._replace(slots=1), 0)

    scheduler.request(
        ResourceRequest(app_id=APP, launch=4, slots=1, is_restart=True, is_for_app_master=True)
    )
    assert scheduler.now() == []
    scheduler.add(2, 4)
    assert granted(scheduler.now()) == [(2, 1)]
    scheduler.request(a_request(6, executors=2, is_restart=True))

    assert granted(scheduler.now()) == [(0, 3), (2, 3)]


def test_no_more_is_kept_than_an_application_needs_that_had_asked_anew_too_early() -> None:
    """Its app master, cut off, asks again for executors that have not ended, and is then lost, too.

    Were the slots of both kept, its next app master would wait for as long as they are.
    """
    scheduler = a_scheduler(16, 16)
    scheduler.on_total(APP, 24)
    ledger = scheduler.ledger
    ledger.on_running(WorkerId(0), [running(0, slots=8), running(2, slots=8)])
    ledger.on_running(WorkerId(1), [running(1, slots=8), running(MASTER_EXECUTOR, slots=1)])

    scheduler.request(a_request(16, executors=2, is_restart=True))
    assert scheduler.now() == []
    scheduler.lose(ledger.on_worker_lost(WorkerId(1)))
    scheduler.add(2, 16)
    assert granted(scheduler.now()) == [(2, 8), (2, 8)]
    scheduler.lose(ledger.on_running(WorkerId(0), []).ended)
    scheduler.lose(ledger.on_app_master_over(APP))
    scheduler.request(
        ResourceRequest(app_id=APP, launch=4, slots=1, is_restart=True, is_for_app_master=True)
    )

    assert granted(scheduler.now()) == [(0, 1)]
    scheduler.request(a_request(24, executors=3, is_restart=True))
    assert sorted(granted(scheduler.now())) == [(0, 8), (2, 8), (2, 8)]


def test_a_restart_that_no_worker_is_big_enough_for_holds_up_nobody() -> None:
    scheduler = a_scheduler(3, 3)
    scheduler.request(a_request(4, is_restart=True))
    scheduler.request(a_request(3, app_id=OTHER, executors=1))

    assert granted(scheduler.now()) == [(0, 3)]
    assert "needs 4 slots on one worker" in str(scheduler.why_waiting(APP))


def test_first_starts_wait_for_applications_that_ran_while_the_master_was_away() -> None:
    scheduler = a_scheduler(4)
    scheduler.expect(APP)
    scheduler.request(a_request(4, app_id=OTHER))

    assert scheduler.now() == []
    assert "4 of them kept" in str(scheduler.why_waiting(OTHER))
    scheduler.request(a_request(3, is_restart=True))
    assert granted(scheduler.now()) == [(0, 3)]
    scheduler.on_application_over(APP)
    scheduler.add(1, 4)

    assert granted(scheduler.now()) == [(1, 4)]


# -- as there is room --------------------------------------------------------------------------


def test_executors_of_unequal_sizes_are_asked_for_by_size() -> None:
    scheduler = a_scheduler(1, 3)

    scheduler.request(
        ResourceRequest(app_id=APP, launch=1, slots=4, executors=2, sizes=(1, 3), is_restart=True)
    )

    assert granted(scheduler.now()) == [(1, 3), (0, 1)]
    with pytest.raises(ConfigError, match="name a size for each executor"):
        ResourceRequest(app_id=APP, launch=1, slots=4, executors=2, sizes=(1, 2))


# -- all together ------------------------------------------------------------------------------

requests = st.builds(
    a_request,
    st.integers(1, 6),
    app_id=st.sampled_from([APP, OTHER]),
    executors=st.integers(0, 4),
    is_restart=st.booleans(),
    priority=st.sampled_from(Priority),
    one_worker=st.booleans(),
    worker=st.none() | st.integers(0, 3),
)


@given(free=st.lists(st.integers(0, 6), max_size=3), wanted=st.lists(requests, max_size=6))
def test_never_more_than_free_and_nothing_waits_that_fits(
    free: list[int], wanted: list[ResourceRequest]
) -> None:
    """The invariant, and that a big worker ends all waiting."""
    scheduler = a_scheduler(*free)
    for request in wanted:
        scheduler.request(request)

    grants = scheduler.now()

    for worker, slots in enumerate(free):
        used = sum(grant.slots for grant in grants if grant.worker_id == worker)
        assert used == slots - scheduler.workers()[WorkerId(worker)].free <= slots
    assert scheduler.now() == []
    for worker in range(4):
        scheduler.ledger.on_worker_lost(WorkerId(worker))
        scheduler.add(worker, 1000)
    grants += scheduler.now()
    assert sum(grant.slots for grant in grants) == sum(request.slots for request in wanted)
    assert scheduler.waiting_slots(APP) == scheduler.waiting_slots(OTHER) == 0


@given(
    totals=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    wanted=st.integers(1, 5),
    executors=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_a_restart_is_never_starved_by_first_starts(
    totals: list[int], wanted: int, executors: int, seed: int
) -> None:
    """The invariant: others come all the time, each stays a while, and yet it gets its slots."""
    rng, scheduler = Random(seed), a_scheduler(*totals)
    assume(wanted <= (max(totals) if executors else sum(totals)))
    ends: list[tuple[int, int, int]] = []  # When, where, and which executor.

    def step(now: int) -> list[Grant]:
        scheduler.cancel(OTHER)  # As many as there are slots, so that none is ever left over.
        scheduler.request(a_request(sum(totals), app_id=OTHER, executors=sum(totals)))
        grants = scheduler.now()
        mine = [grant for grant in grants if grant.app_id == APP]
        for grant in grants:
            ends.append((now + rng.randint(1, 3), grant.worker_id, scheduler.serial))
            scheduler.run([grant])
        for due in [each for each in ends if each[0] <= now]:
            ends.remove(due)
            running = scheduler.running[WorkerId(due[1])]
            at = next(at for at, each in enumerate(running) if each.launch == due[2])
            scheduler.end(due[1], at, is_kept=False)
        for worker, total in enumerate(totals):
            assert scheduler.workers()[WorkerId(worker)].used <= total
        return mine

    for now in range(6):
        step(now)
    scheduler.request(a_request(wanted, executors=executors, is_restart=True))
    got = 0
    for now in range(6, 6 + 4 * (wanted + 1) * len(totals)):
        got += sum(grant.slots for grant in step(now))

    assert got == wanted


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 80))
def test_no_more_is_kept_than_was_lost_and_no_more_granted_than_is_free(
    seed: int, steps: int
) -> None:
    """The invariants, whatever happens; and in the end nothing is kept."""
    rng, scheduler, now_ms = Random(seed), a_scheduler(6, 4, 3), 0
    totals, lost = {0: 6, 1: 4, 2: 3}, Counter[AppId]()

    def keep(had: Sequence[Grant]) -> None:
        for each in had:
            lost[each.app_id] += each.slots
            scheduler.on_lost(each, now_ms)

    for _ in range(steps):
        app_id, worker = AppId(rng.randint(1, 3)), rng.randint(0, 2)
        match rng.choice(["ask", "ask", "end", "end", "lose", "over", "tick"]):
            case "ask":
                scheduler.cancel(app_id)
                scheduler.request(
                    a_request(
                        rng.randint(1, 6),
                        app_id=app_id,
                        executors=rng.randint(0, 3),
                        is_restart=rng.random() < 0.5,
                    )
                )
            case "end" if scheduler.running.get(WorkerId(worker)):
                running = scheduler.running[WorkerId(worker)]
                running.pop(rng.randrange(len(running)))
                keep(scheduler.ledger.on_running(WorkerId(worker), running).ended)
            case "lose":
                keep(scheduler.ledger.on_worker_lost(WorkerId(worker)))
                scheduler.running.pop(WorkerId(worker), None)
                scheduler.add(worker, totals[worker])
            case "over":
                scheduler.on_application_over(app_id)
                del lost[app_id]
            case "tick":
                now_ms += rng.randint(0, RESERVE_MS // 2)
                scheduler.on_tick(now_ms)
            case _:
                pass
        kept = {each: scheduler.kept_slots(each) for each in map(AppId, (1, 2, 3))}
        assert all(slots <= lost[each] for each, slots in kept.items())
        before = {each: its.free for each, its in scheduler.workers().items()}
        grants = scheduler.allocate(now_ms)
        for each, free in before.items():
            assert sum(grant.slots for grant in grants if grant.worker_id == each) <= free
        for grant in grants:
            lost[grant.app_id] = max(0, lost[grant.app_id] - grant.slots)
        scheduler.run(grants)
    scheduler.on_tick(now_ms + RESERVE_MS)

    assert scheduler.next_due_ms is None
    assert all(scheduler.kept_slots(AppId(each)) == 0 for each in (1, 2, 3))
