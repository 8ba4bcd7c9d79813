"""Requests for slots, and the workers that have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.scheduling import Priority, Relaxation, ResourceRequest, SlotScheduler
from gearpy.core.slots import Grant, SlotLedger
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
        launch=3,
        slots=slots,
        executors=executors,
        priority=priority,
        relaxation=relaxation if worker is None else Relaxation.SPECIFIC_WORKER,
        worker_id=None if worker is None else WorkerId(worker),
    )


class Bench(SlotScheduler):
    """A scheduler over a ledger, at no particular time."""

    def __init__(self) -> None:
        self.ledger = SlotLedger(grant_timeout_ms=1000)
        super().__init__(self.ledger)

    def add(self, worker: int, slots: int) -> None:
        """Add a worker where nothing runs."""
        self.ledger.on_worker(WorkerId(worker), total=slots, running=())

    def now(self) -> list[Grant]:
        """Grant what can be granted."""
        return self.allocate(0)


def a_scheduler(*slots: int) -> Bench:
    """Return a scheduler with workers 0, 1, ... that have these slots."""
    bench = Bench()
    for worker, total in enumerate(slots):
        bench.add(worker, total)
    return bench


def granted(grants: list[Grant]) -> list[tuple[int, int]]:
    """Return worker and slots of each grant."""
    return [(grant.worker_id, grant.slots) for grant in grants]


def test_executors_are_spread_over_workers() -> None:
    """The emptiest worker gets the next executor."""
    scheduler = a_scheduler(4, 4)

    scheduler.request(a_request(5, executors=3))

    assert granted(scheduler.now()) == [(0, 2), (1, 2), (0, 1)]


@pytest.mark.parametrize("kind", ["any", "one-worker", "specific-worker"])
def test_exact_fit_is_a_fit(kind: str) -> None:
    """On a full cluster a lost executor gets its own slots back; Gearpump's never does."""
    scheduler = a_scheduler(3)

    scheduler.request(
        a_request(
            3, one_worker=kind == "one-worker", worker=0 if kind == "specific-worker" else None
        )
    )

    assert granted(scheduler.now()) == [(0, 3)]


def test_granted_slots_are_taken_at_once() -> None:
    """Gearpump hands them out twice until the worker reports."""
    scheduler = a_scheduler(3)
    scheduler.request(a_request(3))
    scheduler.now()

    scheduler.request(a_request(1, app_id=OTHER))

    assert scheduler.now() == []


def test_released_slots_serve_who_waits() -> None:
    """The application that had them is gone."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(2))
    scheduler.now()
    scheduler.request(a_request(2, app_id=OTHER))

    scheduler.ledger.on_app_master_over(APP)

    assert scheduler.now() == [Grant(OTHER, 3, WorkerId(0), 2)]


def test_ended_application_asks_for_nothing() -> None:
    """However it ended; Gearpump drops requests only on a shutdown."""
    scheduler = a_scheduler()
    scheduler.request(a_request(2))
    scheduler.request(a_request(1, app_id=OTHER))

    scheduler.cancel(APP)
    scheduler.add(0, 5)

    assert scheduler.now() == [Grant(OTHER, 3, WorkerId(0), 1)]


def test_a_part_that_fits_does_not_wait_for_the_others() -> None:
    """The rest follows when slots become free."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(4, executors=2))

    first = scheduler.now()
    scheduler.add(1, 2)

    assert granted(first) == [(0, 2)]
    assert granted(scheduler.now()) == [(1, 2)]


def test_what_does_not_fit_holds_up_nobody() -> None:
    """A request too big for now does not leave slots idle."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(3, priority=Priority.HIGH))
    scheduler.request(a_request(2, app_id=OTHER))

    assert scheduler.now() == [Grant(OTHER, 3, WorkerId(0), 2)]
    assert scheduler.waiting_slots(APP) == 3


def test_more_executors_than_slots_get_one_each() -> None:
    """An executor without a slot hosts nothing."""
    assert a_request(2, executors=9).parts() == [1, 1]


def test_a_request_that_can_never_be_served_says_why() -> None:
    """Nothing waits in silence."""
    scheduler = a_scheduler(2, 2)

    scheduler.request(a_request(4))
    scheduler.now()

    assert "needs 4 slots on one worker, but the biggest it may use has 2" in str(
        scheduler.why_waiting(APP)
    )


def test_a_request_that_waits_its_turn_says_so() -> None:
    """And one that waits for nothing says nothing."""
    scheduler = a_scheduler(2)
    scheduler.request(a_request(2, app_id=OTHER))
    scheduler.request(a_request(2, worker=0))

    scheduler.now()

    assert scheduler.why_waiting(APP) == (
        "needs 2 more slots, 0 are free on the workers it may use"
    )
    assert scheduler.why_waiting(OTHER) is None


def test_wrong_requests_are_refused() -> None:
    """All mistakes at once."""
    with pytest.raises(ConfigError) as refusal:
        ResourceRequest(
            app_id=APP,
            launch=1,
            slots=0,
            executors=0,
            relaxation=Relaxation.ANY,
            worker_id=WorkerId(1),
        )

    assert len(refusal.value.mistakes) == 3


def test_executors_of_one_request_are_on_different_workers_where_they_can() -> None:
    """One machine that fails shall not take them all, however big it is."""
    scheduler = a_scheduler(100, 2, 2)

    scheduler.request(a_request(8, executors=4))

    assert granted(scheduler.now()) == [(0, 2), (1, 2), (2, 2), (0, 2)]


def test_a_worker_to_avoid_is_the_last_choice() -> None:
    """The app master was lost there; but somewhere it must run."""
    scheduler = a_scheduler(9, 1)
    avoiding = ResourceRequest(app_id=APP, launch=1, slots=1, avoid=WorkerId(0))

    scheduler.request(avoiding)
    scheduler.request(avoiding)

    assert granted(scheduler.now()) == [(1, 1), (0, 1)]


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
