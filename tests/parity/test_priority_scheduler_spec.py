"""Promises of Gearpump's `PrioritySchedulerSpec`."""

from gearpy.core.master.requests import Priority, Relaxation, ResourceRequest
from gearpy.core.master.scheduling import SlotScheduler
from gearpy.core.master.slots import Grant, SlotLedger
from gearpy.ids import AppId, WorkerId

APP, OTHER = AppId(1), AppId(2)
ONE, TWO = WorkerId(1), WorkerId(2)


def a_cluster(slots: dict[WorkerId, int]) -> tuple[SlotScheduler, SlotLedger]:
    """Return a scheduler, and the ledger that has these workers, all free."""
    ledger = SlotLedger(grant_timeout_ms=1000)
    for worker, total in slots.items():
        ledger.on_worker(worker, total=total, running=())
    return SlotScheduler(ledger), ledger


def test_only_known_workers_have_slots() -> None:
    """`PrioritySchedulerSpec`: an update of an unregistered worker changes nothing."""
    scheduler, ledger = a_cluster({})
    scheduler.request(ResourceRequest(app_id=APP, launch=1, slots=1))

    ledger.on_running(ONE, ())

    assert scheduler.allocate(0) == []


def test_requests_of_a_finished_application_are_dropped() -> None:
    """`PrioritySchedulerSpec`: the scheduler drops its resource requests."""
    scheduler, ledger = a_cluster({})
    scheduler.request(ResourceRequest(app_id=APP, launch=1, slots=40))
    scheduler.cancel(APP)

    ledger.on_worker(ONE, total=100, running=())

    assert scheduler.allocate(0) == []


def test_higher_priority_comes_first_and_then_the_older() -> None:
    """`PrioritySchedulerSpec`: resources go by priority, then by age."""
    scheduler, _ = a_cluster({ONE: 100})
    wanted = [(1, Priority.LOW), (2, Priority.NORMAL), (3, Priority.HIGH), (4, Priority.HIGH)]
    for app, priority in wanted:
        scheduler.request(ResourceRequest(app_id=AppId(app), launch=1, slots=20, priority=priority))

    grants = scheduler.allocate(0)

    assert [grant.app_id for grant in grants] == [3, 4, 2, 1]


def test_any_request_is_spread_over_two_workers() -> None:
    """`PrioritySchedulerSpec`: 30 slots in two executors, 15 and 15."""
    scheduler, _ = a_cluster({ONE: 20, TWO: 20})

    scheduler.request(ResourceRequest(app_id=APP, launch=1, slots=30, executors=2))

    assert scheduler.allocate(0) == [Grant(APP, 1, ONE, 15), Grant(APP, 1, TWO, 15)]


def test_one_worker_request_is_granted_on_one_worker() -> None:
    """`PrioritySchedulerSpec`: 60 slots on the worker that has 65 free; here as executors."""
    scheduler, _ = a_cluster({ONE: 40, TWO: 65})

    scheduler.request(
        ResourceRequest(
            app_id=APP, launch=1, slots=60, executors=3, relaxation=Relaxation.ONE_WORKER
        )
    )

    assert scheduler.allocate(0) == [Grant(APP, 1, TWO, 20)] * 3


def test_specific_worker_request_waits_for_its_worker() -> None:
    scheduler, ledger = a_cluster({ONE: 100})
    scheduler.request(
        ResourceRequest(
            app_id=APP, launch=1, slots=40, relaxation=Relaxation.SPECIFIC_WORKER, worker_id=TWO
        )
    )
    before = scheduler.allocate(0)

    ledger.on_worker(TWO, total=100, running=())

    assert before == []
    assert scheduler.allocate(0) == [Grant(APP, 1, TWO, 40)]


def test_slots_are_divided_by_the_number_of_executors() -> None:
    """`PrioritySchedulerSpec`: as many executors as asked for, slots as equal as can be."""
    scheduler, _ = a_cluster({ONE: 100, TWO: 100})

    scheduler.request(ResourceRequest(app_id=OTHER, launch=1, slots=31, executors=4))

    grants = scheduler.allocate(0)
    assert sorted(grant.slots for grant in grants) == [7, 8, 8, 8]
    assert [grant.worker_id for grant in grants].count(ONE) == 2
