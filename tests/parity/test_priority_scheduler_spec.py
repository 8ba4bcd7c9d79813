"""Promises of Gearpump's `PrioritySchedulerSpec`."""

from gearpy.core.scheduling import Grant, Priority, Relaxation, ResourceRequest, SlotScheduler
from gearpy.ids import AppId, WorkerId

APP, OTHER = AppId(1), AppId(2)
ONE, TWO = WorkerId(1), WorkerId(2)


def scheduler_with(slots: dict[WorkerId, int]) -> SlotScheduler:
    """Return a scheduler with these workers, all free."""
    scheduler = SlotScheduler()
    for worker, count in slots.items():
        scheduler.on_worker(worker, total=count, free=count)
    return scheduler


def test_only_known_workers_have_slots() -> None:
    """`PrioritySchedulerSpec`: an update of an unregistered worker changes nothing."""
    scheduler = scheduler_with({})
    scheduler.request(ResourceRequest(app_id=APP, slots=1))

    scheduler.release(ONE, 100)

    assert scheduler.allocate() == []


def test_requests_of_a_finished_application_are_dropped() -> None:
    """`PrioritySchedulerSpec`: the scheduler drops its resource requests."""
    scheduler = scheduler_with({})
    scheduler.request(ResourceRequest(app_id=APP, slots=40))
    scheduler.cancel(APP)

    scheduler.on_worker(ONE, total=100, free=100)

    assert scheduler.allocate() == []


def test_higher_priority_comes_first_and_then_the_older() -> None:
    """`PrioritySchedulerSpec`: resources go by priority, then by age."""
    scheduler = scheduler_with({ONE: 100})
    wanted = [(1, Priority.LOW), (2, Priority.NORMAL), (3, Priority.HIGH), (4, Priority.HIGH)]
    for app, priority in wanted:
        scheduler.request(ResourceRequest(app_id=AppId(app), slots=20, priority=priority))

    grants = scheduler.allocate()

    assert [grant.app_id for grant in grants] == [3, 4, 2, 1]


def test_any_request_is_spread_over_two_workers() -> None:
    """`PrioritySchedulerSpec`: 30 slots in two executors, 15 and 15."""
    scheduler = scheduler_with({ONE: 20, TWO: 20})

    scheduler.request(ResourceRequest(app_id=APP, slots=30, executors=2))

    assert scheduler.allocate() == [Grant(APP, ONE, 15), Grant(APP, TWO, 15)]


def test_one_worker_request_is_not_divided() -> None:
    """`PrioritySchedulerSpec`: 60 slots on the worker that has 65 free."""
    scheduler = scheduler_with({ONE: 40, TWO: 65})

    scheduler.request(
        ResourceRequest(app_id=APP, slots=60, executors=3, relaxation=Relaxation.ONE_WORKER)
    )

    assert scheduler.allocate() == [Grant(APP, TWO, 60)]


def test_specific_worker_request_waits_for_its_worker() -> None:
    """`PrioritySchedulerSpec`: only the worker named will do."""
    scheduler = scheduler_with({ONE: 100})
    scheduler.request(
        ResourceRequest(app_id=APP, slots=40, relaxation=Relaxation.SPECIFIC_WORKER, worker_id=TWO)
    )
    before = scheduler.allocate()

    scheduler.on_worker(TWO, total=100, free=100)

    assert before == []
    assert scheduler.allocate() == [Grant(APP, TWO, 40)]


def test_slots_are_divided_by_the_number_of_executors() -> None:
    """`PrioritySchedulerSpec`: as many executors as asked for, slots as equal as can be."""
    scheduler = scheduler_with({ONE: 100, TWO: 100})

    scheduler.request(ResourceRequest(app_id=OTHER, slots=31, executors=4))

    grants = scheduler.allocate()
    assert sorted(grant.slots for grant in grants) == [7, 8, 8, 8]
    assert [grant.worker_id for grant in grants].count(ONE) == 2
