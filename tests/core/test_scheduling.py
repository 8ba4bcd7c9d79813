"""Requests for slots, and the workers that have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.scheduling import Grant, Priority, Relaxation, ResourceRequest, SlotScheduler
from gearpy.errors import ConfigError
from gearpy.ids import AppId, WorkerId

APP = AppId(1)
OTHER = AppId(2)


def a_request(
    slots: int,
    *,
    app_id: AppId = APP,
    executors: int = 1,
    priority: Priority = Priority.NORMAL,
    one_worker: bool = False,
    worker: int | None = None,
) -> ResourceRequest:
    """Return a request; naming a worker makes it a request for that one."""
    relaxation = Relaxation.ONE_WORKER if one_worker else Relaxation.ANY
    return ResourceRequest(
        app_id=app_id,
        slots=slots,
        executors=executors,
        priority=priority,
        relaxation=relaxation if worker is None else Relaxation.SPECIFIC_WORKER,
        worker_id=None if worker is None else WorkerId(worker),
    )


def a_scheduler(*free: int) -> SlotScheduler:
    """Return a scheduler with workers 0, 1, ... that have these slots."""
    scheduler = SlotScheduler()
    for worker, slots in enumerate(free):
        scheduler.on_worker(WorkerId(worker), total=slots, free=slots)
    return scheduler


def granted(grants: list[Grant]) -> list[tuple[int, int]]:
    """Return worker and slots of each grant."""
    return [(grant.worker_id, grant.slots) for grant in grants]


def test_executors_are_spread_over_workers() -> None:
    """The emptiest worker gets the next executor."""
    scheduler = a_scheduler(4, 4)

    scheduler.request(a_request(5, executors=3))

    assert granted(scheduler.allocate()) == [(0, 2), (1, 2), (0, 1)]


@pytest.mark.parametrize("kind", ["any", "one-worker", "specific-worker"])
def test_exact_fit_is_a_fit(kind: str) -> None:
    """On a full cluster a lost executor gets its own slots back; Gearpump's never does."""
    scheduler = a_scheduler(3)

    scheduler.request(
        a_request(
            3, one_worker=kind == "one-worker", worker=0 if kind == "specific-worker" else None
        )
    )

    assert granted(scheduler.allocate()) == [(0, 3)]


def test_granted_slots_are_taken_at_once() -> None:
    """Gearpump hands them out twice until the worker reports."""
    scheduler = a_scheduler(3)
    scheduler.request(a_request(3))
    scheduler.allocate()

    scheduler.request(a_request(1, app_id=OTHER))

    assert scheduler.allocate() == []


def test_a_late_report_of_free_slots_gives_nothing_back() -> None:
    """The worker wrote it before it heard of the grant."""
    scheduler = a_scheduler(3)
    scheduler.request(a_request(2))
    scheduler.allocate()

    scheduler.on_worker(WorkerId(0), total=3, free=3)

    assert scheduler.workers()[WorkerId(0)].free == 1


def test_released_slots_serve_who_waits() -> None:
    """The executor of another application has ended."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(2))
    scheduler.allocate()
    scheduler.request(a_request(2, app_id=OTHER))

    scheduler.release(WorkerId(0), 2)

    assert scheduler.allocate() == [Grant(OTHER, WorkerId(0), 2)]


def test_release_never_makes_slots() -> None:
    """Told twice, or by a worker that is gone."""
    scheduler = a_scheduler(2)

    scheduler.release(WorkerId(0), 5)
    scheduler.release(WorkerId(9), 5)

    assert {worker: each.free for worker, each in scheduler.workers().items()} == {0: 2}


def test_a_worker_that_shrank_pays_back_first() -> None:
    """Slots that are gone are not granted again when their executor ends."""
    scheduler = a_scheduler(4)
    scheduler.request(a_request(4))
    scheduler.allocate()

    scheduler.on_worker(WorkerId(0), total=2, free=0)
    scheduler.release(WorkerId(0), 1)

    assert scheduler.workers()[WorkerId(0)].free == 0


def test_lost_worker_has_no_slots() -> None:
    """Nothing is granted on a machine that is gone."""
    scheduler = a_scheduler(2)
    scheduler.on_worker_lost(WorkerId(0))

    scheduler.request(a_request(1))

    assert scheduler.allocate() == []
    assert scheduler.workers() == {}


def test_ended_application_asks_for_nothing() -> None:
    """However it ended; Gearpump drops requests only on a shutdown."""
    scheduler = a_scheduler()
    scheduler.request(a_request(2))
    scheduler.request(a_request(1, app_id=OTHER))

    scheduler.cancel(APP)
    scheduler.on_worker(WorkerId(0), total=5, free=5)

    assert scheduler.allocate() == [Grant(OTHER, WorkerId(0), 1)]


def test_a_part_that_fits_does_not_wait_for_the_others() -> None:
    """The rest follows when slots become free."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(4, executors=2))

    first = scheduler.allocate()
    scheduler.on_worker(WorkerId(1), total=2, free=2)

    assert granted(first) == [(0, 2)]
    assert granted(scheduler.allocate()) == [(1, 2)]


def test_what_does_not_fit_holds_up_nobody() -> None:
    """A request too big for now does not leave slots idle."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(3, priority=Priority.HIGH))
    scheduler.request(a_request(2, app_id=OTHER))

    assert scheduler.allocate() == [Grant(OTHER, WorkerId(0), 2)]
    assert scheduler.waiting_slots(APP) == 3


def test_more_executors_than_slots_get_one_each() -> None:
    """An executor without a slot hosts nothing."""
    assert a_request(2, executors=9).parts() == [1, 1]


def test_a_request_that_can_never_be_served_says_why() -> None:
    """Nothing waits in silence."""
    scheduler = a_scheduler(2, 2)

    scheduler.request(a_request(4))
    scheduler.allocate()

    assert "needs 4 slots on one worker, but the biggest it may use has 2" in str(
        scheduler.why_waiting(APP)
    )


def test_a_request_that_waits_its_turn_says_so() -> None:
    """And one that waits for nothing says nothing."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(2, app_id=OTHER))
    scheduler.request(a_request(2, worker=0))

    scheduler.allocate()

    assert scheduler.why_waiting(APP) == (
        "needs 2 more slots, 0 are free on the workers it may use"
    )
    assert scheduler.why_waiting(OTHER) is None


def test_wrong_requests_are_refused() -> None:
    """All mistakes at once."""
    with pytest.raises(ConfigError) as refusal:
        ResourceRequest(
            app_id=APP, slots=0, executors=0, relaxation=Relaxation.ANY, worker_id=WorkerId(1)
        )

    assert len(refusal.value.mistakes) == 3


def test_a_worker_that_comes_again_says_itself_what_is_taken() -> None:
    """A new master knows nothing; an old one may have it wrong."""
    scheduler = a_scheduler(9)
    scheduler.request(a_request(4))
    scheduler.allocate()

    for worker in (0, 7):
        scheduler.on_worker_again(WorkerId(worker), total=8, running=[2, 1])

    assert {
        worker: (each.total, each.free, each.executors)
        for worker, each in scheduler.workers().items()
    } == {0: (8, 5, 2), 7: (8, 5, 2)}


def test_more_running_than_there_are_slots_leave_none_free() -> None:
    """The worker came back with fewer."""
    scheduler = a_scheduler()

    scheduler.on_worker_again(WorkerId(0), total=2, running=[2, 2])

    assert scheduler.workers()[WorkerId(0)].free == 0
    scheduler.release(WorkerId(0), 2)
    assert scheduler.workers()[WorkerId(0)].free == 0


def test_executors_are_counted() -> None:
    """Each grant is one, and each release ends one."""
    scheduler = a_scheduler(9)
    scheduler.request(a_request(5, executors=2))
    scheduler.allocate()
    assert scheduler.workers()[WorkerId(0)].executors == 2

    for _ in range(3):
        scheduler.release(WorkerId(0), 2)

    assert scheduler.workers()[WorkerId(0)].executors == 0


def test_executors_of_one_request_are_on_different_workers_where_they_can() -> None:
    """One machine that fails shall not take them all, however big it is."""
    scheduler = a_scheduler(100, 2, 2)

    scheduler.request(a_request(8, executors=4))

    assert granted(scheduler.allocate()) == [(0, 2), (1, 2), (2, 2), (0, 2)]


def test_a_worker_to_avoid_is_the_last_choice() -> None:
    """The app master was lost there; but somewhere it must run."""
    scheduler = a_scheduler(9, 1)
    avoiding = ResourceRequest(app_id=APP, slots=1, avoid=WorkerId(0))

    scheduler.request(avoiding)
    scheduler.request(avoiding)

    assert granted(scheduler.allocate()) == [(1, 1), (0, 1)]


requests = st.builds(
    a_request,
    st.integers(1, 6),
    app_id=st.sampled_from([APP, OTHER]),
    executors=st.integers(1, 4),
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

    grants = scheduler.allocate()

    for worker, slots in enumerate(free):
        used = sum(grant.slots for grant in grants if grant.worker_id == worker)
        assert used == slots - scheduler.workers()[WorkerId(worker)].free <= slots
    assert scheduler.allocate() == []
    for worker in range(4):
        scheduler.on_worker_lost(WorkerId(worker))
        scheduler.on_worker(WorkerId(worker), total=1000, free=1000)
    grants += scheduler.allocate()
    assert sum(grant.slots for grant in grants) == sum(request.slots for request in wanted)
    assert scheduler.waiting_slots(APP) == scheduler.waiting_slots(OTHER) == 0
